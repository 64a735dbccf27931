//! The signals that the service knows: SIGTERM and Ctrl-C ask it to stop, SIGHUP to read its certificate again, SIGUSR1
//! to log more, and SIGUSR2 to log what it was set to log.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::telemetry;

/// The exit status after a second signal.
const STOPPED_AT_ONCE: i32 = 130;

/// Keeps signals from ending the program, whether or not something waits for them.
pub(crate) fn survive() -> std::io::Result<()> {
    let survived = [SignalKind::hangup(), SignalKind::user_defined1(), SignalKind::user_defined2()];
    survived.into_iter().try_for_each(|kind| signal(kind).map(drop))
}

/// Does this at every such signal, until the program ends.
pub(crate) fn at(kind: SignalKind, action: impl Fn() + 'static) -> std::io::Result<()> {
    let mut received = signal(kind)?;
    actix_web::rt::spawn(async move {
        while received.recv().await.is_some() {
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
            () = self.next() => {
                telemetry::flush();
                std::process::exit(STOPPED_AT_ONCE)
            }
        }
    }
}
