//! The pool behind everything that is not on the way of a patient: key and organisation management, members, sessions. Work
//! runs on blocking threads, as many at once as there are connections, and rides out a lost connection until its deadline.
//! Work that hangs is left behind with its connection and done again over a new one, so all of it may be run twice.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::connection::TransactionManager;
use diesel::pg::PgConnection;
use intake_domain::{Source, StoreError};
use r2d2::{ManageConnection, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep_until, timeout_at};

use crate::database::connect::{ConnectError, RETRY_PAUSE, connect};
use crate::database::grants::missing_grants;
use crate::database::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure, store_error};
use crate::left_behind::LeftBehind;

/// Lookups are short: a few connections carry thousands of them a second.
const POOL_SIZE: u32 = 4;
/// Work waiting for a connection, beyond which newcomers are turned away at once.
const MAX_WAITING: usize = 4_096;
/// How long to wait for a pooled connection before looking at the deadline again. r2d2's own back-off grows to half of it.
const CONNECTION_TIMEOUT: Duration = Duration::from_millis(500);

/// A pool of connections to the database.
#[derive(Clone)]
pub struct Database {
    url: DatabaseUrl,
    pool: Arc<RwLock<Pool<Connections>>>,
    permits: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    left_behind: Arc<LeftBehind>,
    deadline: Duration,
}

/// What became of one try.
enum Tried<T> {
    Done(T),
    /// Trying again may help.
    Failed(StoreError),
    /// Trying again changes nothing.
    Refused(StoreError),
    Hangs,
}

impl Database {
    /// A pool that connects when it is first used. `deadline` bounds every piece of work.
    #[must_use]
    pub fn new(url: &DatabaseUrl, deadline: Duration) -> Self {
        Self {
            url: url.clone(),
            pool: Arc::new(RwLock::new(pool(url, deadline))),
            permits: Arc::new(Semaphore::new(usize::try_from(POOL_SIZE).unwrap_or(1))),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            left_behind: Arc::default(),
            deadline,
        }
    }

    /// Whether the database answers.
    pub async fn is_reachable(&self) -> bool {
        self.run(|connection| diesel::RunQueryDsl::execute(diesel::sql_query("SELECT 1"), connection)).await.is_ok()
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| StoreError::Overloaded)?;
        let until = Instant::now() + self.deadline;
        let work = Arc::new(work);
        loop {
            let error = match self.try_once(&work, until).await? {
                Tried::Done(value) => return Ok(value),
                Tried::Refused(error) => return Err(error),
                Tried::Failed(error) => error,
                Tried::Hangs => unavailable("a statement hangs in the database"),
            };
            let next = Instant::now() + RETRY_PAUSE;
            if next >= until {
                return Err(error);
            }
            sleep_until(next.into()).await;
        }
    }

    async fn try_once<T: Send + 'static>(
        &self,
        work: &Arc<impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static>,
        until: Instant,
    ) -> Result<Tried<T>, StoreError> {
        let permit = timeout_at(until.into(), Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(unavailable)?.map_err(|error| StoreError::Unexpected(error.into()))?;
        // Held by the work, and by whoever waits for it: who gives up on the work takes the permit away.
        let permit = Arc::new(Mutex::new(Some(permit)));
        let pool = self.pool.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (work, held, left_behind) = (Arc::clone(work), Arc::clone(&permit), Arc::clone(&self.left_behind));
        let done = tokio::task::spawn_blocking(move || {
            let tried = try_work(&pool, work.as_ref());
            if take(&held).is_none() {
                left_behind.came_back();
            } else if matches!(tried, Tried::Done(_) | Tried::Refused(_)) {
                left_behind.note_success();
            }
            tried
        });
        let patience = self.left_behind.patience();
        let limit = patience.map_or(until, |patience| until.min(Instant::now() + patience));
        // However the wait ends: the caller may go as well.
        let _leaving = Leaving { database: self, permit: patience.map(|_| permit) };
        match timeout_at(limit.into(), done).await {
            Ok(Ok(tried)) => Ok(tried),
            Ok(Err(_panic)) => Err(StoreError::Unexpected("work for the database panicked".into())),
            Err(_elapsed) => Ok(Tried::Hangs),
        }
    }
}

/// Somebody who waits for work, and leaves it behind unless it is done.
struct Leaving<'a> {
    database: &'a Database,
    /// None: so many hang already that this one keeps its permit.
    permit: Option<Arc<Mutex<Option<OwnedSemaphorePermit>>>>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let Some(permit) = &self.permit else { return };
        let Database { url, pool, left_behind, deadline, .. } = self.database;
        // Counted first: it may come back at any moment.
        left_behind.add();
        if take(permit).is_none() {
            return left_behind.undo();
        }
        // Where one connection hangs, the others that were opened before would, too. They end with their pool.
        *pool.write().unwrap_or_else(PoisonError::into_inner) = self::pool(url, *deadline);
    }
}

fn take(permit: &Mutex<Option<OwnedSemaphorePermit>>) -> Option<OwnedSemaphorePermit> {
    permit.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn pool(url: &DatabaseUrl, deadline: Duration) -> Pool<Connections> {
    Pool::builder()
        .max_size(POOL_SIZE)
        .min_idle(Some(0))
        .test_on_check_out(false)
        .connection_timeout(CONNECTION_TIMEOUT.min(deadline))
        .error_handler(Box::new(r2d2::NopErrorHandler))
        .build_unchecked(Connections(url.clone()))
}

fn try_work<T>(pool: &Pool<Connections>, work: impl Fn(&mut PgConnection) -> QueryResult<T>) -> Tried<T> {
    let mut connection = match pool.get() {
        Ok(connection) => connection,
        Err(error) => return Tried::Failed(unavailable(error)),
    };
    match work(&mut connection.connection) {
        Ok(value) => Tried::Done(value),
        Err(error) if failure(&error) == Failure::Refused => Tried::Refused(store_error(error)),
        Err(error) => {
            // Never given back as it is: the pool would hand it to the next one.
            connection.is_broken = true;
            let missing = match failure(&error) {
                Failure::Unknown => missing_grants(&mut connection.connection),
                _ => None,
            };
            match missing {
                Some(missing) => Tried::Refused(StoreError::Unexpected(missing.into())),
                None => Tried::Failed(store_error(error)),
            }
        }
    }
}

fn unavailable(error: impl Into<Source>) -> StoreError {
    StoreError::Unavailable(error.into())
}

/// How the pool connects, and which connections it keeps.
#[derive(Debug)]
struct Connections(DatabaseUrl);

struct Pooled {
    connection: PgConnection,
    is_broken: bool,
}

impl ManageConnection for Connections {
    type Connection = Pooled;
    type Error = ConnectError;

    fn connect(&self) -> Result<Pooled, ConnectError> {
        Ok(Pooled { connection: connect(&self.0, "")?, is_broken: false })
    }

    /// Nobody asks: a connection shows what it is worth by what it does.
    fn is_valid(&self, _: &mut Pooled) -> Result<(), ConnectError> {
        Ok(())
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        type Manager = <PgConnection as diesel::Connection>::TransactionManager;
        let is_in_doubt = Manager::is_broken_transaction_manager(&mut pooled.connection);
        pooled.is_broken || std::thread::panicking() || is_in_doubt
    }
}
