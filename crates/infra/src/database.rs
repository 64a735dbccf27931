//! The pool behind everything that is not on the way of a valid patient: key lookups, key and organisation management.
//! Work runs on blocking threads, as many at once as there are connections, and rides out a lost connection until its
//! deadline. All work given to it may be run twice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::r2d2::{ConnectionManager, Pool};
use diesel::{Connection, QueryResult};
use intake_domain::StoreError;
use tokio::sync::Semaphore;

use crate::database_url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure, store_error};

/// Lookups are short: a few connections carry thousands of them a second.
const POOL_SIZE: u32 = 4;
/// Work waiting for a connection, beyond which newcomers are turned away at once.
const MAX_WAITING: usize = 4_096;
/// How long to wait for a pooled connection before looking at the deadline again. r2d2's own back-off grows to half of it.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// Between two tries while the database is away: soon enough to go unnoticed when it is back.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A pool of connections to the database.
#[derive(Clone)]
pub struct Database {
    pool: Pool<ConnectionManager<PgConnection>>,
    connections: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    deadline: Duration,
}

impl Database {
    /// A pool that connects when it is first used. `deadline` bounds every piece of work.
    #[must_use]
    pub fn new(url: &DatabaseUrl, deadline: Duration) -> Self {
        let pool = Pool::builder()
            .max_size(POOL_SIZE)
            .min_idle(Some(0))
            .test_on_check_out(false)
            .connection_timeout(CONNECTION_TIMEOUT.min(deadline))
            .build_unchecked(ConnectionManager::new(url.expose()));
        Self {
            pool,
            connections: Arc::new(Semaphore::new(usize::try_from(POOL_SIZE).unwrap_or(1))),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            deadline,
        }
    }

    /// Whether the database answers.
    pub async fn is_reachable(&self) -> bool {
        self.run(|connection| diesel::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), connection)).await.is_ok()
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _place = self.waiting.try_acquire().map_err(|_| StoreError::Overloaded)?;
        let until = Instant::now() + self.deadline;
        let permit = tokio::time::timeout_at(until.into(), Arc::clone(&self.connections).acquire_owned()).await;
        let permit = permit.map_err(unavailable)?.map_err(|error| StoreError::Unexpected(error.into()))?;
        let pool = self.pool.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            run_until(&pool, until, work)
        });
        // A statement that hangs is left to its thread: the caller has waited long enough.
        match tokio::time::timeout_at(until.into(), done).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(StoreError::Unexpected(panic.into())),
            Err(elapsed) => Err(unavailable(elapsed)),
        }
    }
}

fn run_until<T>(
    pool: &Pool<ConnectionManager<PgConnection>>,
    until: Instant,
    work: impl Fn(&mut PgConnection) -> QueryResult<T>,
) -> Result<T, StoreError> {
    loop {
        let error = match pool.get() {
            Ok(mut connection) => match work(&mut connection) {
                Ok(value) => return Ok(value),
                Err(error) if failure(&error) == Failure::Refused => return Err(store_error(error)),
                Err(error) => {
                    // Never given back as it is: the pool would hand it to the next one.
                    replace(&mut connection);
                    store_error(error)
                }
            },
            Err(error) => unavailable(error),
        };
        if Instant::now() + RETRY_PAUSE >= until {
            return Err(error);
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Marks a connection as broken, so that the pool closes it: an open transaction that fails to roll back.
fn replace(connection: &mut PgConnection) {
    use diesel::connection::TransactionManager;
    type Manager = <PgConnection as Connection>::TransactionManager;
    Manager::transaction_manager_status_mut(connection).set_in_error();
}

fn unavailable(error: impl Into<intake_domain::Source>) -> StoreError {
    StoreError::Unavailable(error.into())
}
