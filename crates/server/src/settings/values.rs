//! The values of settings: a type for each kind, whose parser says what the text must look like.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use intake_domain::{Name, NameError};
use intake_http::TrustedProxies;
use intake_infra::Durability;
use ipnet::IpNet;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Far more than ever helped, and fewer than PostgreSQL's usual limit of connections.
const WRITERS_MAX: usize = 64;

/// An address with a port.
pub(crate) struct Address(pub(crate) SocketAddr);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| "must be an address with a port, like 127.0.0.1:8443 or [::]:8443")
    }
}

/// An address that may be off.
pub(crate) struct Switched(pub(crate) Option<SocketAddr>);

impl FromStr for Switched {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse().map(Some).map(Self).map_err(|_| "must be an address with a port, like 127.0.0.1:8080, or off")
    }
}

/// The networks of trusted proxies.
pub(crate) struct Proxies(pub(crate) TrustedProxies);

impl FromStr for Proxies {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = |text: &str| text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let networks = text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(parse);
        let networks = networks.collect::<Result<_, _>>();
        networks.map(TrustedProxies::new).map(Self).map_err(|_| "must be networks like 10.0.0.0/8,192.168.1.7")
    }
}

/// Who runs commands.
pub(crate) struct OperatorName(pub(crate) Name);

impl FromStr for OperatorName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Name::new(text).map(Self)
    }
}

/// Number of connections that store patients.
pub(crate) struct Writers(pub(crate) NonZeroUsize);

impl FromStr for Writers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= WRITERS_MAX);
        count.map(Self).ok_or("must be a number from 1 to 64")
    }
}

/// A time span in `ms`, `s` or `m`, which may be zero.
pub(crate) struct Delay(pub(crate) Duration);

impl FromStr for Delay {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u32 = digits.parse().map_err(|_| "must be a time like 5s or 500ms")?;
        match text.get(digits.len()..) {
            Some("ms") => Ok(Self(Duration::from_millis(number.into()))),
            Some("s") => Ok(Self(Duration::from_secs(number.into()))),
            Some("m") => Ok(Self(Duration::from_secs(u64::from(number) * 60))),
            _ => Err("must be a time like 5s or 500ms"),
        }
    }
}

/// A time span that is not zero.
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Delay(span) = text.parse()?;
        if span.is_zero() { Err("must be longer than nothing") } else { Ok(Self(span)) }
    }
}

/// Failures that a commit must survive.
pub(crate) struct Survival(pub(crate) Durability);

impl FromStr for Survival {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "full" => Ok(Self(Durability::Full)),
            "none" => Ok(Self(Durability::None)),
            _ => Err("must be full, or none for tests on a database that may lose everything"),
        }
    }
}

/// Levels of the log: one, or several by module.
pub(crate) struct Log(pub(crate) Targets);

impl FromStr for Log {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
        if !text.split(',').all(is_known) {
            return Err("must be a level like info, or levels by module like info,intake_infra=debug");
        }
        // Only on demand: actix logs the start of every worker and every malformed request, and a line for each request
        // costs much of what the request itself does (decision 17).
        let targets = format!("actix_server=warn,actix_http=off,intake::requests=off,{text}").parse();
        targets.map(Self).map_err(|_| "must be a level like info, or levels by module like info,intake_infra=debug")
    }
}

/// An HTTPS address without a slash at its end.
pub(crate) struct Link(pub(crate) String);

impl Link {
    /// The host that the link names, without a port.
    pub(crate) fn host(&self) -> &str {
        let rest = self.0.strip_prefix("https://").unwrap_or(&self.0);
        rest.split(['/', ':']).next().unwrap_or_default()
    }
}

impl FromStr for Link {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let link = text.strip_suffix('/').unwrap_or(text);
        let is_plain = link.bytes().all(|byte| byte.is_ascii_graphic());
        match link.strip_prefix("https://") {
            Some(rest) if !rest.is_empty() && !rest.contains(['/', '?', '#']) && is_plain => Ok(Self(link.to_owned())),
            _ => Err("must be an address like https://intake.example, without a path"),
        }
    }
}
