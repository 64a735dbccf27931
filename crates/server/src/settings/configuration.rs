//! The values of all settings, read and checked once. A wrong value stops the program with a line that names the
//! variable.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use intake_dashboard::{invitation_path, reset_password_path};
use intake_domain::{Environment, KeyFormat, KeyPrefix, Name, Passwords, Token};
use intake_http::{Hsts, RateLimit, TrustedProxies};
use intake_infra::{Durability, MailSender, SmtpUrl};
use tracing_subscriber::filter::Targets;

use crate::settings::certificate_files::TlsFiles;
use crate::settings::data_dir::DataDir;
use crate::settings::database_addresses::{self, DatabaseUrls};
use crate::settings::private_file;
use crate::settings::single_sign_on::{self, SingleSignOnSettings};
use crate::settings::values::{self, Link};
use crate::settings::{
    ADMIN_ADDR, AUDIT_COPIES, BACKUP_MARK, DATA_DIR, DATABASE_URL_FILE, DEADLINE, DRAIN_DELAY, ENVIRONMENT, HSTS,
    HTTP_ADDR, HTTPS_ADDR, KEY_PREFIX, LOG, MAIL_FROM, MIGRATION_DATABASE_URL_FILE, OIDC_CLIENT_SECRET_FILE, OPERATOR,
    POSTGRES_BIN, PUBLIC_URL, RATE_LIMIT, SMTP_URL, SMTP_URL_FILE, SUPPORT, Settings, TLS_CERT, TLS_KEY,
    TRUSTED_PROXIES, WRITERS,
};

/// The permission of everyone to read a file.
const READABLE_BY_ALL: u32 = 0o004;
/// The port that links name if the service listens on any free port and the command cannot know which.
const USUAL_HTTPS_PORT: u16 = 8443;

/// The program's settings.
pub(crate) struct Configuration {
    pub(crate) environment: Environment,
    /// None: the embedded database.
    pub(crate) database: Option<DatabaseUrls>,
    /// Files with secrets that every user of this machine can read.
    open_files: Vec<PathBuf>,
    pub(crate) data_dir: DataDir,
    pub(crate) postgres_bin: Option<PathBuf>,
    pub(crate) https_addr: SocketAddr,
    pub(crate) tls_files: Option<TlsFiles>,
    /// None: off.
    pub(crate) http_addr: Option<SocketAddr>,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) hsts: Hsts,
    pub(crate) admin_addr: SocketAddr,
    pub(crate) key_format: KeyFormat,
    pub(crate) rate_limit: RateLimit,
    pub(crate) deadline: Duration,
    pub(crate) drain_delay: Duration,
    /// None: as many as suit the machine.
    pub(crate) writers: Option<NonZeroUsize>,
    /// None: the address of the HTTPS listener.
    pub(crate) public_url: Option<String>,
    /// None: no mails are sent.
    pub(crate) mail: Option<MailSettings>,
    /// Whom members ask. None: an administrator of their organisation.
    pub(crate) contact: Option<String>,
    /// None: members do not sign in by single sign-on.
    pub(crate) single_sign_on: Option<SingleSignOnSettings>,
    pub(crate) log: Targets,
    /// None: the age of the newest backup cannot be seen.
    pub(crate) backup_mark: Option<PathBuf>,
    /// None: the age of the newest copy of the audit log cannot be seen.
    pub(crate) audit_copies: Option<PathBuf>,
    /// None: the account that runs the command.
    pub(crate) operator: Option<Name>,
}

/// Settings of mails.
pub(crate) struct MailSettings {
    pub(crate) server: SmtpUrl,
    pub(crate) from: MailSender,
}

impl Configuration {
    /// Reads every setting.
    pub(crate) fn read(settings: &Settings<'_>) -> anyhow::Result<Self> {
        let environment = settings.get(&ENVIRONMENT)?;
        let prefix: KeyPrefix = settings.get(&KEY_PREFIX)?;
        let configuration = Self {
            environment,
            database: database_addresses::read(settings)?,
            open_files: files_open_to_all(settings)?,
            data_dir: settings.get(&DATA_DIR)?,
            postgres_bin: settings.optional(&POSTGRES_BIN)?,
            https_addr: settings.get_as(&HTTPS_ADDR, values::address)?,
            tls_files: tls_files(settings)?,
            http_addr: settings.get_as(&HTTP_ADDR, values::address_or_off)?,
            trusted_proxies: settings.optional_as(&TRUSTED_PROXIES, values::proxies)?.unwrap_or_default(),
            hsts: settings.get(&HSTS)?,
            admin_addr: settings.get_as(&ADMIN_ADDR, values::address)?,
            key_format: KeyFormat::new(&prefix, environment),
            rate_limit: settings.get(&RATE_LIMIT)?,
            deadline: settings.get_as(&DEADLINE, values::span)?,
            drain_delay: settings.get_as(&DRAIN_DELAY, values::delay)?,
            writers: settings.optional_as(&WRITERS, values::writers)?,
            public_url: settings.optional::<Link>(&PUBLIC_URL)?.map(|link| link.0),
            mail: mail(settings)?,
            contact: settings.optional_as(&SUPPORT, values::contact)?,
            single_sign_on: single_sign_on::read(settings)?,
            log: settings.get_as(&LOG, values::log_levels)?,
            backup_mark: settings.optional(&BACKUP_MARK)?,
            audit_copies: settings.optional(&AUDIT_COPIES)?,
            operator: settings.optional_as(&OPERATOR, |text| Name::new(text))?,
        };
        if environment == Environment::Production && configuration.database.is_none() {
            bail!("DATABASE_URL or DATABASE_URL_FILE must be set in production");
        }
        Ok(configuration)
    }

    /// The base of printed links: as set, else the HTTPS listener, else a proxy on this machine.
    pub(crate) fn base_url(&self, https_port: Option<u16>) -> String {
        let port = https_port.map(|port| format!(":{port}")).unwrap_or_default();
        self.public_url.clone().unwrap_or_else(|| format!("https://localhost{port}"))
    }

    /// Returns whether members sign in with passwords.
    pub(crate) fn passwords(&self) -> Passwords {
        self.single_sign_on.as_ref().map(|settings| settings.passwords).unwrap_or_default()
    }

    /// The link of an invitation, as far as a command can know the address of the service.
    pub(crate) fn invitation_link(&self, token: &Token) -> String {
        self.link(&invitation_path(token))
    }

    /// The same for a reset link.
    pub(crate) fn password_reset_link(&self, token: &Token) -> String {
        self.link(&reset_password_path(token))
    }

    fn link(&self, path: &str) -> String {
        let port = self.https_addr.port();
        let base = self.base_url(Some(if port == 0 { USUAL_HTTPS_PORT } else { port }));
        format!("{base}{path}")
    }

    /// Refuses to make a link that would lead to this machine alone.
    pub(crate) fn assert_links_lead_here(&self) -> anyhow::Result<()> {
        if self.environment == Environment::Production && self.public_url.is_none() {
            bail!("INTAKE_PUBLIC_URL must be set in production: the link leads there");
        }
        Ok(())
    }

    /// Returns what a service can be started with and should not.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let open = self.open_files.iter();
        let open = open.map(|file| format!("every user of this machine can read {}: chmod o-r", file.display()));
        let unverified = self.database.iter().filter(|urls| urls.service.trusts_any_server()).map(|urls| {
            let setting = urls.service_variable;
            format!("{setting}: the database's certificate is not checked, so another server could pose as it: set sslmode=verify-full")
        });
        let has_no_address = self.environment == Environment::Production && self.public_url.is_none();
        let no_address = has_no_address.then(|| {
            "INTAKE_PUBLIC_URL is not set, so links in emails and of commands lead to this machine alone".to_owned()
        });
        let has_idle_proxies = self.http_addr.is_none() && !self.trusted_proxies.is_empty();
        let idle_proxies = has_idle_proxies.then(|| {
            "INTAKE_TRUSTED_PROXIES does nothing: proxies are believed on the plain listener only, and INTAKE_HTTP_ADDR is off".to_owned()
        });
        open.chain(unverified).chain(no_address).chain(idle_proxies).collect()
    }

    /// Checks the settings that only a service needs.
    pub(crate) fn assert_can_serve(&self) -> anyhow::Result<()> {
        if self.environment == Environment::Development {
            return Ok(());
        }
        self.assert_reachable()?;
        if self.database.as_ref().is_some_and(|urls| urls.service.durability() == Durability::None) {
            bail!("INTAKE_DURABILITY must be full in production");
        }
        Ok(())
    }

    fn assert_reachable(&self) -> anyhow::Result<()> {
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

/// The files with secrets that every user of this machine can read. They are accepted, because the secrets of a
/// container are such files, and a container has no other users.
fn files_open_to_all(settings: &Settings<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let mut open = Vec::new();
    for setting in
        [&DATABASE_URL_FILE, &MIGRATION_DATABASE_URL_FILE, &SMTP_URL_FILE, &OIDC_CLIENT_SECRET_FILE, &TLS_KEY]
    {
        let file: Option<PathBuf> = settings.optional(setting)?;
        let mode = |file: &PathBuf| std::fs::metadata(file).map_or(0, |found| found.permissions().mode());
        open.extend(file.filter(|file| mode(file) & READABLE_BY_ALL != 0));
    }
    Ok(open)
}

fn mail(settings: &Settings<'_>) -> anyhow::Result<Option<MailSettings>> {
    let from = settings.optional::<MailSender>(&MAIL_FROM)?;
    let Some(server) = mail_server(settings)? else { return Ok(None) };
    let link = settings.optional::<Link>(&PUBLIC_URL)?;
    if link.is_none() && settings.get::<Environment>(&ENVIRONMENT)? == Environment::Production {
        bail!("INTAKE_PUBLIC_URL must be set where emails are sent in production: their links lead there");
    }
    match from.or_else(|| MailSender::at(link.as_ref().map_or("localhost", Link::host))) {
        Some(from) => Ok(Some(MailSettings { server, from })),
        None => bail!("INTAKE_MAIL_FROM must be set, because emails cannot come from the host of INTAKE_PUBLIC_URL"),
    }
}

fn mail_server(settings: &Settings<'_>) -> anyhow::Result<Option<SmtpUrl>> {
    let server: Option<SmtpUrl> = settings.optional(&SMTP_URL)?;
    let file: Option<PathBuf> = settings.optional(&SMTP_URL_FILE)?;
    match (server, file) {
        (Some(_), Some(_)) => bail!("INTAKE_SMTP_URL and INTAKE_SMTP_URL_FILE must not both be set"),
        (Some(server), None) if settings.is_flag(&SMTP_URL) && server.has_password() => bail!(
            "--smtp-url: a password in a flag can be read by every user of this machine: set INTAKE_SMTP_URL, or \
             INTAKE_SMTP_URL_FILE to a file"
        ),
        (server, None) => Ok(server),
        (None, Some(file)) => {
            let address = private_file::read(&file).and_then(|text| text.parse().map_err(anyhow::Error::msg));
            address.with_context(|| format!("INTAKE_SMTP_URL_FILE: {}", file.display())).map(Some)
        }
    }
}

fn tls_files(settings: &Settings<'_>) -> anyhow::Result<Option<TlsFiles>> {
    match (settings.optional(&TLS_CERT)?, settings.optional(&TLS_KEY)?) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("INTAKE_TLS_KEY must be set as well, because INTAKE_TLS_CERT is"),
        (None, Some(_)) => bail!("INTAKE_TLS_CERT must be set as well, because INTAKE_TLS_KEY is"),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::env::VarError;

    use super::*;
    use crate::settings::{Flags, SETTINGS};

    #[test]
    fn a_secret_that_everyone_can_read_is_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let [address, key] = ["address", "key.pem"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
        std::fs::write(&address, "postgres://intake:secret@localhost/intake").unwrap();
        std::fs::write(&key, "").unwrap();
        for (mode, is_open) in [(0o600, false), (0o440, false), (0o444, true), (0o644, true)] {
            for file in [&address, &key] {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            let variables = [("DATABASE_URL_FILE", &*address), ("INTAKE_TLS_KEY", &key), ("INTAKE_TLS_CERT", &key)];
            let warnings = read_with(&Flags::default(), &variables).unwrap().warnings();
            assert_eq!(warnings.len(), if is_open { 2 } else { 0 }, "{mode:o}: {warnings:?}");
        }
    }

    fn read_with(flags: &Flags, variables: &[(&str, &str)]) -> anyhow::Result<Configuration> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        let variable = |name: &str| find(name).map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent);
        Configuration::read(&Settings { flags, variable: &variable })
    }

    fn read(variables: &[(&str, &str)]) -> anyhow::Result<Configuration> {
        read_with(&Flags::default(), variables)
    }

    fn complaint(variables: &[(&str, &str)]) -> String {
        match read(variables) {
            Ok(_) => panic!("taken: {variables:?}"),
            Err(error) => format!("{error:#}"),
        }
    }

    const PRODUCTION: [(&str, &str); 2] =
        [("INTAKE_ENVIRONMENT", "production"), ("DATABASE_URL", "postgres://intake@localhost/intake")];

    #[test]
    fn everything_has_a_default_in_development() {
        let configuration = read(&[]).unwrap();
        assert_eq!(configuration.environment, Environment::Development);
        assert!(configuration.database.is_none());
        assert_eq!(configuration.data_dir.demo_key(), PathBuf::from(".intake/demo-key"));
        assert_eq!(configuration.https_addr.to_string(), "127.0.0.1:8443");
        assert_eq!(configuration.http_addr.unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(configuration.admin_addr.to_string(), "127.0.0.1:9464");
        assert_eq!(configuration.rate_limit, "100/1000".parse().unwrap());
        assert_eq!(configuration.deadline, Duration::from_secs(5));
        assert_eq!(configuration.drain_delay, Duration::ZERO);
        assert_eq!(configuration.key_format.head(), "intake_demo_");
        assert!(configuration.trusted_proxies.is_empty());
    }

    #[test]
    fn every_setting_of_the_list_is_read_and_every_default_can_be() {
        let listed: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.variable.to_owned()).collect();
        assert_eq!(listed.len(), SETTINGS.len());
        for environment in ["development", "production"] {
            let asked = RefCell::new(BTreeSet::new());
            let variable = |name: &str| {
                asked.borrow_mut().insert(name.to_owned());
                match name {
                    "INTAKE_ENVIRONMENT" => Ok(environment.to_owned()),
                    "DATABASE_URL" => Ok("postgres://intake@localhost/intake".to_owned()),
                    _ => Err(VarError::NotPresent),
                }
            };
            let read = Configuration::read(&Settings { flags: &Flags::default(), variable: &variable });
            assert_eq!(read.unwrap().http_addr.is_none(), environment == "production");
            assert_eq!(asked.into_inner(), listed);
        }
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_an_empty_variable_is_none() {
        let flags = Flags::from([(&DEADLINE, "250ms")]);
        let variables = [("INTAKE_DEADLINE", "1m"), ("INTAKE_HTTP_ADDR", "off"), ("DATABASE_URL", "")];
        let configuration = read_with(&flags, &variables).unwrap();
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
            ("INTAKE_HSTS", "all"),
            ("INTAKE_ADMIN_ADDR", "9464"),
            ("INTAKE_KEY_PREFIX", "Intake"),
            ("INTAKE_RATE_LIMIT", "fast"),
            ("INTAKE_WRITERS", "0"),
            ("INTAKE_WRITERS", "65"),
            ("INTAKE_DEADLINE", "5"),
            ("INTAKE_DEADLINE", "0s"),
            ("INTAKE_DRAIN_DELAY", "5"),
            ("INTAKE_DURABILITY", "some"),
            ("INTAKE_PUBLIC_URL", "http://intake.example"),
            ("INTAKE_PUBLIC_URL", "https://clinic.example/intake/"),
            ("INTAKE_LOG", "loud=very"),
            ("INTAKE_LOG", "verbose"),
        ];
        let database = ("DATABASE_URL", "postgres://localhost/intake");
        for (name, value) in wrong {
            assert!(complaint(&[(name, value), database]).starts_with(name), "{name}={value}");
        }
        assert!(complaint(&[("INTAKE_TLS_CERT", "a.pem")]).starts_with("INTAKE_TLS_KEY"));
        assert!(complaint(&[("INTAKE_TLS_KEY", "a.pem")]).starts_with("INTAKE_TLS_CERT"));
        assert!(complaint(&[("INTAKE_MIGRATION_DATABASE_URL", "postgres://localhost/i")]).starts_with("DATABASE_URL"));
    }

    #[test]
    fn the_mail_server_comes_from_a_variable_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mail");
        let file = file.to_str().unwrap();
        let in_file = [("INTAKE_SMTP_URL_FILE", file)];
        assert!(complaint(&in_file).starts_with("INTAKE_SMTP_URL_FILE"), "there is no file");
        std::fs::write(file, "smtps://intake:s3cret@mail.example\n").unwrap();
        assert!(read(&in_file).unwrap().mail.unwrap().server.has_password());
        assert!(complaint(&[in_file[0], ("INTAKE_SMTP_URL", "smtp://localhost")]).contains("must not both be set"));
        std::fs::write(file, "intake:s3cret@mail.example").unwrap();
        let refusal = complaint(&in_file);
        assert!(refusal.starts_with("INTAKE_SMTP_URL_FILE") && !refusal.contains("s3cret"), "{refusal}");
    }

    #[test]
    fn production_needs_a_database_and_a_way_in() {
        assert!(complaint(&PRODUCTION[..1]).starts_with("DATABASE_URL"));
        let refusal = |more: &[(&str, &str)]| {
            let variables = [&PRODUCTION[..], more].concat();
            let configuration = read(&variables).unwrap();
            configuration.assert_can_serve().map_err(|error| error.to_string())
        };
        assert!(refusal(&[]).unwrap_err().starts_with("INTAKE_TLS_CERT"));
        assert!(refusal(&[("INTAKE_TRUSTED_PROXIES", "10.0.0.1")]).unwrap_err().starts_with("INTAKE_HTTP_ADDR"));
        let behind_proxy = [("INTAKE_TRUSTED_PROXIES", "10.0.0.1"), ("INTAKE_HTTP_ADDR", "127.0.0.1:8080")];
        assert_eq!(refusal(&behind_proxy), Ok(()));
        let certificate = [("INTAKE_TLS_CERT", "a"), ("INTAKE_TLS_KEY", "b")];
        assert_eq!(refusal(&certificate), Ok(()));
        assert_eq!(read(&[&PRODUCTION[..], &certificate].concat()).unwrap().drain_delay, Duration::from_secs(5));
        let mails = [&PRODUCTION[..], &[("INTAKE_SMTP_URL", "smtp://localhost")]].concat();
        assert!(complaint(&mails).starts_with("INTAKE_PUBLIC_URL"), "links in mails must lead to the service");
        assert!(read(&[&mails[..], &[("INTAKE_PUBLIC_URL", "https://intake.example")]].concat()).is_ok());
        let forgetful = [&certificate[..], &[("INTAKE_DURABILITY", "none")]].concat();
        assert!(refusal(&forgetful).unwrap_err().starts_with("INTAKE_DURABILITY"));
    }
}
