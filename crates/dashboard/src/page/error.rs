//! What can go wrong with a page, and the page that tells the reader what to do about it.

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use intake_domain::{Source, StoreError};
use intake_http::Cause;

use crate::page::destination::Destination;

/// Where a member turns on two-step sign-in.
const SECOND_FACTOR: &str = "/settings/account/second-factor";

/// Why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum PageError {
    /// Nobody is signed in. The page that was asked for is shown after signing in.
    SignInFirst(Destination),
    /// The organisation requires two-step sign-in, and the member has yet to turn it on.
    SecondFactorFirst,
    /// The member is a key manager.
    AdministratorsOnly,
    /// There is nothing at this address, or nothing that this reader may see.
    NotFound,
    /// The request to change something came from another site.
    CrossSite,
    /// The form does not come from a page of this session.
    StaleForm,
    /// The form could not be read.
    BadForm,
    /// The invitation is unknown, has expired or was used.
    NoInvitation,
    /// The reset link is unknown, has expired, or was used or replaced.
    NoPasswordReset,
    /// The organisation has reached its limit of active keys.
    TooManyKeys,
    /// The service has more work than it accepts.
    Full,
    /// The database cannot be reached in time.
    Unavailable(Source),
    /// Anything else.
    Unexpected(Source),
}

#[derive(Template)]
#[template(path = "page/message.html")]
struct Message {
    title: &'static str,
    text: &'static str,
    link: &'static str,
    link_text: &'static str,
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.status_title_text().1)
    }
}

impl PageError {
    /// The cause for the log, which is written once, where every answer leaves.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Full => Some(Cause::full()),
            Self::Unavailable(source) | Self::Unexpected(source) => Some(Cause::of(source)),
            _ => None,
        }
    }

    fn status_title_text(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::SignInFirst(_) => (StatusCode::SEE_OTHER, "Sign in", "Sign in first."),
            Self::SecondFactorFirst => {
                (StatusCode::SEE_OTHER, "Turn on two-step sign-in", "Your organisation requires it.")
            }
            Self::AdministratorsOnly => (
                StatusCode::FORBIDDEN,
                "For administrators only",
                "You are a key manager: you look after API keys. Members and the activity are looked after by your organisation's administrators, who can give you their role.",
            ),
            Self::NotFound => (StatusCode::NOT_FOUND, "Page not found", "There is nothing at this address."),
            Self::CrossSite => {
                (StatusCode::FORBIDDEN, "Refused", "Another site asked for this change, so it was not made.")
            }
            Self::StaleForm => (
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "You have signed in or out since it was opened, so nothing was changed. Open the page again and repeat your change.",
            ),
            Self::BadForm => {
                (StatusCode::BAD_REQUEST, "The form could not be read", "Nothing was changed. Open the page again.")
            }
            Self::NoInvitation => (
                StatusCode::NOT_FOUND,
                "This invitation no longer works",
                "It was used or withdrawn, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
            ),
            Self::NoPasswordReset => (
                StatusCode::NOT_FOUND,
                "This reset link no longer works",
                "It was used or replaced, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
            ),
            Self::TooManyKeys => (
                StatusCode::CONFLICT,
                "Too many keys",
                "Your organisation has reached its limit of active keys. Revoke one that is no longer used first.",
            ),
            Self::Full | Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "One moment",
                "The service is busy or cannot reach its database. Try again in a few seconds.",
            ),
            Self::Unexpected(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong", "An unexpected error occurred.")
            }
        }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded => Self::Full,
            StoreError::Unavailable(source) => Self::Unavailable(source),
            StoreError::Unexpected(source) => Self::Unexpected(source),
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::Unexpected(error.into())
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.status_title_text().0
    }

    fn error_response(&self) -> HttpResponse {
        let (status, title, text) = self.status_title_text();
        let mut response = HttpResponse::build(status);
        match self {
            Self::SignInFirst(next) => return response.insert_header((LOCATION, next.after("/sign-in"))).finish(),
            Self::SecondFactorFirst => return response.insert_header((LOCATION, SECOND_FACTOR)).finish(),
            Self::Full | Self::Unavailable(_) => drop(response.insert_header(("Retry-After", "5"))),
            _ => {}
        }
        let message = Message { title, text, link: "/settings/api-keys", link_text: "Go to API keys" };
        let mut response = response.content_type("text/html; charset=utf-8").body(message.render().unwrap_or_default());
        if let Some(cause) = self.cause() {
            response.extensions_mut().insert(cause);
        }
        response
    }
}
