//! The methods that a path answers, and what the others get: 405 with these in `Allow`.

/// Methods of one path, besides OPTIONS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Methods {
    /// GET and HEAD.
    Get,
    /// POST.
    Post,
    /// GET, HEAD and POST.
    GetAndPost,
}

impl Methods {
    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::GetAndPost }
    }

    /// The value of `Allow`.
    #[must_use]
    pub fn allow(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::GetAndPost => "GET, HEAD, POST, OPTIONS",
        }
    }

    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Get => "This path accepts only GET and HEAD requests",
            Self::Post => "This path accepts only POST requests",
            Self::GetAndPost => "This path accepts only GET, HEAD and POST requests",
        }
    }
}
