//! The database behind every command: the one that the settings name, or the embedded one.

use anyhow::{Context, anyhow};
use intake_domain::Environment;
use intake_infra::embedded::{EmbeddedError, EmbeddedPostgres, Settings};
use intake_infra::environment::{assert_environment, stamp_environment};
use intake_infra::grants::assert_granted;
use intake_infra::migrations::{assert_migrated, migrate};
use intake_infra::pooler::assert_own_sessions;
use intake_infra::production::{assert_durable, excess_of_power};
use intake_infra::{DatabaseUrl, Durability, prepare};

use crate::configuration::Configuration;

/// The name of the service's database in the embedded server.
const EMBEDDED_DATABASE: &str = "intake";

/// A database that is ready to be used.
pub(crate) struct Backend {
    /// As the service.
    pub(crate) service: DatabaseUrl,
    /// As the owner of the schema.
    pub(crate) owner: DatabaseUrl,
    /// Present if the database is ours to start and stop.
    pub(crate) embedded: Option<EmbeddedPostgres>,
}

impl Backend {
    /// Finds the database for a command: of this environment, and migrated where that is the program's own affair.
    pub(crate) fn open(configuration: &Configuration) -> anyhow::Result<Self> {
        let backend = Self::reach(configuration)?;
        if backend.embedded.is_some() {
            assert_environment(&backend.service, configuration.environment)?;
            return Ok(backend);
        }
        // Before anything is changed: a forgotten variable must not touch the other environment's database.
        assert_environment(&backend.service, configuration.environment).context("DATABASE_URL")?;
        match configuration.environment {
            Environment::Development => drop(migrate(&backend.owner).context("INTAKE_MIGRATION_DATABASE_URL")?),
            Environment::Production => assert_migrated(&backend.service).context("DATABASE_URL")?,
        }
        Ok(backend)
    }

    /// Finds the database for the service: the first to serve from it decides which environment it belongs to.
    pub(crate) fn open_to_serve(configuration: &Configuration) -> anyhow::Result<Self> {
        if let Some(urls) = &configuration.database {
            // First of all: over shared sessions every other question may get a wrong answer.
            assert_own_sessions(&urls.service).context("DATABASE_URL")?;
        }
        let backend = Self::open(configuration)?;
        assert_durable(&backend.service, configuration.environment).context("DATABASE_URL")?;
        assert_granted(&backend.service).context("DATABASE_URL")?;
        if configuration.environment == Environment::Production
            && let Some(excess) = excess_of_power(&backend.service)?
        {
            tracing::warn!(
                "the role of DATABASE_URL {excess}, so that a flaw of the service could show patients: \
                 give it a role of its own with `intake migrate --service-role NAME`"
            );
        }
        stamp_environment(&backend.service, configuration.environment)?;
        Ok(backend)
    }

    /// Finds the database as it is. The embedded one is always migrated.
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
            EmbeddedError::NotInFolder(_) => anyhow!("INTAKE_POSTGRES_BIN: {error}"),
            EmbeddedError::Io(_) => anyhow!(error).context(format!("INTAKE_DATA_DIR: {}", configuration.data_dir)),
            other => other.into(),
        })?;
        let prepared = prepare(&embedded, EMBEDDED_DATABASE)?;
        Ok(Self { service: prepared.service, owner: prepared.owner, embedded: Some(embedded) })
    }
}
