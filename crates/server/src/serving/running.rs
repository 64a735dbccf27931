//! The service from when it takes requests until it has stopped: it drains first, so that nobody is refused who can be
//! served.

use std::time::Duration;

use actix_web::dev::Server;
use anyhow::anyhow;
use intake_http::Connections;
use intake_infra::KeyUseWriter;

use crate::serving::mails;
use crate::serving::origin_watch::OriginWatch;
use crate::serving::systemd;
use crate::signals::Signals;
use crate::traces;

/// Time that connections that have just been accepted may take to send a request: three round trips, on a machine that
/// is busy, and from far away.
const NEWCOMERS_TIMEOUT: Duration = Duration::from_secs(2);
/// Long enough for a busy worker to take what was accepted for it, which cannot be seen from here.
const NEWCOMERS_INTERVAL: Duration = Duration::from_millis(250);

/// A service that takes requests.
pub(crate) struct Running {
    pub(crate) api: Server,
    pub(crate) admin: Server,
    pub(crate) connections: Connections,
    pub(crate) drain_delay: Duration,
    pub(crate) key_use_writer: KeyUseWriter,
    pub(crate) mails: Option<mails::Sending>,
    pub(crate) origin: OriginWatch,
}

impl Running {
    /// Serves until a signal asks to stop, goes on until balancers have noticed, then finishes the accepted requests,
    /// writes the last uses of keys, and sends the mails and traces that wait. Each has a time limit of its own.
    pub(crate) async fn until_stopped(self, signals: &mut Signals) -> anyhow::Result<()> {
        let Self { api, admin, connections, drain_delay, key_use_writer, mails, origin } = self;
        let (api_handle, admin_handle) = (api.handle(), admin.handle());
        let mut api = actix_web::rt::spawn(api);
        let mut admin = actix_web::rt::spawn(admin);
        tokio::select! {
            ended = &mut api => return Err(unexpected_end("the API", ended)),
            ended = &mut admin => return Err(unexpected_end("the admin listener", ended)),
            restored = origin.until_restored() => return Err(restored),
            () = signals.next() => {}
        }
        // First, so that no balancer sends more.
        connections.drain();
        tracing::info!("stopping: accepted requests are finished first");
        systemd::note_stopping();
        let finish = async {
            tokio::time::sleep(drain_delay).await;
            // A server that stops drops connections which it has accepted and not read from. Those that come from here
            // on wait in the socket, for the next instance if a supervisor keeps it open.
            api_handle.pause().await;
            let _ = tokio::time::timeout(NEWCOMERS_TIMEOUT, wait_for_newcomers(&connections)).await;
            api_handle.stop(true).await;
            admin_handle.stop(false).await;
            // On other threads, so that a second signal is still handled.
            let written = tokio::task::spawn_blocking(|| drop(key_use_writer));
            let sent = async {
                if let Some(mails) = mails {
                    mails.finish().await;
                }
            };
            let exported = tokio::task::spawn_blocking(traces::finish);
            let _ = tokio::join!(written, sent, exported);
        };
        signals.or_stop_at_once(finish).await;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Waits until every connection has sent its first request.
async fn wait_for_newcomers(connections: &Connections) {
    loop {
        tokio::time::sleep(NEWCOMERS_INTERVAL).await;
        if !connections.have_newcomers() {
            return;
        }
    }
}

fn unexpected_end<T>(what: &str, ended: Result<std::io::Result<()>, T>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => anyhow!(error).context(format!("{what} has failed")),
        _ => anyhow!("{what} has ended by itself"),
    }
}
