//! Whether the service should get requests, and if not, why. The database is asked about once a second at most, however
//! often a balancer asks, and only as long as one does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use intake_domain::Environment;
use intake_http::Connections;
use intake_infra::{Database, PostgresPatientRegister, Unready, stuck_thread};
use tokio::sync::Mutex;

/// Time for which the outcome of a check is used: balancers take out an instance only after several seconds.
const AGE_MAX: Duration = Duration::from_secs(1);
/// A probe that takes longer counts as failed anyway.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything on which readiness depends.
pub(crate) struct Readiness {
    pub(crate) database: Database,
    pub(crate) register: Arc<PostgresPatientRegister>,
    pub(crate) connections: Connections,
    pub(crate) environment: Environment,
    pub(crate) last: LastCheck,
}

/// The last check. Locked during a check, so that there is one at a time.
pub(crate) type LastCheck = Mutex<Checked>;

#[derive(Default)]
pub(crate) struct Checked {
    /// Time and result, if there was a check.
    outcome: Option<(Instant, Result<(), Reason>)>,
    /// Cause of a query that failed, which is logged when it begins or changes.
    failure: Option<String>,
}

/// Reason why the service should get no requests.
#[derive(Clone)]
pub(crate) enum Reason {
    Draining,
    /// A thread that the service cannot work without is stuck.
    Stuck,
    Database(Unready),
    /// No writer stores patients, although the database answers.
    Writer,
}

impl Reason {
    /// The word for it in the answer to a probe.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Stuck => "stuck",
            Self::Database(Unready::Unreachable) => "unreachable",
            Self::Database(Unready::ReadOnly) => "read-only",
            Self::Database(Unready::Unmigrated) => "unmigrated",
            Self::Database(Unready::OtherEnvironment) => "environment",
            Self::Database(Unready::MissingGrants) => "grants",
            Self::Writer | Self::Database(Unready::Failed(_)) => "writer",
        }
    }
}

impl Readiness {
    /// Returns why the service should get no requests, if so.
    pub(crate) async fn get(&self) -> Result<(), Reason> {
        if self.connections.are_draining() {
            return Err(Reason::Draining);
        }
        if stuck_thread().is_some() {
            return Err(Reason::Stuck);
        }
        let mut last = self.last.lock().await;
        if let Some((checked_at, found)) = &last.outcome
            && checked_at.elapsed() < AGE_MAX
        {
            return found.clone();
        }
        let found = self.check(&mut last.failure).await;
        last.outcome = Some((Instant::now(), found.clone()));
        found
    }

    async fn check(&self, last_failure: &mut Option<String>) -> Result<(), Reason> {
        let database = self.database.readiness(self.environment, CHECK_TIMEOUT);
        let (database, is_storing) = tokio::join!(database, self.register.is_storing(CHECK_TIMEOUT));
        let failure = match &database {
            Err(Unready::Failed(cause)) => Some(cause.clone()),
            _ => None,
        };
        if failure != *last_failure
            && let Some(cause) = &failure
        {
            tracing::warn!(cause, is_storing, "a query that /readyz needs failed");
        }
        *last_failure = failure;
        match database {
            // The writers have connections of their own, and need less.
            Ok(()) | Err(Unready::Unreachable | Unready::Failed(_)) if is_storing => Ok(()),
            Ok(()) if self.register.has_stored_lately() => Ok(()),
            Ok(()) => Err(Reason::Writer),
            Err(unready) => Err(Reason::Database(unready)),
        }
    }
}
