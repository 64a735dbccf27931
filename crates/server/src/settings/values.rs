//! The values of settings: a parser for each kind, which says what the text must look like.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use intake_http::TrustedProxies;
use intake_infra::Durability;
use ipnet::IpNet;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Far more than ever helped, and fewer than PostgreSQL's usual limit of connections.
const WRITERS_MAX: usize = 64;
/// Room for a name, an address and a phone number.
const CONTACT_MAX: usize = 200;

/// Parses an address with a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "must be an address with a port, like 127.0.0.1:8443 or [::]:8443")
}

/// Parses an address that may be off.
pub(crate) fn address_or_off(text: &str) -> Result<Option<SocketAddr>, &'static str> {
    if text == "off" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "must be an address with a port, like 127.0.0.1:8080, or off")
}

/// Parses the networks of trusted proxies.
pub(crate) fn proxies(text: &str) -> Result<TrustedProxies, &'static str> {
    let parse = |text: &str| text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let networks = text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(parse);
    let networks = networks.collect::<Result<_, _>>();
    networks.map(TrustedProxies::new).map_err(|_| "must be networks like 10.0.0.0/8,192.168.1.7")
}

/// Parses the number of connections that store patients.
pub(crate) fn writers(text: &str) -> Result<NonZeroUsize, &'static str> {
    let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= WRITERS_MAX);
    count.ok_or("must be a number from 1 to 64")
}

/// Parses a time span in `ms`, `s` or `m`, which may be zero.
pub(crate) fn delay(text: &str) -> Result<Duration, &'static str> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u32 = digits.parse().map_err(|_| "must be a time like 5s or 500ms")?;
    match text.get(digits.len()..) {
        Some("ms") => Ok(Duration::from_millis(number.into())),
        Some("s") => Ok(Duration::from_secs(number.into())),
        Some("m") => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err("must be a time like 5s or 500ms"),
    }
}

/// Parses whom members ask: it ends a sentence, and must not add lines to emails.
pub(crate) fn contact(text: &str) -> Result<String, &'static str> {
    let text = text.trim().trim_end_matches('.');
    let is_line = !text.is_empty() && text.chars().count() <= CONTACT_MAX && !text.chars().any(char::is_control);
    if is_line { Ok(text.to_owned()) } else { Err("must be one line of at most 200 characters") }
}

/// Parses a time span that is not zero.
pub(crate) fn span(text: &str) -> Result<Duration, &'static str> {
    let span = delay(text)?;
    if span.is_zero() { Err("must be longer than nothing") } else { Ok(span) }
}

/// Parses the failures that a commit must survive.
pub(crate) fn durability(text: &str) -> Result<Durability, &'static str> {
    match text {
        "full" => Ok(Durability::Full),
        "none" => Ok(Durability::None),
        _ => Err("must be full, or none for tests on a database that may lose everything"),
    }
}

/// Parses levels of the log: one, or several by module.
pub(crate) fn log_levels(text: &str) -> Result<Targets, &'static str> {
    let is_known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    if !text.split(',').all(is_known) {
        return Err("must be a level like info, or levels by module like info,intake_infra=debug");
    }
    // Only on demand: actix logs the start of every worker and every malformed request, and a line for each request
    // costs much of what the request itself does (decision 17).
    let targets = format!("actix_server=warn,actix_http=off,intake::requests=off,{text}").parse();
    targets.map_err(|_| "must be a level like info, or levels by module like info,intake_infra=debug")
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
