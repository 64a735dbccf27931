//! Watches, in production, whether the database is still the one that the service has started on. The service accepts a
//! promoted standby if it lacks no audit entry. On a restored database the service ends, because revoked keys work
//! there again.

use std::time::Duration;

use anyhow::anyhow;
use intake_domain::Environment;
use intake_infra::origin::Look;
use intake_infra::{Database, SchemaError};

use crate::backend::explain;

/// Between two checks: a change in the last second before a failover can be lost unnoticed.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watch over the origin of a database.
pub(crate) struct OriginWatch {
    /// None: nothing, in development.
    database: Option<Database>,
    /// Setting that leads to it.
    setting: &'static str,
}

impl OriginWatch {
    pub(crate) fn new(database: Database, setting: &'static str, environment: Environment) -> Self {
        Self { database: (environment == Environment::Production).then_some(database), setting }
    }

    /// Waits until the database turns out to be restored, and says so.
    pub(crate) async fn until_restored(self) -> anyhow::Error {
        let Some(database) = self.database else { return std::future::pending().await };
        let (mut seen, mut turn) = (None, 0_usize);
        loop {
            match database.look_at_origin(seen.clone(), turn).await {
                Ok(Look::Known(found)) => seen = Some(found),
                Ok(Look::Promoted(found)) => {
                    tracing::warn!("a standby of the database was promoted; its audit log is complete");
                    seen = Some(found);
                }
                Ok(Look::Restored) => return explain(self.setting)(SchemaError::Restored),
                // A database that is away was not replaced.
                Err(error) => {
                    tracing::debug!(error = %anyhow!(error), "the origin of the database cannot be looked at");
                }
            }
            turn = turn.wrapping_add(1);
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
