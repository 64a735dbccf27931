//! The database of every command: the one that the settings name, or the embedded one.

use anyhow::anyhow;
use intake_domain::Environment;
use intake_infra::embedded::{EmbeddedError, EmbeddedPostgres, Settings};
use intake_infra::environment::{assert_environment, stamp_environment};
use intake_infra::grants::assert_granted;
use intake_infra::migrations::{assert_migrated, migrate};
use intake_infra::origin::assert_origin;
use intake_infra::owner::{assert_owner, assert_primary};
use intake_infra::pooler::assert_own_sessions;
use intake_infra::production::{assert_durable, needless_privilege};
use intake_infra::{DatabaseUrl, Durability, SchemaError, prepare};

use crate::configuration::Configuration;
use crate::tls_advice;

/// The name of the service's database in the embedded server.
const EMBEDDED_DATABASE: &str = "intake";

/// A database that is ready to be used.
pub(crate) struct Backend {
    /// The address for the service's role.
    pub(crate) service: DatabaseUrl,
    /// The address for the owner of the schema.
    pub(crate) owner: DatabaseUrl,
    /// None: an external database.
    pub(crate) embedded: Option<EmbeddedPostgres>,
}

/// Says which variable an error is about, and which command helps.
pub(crate) fn explain(variable: &'static str) -> impl Fn(SchemaError) -> anyhow::Error {
    move |error| {
        let advice = match &error {
            SchemaError::Unmigrated => "run `intake migrate` first",
            SchemaError::Restored => "run `intake restored`, which tells what to look at",
            SchemaError::NotOwner => "set it to the address of the owner, who migrated",
            SchemaError::MissingGrants(_) => "`intake migrate --service-role NAME` grants it",
            SchemaError::Failed(_) => "does the role have its grants? `intake migrate --service-role NAME` gives them",
            SchemaError::Unreachable(said) => {
                return anyhow!("{variable}: {error}: {}", tls_advice::with_advice(&said.to_string()));
            }
            _ => return anyhow!(error).context(variable),
        };
        anyhow!("{variable}: {:#}: {advice}", anyhow!(error))
    }
}

impl Backend {
    /// Finds the database for a command. Checks its environment; in development it is migrated first.
    pub(crate) fn open(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        if backend.embedded.is_some() {
            assert_environment(&backend.service, configuration.environment)?;
            return Ok(backend);
        }
        // Before anything is changed: a forgotten variable must not change the other environment's database.
        assert_environment(&backend.service, configuration.environment).map_err(explain("DATABASE_URL"))?;
        match configuration.environment {
            Environment::Development => {
                if let Err(error) = migrate(&backend.owner) {
                    backend.assert_owner()?;
                    return Err(explain("INTAKE_MIGRATION_DATABASE_URL")(error));
                }
            }
            Environment::Production => assert_migrated(&backend.service).map_err(explain("DATABASE_URL"))?,
        }
        Ok(backend)
    }

    /// Finds the database for the service. The first service on a database decides its environment.
    pub(crate) fn open_to_serve(configuration: &Configuration) -> anyhow::Result<Self> {
        if let Some(urls) = &configuration.database {
            // First, because over shared sessions every other check may be wrong.
            assert_own_sessions(&urls.service).map_err(explain("DATABASE_URL"))?;
            assert_primary(&urls.service).map_err(explain("DATABASE_URL"))?;
        }
        let backend = Self::open(configuration)?;
        assert_durable(&backend.service, configuration.environment).map_err(explain("DATABASE_URL"))?;
        assert_granted(&backend.service).map_err(explain("DATABASE_URL"))?;
        if configuration.environment == Environment::Production {
            assert_origin(&backend.service).map_err(explain("DATABASE_URL"))?;
        }
        if configuration.environment == Environment::Production
            && let Some(privilege) = needless_privilege(&backend.service)?
        {
            tracing::warn!(
                "the role of DATABASE_URL {privilege}, so a flaw in the service could expose patients: \
                 give it a role of its own with `intake migrate --service-role NAME`"
            );
        }
        stamp_environment(&backend.service, configuration.environment).map_err(explain("DATABASE_URL"))?;
        Ok(backend)
    }

    /// Finds the database for a command that changes it as its owner.
    pub(crate) fn reach_as_owner(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        backend.assert_owner()?;
        Ok(backend)
    }

    /// Refuses addresses that lead to two databases, and an owner's that may not change its own.
    pub(crate) fn assert_owner(&self) -> anyhow::Result<()> {
        assert_owner(&self.owner, &self.service).map_err(explain("INTAKE_MIGRATION_DATABASE_URL"))
    }

    /// Finds the database and checks nothing. The embedded one is started and migrated.
    pub(crate) fn reach(configuration: &Configuration) -> anyhow::Result<Self> {
        if let Some(urls) = configuration.database.clone() {
            return Ok(Self { service: urls.service, owner: urls.owner, embedded: None });
        }
        configuration.data_dir.make()?;
        let embedded = EmbeddedPostgres::start(&Settings {
            folder: configuration.data_dir.postgres(),
            durability: Durability::Full,
            programs: configuration.postgres_bin.clone(),
            user: std::process::id(),
        });
        let embedded = embedded.map_err(|error| match error {
            EmbeddedError::NotInFolder(_) => anyhow!("INTAKE_POSTGRES_BIN: {error}, or set DATABASE_URL"),
            EmbeddedError::NotInstalled(_) | EmbeddedError::VersionNotInstalled(_) => {
                anyhow!("{error}, or set DATABASE_URL")
            }
            EmbeddedError::Io(_) => anyhow!(error).context(format!("INTAKE_DATA_DIR: {}", configuration.data_dir)),
            other => other.into(),
        })?;
        let prepared = prepare(&embedded, EMBEDDED_DATABASE)?;
        Ok(Self { service: prepared.service, owner: prepared.owner, embedded: Some(embedded) })
    }
}
