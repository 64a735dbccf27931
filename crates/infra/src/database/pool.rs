//! The pool of connections for everything except storing patients: organisations, keys, members, sessions. Work runs on
//! blocking threads, as many at once as there are connections, and is tried again after a lost connection until its
//! deadline. Work that hangs is left behind with its connection and run again over a new one, so all work may run
//! twice.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::connection::TransactionManager;
use diesel::pg::PgConnection;
use intake_domain::{Source, StoreError};
use r2d2::{ManageConnection, Pool};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep_until, timeout_at};

use crate::database::connect::{CONNECTION_AGE_MAX, ConnectError, OpenConnection, RETRY_PAUSE, connect};
use crate::database::grants::missing_grants;
use crate::database::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure, store_error};
use crate::left_behind::LeftBehind;
use crate::metrics::{RECONNECTS, note_error};

/// Lookups are short: a few connections carry thousands of them a second.
const POOL_SIZE: u32 = 4;
/// Work that may wait for a connection; more is refused at once.
const MAX_WAITING: usize = 4_096;
/// How long to wait for a pooled connection before checking the deadline again. r2d2's own back-off grows to half of
/// it.
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

/// The outcome of one try.
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
        // Shared between the work and its caller: a caller that gives up takes the permit away from the work.
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
        // Its drop runs however the wait ends, even if this future is dropped.
        let _caller = Caller { database: self, permit: patience.map(|_| permit) };
        match timeout_at(limit.into(), done).await {
            Ok(Ok(tried)) => Ok(tried),
            Ok(Err(_panic)) => Err(StoreError::Unexpected("work for the database panicked".into())),
            Err(_elapsed) => Ok(Tried::Hangs),
        }
    }
}

/// The caller of a piece of work, which leaves it behind when dropped before it is done.
struct Caller<'a> {
    database: &'a Database,
    /// None: so many calls hang already that this one keeps its permit.
    permit: Option<Arc<Mutex<Option<OwnedSemaphorePermit>>>>,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let Some(permit) = &self.permit else { return };
        let Database { url, pool, left_behind, deadline, .. } = self.database;
        // Counted first, because it may return at any moment.
        left_behind.add();
        if take(permit).is_none() {
            return left_behind.undo();
        }
        RECONNECTS.add_one();
        // Where one connection hangs, the others would, too. They are closed with their pool.
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
        .max_lifetime(Some(CONNECTION_AGE_MAX))
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
    match work(&mut connection.connection).inspect_err(note_error) {
        Ok(value) => Tried::Done(value),
        Err(error) if failure(&error) == Failure::Refused => Tried::Refused(store_error(error)),
        Err(error) => {
            // Not returned to the pool, which would hand it to the next caller.
            connection.is_broken = true;
            RECONNECTS.add_one();
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
    connection: OpenConnection,
    is_broken: bool,
}

impl ManageConnection for Connections {
    type Connection = Pooled;
    type Error = ConnectError;

    fn connect(&self) -> Result<Pooled, ConnectError> {
        Ok(Pooled { connection: connect(&self.0, "")?, is_broken: false })
    }

    /// Never called, because the pool does not test connections: a statement shows whether one works.
    fn is_valid(&self, _: &mut Pooled) -> Result<(), ConnectError> {
        Ok(())
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        type Manager = <PgConnection as diesel::Connection>::TransactionManager;
        let is_in_doubt = Manager::is_broken_transaction_manager(&mut *pooled.connection);
        pooled.is_broken || std::thread::panicking() || is_in_doubt
    }
}
