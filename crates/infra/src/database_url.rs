//! Where the database is, and whether it may be talked to from this build: without TLS, libpq's default is to fall back to
//! clear text in silence, so a build without it talks to this machine alone.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Bounds of one connection, added where the address does not say otherwise. A database that drops packets is noticed in
/// seconds, not in the minutes that TCP would take.
const LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "4000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
    ("keepalives_count", "2"),
];

/// The address of a database, in either of libpq's forms. Holds a password: never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// A database behind a unix socket in this folder.
    #[must_use]
    pub fn on_socket(folder: &str, role: &str, database: &str) -> Self {
        let quote = |text: &str| format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
        Self(format!("host={} user={} dbname={}", quote(folder), quote(role), quote(database))).with_limits()
    }

    /// The address, for libpq alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn is_uri(&self) -> bool {
        self.0.starts_with("postgres://") || self.0.starts_with("postgresql://")
    }

    fn with_limits(mut self) -> Self {
        for (name, value) in LIMITS {
            self = self.with_default(name, value);
        }
        self
    }

    fn with_default(mut self, name: &str, value: &str) -> Self {
        if !self.parameter(name).is_empty() {
            return self;
        }
        let separator = match (self.is_uri(), self.0.contains('?')) {
            (true, true) => '&',
            (true, false) => '?',
            (false, _) => ' ',
        };
        self.0 = format!("{}{separator}{name}={value}", self.0);
        self
    }

    /// Every value given for a parameter.
    fn parameter(&self, name: &str) -> Vec<String> {
        if self.is_uri() {
            let query = self.0.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            return pairs.filter(|(key, _)| *key == name).map(|(_, value)| percent_decoded(value)).collect();
        }
        keyword_pairs(&self.0).into_iter().filter(|(key, _)| key == name).map(|(_, value)| value).collect()
    }

    /// Every host the address may lead to; none: libpq's own default.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = self.parameter("host");
        hosts.extend(self.parameter("hostaddr"));
        if self.is_uri() {
            let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            let servers = authority.rsplit_once('@').map_or(authority, |(_, servers)| servers);
            hosts.extend(servers.split(',').map(|server| percent_decoded(without_port(server))));
        }
        hosts.iter().flat_map(|list| list.split(',')).filter(|host| !host.is_empty()).map(str::to_owned).collect()
    }

    /// What the address leaves open, libpq takes from its own variables.
    fn leads_off_this_machine(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let mut hosts = self.hosts();
        if hosts.is_empty() {
            hosts.extend(variable("PGHOST"));
        }
        if self.parameter("hostaddr").is_empty() {
            hosts.extend(variable("PGHOSTADDR"));
        }
        let by_service = !self.parameter("service").is_empty() || variable("PGSERVICE").is_some();
        by_service || hosts.iter().any(|host| !is_local(host))
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Self(text.to_owned());
        if !url.is_uri() && (text.contains("://") || keyword_pairs(text).is_empty()) {
            return Err(DatabaseUrlError::Form);
        }
        if !url.leads_off_this_machine(|name| std::env::var(name).ok()) {
            return Ok(url.with_limits());
        }
        if cfg!(not(feature = "tls")) {
            return Err(DatabaseUrlError::NeedsTls);
        }
        // libpq's own default, prefer, would fall back to clear text.
        Ok(url.with_limits().with_default("sslmode", "require"))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

/// Why a text is no address of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither of libpq's forms.
    #[error("must be like postgres://user:password@host/database")]
    Form,
    /// The database is across a network, and this build cannot encrypt.
    #[error("leads to another machine, and this build cannot encrypt the way there: build with --features tls")]
    NeedsTls,
}

fn is_local(host: &str) -> bool {
    let is_socket = host.starts_with('/') || host.starts_with('@');
    is_socket || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn without_port(server: &str) -> &str {
    match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => server.split_once(':').map_or(server, |(host, _)| host),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = tail.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads libpq's `key = 'value'` form. Anything that is not of that form ends the reading: libpq will refuse it.
fn keyword_pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while let Some((key, tail)) = rest.split_once('=') {
        let (value, tail) = keyword_value(tail.trim_start());
        pairs.push((key.trim().to_owned(), value));
        rest = tail.trim_start();
    }
    pairs
}

fn keyword_value(text: &str) -> (String, &str) {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((place, c)) = characters.next() {
        match c {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return (value, text.get(place + 1..).unwrap_or_default()),
            c if !quoted && c.is_whitespace() => return (value, text.get(place..).unwrap_or_default()),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<String> {
        DatabaseUrl(url.to_owned()).hosts()
    }

    #[test]
    fn hosts_are_found_in_every_form() {
        assert_eq!(hosts("postgres://u:p@db.example:5433/intake"), ["db.example"]);
        assert_eq!(hosts("postgresql://u:p%40@[::1]:5432/intake"), ["::1"]);
        assert_eq!(hosts("postgres://a,b:2/intake?host=c"), ["c", "a", "b"]);
        assert_eq!(hosts("postgres://%2Fvar%2Frun/intake"), ["/var/run"]);
        assert_eq!(hosts("postgres:///intake?host=/tmp&user=x"), ["/tmp"]);
        assert_eq!(hosts("host=db.example user=u"), ["db.example"]);
        assert_eq!(
            hosts(r"user = 'a\'host=b' host = '/var/my sockets' hostaddr=10.0.0.1"),
            ["/var/my sockets", "10.0.0.1"]
        );
        assert_eq!(hosts("postgres:///intake"), [""; 0]);
    }

    #[test]
    fn a_database_on_this_machine_is_taken() {
        for url in [
            "postgres://u@localhost/i",
            "postgres://u@127.0.0.1:1/i",
            "postgres://u@[::1]/i",
            "host=/tmp user=u",
            "postgres://%2Ftmp/i",
        ] {
            assert!(url.parse::<DatabaseUrl>().is_ok(), "{url}");
        }
    }

    #[test]
    fn a_database_elsewhere_needs_tls() {
        for url in [
            "postgres://u@db.example/i",
            "host=10.0.0.1 user=u",
            "postgres://localhost,db.example/i",
            "service=prod",
            "postgres://localhost/i?hostaddr=10.0.0.1",
        ] {
            match url.parse::<DatabaseUrl>() {
                Err(error) => assert_eq!(error, DatabaseUrlError::NeedsTls, "{url}"),
                Ok(url) => assert!(cfg!(feature = "tls") && url.expose().contains("sslmode=require")),
            }
        }
    }

    #[test]
    fn what_libpq_would_add_counts_too() {
        let leads_off = |url: &str, name: &str| {
            DatabaseUrl(url.to_owned()).leads_off_this_machine(|asked| (asked == name).then(|| "10.0.0.5".to_owned()))
        };
        assert!(leads_off("postgres:///i", "PGHOST"));
        assert!(!leads_off("postgres://localhost/i", "PGHOST"));
        assert!(leads_off("postgres://localhost/i", "PGHOSTADDR"));
        assert!(!leads_off("postgres://localhost/i?hostaddr=127.0.0.1", "PGHOSTADDR"));
        assert!(leads_off("postgres://localhost/i", "PGSERVICE"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in ["", "intake", "mysql://u@localhost/i", "https://localhost/?a=b"] {
            assert_eq!(url.parse::<DatabaseUrl>(), Err(DatabaseUrlError::Form), "{url}");
        }
    }

    #[test]
    fn limits_are_added_unless_given() {
        let url: DatabaseUrl = "postgres://localhost/i?connect_timeout=9".parse().unwrap();
        assert!(url.expose().starts_with("postgres://localhost/i?connect_timeout=9&tcp_user_timeout=4000"));
        let url: DatabaseUrl = "host=localhost".parse().unwrap();
        assert!(url.expose().starts_with("host=localhost connect_timeout=2 "));
    }

    #[test]
    fn a_socket_folder_with_odd_characters_is_quoted() {
        let url = DatabaseUrl::on_socket(r"/tmp/it's \ here", "owner", "intake");
        assert_eq!(url.hosts(), [r"/tmp/it's \ here"]);
    }

    #[test]
    fn debug_output_shows_no_password() {
        let url: DatabaseUrl = "postgres://u:secret@localhost/i".parse().unwrap();
        assert_eq!(format!("{url:?}"), "DatabaseUrl(…)");
    }
}
