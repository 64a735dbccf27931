//! The address of the database, and whether this build may connect to it. A build without TLS connects to this machine
//! alone, because libpq would fall back to clear text without saying so.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::database::connecting::conninfo::{self, Keywords};
use crate::database::connecting::durability::Durability;
pub use crate::database::connecting::url_error::DatabaseUrlError;

/// Time limits of a connection, added where the address does not set them: a database that drops packets is noticed
/// within seconds instead of the minutes that TCP would take.
const LIMITS: [(&str, &str); 5] = [
    ("connect_timeout", "2"),
    ("tcp_user_timeout", "4000"),
    ("keepalives_idle", "5"),
    ("keepalives_interval", "2"),
    ("keepalives_count", "2"),
];

/// Name of the service in PostgreSQL's views and log, unless the address or `PGAPPNAME` says otherwise.
const NAME: (&str, &str) = ("fallback_application_name", "intake");

/// The values of `target_session_attrs` that at most one host fits, so that the first host that answers is the right
/// one.
const ONE_SERVER: [&str; 2] = ["read-write", "primary"];
/// The values of `sslmode` with which a connection may be in clear text.
const CLEAR_MODES: [&str; 3] = ["disable", "allow", "prefer"];
/// The port that PostgreSQL listens on by default.
const USUAL_PORT: &str = "5432";
/// Longer than any address.
const FILE_MAX: u64 = 16 * 1024;

/// The address of a database. Holds a password: never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    keywords: Keywords,
    /// The keywords, as libpq reads them.
    text: String,
    durability: Durability,
    /// The file that holds the address.
    file: Option<PathBuf>,
}

impl DatabaseUrl {
    /// A database on a unix socket in this folder.
    #[must_use]
    pub fn on_socket(folder: &str, role: &str, database: &str) -> Self {
        let keywords = [("host", folder), ("user", role), ("dbname", database)];
        Self::new(keywords.map(|(name, value)| (name.to_owned(), value.to_owned())).into()).with_defaults()
    }

    /// The address in a file: one line, which may end with a newline as editors and `echo` add one. The file is read
    /// again for each new connection, so that a password can be changed while the service runs.
    pub fn in_file(file: &Path) -> Result<Self, DatabaseUrlError> {
        let mut bytes = Vec::new();
        let read = File::open(file).and_then(|file| {
            let is_regular = file.metadata()?.is_file();
            file.take(FILE_MAX + 1).read_to_end(&mut bytes).map(|_| is_regular)
        });
        let is_regular = read.map_err(|error| DatabaseUrlError::Unreadable(plain(&error)))?;
        if bytes.len() as u64 > FILE_MAX {
            return Err(DatabaseUrlError::TooLong);
        }
        let text = String::from_utf8(bytes).map_err(|_| DatabaseUrlError::NotUtf8)?;
        let address = text.trim();
        match address.lines().count() {
            0 => Err(DatabaseUrlError::Empty),
            // A pipe is empty after it was read.
            1 => Ok(Self { file: is_regular.then(|| file.to_owned()), ..address.parse()? }),
            _ => Err(DatabaseUrlError::SeveralLines),
        }
    }

    /// The address for a new connection: that of the file at this moment, if it is kept in one.
    pub(crate) fn latest(&self) -> Result<Cow<'_, Self>, String> {
        let Some(file) = &self.file else { return Ok(Cow::Borrowed(self)) };
        let latest = Self::in_file(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Cow::Owned(latest.with_durability(self.durability)))
    }

    fn new(keywords: Keywords) -> Self {
        Self { text: conninfo::print(&keywords), keywords, durability: Durability::Full, file: None }
    }

    /// The same database with this durability.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Failures that a commit must survive.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The address in libpq's form of keywords, for libpq alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The address for another program's arguments, and the password for its environment.
    pub(crate) fn without_password(&self) -> (String, Option<&str>) {
        let keywords = self.keywords.iter().filter(|(name, _)| name != "password").cloned().collect();
        (conninfo::print(&keywords), self.value("password").filter(|password| !password.is_empty()))
    }

    /// Returns whether it holds a password, which then must not be seen.
    #[must_use]
    pub fn has_password(&self) -> bool {
        ["password", "sslpassword"].iter().any(|name| self.value(name).is_some_and(|value| !value.is_empty()))
    }

    /// Returns whether the server could be another one: its certificate is not checked.
    #[must_use]
    pub fn trusts_any_server(&self) -> bool {
        self.is_unverified(|name| std::env::var(name).ok())
    }

    fn is_unverified(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let mode = self.value("sslmode").map(str::to_owned).or_else(|| variable("PGSSLMODE"));
        self.leads_off_this_machine(variable) && !mode.is_some_and(|mode| mode.starts_with("verify-"))
    }

    /// One address for each host if there are several and at most one of them is wanted, so that they can be tried at
    /// the same time. Empty otherwise.
    pub(crate) fn each_host(&self) -> Vec<Self> {
        if !self.value("target_session_attrs").is_some_and(|wanted| ONE_SERVER.contains(&wanted)) {
            return Vec::new();
        }
        let list = |name| self.value(name).map_or(Vec::new(), |list| list.split(',').collect());
        let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
        let count = hosts.len().max(addresses.len());
        if count < 2 {
            return Vec::new();
        }
        let one = |number: usize| {
            let port = ports.get(if ports.len() == count { number } else { 0 }).filter(|port| !port.is_empty());
            let given = [("host", hosts.get(number)), ("hostaddr", addresses.get(number))];
            let given = given.into_iter().filter_map(|(name, value)| Some((name, *value?)));
            let all = given.chain([("port", *port.unwrap_or(&USUAL_PORT))]);
            all.fold(self.clone(), |url, (name, value)| url.with(name, value))
        };
        (0..count).map(one).collect()
    }

    /// The same database by way of another server. None: it could be reached only in clear text.
    pub(crate) fn at(&self, host: &str, port: u16) -> Option<Self> {
        let mut there = self.clone().with("host", host).with("port", &port.to_string());
        there.file = None;
        if self.value("hostaddr").is_some() {
            there = there.with("hostaddr", "");
        }
        if is_local(host) {
            return Some(there);
        }
        if cfg!(feature = "tls") { there.encrypted(|name| std::env::var(name).ok()).ok() } else { None }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.keywords.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        conninfo::put(&mut self.keywords, name, value);
        self.text = conninfo::print(&self.keywords);
        self
    }

    fn with_defaults(self) -> Self {
        let missing = LIMITS.into_iter().chain([NAME]).filter(|(name, _)| self.value(name).is_none());
        let missing: Vec<_> = missing.collect();
        missing.into_iter().fold(self, |url, (name, value)| url.with(name, value))
    }

    /// Returns whether a host is not this machine. What the address does not say, libpq takes from its environment
    /// variables.
    fn leads_off_this_machine(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let by_name = self.value("host").filter(|hosts| !hosts.is_empty()).map(str::to_owned);
        let by_name = by_name.or_else(|| variable("PGHOST"));
        let by_address = self.value("hostaddr").map(str::to_owned).or_else(|| variable("PGHOSTADDR"));
        let hosts = [by_name, by_address].into_iter().flatten().collect::<Vec<_>>().join(",");
        self.names_service(variable) || hosts.split(',').any(|host| !host.is_empty() && !is_local(host))
    }

    fn names_service(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        self.value("service").is_some() || variable("PGSERVICE").is_some()
    }

    /// The same address, over which nothing is sent in clear text: by libpq's default, `prefer`, the server would
    /// decide that.
    fn encrypted(self, variable: impl Fn(&str) -> Option<String>) -> Result<Self, DatabaseUrlError> {
        let by_address = self.value("sslmode").map(str::to_owned);
        if by_address.is_none() && self.names_service(&variable) {
            return Err(DatabaseUrlError::ServiceWithoutMode);
        }
        // What is added here would take precedence over the variable, and could be the weaker of the two.
        match by_address.or_else(|| variable("PGSSLMODE")) {
            Some(mode) if CLEAR_MODES.contains(&mode.as_str()) => Err(DatabaseUrlError::InClear(mode)),
            Some(_) => Ok(self),
            // An address that names an authority wants the server verified, and its name too.
            None if self.value("sslrootcert").is_some() || variable("PGSSLROOTCERT").is_some() => {
                Ok(self.with("sslmode", "verify-full"))
            }
            None => Ok(self.with("sslmode", "require")),
        }
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Self::new(conninfo::read(text)?).with_defaults();
        let variable = |name: &str| std::env::var(name).ok();
        if !url.leads_off_this_machine(variable) {
            return Ok(url);
        }
        if cfg!(feature = "tls") { url.encrypted(variable) } else { Err(DatabaseUrlError::NeedsTls) }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(…)")
    }
}

fn is_local(host: &str) -> bool {
    let is_socket = host.starts_with('/') || host.starts_with('@');
    is_socket || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> DatabaseUrl {
        DatabaseUrl::new(conninfo::read(text).unwrap())
    }

    #[test]
    fn arguments_of_other_programs_have_no_password() {
        let url: DatabaseUrl = "postgres://owner:it's@localhost/intake".parse().unwrap();
        let (address, password) = url.without_password();
        assert!(address.contains("user='owner'") && !address.contains("password"), "{address}");
        assert_eq!(password, Some("it's"));
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
            read(url).encrypted(found).map(|url| url.value("sslmode").map(str::to_owned))
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
    fn a_server_elsewhere_that_is_not_verified_is_known() {
        let unverified = |url: &str, set: &[(&str, &str)]| {
            let found = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            read(url).is_unverified(found)
        };
        for url in
            ["host=db.example sslmode=require", "postgres://db.example/i?sslmode=require", "service=i sslmode=require"]
        {
            assert!(unverified(url, &[]), "{url}");
        }
        assert!(unverified("dbname=i sslmode=require", &[("PGHOST", "db.example")]));
        for url in ["host=db.example sslmode=verify-full", "host=db.example sslmode=verify-ca", "host=/run/postgresql"]
        {
            assert!(!unverified(url, &[]), "{url}");
        }
        assert!(!unverified("host=db.example", &[("PGSSLMODE", "verify-full")]));
    }

    #[test]
    fn the_additions_of_libpq_count_too() {
        let leads_off = |url: &str, name: &str| {
            read(url).leads_off_this_machine(|asked| (asked == name).then(|| "10.0.0.5".to_owned()))
        };
        assert!(leads_off("postgres:///i", "PGHOST"));
        assert!(!leads_off("postgres://localhost/i", "PGHOST"));
        assert!(leads_off("postgres://localhost/i", "PGHOSTADDR"));
        assert!(!leads_off("postgres://localhost/i?hostaddr=127.0.0.1", "PGHOSTADDR"));
        assert!(leads_off("postgres://localhost/i", "PGSERVICE"));
    }

    #[test]
    fn a_text_that_is_no_address_is_refused() {
        for url in [
            "",
            "intake",
            "mysql://u@localhost/i",
            "https://localhost/?a=b",
            // libpq would take what is added for a part of the last value.
            "user=u host=",
            r"user=u host=/tmp\",
            "user=u host='/tmp",
            "my host=/tmp",
        ] {
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
            "postgres://localhost?user=x@db.example/i",
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
        let limits = "connect_timeout='9' tcp_user_timeout='4000' keepalives_idle='5'";
        assert!(url.expose().starts_with(&format!("host='localhost' dbname='i' {limits}")), "{}", url.expose());
    }

    #[test]
    fn hosts_of_which_one_is_wanted_can_be_tried_at_once() {
        let each = |url: &str| -> Vec<Vec<String>> {
            let urls = read(url).each_host();
            urls.iter()
                .map(|url| {
                    ["host", "hostaddr", "port"].map(|name| url.value(name).unwrap_or_default().to_owned()).to_vec()
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
        assert!(
            url.expose().starts_with(r"host='/tmp/it\'s \\ here' user='owner' dbname='intake'"),
            "{}",
            url.expose()
        );
    }

    #[test]
    fn a_password_is_found_anywhere_in_an_address() {
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
            assert_eq!(read(url).has_password(), has_password, "{url}");
        }
    }

    #[test]
    fn debug_output_shows_no_password() {
        let url: DatabaseUrl = "postgres://u:secret@localhost/i".parse().unwrap();
        assert_eq!(format!("{url:?}"), "DatabaseUrl(…)");
    }

    #[test]
    fn an_address_in_a_file_is_read_again_for_each_connection() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("address");
        std::fs::write(&file, "postgres://u:old@localhost/i\n").unwrap();
        let url = DatabaseUrl::in_file(&file).unwrap().with_durability(Durability::None);
        std::fs::write(&file, "postgres://u:new@localhost/i").unwrap();
        let latest = url.latest().unwrap();
        assert_eq!((latest.value("password"), latest.durability()), (Some("new"), Durability::None));
        assert_eq!(latest.at("localhost", 7).unwrap().latest().unwrap().value("port"), Some("7"), "not the file's");
        std::fs::write(&file, "").unwrap();
        assert_eq!(url.latest().unwrap_err(), format!("{}: is empty", file.display()));
    }
}
