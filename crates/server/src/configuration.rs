//! Every setting, from flags and variables, read and checked once. A wrong one stops the program with a line that names
//! it.

use std::env::VarError;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{anyhow, bail};
use intake_domain::{Environment, KeyFormat, KeyPrefix, Token};
use intake_http::{RateLimit, TrustedProxies};
use intake_infra::DatabaseUrl;
use intake_infra::embedded::Durability;
use ipnet::IpNet;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::command_line::SettingFlags;

/// Where a service is that was told to take any free port, if nothing else is known.
const USUAL_HTTPS_PORT: u16 = 8443;
/// Far more than ever helped, and fewer than any PostgreSQL takes.
const WRITERS_MAX: usize = 64;

/// The program's settings.
pub(crate) struct Configuration {
    pub(crate) environment: Environment,
    /// None: the embedded database.
    pub(crate) database: Option<DatabaseUrls>,
    pub(crate) data_dir: PathBuf,
    pub(crate) postgres_bin: Option<PathBuf>,
    pub(crate) https_addr: SocketAddr,
    pub(crate) tls_files: Option<TlsFiles>,
    /// None: off.
    pub(crate) http_addr: Option<SocketAddr>,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) key_format: KeyFormat,
    pub(crate) rate_limit: RateLimit,
    pub(crate) deadline: Duration,
    /// None: as many as suit the machine.
    pub(crate) writers: Option<NonZeroUsize>,
    /// None: where the HTTPS listener is.
    pub(crate) public_url: Option<String>,
    pub(crate) log: Targets,
}

/// The two ways into one external database.
#[derive(Clone)]
pub(crate) struct DatabaseUrls {
    pub(crate) service: DatabaseUrl,
    pub(crate) owner: DatabaseUrl,
}

#[derive(Clone)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Configuration {
    /// Reads every setting: the flag, else the variable, else the default.
    pub(crate) fn read(
        flags: &SettingFlags,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> anyhow::Result<Self> {
        let settings = Settings { variable };
        let environment = settings.get("INTAKE_ENVIRONMENT", flags.environment.as_ref(), "development")?;
        let prefix: KeyPrefix = settings.get("INTAKE_KEY_PREFIX", flags.key_prefix.as_ref(), "intake")?;
        let default_http = match environment {
            Environment::Development => "127.0.0.1:8080",
            Environment::Production => "off",
        };
        let configuration = Self {
            environment,
            database: settings.database(flags)?,
            data_dir: settings.get("INTAKE_DATA_DIR", flags.data_dir.as_ref(), ".intake")?,
            postgres_bin: settings.optional("INTAKE_POSTGRES_BIN", flags.postgres_bin.as_ref())?,
            https_addr: settings.get::<Address>("INTAKE_HTTPS_ADDR", flags.https_addr.as_ref(), "127.0.0.1:8443")?.0,
            tls_files: settings.tls_files(flags)?,
            http_addr: settings.get::<Switched>("INTAKE_HTTP_ADDR", flags.http_addr.as_ref(), default_http)?.0,
            trusted_proxies: settings.get::<Proxies>("INTAKE_TRUSTED_PROXIES", flags.trusted_proxies.as_ref(), "")?.0,
            admin_addr: settings.get::<Address>("INTAKE_ADMIN_ADDR", flags.admin_addr.as_ref(), "127.0.0.1:9464")?.0,
            key_format: KeyFormat::new(&prefix, environment),
            rate_limit: settings.get("INTAKE_RATE_LIMIT", flags.rate_limit.as_ref(), "100/1000")?,
            deadline: settings.get::<Span>("INTAKE_DEADLINE", flags.deadline.as_ref(), "5s")?.0,
            writers: settings.optional::<Writers>("INTAKE_WRITERS", flags.writers.as_ref())?.map(|writers| writers.0),
            public_url: settings.optional::<Link>("INTAKE_PUBLIC_URL", flags.public_url.as_ref())?.map(|link| link.0),
            log: settings.get::<Log>("INTAKE_LOG", flags.log.as_ref(), "info")?.0,
        };
        if environment == Environment::Production && configuration.database.is_none() {
            bail!("DATABASE_URL must be set in production");
        }
        Ok(configuration)
    }

    /// The base of printed links: as set, else where the HTTPS listener is, else where a proxy on this machine would be.
    pub(crate) fn base_url(&self, https_port: Option<u16>) -> String {
        let port = https_port.map(|port| format!(":{port}")).unwrap_or_default();
        self.public_url.clone().unwrap_or_else(|| format!("https://localhost{port}"))
    }

    /// Where a guest opens an invitation, as far as a command can know where the service is.
    pub(crate) fn invitation_link(&self, token: &Token) -> String {
        let port = self.https_addr.port();
        let base = self.base_url(Some(if port == 0 { USUAL_HTTPS_PORT } else { port }));
        format!("{base}/invitations/{}", token.expose())
    }

    /// What only a serving program needs.
    pub(crate) fn assert_can_serve(&self) -> anyhow::Result<()> {
        if self.environment == Environment::Development {
            return Ok(());
        }
        self.assert_way_in()?;
        if self.database.as_ref().is_some_and(|urls| urls.service.durability() == Durability::None) {
            bail!("INTAKE_DURABILITY must be full in production");
        }
        Ok(())
    }

    fn assert_way_in(&self) -> anyhow::Result<()> {
        if self.tls_files.is_some() {
            return Ok(());
        }
        if self.trusted_proxies.is_empty() {
            bail!("INTAKE_TLS_CERT and INTAKE_TLS_KEY, or INTAKE_TRUSTED_PROXIES, must be set in production");
        }
        if self.http_addr.is_none() {
            bail!("INTAKE_HTTP_ADDR must be set in production where only trusted proxies are served");
        }
        Ok(())
    }
}

struct Settings<Variable> {
    variable: Variable,
}

impl<Variable: Fn(&str) -> Result<String, VarError>> Settings<Variable> {
    fn text(&self, name: &str, flag: Option<&String>) -> anyhow::Result<Option<String>> {
        if let Some(text) = flag {
            return Ok(Some(text.clone()));
        }
        match (self.variable)(name) {
            // What compose files set to nothing is not set.
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(anyhow!("{name} is not valid UTF-8")),
        }
    }

    fn optional<T: FromStr<Err: Display>>(&self, name: &str, flag: Option<&String>) -> anyhow::Result<Option<T>> {
        let text = self.text(name, flag)?;
        text.map(|text| text.parse().map_err(|reason| anyhow!("{name} is wrong: {reason}"))).transpose()
    }

    fn get<T: FromStr<Err: Display>>(&self, name: &str, flag: Option<&String>, default: &str) -> anyhow::Result<T> {
        match self.optional(name, flag)? {
            Some(value) => Ok(value),
            None => default.parse().map_err(|reason| anyhow!("{name} is wrong: {reason}")),
        }
    }

    fn database(&self, flags: &SettingFlags) -> anyhow::Result<Option<DatabaseUrls>> {
        let service: Option<DatabaseUrl> = self.optional("DATABASE_URL", flags.database_url.as_ref())?;
        let owner = self.optional("INTAKE_MIGRATION_DATABASE_URL", flags.migration_database_url.as_ref())?;
        match (service, owner) {
            (Some(service), owner) => {
                let durability = self.get::<Survival>("INTAKE_DURABILITY", flags.durability.as_ref(), "full")?.0;
                let service = service.with_durability(durability);
                Ok(Some(DatabaseUrls { owner: owner.unwrap_or_else(|| service.clone()), service }))
            }
            (None, Some(_)) => bail!("DATABASE_URL must be set where INTAKE_MIGRATION_DATABASE_URL is"),
            (None, None) => Ok(None),
        }
    }

    fn tls_files(&self, flags: &SettingFlags) -> anyhow::Result<Option<TlsFiles>> {
        let certificate = self.optional("INTAKE_TLS_CERT", flags.tls_cert.as_ref())?;
        let key = self.optional("INTAKE_TLS_KEY", flags.tls_key.as_ref())?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => bail!("INTAKE_TLS_KEY must be set where INTAKE_TLS_CERT is"),
            (None, Some(_)) => bail!("INTAKE_TLS_CERT must be set where INTAKE_TLS_KEY is"),
        }
    }
}

struct Address(SocketAddr);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| "must be an address with a port, like 127.0.0.1:8443 or [::]:8443")
    }
}

/// An address that may be off.
struct Switched(Option<SocketAddr>);

impl FromStr for Switched {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        text.parse().map(Some).map(Self).map_err(|_| "must be an address with a port, like 127.0.0.1:8080, or off")
    }
}

struct Proxies(TrustedProxies);

impl FromStr for Proxies {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = |text: &str| text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let networks = text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(parse);
        let networks = networks.collect::<Result<_, _>>();
        networks.map(TrustedProxies::new).map(Self).map_err(|_| "must be networks like 10.0.0.0/8,192.168.1.7")
    }
}

/// How many connections store patients.
struct Writers(NonZeroUsize);

impl FromStr for Writers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = text.parse().ok().filter(|count: &NonZeroUsize| count.get() <= WRITERS_MAX);
        count.map(Self).ok_or("must be a number from 1 to 64")
    }
}

/// A time span in `ms`, `s` or `m`.
struct Span(Duration);

impl FromStr for Span {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u32 = digits.parse().map_err(|_| "must be a time like 5s or 500ms")?;
        let span = match text.get(digits.len()..) {
            Some("ms") => Duration::from_millis(number.into()),
            Some("s") => Duration::from_secs(number.into()),
            Some("m") => Duration::from_secs(u64::from(number) * 60),
            _ => return Err("must be a time like 5s or 500ms"),
        };
        if span.is_zero() { Err("must be longer than nothing") } else { Ok(Self(span)) }
    }
}

/// What the database must survive.
struct Survival(Durability);

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

/// What to log: a level, or levels by module.
struct Log(Targets);

impl FromStr for Log {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
        if !text.split(',').all(is_known) {
            return Err("must be a level like info, or levels by module like info,intake_infra=debug");
        }
        // actix tells of every worker once more, and of every stranger's malformed request; only who asks for it reads that.
        let targets = format!("actix_server=warn,actix_http=off,{text}").parse();
        targets.map(Self).map_err(|_| "must be a level like info, or levels by module like info,intake_infra=debug")
    }
}

/// An HTTPS address without a slash at its end.
struct Link(String);

impl FromStr for Link {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let link = text.trim_end_matches('/');
        let is_plain = link.bytes().all(|byte| byte.is_ascii_graphic());
        match link.strip_prefix("https://") {
            Some(rest) if !rest.is_empty() && is_plain => Ok(Self(link.to_owned())),
            _ => Err("must be an address like https://intake.example"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], flags: &SettingFlags) -> anyhow::Result<Configuration> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Configuration::read(flags, |name| find(name).map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent))
    }

    fn complaint(variables: &[(&str, &str)]) -> String {
        match read(variables, &SettingFlags::default()) {
            Ok(_) => panic!("taken: {variables:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    const PRODUCTION: [(&str, &str); 2] =
        [("INTAKE_ENVIRONMENT", "production"), ("DATABASE_URL", "postgres://intake@localhost/intake")];

    #[test]
    fn everything_has_a_default_in_development() {
        let configuration = read(&[], &SettingFlags::default()).unwrap();
        assert_eq!(configuration.environment, Environment::Development);
        assert!(configuration.database.is_none());
        assert_eq!(configuration.data_dir, PathBuf::from(".intake"));
        assert_eq!(configuration.https_addr.to_string(), "127.0.0.1:8443");
        assert_eq!(configuration.http_addr.unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(configuration.admin_addr.to_string(), "127.0.0.1:9464");
        assert_eq!(configuration.rate_limit, "100/1000".parse().unwrap());
        assert_eq!(configuration.deadline, Duration::from_secs(5));
        assert_eq!(configuration.key_format.head(), "intake_demo_");
        assert!(configuration.trusted_proxies.is_empty());
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_an_empty_variable_is_none() {
        let flags = SettingFlags { deadline: Some("250ms".to_owned()), ..SettingFlags::default() };
        let variables = [("INTAKE_DEADLINE", "1m"), ("INTAKE_HTTP_ADDR", "off"), ("DATABASE_URL", "")];
        let configuration = read(&variables, &flags).unwrap();
        assert_eq!(configuration.deadline, Duration::from_millis(250));
        assert_eq!(configuration.http_addr, None);
        assert!(configuration.database.is_none());
    }

    #[test]
    fn a_wrong_value_is_named() {
        let wrong = [
            ("INTAKE_ENVIRONMENT", "staging"),
            ("DATABASE_URL", "mysql://localhost"),
            ("INTAKE_HTTPS_ADDR", "8443"),
            ("INTAKE_HTTP_ADDR", "localhost"),
            ("INTAKE_TRUSTED_PROXIES", "10.0.0.0/33"),
            ("INTAKE_ADMIN_ADDR", ""),
            ("INTAKE_KEY_PREFIX", "Intake"),
            ("INTAKE_RATE_LIMIT", "fast"),
            ("INTAKE_WRITERS", "0"),
            ("INTAKE_WRITERS", "65"),
            ("INTAKE_DEADLINE", "5"),
            ("INTAKE_DEADLINE", "0s"),
            ("INTAKE_DURABILITY", "some"),
            ("INTAKE_PUBLIC_URL", "http://intake.example"),
            ("INTAKE_LOG", "loud=very"),
            ("INTAKE_LOG", "verbose"),
        ];
        let database = ("DATABASE_URL", "postgres://localhost/intake");
        for (name, value) in wrong.into_iter().filter(|(_, value)| !value.is_empty()) {
            assert!(complaint(&[(name, value), database]).starts_with(name), "{name}={value}");
        }
        assert!(complaint(&[("INTAKE_TLS_CERT", "a.pem")]).starts_with("INTAKE_TLS_KEY"));
        assert!(complaint(&[("INTAKE_TLS_KEY", "a.pem")]).starts_with("INTAKE_TLS_CERT"));
        assert!(complaint(&[("INTAKE_MIGRATION_DATABASE_URL", "postgres://localhost/i")]).starts_with("DATABASE_URL"));
    }

    #[test]
    fn production_needs_a_database_and_a_way_in() {
        assert!(complaint(&PRODUCTION[..1]).starts_with("DATABASE_URL"));
        let refusal = |more: &[(&str, &str)]| {
            let variables = [&PRODUCTION[..], more].concat();
            let configuration = read(&variables, &SettingFlags::default()).unwrap();
            configuration.assert_can_serve().map_err(|error| error.to_string())
        };
        assert!(refusal(&[]).unwrap_err().starts_with("INTAKE_TLS_CERT"));
        assert!(refusal(&[("INTAKE_TRUSTED_PROXIES", "10.0.0.1")]).unwrap_err().starts_with("INTAKE_HTTP_ADDR"));
        let behind_proxy = [("INTAKE_TRUSTED_PROXIES", "10.0.0.1"), ("INTAKE_HTTP_ADDR", "127.0.0.1:8080")];
        assert_eq!(refusal(&behind_proxy), Ok(()));
        let certificate = [("INTAKE_TLS_CERT", "a"), ("INTAKE_TLS_KEY", "b")];
        assert_eq!(refusal(&certificate), Ok(()));
        let forgetful = [&certificate[..], &[("INTAKE_DURABILITY", "none")]].concat();
        assert!(refusal(&forgetful).unwrap_err().starts_with("INTAKE_DURABILITY"));
    }
}
