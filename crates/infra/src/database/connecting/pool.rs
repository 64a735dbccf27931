//! Work over the pool of connections, which serves everything except storing patients: organisations, keys, members,
//! sessions. It runs on blocking threads, as many at once as there are connections, and is tried again after a lost
//! connection until its deadline. Work that hangs is abandoned with its connection and run again over a new one, so all
//! work may run twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::connection::{Connection, TransactionManager};
use diesel::pg::PgConnection;
use diesel::r2d2::Pool;
use intake_domain::{Source, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{sleep_until, timeout_at};

use crate::database::cluster::extension::has_citus;
use crate::database::cluster::nodes::node_away;
use crate::database::connecting::connect::{OpenConnection, RETRY_PAUSE};
use crate::database::connecting::lasting::Lasting;
use crate::database::connecting::lock_wait::Undone;
use crate::database::connecting::share::Share;
use crate::database::connecting::slots::{CONNECTION_TIMEOUT, Opener, POOL_SIZE, Slot};
use crate::database::connecting::time_limits::{LOCKED_TRY, within};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::grants::missing_grants;
use crate::diesel_errors::{Failure, Said, failure, is_unique_violation, said, store_error};
use crate::metrics::RECONNECTS;

/// Work that may wait for a connection; more is refused at once.
const MAX_WAITING: usize = 4_096;

/// A pool of connections to the database.
#[derive(Clone)]
pub struct Database {
    opener: Opener,
    slots: Pool<Opener>,
    /// One for each slot, so that no thread waits for a slot that is in use.
    permits: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// A semaphore for each share that has work.
    shares: Arc<Mutex<HashMap<Share, Arc<Semaphore>>>>,
    deadline: Duration,
}

/// A slot in use: given back before the permit is.
struct Lent {
    slot: Slot,
    _permit: OwnedSemaphorePermit,
}

/// The outcome of one try.
enum Tried<T> {
    Done(T),
    /// Trying again may help.
    Failed(StoreError),
    /// Trying again changes nothing.
    Refused(StoreError),
    /// The row is there already: perhaps by an earlier try that hung, and was committed meanwhile.
    AlreadyThere(StoreError),
    /// A node that the connected one needs for this is away.
    NodeAway(StoreError),
    /// The database did not do it, although the connection works. If it says the same about another try, the values of
    /// the statement are at fault.
    Unable(StoreError, Option<Said>),
    Hangs,
}

impl Database {
    /// A pool that connects when it is first used. `deadline` bounds every piece of work.
    #[must_use]
    pub fn new(url: &DatabaseUrl, deadline: Duration) -> Self {
        let opener = Opener::new(url, deadline);
        Self {
            slots: opener.slots(),
            opener,
            permits: Arc::new(Semaphore::new(POOL_SIZE.into())),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            shares: Arc::default(),
            deadline,
        }
    }

    /// Does the work, and again after a lost connection, until the deadline.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        share: Share,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        self.run_within(self.deadline, share, work).await
    }

    /// Does the work with less patience than the deadline, unless that is shorter.
    pub(crate) async fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        share: Share,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let until = Instant::now() + self.deadline.min(limit);
        let Some(connections) = share.connections() else { return self.run_until(until, work).await };
        let permit = timeout_at(until.into(), self.semaphore(share, connections).acquire_owned()).await;
        let _permit =
            permit.map_err(|_| self.waited_in_vain())?.map_err(|error| StoreError::Unexpected(error.into()))?;
        self.run_until(until, work).await
    }

    /// Does the work in one transaction.
    pub(crate) async fn transaction<T: Send + 'static>(
        &self,
        share: Share,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        self.run(share, move |connection| connection.transaction(&work)).await
    }

    async fn run_until<T: Send + 'static>(
        &self,
        until: Instant,
        work: impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let _waiting = self.waiting.try_acquire().map_err(|_| StoreError::Overloaded)?;
        let work = Arc::new(work);
        let mut failed_before = None;
        let mut was_node_away = false;
        let mut said_before = None;
        loop {
            let error = match self.try_once(&work, until).await? {
                Tried::Done(value) => return Ok(value),
                Tried::Refused(error) => return Err(error),
                Tried::Failed(error @ StoreError::Locked(_)) if Instant::now() + LOCKED_TRY >= until => {
                    return Err(error);
                }
                Tried::AlreadyThere(error) if failed_before.is_none() => return Err(error),
                // The first time, it may be back, and only the connection to it be gone.
                Tried::NodeAway(error) if std::mem::replace(&mut was_node_away, true) => return Err(error),
                Tried::Unable(error, said) if said.is_some() && said == said_before => return Err(error),
                Tried::Unable(error, said) => {
                    said_before = said;
                    error
                }
                Tried::AlreadyThere(error) | Tried::NodeAway(error) | Tried::Failed(error) => error,
                // The deadline cuts off the last try, which says less than the one before it.
                Tried::Hangs => {
                    failed_before.take().unwrap_or_else(|| unavailable("a statement hangs in the database"))
                }
            };
            let next = Instant::now() + RETRY_PAUSE;
            if next >= until {
                return Err(error);
            }
            failed_before = Some(error);
            sleep_until(next.into()).await;
        }
    }

    /// Others used every connection, or waited for one.
    fn waited_in_vain(&self) -> StoreError {
        match self.opener.failure() {
            Some(failure) => unavailable(failure),
            None => unavailable("no connection to the database was free before the deadline"),
        }
    }

    /// The semaphore of a share. Those that nobody uses are dropped.
    fn semaphore(&self, share: Share, connections: usize) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        Arc::clone(shares.entry(share).or_insert_with(|| Arc::new(Semaphore::new(connections))))
    }

    async fn try_once<T: Send + 'static>(
        &self,
        work: &Arc<impl Fn(&mut PgConnection) -> QueryResult<T> + Send + Sync + 'static>,
        until: Instant,
    ) -> Result<Tried<T>, StoreError> {
        let permit = timeout_at(until.into(), Arc::clone(&self.permits).acquire_owned()).await;
        let permit =
            permit.map_err(|_| self.waited_in_vain())?.map_err(|error| StoreError::Unexpected(error.into()))?;
        let panicked = |_| StoreError::Unexpected("work for the database panicked".into());
        let (opener, slots) = (self.opener.clone(), self.slots.clone());
        let lend = move || opener.lend(&slots, until).map(|slot| Lent { slot, _permit: permit });
        let mut lent = match spawn_blocking(lend).await.map_err(panicked)? {
            Ok(lent) => lent,
            Err(error) => return Ok(Tried::Failed(unavailable(error))),
        };
        let mut connection = std::mem::replace(&mut lent.slot.connection, Lasting::new());
        // A caller that gives up frees the slot, and leaves the connection to the work.
        let (waiting, working) = self.opener.abandoned.begin(lent);
        let (opener, work) = (self.opener.clone(), Arc::clone(work));
        let done = spawn_blocking(move || {
            let tried = try_work(&mut connection, &opener, until, work.as_ref());
            // A connection that was abandoned is closed.
            if let Some(mut lent) = working.end() {
                lent.slot.connection = connection;
                if !matches!(tried, Tried::Failed(_)) {
                    opener.abandoned.succeeded();
                }
            }
            tried
        });
        let timeout = self.opener.abandoned.statement_timeout();
        let limit = timeout.map_or(until, |timeout| until.min(Instant::now() + timeout));
        // Dropped even if this future is: then, too, the work is abandoned.
        let ended = timeout_at(limit.into(), done).await;
        drop(waiting);
        match ended {
            Ok(done) => done.map_err(panicked),
            Err(_elapsed) => Ok(Tried::Hangs),
        }
    }

    /// For work that takes a connection of its own.
    pub(crate) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// Replaces each connection before its next use, if that is possible.
    pub(crate) fn doubt_all(&self) {
        self.opener.doubt_all();
    }
}

fn try_work<T>(
    pooled: &mut Lasting<OpenConnection>,
    opener: &Opener,
    until: Instant,
    work: impl Fn(&mut PgConnection) -> QueryResult<T>,
) -> Tried<T> {
    let next = opener.clone();
    let connection = match pooled.get(CONNECTION_TIMEOUT, move || next.open()) {
        Ok(connection) => connection,
        Err(error) => return Tried::Failed(unavailable(error)),
    };
    let done = within(connection, &opener.url, until, work);
    type Transactions = <PgConnection as Connection>::TransactionManager;
    let is_in_doubt = Transactions::is_broken_transaction_manager(&mut **connection);
    let tried = match done {
        Ok(value) => Tried::Done(value),
        Err(Undone::Locked(holders)) => Tried::Failed(StoreError::Locked(holders.into())),
        Err(Undone::Failed(error)) if is_unique_violation(&error) => Tried::AlreadyThere(store_error(error)),
        Err(Undone::Failed(error)) if failure(&error) == Failure::Refused => Tried::Refused(store_error(error)),
        Err(Undone::Failed(error)) => match node_away(connection, &error) {
            Some(away) => Tried::NodeAway(unavailable(away)),
            None => failed(pooled, error),
        },
    };
    if is_in_doubt {
        pooled.close();
    }
    tried
}

/// The connection may be gone, or want to be replaced, or the statement be at fault: Diesel does not say.
fn failed<T>(pooled: &mut Lasting<OpenConnection>, error: diesel::result::Error) -> Tried<T> {
    if failure(&error) != Failure::Unknown {
        RECONNECTS.add_one();
        pooled.close();
        return Tried::Failed(store_error(error));
    }
    pooled.doubt();
    let connection = pooled.current();
    if let Some(missing) = connection.and_then(|connection| missing_grants(connection)) {
        return Tried::Refused(StoreError::Unexpected(missing.into()));
    }
    match pooled.current().map(|connection| has_citus(connection)) {
        Some(Ok(false)) => {
            let said = said(&error);
            Tried::Unable(store_error(error), said)
        }
        // Another node may be at fault, and say the same until it is back.
        Some(Ok(true)) => Tried::Failed(store_error(error)),
        Some(Err(_)) | None => {
            RECONNECTS.add_one();
            Tried::Failed(store_error(error))
        }
    }
}

fn unavailable(error: impl Into<Source>) -> StoreError {
    StoreError::Unavailable(error.into())
}
