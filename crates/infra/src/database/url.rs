//! The address of the database, and whether this build may connect to it. A build without TLS connects to this machine
//! alone, because libpq would fall back to clear text without saying so.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::database::durability::Durability;

/// Time limits of a connection, added where the address does not set them: a database that drops packets is noticed
/// within seconds instead of the minutes that TCP would take.
const LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "4000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
    ("keepalives_count", "2"),
];

/// What PostgreSQL's views and log call the service, unless the address or `PGAPPNAME` says otherwise.
const NAME: (&str, &str) = ("fallback_application_name", "intake");

/// The values of `target_session_attrs` that at most one host fits, so that the first host that answers is the right
/// one.
const ONE_SERVER: [&str; 2] = ["read-write", "primary"];
/// The values of `sslmode` with which a connection may be in clear text.
const CLEAR_MODES: [&str; 3] = ["disable", "allow", "prefer"];
/// The port that PostgreSQL listens on by default.
const USUAL_PORT: &str = "5432";

/// The address of a database, in either of libpq's forms. Holds a password: never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    text: String,
    durability: Durability,
}

impl DatabaseUrl {
    /// A database on a unix socket in this folder.
    #[must_use]
    pub fn on_socket(folder: &str, role: &str, database: &str) -> Self {
        Self::new(format!("host={} user={} dbname={}", quoted(folder), quoted(role), quoted(database))).with_defaults()
    }

    fn new(text: String) -> Self {
        Self { text, durability: Durability::Full }
    }

    /// The same database with this durability.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// What a commit must survive.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// One address for each host if there are several and at most one of them is wanted, so that they can be tried at
    /// the same time. Empty otherwise.
    pub(crate) fn each_host(&self) -> Vec<Self> {
        let last = |name: &str| self.parameter(name).pop();
        if !last("target_session_attrs").is_some_and(|wanted| ONE_SERVER.contains(&wanted.as_str())) {
            return Vec::new();
        }
        let (host_names, port_names) = self.authority();
        let list = |parameter: Option<String>, from_authority: String| -> Vec<String> {
            parameter.unwrap_or(from_authority).split(',').map(str::to_owned).collect()
        };
        let hosts = list(last("host"), host_names);
        let addresses = list(last("hostaddr"), String::new());
        let ports = list(last("port"), port_names);
        let count = hosts.len().max(addresses.len());
        if count < 2 {
            return Vec::new();
        }
        let one = |number: usize| {
            let port = if ports.len() == count { ports.get(number) } else { ports.first() };
            let port = port.filter(|port| !port.is_empty()).map_or(USUAL_PORT, String::as_str);
            let given = [("host", hosts.get(number)), ("hostaddr", addresses.get(number))];
            let given = given.into_iter().filter_map(|(name, value)| Some((name, value?.as_str())));
            given.chain([("port", port)]).fold(self.clone(), |url, (name, value)| url.with(name, value))
        };
        (0..count).map(one).collect()
    }

    /// The same database by way of another server. None: it could be reached only in clear text.
    pub(crate) fn at(&self, host: &str, port: u16) -> Option<Self> {
        let mut there = self.clone().with("host", host).with("port", &port.to_string());
        if !self.parameter("hostaddr").is_empty() {
            there = there.with("hostaddr", "");
        }
        if is_local(host) {
            return Some(there);
        }
        if cfg!(feature = "tls") { there.encrypted(|name| std::env::var(name).ok()).ok() } else { None }
    }

    /// The hosts and the ports in the authority of a URI, as lists with commas.
    fn authority(&self) -> (String, String) {
        let rest = if self.is_uri() { self.text.split_once("://").map_or("", |(_, rest)| rest) } else { "" };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let servers = authority.rsplit_once('@').map_or(authority, |(_, servers)| servers);
        let split = |server: &str| {
            let host = without_port(server);
            let port = server.trim_start_matches('[').strip_prefix(host).unwrap_or_default();
            (percent_decoded(host), port.trim_start_matches(']').trim_start_matches(':').to_owned())
        };
        let (hosts, ports): (Vec<_>, Vec<_>) = servers.split(',').map(split).unzip();
        (hosts.join(","), ports.join(","))
    }

    /// The address, for libpq alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether it holds a password, which then must not be seen.
    #[must_use]
    pub fn has_password(&self) -> bool {
        let rest = if self.is_uri() { self.text.split_once("://").map_or("", |(_, rest)| rest) } else { "" };
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let in_authority = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        in_authority.is_some_and(|(_, password)| !password.is_empty())
            || ["password", "sslpassword"].iter().any(|name| !self.parameter(name).is_empty())
    }

    fn is_uri(&self) -> bool {
        self.text.starts_with("postgres://") || self.text.starts_with("postgresql://")
    }

    /// Whether every part of a URI ends where it seems to: a character of the password that is not escaped ends it early.
    fn is_escaped(&self) -> bool {
        let rest = self.text.split_once("://").map_or("", |(_, rest)| rest);
        let address = rest.split('?').next().unwrap_or_default();
        let authority = address.split('/').next().unwrap_or_default();
        let are_ports = self.authority().1.split(',').all(|port| port.chars().all(|c| c.is_ascii_digit()));
        let are_hexadecimal = |escape: &str| {
            let mut digits = escape.chars().take(2).filter(char::is_ascii_hexdigit);
            digits.next().is_some() && digits.next().is_some()
        };
        let is_one_user =
            authority.matches('@').count() == address.matches('@').count() && authority.matches('@').count() < 2;
        is_one_user && are_ports && address.split('%').skip(1).all(are_hexadecimal)
    }

    fn with_defaults(mut self) -> Self {
        for (name, value) in LIMITS.into_iter().chain([NAME]) {
            self = self.with_default(name, value);
        }
        self
    }

    fn with_default(self, name: &str, value: &str) -> Self {
        if self.parameter(name).is_empty() { self.with(name, value) } else { self }
    }

    /// Adds a parameter. Of several with one name the last wins.
    fn with(mut self, name: &str, value: &str) -> Self {
        let (separator, value) = match (self.is_uri(), self.text.contains('?')) {
            (true, true) => ('&', utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()),
            (true, false) => ('?', utf8_percent_encode(value, NON_ALPHANUMERIC).to_string()),
            (false, _) => (' ', quoted(value)),
        };
        self.text = format!("{}{separator}{name}={value}", self.text);
        self
    }

    /// All values of a parameter.
    fn parameter(&self, name: &str) -> Vec<String> {
        if self.is_uri() {
            let query = self.text.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            return pairs.filter(|(key, _)| *key == name).map(|(_, value)| percent_decoded(value)).collect();
        }
        keyword_pairs(&self.text).into_iter().filter(|(key, _)| key == name).map(|(_, value)| value).collect()
    }

    /// All hosts that the address names; none: libpq's default.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = self.parameter("host");
        hosts.extend(self.parameter("hostaddr"));
        hosts.push(self.authority().0);
        hosts.iter().flat_map(|list| list.split(',')).filter(|host| !host.is_empty()).map(str::to_owned).collect()
    }

    /// Whether a host is not this machine. What the address does not say, libpq takes from its environment variables.
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

    /// The same address, over which nothing is sent in clear text: by libpq's default, `prefer`, the server would decide
    /// that.
    fn encrypted(self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, DatabaseUrlError> {
        let by_address = self.parameter("sslmode").pop();
        let by_service = !self.parameter("service").is_empty() || variable("PGSERVICE").is_some();
        if by_service && by_address.is_none() {
            return Err(DatabaseUrlError::ServiceWithoutMode);
        }
        // What is added here would take precedence over the variable, and could be the weaker of the two.
        match by_address.or_else(|| variable("PGSSLMODE")) {
            Some(mode) if CLEAR_MODES.contains(&mode.as_str()) => Err(DatabaseUrlError::InClear(mode)),
            Some(_) => Ok(self),
            // Whoever names an authority wants the server verified, and its name too.
            None if !self.parameter("sslrootcert").is_empty() || variable("PGSSLROOTCERT").is_some() => {
                Ok(self.with("sslmode", "verify-full"))
            }
            None => Ok(self.with("sslmode", "require")),
        }
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Self::new(text.to_owned());
        if !url.is_uri() && (text.contains("://") || keyword_pairs(text).is_empty()) {
            return Err(DatabaseUrlError::Form);
        }
        if url.is_uri() && !url.is_escaped() {
            return Err(DatabaseUrlError::Unescaped);
        }
        let variable = |name: &str| std::env::var(name).ok();
        if !url.leads_off_this_machine(variable) {
            return Ok(url.with_defaults());
        }
        if cfg!(not(feature = "tls")) {
            return Err(DatabaseUrlError::NeedsTls);
        }
        url.with_defaults().encrypted(variable)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

/// Why a text is not the address of a database that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseUrlError {
    /// Neither of libpq's forms.
    #[error("must be like postgres://user:password@host/database")]
    Form,
    /// libpq would take a part of the password for the host, and put it into its error.
    #[error("has a character in its password that must be escaped, such as %40 for @, %2F for / or %25 for %")]
    Unescaped,
    /// The database is across a network, and this build cannot encrypt.
    #[error("leads to another machine, and this build cannot encrypt the connection: build with --features tls")]
    NeedsTls,
    /// The database is across a network, and the address allows a connection that is not encrypted.
    #[error(
        "leads to another machine, and sslmode={0} allows a connection that is not encrypted: \
         set sslmode=verify-full, and sslrootcert to a file with the certificate of its authority"
    )]
    InClear(String),
    /// What an address adds to a service file of libpq's takes precedence over the file.
    #[error(
        "names a service of libpq's, which may lead to another machine: \
         set sslmode in the address itself, as in service=intake sslmode=verify-full"
    )]
    ServiceWithoutMode,
}

fn is_local(host: &str) -> bool {
    let is_socket = host.starts_with('/') || host.starts_with('@');
    is_socket || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A value in libpq's keyword form.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

fn without_port(server: &str) -> &str {
    match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => server.split_once(':').map_or(server, |(host, _)| host),
    }
}

fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Reads libpq's `key = 'value'` form, up to the first text that is not of this form, which libpq will refuse.
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
    while let Some((index, c)) = characters.next() {
        match c {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return (value, text.get(index + 1..).unwrap_or_default()),
            c if !quoted && c.is_whitespace() => return (value, text.get(index..).unwrap_or_default()),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<String> {
        DatabaseUrl::new(url.to_owned()).hosts()
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

    #[cfg(not(feature = "tls"))]
    #[test]
    fn a_database_elsewhere_needs_tls() {
        for url in [
            "postgres://u@db.example/i",
            "host=10.0.0.1 user=u",
            "postgres://localhost,db.example/i",
            "service=prod",
            "postgres://localhost/i?hostaddr=10.0.0.1",
        ] {
            assert_eq!(url.parse::<DatabaseUrl>(), Err(DatabaseUrlError::NeedsTls), "{url}");
        }
    }

    #[test]
    fn no_address_and_no_variable_leads_to_another_machine_in_clear() {
        let mode = |url: &str, variables: &[(&str, &str)]| {
            let found =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            let url = DatabaseUrl::new(url.to_owned()).encrypted(found);
            url.map(|url| url.parameter("sslmode").pop())
        };
        let set = |mode: &str| Ok(Some(mode.to_owned()));
        let in_clear = |mode: &str| Err(DatabaseUrlError::InClear(mode.to_owned()));
        assert_eq!(mode("postgres://u@db.example/i", &[]), set("require"));
        assert_eq!(mode("host=db.example sslmode=verify-ca", &[]), set("verify-ca"));
        for weak in ["disable", "allow", "prefer"] {
            assert_eq!(mode(&format!("postgres://db.example/i?sslmode={weak}"), &[]), in_clear(weak));
            assert_eq!(mode(&format!("host=db.example sslmode = '{weak}'"), &[]), in_clear(weak));
            assert_eq!(mode("host=db.example", &[("PGSSLMODE", weak)]), in_clear(weak));
        }
        // The last one counts.
        assert_eq!(mode("postgres://db.example/i?sslmode=require&sslmode=%64isable", &[]), in_clear("disable"));
        assert_eq!(mode("host=db.example sslmode=require", &[("PGSSLMODE", "disable")]), set("require"));
        // Nothing is added that would weaken the variable.
        assert_eq!(mode("host=db.example", &[("PGSSLMODE", "verify-full")]), Ok(None));

        assert_eq!(mode("host=db.example sslrootcert=ca.pem", &[]), set("verify-full"));
        assert_eq!(mode("host=db.example", &[("PGSSLROOTCERT", "system")]), set("verify-full"));
        assert_eq!(mode("host=db.example sslmode=require sslrootcert=ca.pem", &[]), set("require"));

        for (url, variables) in
            [("service=intake", &[][..]), ("dbname=i", &[("PGSERVICE", "intake"), ("PGSSLMODE", "require")])]
        {
            assert_eq!(mode(url, variables), Err(DatabaseUrlError::ServiceWithoutMode), "{url}");
        }
        assert_eq!(mode("service=intake sslmode=verify-full", &[]), set("verify-full"));
        assert_eq!(mode("service=intake sslmode=prefer", &[]), in_clear("prefer"));
    }

    #[test]
    fn what_libpq_would_add_counts_too() {
        let leads_off = |url: &str, name: &str| {
            DatabaseUrl::new(url.to_owned())
                .leads_off_this_machine(|asked| (asked == name).then(|| "10.0.0.5".to_owned()))
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
    fn a_password_that_is_not_escaped_is_refused_and_not_quoted() {
        for url in [
            "postgres://u:pa@ss@localhost/i",
            "postgres://u:100%pass@localhost/i",
            "postgres://u:pa/ss@localhost/i",
            "postgres://u:12/34@localhost/i",
            "postgres://u:pa?ss@localhost/i",
            "postgres://u:p%4@localhost/i",
        ] {
            assert_eq!(url.parse::<DatabaseUrl>(), Err(DatabaseUrlError::Unescaped), "{url}");
        }
        for url in [
            "postgres://u:p%40%2f@localhost:5432/i?user=a@b",
            "postgres://u:p:q@[::1]:1,localhost:2/i%20j",
            "postgres://@localhost/i",
        ] {
            assert!(url.parse::<DatabaseUrl>().is_ok(), "{url}");
        }
    }

    #[test]
    fn limits_are_added_unless_given() {
        let url: DatabaseUrl = "postgres://localhost/i?connect_timeout=9".parse().unwrap();
        assert!(url.expose().starts_with("postgres://localhost/i?connect_timeout=9&tcp_user_timeout=4000"));
        let url: DatabaseUrl = "host=localhost".parse().unwrap();
        assert!(url.expose().starts_with("host=localhost connect_timeout='2' "));
    }

    #[test]
    fn hosts_of_which_one_is_wanted_can_be_tried_at_once() {
        let each = |url: &str| -> Vec<Vec<String>> {
            let urls = DatabaseUrl::new(url.to_owned()).each_host();
            urls.iter()
                .map(|url| {
                    ["host", "hostaddr", "port"].map(|name| url.parameter(name).pop().unwrap_or_default()).to_vec()
                })
                .collect()
        };
        let two = [["127.0.0.1", "", "5433"], ["localhost", "", "5432"]];
        assert_eq!(each("postgres://u@127.0.0.1:5433,localhost/i?target_session_attrs=read-write"), two);
        assert_eq!(each("host=127.0.0.1,localhost port=5433,5432 target_session_attrs=primary"), two);
        assert_eq!(
            each("host=a,b hostaddr=127.0.0.1,::1 port=1 target_session_attrs=primary"),
            [["a", "127.0.0.1", "1"], ["b", "::1", "1"]]
        );
        assert_eq!(
            each("postgres://[::1]:1,%2Ftmp/i?target_session_attrs=read-write"),
            [["::1", "", "1"], ["/tmp", "", "5432"]]
        );
        for url in
            ["postgres://localhost,127.0.0.1/i", "postgres://localhost/i?target_session_attrs=read-write", "host=/tmp"]
        {
            assert!(each(url).is_empty(), "{url}");
        }
    }

    #[test]
    fn a_socket_folder_with_odd_characters_is_quoted() {
        let url = DatabaseUrl::on_socket(r"/tmp/it's \ here", "owner", "intake");
        assert_eq!(url.hosts(), [r"/tmp/it's \ here"]);
    }

    #[test]
    fn a_password_is_found_wherever_it_stands() {
        for (url, has_password) in [
            ("postgres://u:p@localhost/i", true),
            ("postgres://u:p%40:@localhost/i", true),
            ("postgres:///i?password=p", true),
            ("postgres:///i?sslpassword=p", true),
            ("host=localhost password='p w'", true),
            ("postgres://u@localhost:5432/i", false),
            ("postgres://u:@localhost/i", false),
            ("postgres://localhost:5432/i", false),
            ("host=localhost user=password", false),
        ] {
            assert_eq!(DatabaseUrl::new(url.to_owned()).has_password(), has_password, "{url}");
        }
    }

    #[test]
    fn debug_output_shows_no_password() {
        let url: DatabaseUrl = "postgres://u:secret@localhost/i".parse().unwrap();
        assert_eq!(format!("{url:?}"), "DatabaseUrl(…)");
    }
}
