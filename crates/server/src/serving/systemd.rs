//! What systemd learns about the service (`Type=notify`): that it is ready, reads its certificate again, stops, and
//! that it lives, as its watchdog wants to hear now and then. Without systemd all of this does nothing.

use std::sync::LazyLock;
use std::sync::mpsc::{SyncSender, sync_channel};

use intake_infra::stuck_thread;
use sd_notify::NotifyState;

/// Notes that may wait: more than come while a supervisor is restarted.
const NOTES_MAX: usize = 16;

/// The service takes requests.
pub(crate) fn note_ready() {
    tell(vec![NotifyState::Ready]);
}

/// The service reads again what it can read again while it runs. [`note_ready`] ends that.
pub(crate) fn note_reload() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    tell(states);
}

/// The service was asked to stop.
pub(crate) fn note_stopping() {
    tell(vec![NotifyState::Stopping]);
}

/// Gives a sign of life as often as the watchdog wants one, as long as no vital thread is stuck. This thread itself is
/// one: the signs are given from here.
pub(crate) fn keep_watchdog_quiet() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    actix_web::rt::spawn(async move {
        let mut is_stuck = false;
        loop {
            match stuck_thread() {
                None => tell(vec![NotifyState::Watchdog]),
                Some(thread) if !std::mem::replace(&mut is_stuck, true) => {
                    tracing::error!(thread, "a part of the program is stuck: the systemd watchdog will restart it");
                }
                Some(_) => {}
            }
            tokio::time::sleep(limit / 2).await;
        }
    });
}

/// Passes this on from a thread of its own: a supervisor that does not listen delays nothing. What it has no room for
/// is lost.
fn tell(states: Vec<NotifyState<'static>>) {
    static NOTES: LazyLock<Option<SyncSender<Vec<NotifyState<'static>>>>> = LazyLock::new(start_telling);
    if let Some(notes) = NOTES.as_ref() {
        let _ = notes.try_send(states);
    }
}

/// None: there is no supervisor.
fn start_telling() -> Option<SyncSender<Vec<NotifyState<'static>>>> {
    std::env::var_os("NOTIFY_SOCKET")?;
    let (notes, waiting) = sync_channel::<Vec<NotifyState<'static>>>(NOTES_MAX);
    let pass_on = move || {
        for states in waiting {
            if let Err(error) = sd_notify::notify(&states) {
                tracing::warn!(error = %error, "cannot report the service's state to systemd");
            }
        }
    };
    std::thread::Builder::new().name("systemd".into()).spawn(pass_on).ok()?;
    Some(notes)
}
