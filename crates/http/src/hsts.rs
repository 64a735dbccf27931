//! For how long, and for which hosts, browsers use HTTPS alone once they have seen the service.

use std::str::FromStr;

/// The hosts that an answer speaks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hsts {
    /// The service's own host.
    #[default]
    Host,
    /// The host and all below it, which then need HTTPS, too.
    Subdomains,
}

impl Hsts {
    /// The value of `Strict-Transport-Security`.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Host => "max-age=31536000",
            Self::Subdomains => "max-age=31536000; includeSubDomains",
        }
    }
}

impl FromStr for Hsts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "host" => Ok(Self::Host),
            "subdomains" => Ok(Self::Subdomains),
            _ => Err("must be host or subdomains"),
        }
    }
}
