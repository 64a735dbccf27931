//! Whoever asks the service to stop: supervisors with SIGTERM, people with Ctrl-C.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

/// The requests to stop, from the moment of listening on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next request to stop.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Finishes this work, unless a second request to stop ends everything at once.
    pub(crate) async fn or_stop_at_once<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            () = self.next() => std::process::exit(STOPPED_AT_ONCE),
        }
    }
}
