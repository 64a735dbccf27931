//! The signals that the service knows: SIGTERM and Ctrl-C ask it to stop, SIGHUP to read its certificate again.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

/// From here on SIGHUP ends the program no more, whether or not anybody waits for it yet.
pub(crate) fn survive_hangup() -> std::io::Result<()> {
    signal(SignalKind::hangup()).map(drop)
}

/// Does this at every SIGHUP, until the program ends.
pub(crate) fn at_hangup(action: impl Fn() + 'static) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    actix_web::rt::spawn(async move {
        while hangup.recv().await.is_some() {
            action();
        }
    });
    Ok(())
}

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
