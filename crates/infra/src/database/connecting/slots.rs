//! The slots of the pool, which r2d2 keeps: it opens connections, lends them, and drops those that are closed. It never
//! replaces one that works, because it would close it first: the [`Lasting`] in the slot does that.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use diesel::r2d2::{ManageConnection, NopErrorHandler, Pool, PooledConnection};

use crate::abandoned::Abandoned;
use crate::database::cluster::nodes::connect_to_all;
use crate::database::connecting::connect::{ConnectError, OpenConnection};
use crate::database::connecting::lasting::Lasting;
use crate::database::connecting::time_limits::settings;
use crate::database::connecting::url::DatabaseUrl;

/// Lookups are short: a few connections carry thousands of them a second.
pub(crate) const POOL_SIZE: u16 = 4;
/// Time to wait for a new connection before checking the deadline again. R2d2 tries to open one twice in this time, for
/// as long as the database refuses.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_millis(500);

/// A connection that is lent. Dropped, it goes back.
pub(crate) type Slot = PooledConnection<Opener>;

/// A connection as r2d2 keeps it.
pub(crate) struct Pooled {
    /// Closed while the connection itself is with its work.
    pub(crate) connection: Lasting<OpenConnection>,
    /// Number of doubts that it knows.
    doubts: usize,
}

/// Opens connections, and counts the reasons to replace those that are open.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) url: DatabaseUrl,
    settings: String,
    pub(crate) abandoned: Arc<Abandoned>,
    /// Number of times that all connections have come into doubt, apart from the calls that hung.
    doubts: Arc<AtomicUsize>,
    /// Failure of the last try. R2d2 returns the message alone, and to one of those who wait.
    failure: Arc<Mutex<Option<Arc<ConnectError>>>>,
}

impl Opener {
    pub(crate) fn new(url: &DatabaseUrl, deadline: Duration) -> Self {
        let (url, settings) = (url.clone(), settings(deadline));
        let (abandoned, doubts, failure) = Default::default();
        Self { url, settings, abandoned, doubts, failure }
    }

    /// A pool of these connections, empty at first.
    pub(crate) fn slots(&self) -> Pool<Self> {
        Pool::builder()
            .max_size(POOL_SIZE.into())
            .min_idle(Some(0))
            .max_lifetime(None)
            .idle_timeout(None)
            .test_on_check_out(false)
            .connection_timeout(CONNECTION_TIMEOUT)
            .error_handler(Box::new(NopErrorHandler))
            .build_unchecked(self.clone())
    }

    /// Waits for a connection of the pool, at most until then.
    pub(crate) fn lend(&self, slots: &Pool<Self>, until: Instant) -> Result<Slot, Arc<ConnectError>> {
        let wait = CONNECTION_TIMEOUT.min(until.saturating_duration_since(Instant::now()));
        let mut slot =
            slots.get_timeout(wait).map_err(|_| self.failure().unwrap_or_else(|| Arc::new(ConnectError::Hangs)))?;
        let doubts = self.doubts();
        if std::mem::replace(&mut slot.doubts, doubts) < doubts {
            slot.connection.doubt();
        }
        Ok(slot)
    }

    /// Replaces each connection before its next use, if that is possible.
    pub(crate) fn doubt_all(&self) {
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) -> Result<OpenConnection, ConnectError> {
        connect_to_all(&self.url, &self.settings)
    }

    /// Number of reasons to doubt all connections: where one hangs, the others may, too.
    fn doubts(&self) -> usize {
        self.doubts.load(Ordering::Relaxed) + self.abandoned.total()
    }

    /// Failure of the last try to connect, if it failed.
    pub(crate) fn failure(&self) -> Option<Arc<ConnectError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ManageConnection for Opener {
    type Connection = Pooled;
    type Error = Arc<ConnectError>;

    fn connect(&self) -> Result<Pooled, Arc<ConnectError>> {
        let doubts = self.doubts();
        let opened = self.open().map_err(Arc::new);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = opened.as_ref().err().cloned();
        Ok(Pooled { connection: Lasting::opened(opened?), doubts })
    }

    /// Never called: work finds out whether its connection is lost.
    fn is_valid(&self, _: &mut Pooled) -> Result<(), Arc<ConnectError>> {
        Ok(())
    }

    fn has_broken(&self, pooled: &mut Pooled) -> bool {
        !pooled.connection.is_open()
    }
}
