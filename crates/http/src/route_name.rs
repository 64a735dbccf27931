//! The route of a request, as metrics and the log name it: its pattern, in which whatever a caller puts into the path
//! (the token of an invitation, say) is a name in braces.

use actix_web::dev::ServiceRequest;

/// The routes of the interface. Looking up a pattern takes longer than comparing a path with these.
pub(crate) const API_ROUTES: [&str; 2] = ["/api/v1/patients", "/api/v1/patients/validate"];
/// Paths at which there is nothing, all of them together: there is no end of those.
pub(crate) const NO_ROUTE: &str = "none";

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// One of [`API_ROUTES`].
    Api(usize),
    /// Another one, by its pattern.
    Other(String),
    /// Nothing is at its path.
    None,
}

impl Route {
    pub(crate) fn of(request: &ServiceRequest) -> Self {
        match API_ROUTES.iter().position(|route| *route == request.path()) {
            Some(index) => Self::Api(index),
            None => request.match_pattern().map_or(Self::None, Self::Other),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Api(index) => API_ROUTES.get(*index).copied().unwrap_or(NO_ROUTE),
            Self::Other(pattern) => pattern,
            Self::None => NO_ROUTE,
        }
    }
}
