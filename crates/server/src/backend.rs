//! The database of every command: the one that the settings name, or the embedded one.

use std::io::ErrorKind;

use anyhow::{anyhow, bail};
use intake_domain::Environment;
use intake_infra::embedded::{EmbeddedError, EmbeddedPostgres, Settings, assert_installed, is_made};
use intake_infra::environment::{assert_environment, stamp_environment};
use intake_infra::grants::assert_granted;
use intake_infra::guarantees::assert_guaranteed;
use intake_infra::means_to_read::{MeansToRead, means_to_read};
use intake_infra::migrations::assert_migrated;
use intake_infra::origin::assert_origin;
use intake_infra::owner::{assert_owner, assert_primary};
use intake_infra::pooler::assert_own_sessions;
use intake_infra::production::assert_durable;
use intake_infra::{CheckConnection, DatabaseUrl, Durability, Prepared, SchemaError, migrate, prepare};

use crate::settings::configuration::Configuration;
use crate::settings::database_addresses::DatabaseUrls;
use crate::tls_advice;

/// The name of the service's database in the embedded server.
const EMBEDDED_DATABASE: &str = "intake";
/// Subject of errors where no variable leads to the database.
const EMBEDDED: &str = "the embedded database";

/// A database that is ready to be used.
pub(crate) struct Backend {
    /// The address for the service's role.
    pub(crate) service: DatabaseUrl,
    /// The address for the owner of the schema.
    pub(crate) owner: DatabaseUrl,
    /// None: an external database.
    pub(crate) embedded: Option<EmbeddedPostgres>,
    /// Setting that leads to the service's role, for errors.
    pub(crate) service_setting: &'static str,
    /// Setting that leads to the owner.
    pub(crate) owner_setting: &'static str,
}

/// Says which setting an error is about, and which command helps.
pub(crate) fn explain(setting: &'static str) -> impl Fn(SchemaError) -> anyhow::Error {
    move |error| {
        let advice = match &error {
            SchemaError::Unmigrated => "run `intake migrate` first",
            SchemaError::Restored => "run `intake restored`, which tells what to look at",
            SchemaError::NotOwner if setting.ends_with("_FILE") => {
                "set INTAKE_MIGRATION_DATABASE_URL_FILE to a file with the address of the role that migrated"
            }
            SchemaError::NotOwner => "set INTAKE_MIGRATION_DATABASE_URL to the address of the role that migrated",
            SchemaError::MissingGrants(_) => "`intake migrate --service-role NAME` grants it",
            SchemaError::Failed(said) | SchemaError::Interrupted(said)
                if said.to_string().contains(tls_advice::NO_PASSWORD) =>
            {
                return anyhow!("{setting}: {error}: {}", tls_advice::with_advice(&said.to_string()));
            }
            SchemaError::Failed(_) if setting != EMBEDDED => {
                "does the role have its grants? `intake migrate --service-role NAME` gives them"
            }
            SchemaError::Unreachable(said) => {
                return anyhow!("{setting}: {error}: {}", tls_advice::with_advice(&said.to_string()));
            }
            _ => return anyhow!(error).context(setting),
        };
        anyhow!("{setting}: {:#}: {advice}", anyhow!(error))
    }
}

impl Backend {
    /// Finds the database for a command. Checks its environment; in development it is migrated first.
    pub(crate) fn open(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        let mut over = CheckConnection::open(&backend.service).map_err(explain(backend.service_setting))?;
        backend.make_usable(&mut over, configuration.environment)?;
        Ok(backend)
    }

    fn make_usable(&self, over: &mut CheckConnection, environment: Environment) -> anyhow::Result<()> {
        // Before anything is changed: a forgotten variable must not change the other environment's database.
        let service = explain(self.service_setting);
        assert_environment(over, environment).map_err(&service)?;
        match environment {
            // The embedded one was migrated when it started.
            Environment::Development if self.embedded.is_none() => {
                if let Err(error) = migrate(&self.owner) {
                    self.assert_owner()?;
                    return Err(explain(self.owner_setting)(error));
                }
            }
            Environment::Development => {}
            Environment::Production => assert_migrated(over).map_err(&service)?,
        }
        Ok(())
    }

    /// Finds the database for the service. The first service on a database decides its environment.
    pub(crate) fn open_to_serve(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        let explain = explain(backend.service_setting);
        let over = match &backend.embedded {
            Some(_) => CheckConnection::open(&backend.service),
            // First, because over shared sessions every other check may be wrong.
            None => assert_own_sessions(&backend.service),
        };
        let over = &mut over.map_err(&explain)?;
        assert_primary(over).map_err(&explain)?;
        backend.make_usable(over, configuration.environment)?;
        assert_durable(&backend.service).map_err(&explain)?;
        assert_guaranteed(over).map_err(&explain)?;
        assert_granted(over).map_err(&explain)?;
        if configuration.environment == Environment::Production {
            assert_origin(over).map_err(&explain)?;
            backend.assert_cannot_read(over)?;
        }
        stamp_environment(over, configuration.environment).map_err(&explain)?;
        Ok(backend)
    }

    /// Refuses a service's role that can read patients. A newer program may have granted it columns, and an older one
    /// starts all the same.
    fn assert_cannot_read(&self, over: &mut CheckConnection) -> anyhow::Result<()> {
        let setting = self.service_setting;
        match means_to_read(over).map_err(explain(setting))? {
            None => Ok(()),
            Some(means @ MeansToRead::Columns) => {
                tracing::warn!("{setting}: {}", exposed(&means));
                Ok(())
            }
            Some(means) => bail!("{setting}: {}", exposed(&means)),
        }
    }

    /// Finds the database for a command that changes it as its owner.
    pub(crate) fn reach_as_owner(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        backend.assert_owner()?;
        Ok(backend)
    }

    /// Refuses addresses that lead to two databases, and an owner's that may not change its own.
    pub(crate) fn assert_owner(&self) -> anyhow::Result<()> {
        assert_owner(&self.owner, &self.service).map_err(explain(self.owner_setting))
    }

    /// Finds the database and checks nothing. The embedded one is started and migrated.
    pub(crate) fn reach(configuration: &Configuration) -> anyhow::Result<Self> {
        if let Some(urls) = configuration.database.clone() {
            let DatabaseUrls { service, owner, service_variable, owner_variable } = urls;
            return Ok(Self {
                service,
                owner,
                embedded: None,
                service_setting: service_variable,
                owner_setting: owner_variable,
            });
        }
        // Before any folder is made.
        assert_installed(configuration.postgres_bin.as_deref()).map_err(|error| about(configuration, error))?;
        configuration.data_dir.make()?;
        let embedded = EmbeddedPostgres::start(&Settings {
            folder: configuration.data_dir.postgres(),
            durability: Durability::Full,
            programs: configuration.postgres_bin.clone(),
            user: std::process::id(),
        });
        let embedded = embedded.map_err(|error| about(configuration, error))?;
        let Prepared { service, owner } = prepare(&embedded, EMBEDDED_DATABASE).map_err(explain(EMBEDDED))?;
        Ok(Self { service, owner, embedded: Some(embedded), service_setting: EMBEDDED, owner_setting: EMBEDDED })
    }

    /// Refuses to go on where the embedded database would have to be made first.
    pub(crate) fn assert_made(configuration: &Configuration) -> anyhow::Result<()> {
        let is_made = || is_made(&configuration.data_dir.postgres()).map_err(|error| about(configuration, error));
        if configuration.database.is_some() || is_made()? {
            return Ok(());
        }
        bail!(
            "no database in {}: run this in the folder in which the service was started, or name its data folder with \
             --data-dir",
            configuration.data_dir
        )
    }
}

/// Says how the service's role can read patients, and what to do.
pub(crate) fn exposed(means: &MeansToRead) -> String {
    let advice = match means {
        MeansToRead::Replication | MeansToRead::CreateRole => "ALTER ROLE … NOREPLICATION NOCREATEROLE",
        MeansToRead::Superuser | MeansToRead::Owner => {
            "use a role of its own, to which `intake migrate --service-role NAME` grants what it needs"
        }
        MeansToRead::Everybody => "REVOKE ALL ON patients FROM PUBLIC",
        MeansToRead::Member(_) => "REVOKE the membership",
        MeansToRead::Table | MeansToRead::Columns => "run `intake migrate --service-role NAME`, which takes that away",
    };
    format!("the service's role {means}, so a flaw in the service could expose patients: {advice}")
}

/// Says which setting an error of the embedded database is about.
fn about(configuration: &Configuration, error: EmbeddedError) -> anyhow::Error {
    match error {
        EmbeddedError::NotInFolder(_) => anyhow!("INTAKE_POSTGRES_BIN: {error}, or set DATABASE_URL"),
        EmbeddedError::NotInstalled(_) | EmbeddedError::VersionNotInstalled(_) => {
            anyhow!("{error}, or set DATABASE_URL")
        }
        EmbeddedError::Io(denied) if denied.kind() == ErrorKind::PermissionDenied => anyhow!(
            "INTAKE_DATA_DIR: {}: this account may not use the database's folder: run the command as root or as the \
             account of the service, or set DATABASE_URL",
            configuration.data_dir
        ),
        EmbeddedError::Io(_) => anyhow!(error).context(format!("INTAKE_DATA_DIR: {}", configuration.data_dir)),
        other => other.into(),
    }
}
