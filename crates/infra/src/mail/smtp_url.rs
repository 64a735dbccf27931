//! The address of a mail server, which holds a password and is never printed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use lettre::SmtpTransport;

/// Time that the mail server may take for one step.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `smtps://USER:PASSWORD@HOST`, or `smtp://` for a server that begins unencrypted. To another machine everything is
/// encrypted, unless `?tls=opportunistic` leaves that to the server.
#[derive(Clone, PartialEq, Eq)]
pub struct SmtpUrl(String);

impl SmtpUrl {
    /// Returns whether the address holds a password.
    #[must_use]
    pub fn has_password(&self) -> bool {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        authority(rest).rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    }

    /// Connects to the server, which must answer and take the password, if there is one.
    pub fn greet(&self) -> anyhow::Result<()> {
        if self.transport()?.test_connection()? {
            Ok(())
        } else {
            anyhow::bail!("the server does not answer as it should")
        }
    }

    /// Returns what connects to the server, which is not asked yet.
    pub(crate) fn transport(&self) -> Result<SmtpTransport, SmtpUrlError> {
        let built = SmtpTransport::from_url(&self.0).map_err(|_| SmtpUrlError)?;
        Ok(built.timeout(Some(TIMEOUT)).build())
    }
}

impl FromStr for SmtpUrl {
    type Err = SmtpUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = match text.strip_prefix("smtp://") {
            Some(rest) if !is_on_this_machine(rest) && !says_tls(rest) => {
                format!("{text}{}tls=required", if rest.contains('?') { '&' } else { '?' })
            }
            _ => text.to_owned(),
        };
        let url = Self(url);
        url.transport().map(|_| url)
    }
}

impl fmt::Debug for SmtpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SmtpUrl(…)")
    }
}

/// The user, the host and the port, of what follows the scheme.
fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns whether the query of what follows the scheme has a member `tls`: elsewhere the word may be part of a
/// password.
fn says_tls(rest: &str) -> bool {
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    query.split('#').next().unwrap_or_default().split('&').any(|pair| pair.starts_with("tls="))
}

/// Returns whether what follows the scheme names a host of this machine.
fn is_on_this_machine(rest: &str) -> bool {
    let host = authority(rest).rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The text is not the address of a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write smtps://USER:PASSWORD@HOST or smtp://HOST, with % for what has a meaning of its own")]
pub struct SmtpUrlError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_another_machine_everything_is_encrypted_unless_that_is_abandoned_open() {
        for (text, expected) in [
            ("smtp://mail.example.com", "smtp://mail.example.com?tls=required"),
            ("smtp://user:pass@mail.example.com:587/", "smtp://user:pass@mail.example.com:587/?tls=required"),
            ("smtp://localhost@mail.example.com", "smtp://localhost@mail.example.com?tls=required"),
            ("smtp://u:my-tls=secret@mail.example.com", "smtp://u:my-tls=secret@mail.example.com?tls=required"),
            ("smtp://tls=@mail.example.com/tls=?a=tls=", "smtp://tls=@mail.example.com/tls=?a=tls=&tls=required"),
            ("smtp://mail.example.com?tls=opportunistic", "smtp://mail.example.com?tls=opportunistic"),
            ("smtps://mail.example.com", "smtps://mail.example.com"),
            ("smtp://localhost:2525", "smtp://localhost:2525"),
            ("smtp://127.0.0.1:25", "smtp://127.0.0.1:25"),
            ("smtp://[::1]:25", "smtp://[::1]:25"),
        ] {
            assert_eq!(text.parse(), Ok(SmtpUrl(expected.to_owned())), "{text}");
        }
        for wrong in ["", "mail.example.com", "http://mail.example.com", "smtp://", "smtp://a b", "smtps://h?tls=x y"] {
            let parsed = wrong.parse::<SmtpUrl>();
            assert!(parsed.is_err() || wrong.contains("tls="), "{wrong}");
        }
    }
}
