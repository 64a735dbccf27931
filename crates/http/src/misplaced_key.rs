//! Where requests have their key if it is not where it belongs, each with what the answer says about it.

use std::fmt;

/// Place or form in which a request has its key, if that is not the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MisplacedKey {
    Repeated,
    Missing,
    NoScheme,
    SchemeTwice,
    OtherScheme,
    OtherHeader,
    Query,
}

impl fmt::Display for MisplacedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repeated => "Send one Authorization header: Authorization: Bearer KEY",
            Self::Missing => "The key is missing: send Authorization: Bearer KEY",
            Self::NoScheme => "The scheme is missing: send Authorization: Bearer KEY",
            Self::SchemeTwice => "The scheme is there twice: send Authorization: Bearer KEY",
            Self::OtherScheme => "The scheme must be Bearer: send Authorization: Bearer KEY",
            Self::OtherHeader => "The key is in another header: send Authorization: Bearer KEY",
            Self::Query => "The key is in the URL: send Authorization: Bearer KEY",
        })
    }
}
