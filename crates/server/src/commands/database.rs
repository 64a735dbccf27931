//! The database as most commands use it: with the service's role, whether or not the service runs beside them.

use anyhow::anyhow;
use intake_infra::Database;

use super::operator::DEADLINE;
use crate::backend::Backend;
use crate::settings::configuration::Configuration;
use crate::tls_advice::{NO_PASSWORD, with_advice};

pub(super) fn with_database(
    configuration: &Configuration,
    work: impl AsyncFnOnce(Database) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let backend = Backend::open(configuration)?;
    let database = Database::new(&backend.service, DEADLINE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let done = runtime.block_on(work(database));
    // A statement that waits for a lock has been given up, and is not waited for.
    runtime.shutdown_background();
    done.map_err(|error| match format!("{error:#}") {
        said if said.contains(NO_PASSWORD) => anyhow!(with_advice(&said)),
        _ => error,
    })
}
