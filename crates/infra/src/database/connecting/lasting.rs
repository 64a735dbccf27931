//! A connection that is replaced only by one that was opened and checked before. Its successor is opened on another
//! thread, while the connection goes on working: a server without free slots, or a password that has changed, takes
//! nothing away from a service that is connected.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::database::connecting::connect::ConnectError;

/// The settings that a connection has found, its durability among them, may change while it is open. A new connection
/// takes a few milliseconds.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Between two tries to open a successor while the database refuses it.
const PAUSE: Duration = Duration::from_secs(5);

/// Number of connections that have no successor because the database refuses it: logged when the first has none, and
/// when each has one, not at every try.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// A connection, or the place of one.
pub(crate) struct Lasting<T> {
    connection: Option<T>,
    /// The next connection, which is being opened.
    successor: Option<Receiver<Result<T, ConnectError>>>,
    due_at: Instant,
    is_doubted: bool,
    is_refused: bool,
}

impl<T: Send + 'static> Lasting<T> {
    /// Connects when it is first used.
    pub(crate) fn new() -> Self {
        Self { connection: None, successor: None, due_at: Instant::now(), is_doubted: false, is_refused: false }
    }

    /// Keeps a connection that has just been opened.
    pub(crate) fn opened(connection: T) -> Self {
        let mut lasting = Self::new();
        lasting.connection = Some(connection);
        lasting.settle(AGE_MAX);
        lasting
    }

    /// Returns whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// The connection that there is.
    pub(crate) fn current(&mut self) -> Option<&mut T> {
        self.connection.as_mut()
    }

    /// Gives up a connection that does not work.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    /// Something failed that a new connection may mend: one is opened before the next use, and this one stays if it
    /// cannot be opened.
    pub(crate) fn doubt(&mut self) {
        self.is_doubted = true;
        self.due_at = Instant::now();
    }

    /// The connection. If there is none, or it is old, `open` makes one. Waits at most this long for it, and not at all
    /// while the old one works.
    pub(crate) fn get(
        &mut self,
        wait: Duration,
        open: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
    ) -> Result<&mut T, ConnectError> {
        let is_working = self.connection.is_some() && !self.is_doubted;
        if self.successor.is_none() && (self.connection.is_none() || Instant::now() >= self.due_at) {
            self.successor = Some(start(open)?);
        }
        let wait = if is_working { Duration::ZERO } else { wait };
        match self.successor.as_ref().map(|successor| successor.recv_timeout(wait)) {
            Some(Ok(Ok(connection))) => {
                self.connection = Some(connection);
                self.settle(AGE_MAX);
                self.note_accepted();
            }
            Some(Ok(Err(error))) => {
                self.settle(PAUSE);
                // What it stores could be lost, over whichever connection.
                if self.connection.is_none() || matches!(error, ConnectError::NotDurable(_)) {
                    self.close();
                    return Err(error);
                }
                self.note_refused(&error);
            }
            Some(Err(RecvTimeoutError::Timeout)) if !is_working => return Err(ConnectError::Hangs),
            Some(Err(RecvTimeoutError::Disconnected)) => self.settle(PAUSE),
            Some(Err(RecvTimeoutError::Timeout)) | None => {}
        }
        self.connection.as_mut().ok_or(ConnectError::Hangs)
    }

    fn note_refused(&mut self, error: &ConnectError) {
        if !std::mem::replace(&mut self.is_refused, true) && REFUSED.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                error = error.to_string().trim_end(),
                "the database refuses new connections; the service continues with those it has"
            );
        }
    }

    fn note_accepted(&mut self) {
        if std::mem::take(&mut self.is_refused) && REFUSED.fetch_sub(1, Ordering::Relaxed) == 1 {
            tracing::info!("the database accepts new connections again");
        }
    }

    fn settle(&mut self, next: Duration) {
        self.successor = None;
        self.is_doubted = false;
        self.due_at = Instant::now() + next;
    }
}

impl<T> Drop for Lasting<T> {
    fn drop(&mut self) {
        if self.is_refused {
            REFUSED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn start<T: Send + 'static>(
    open: impl FnOnce() -> Result<T, ConnectError> + Send + 'static,
) -> Result<Receiver<Result<T, ConnectError>>, ConnectError> {
    let (opened, successor) = channel();
    let work = move || drop(opened.send(open()));
    let started = Builder::new().name("connecting".into()).spawn(work);
    started.map(|_| successor).map_err(|error| ConnectError::Failed(error.into()))
}
