//! The signals that ask the service to stop: SIGTERM and Ctrl-C.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

/// The requests to stop that come after [`Signals::listen`].
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next request to stop.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Finishes this work, unless a second request to stop ends the program first.
    pub(crate) async fn or_stop_at_once<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.next() => std::process::exit(STOPPED_AT_ONCE),
        }
    }
}
