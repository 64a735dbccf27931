//! What systemd is told about the service (`Type=notify`): that it is ready, reads its certificate again, stops, and that
//! it lives, as its watchdog wants to hear now and then. Without systemd all of this does nothing.

use intake_infra::stuck_thread;
use sd_notify::NotifyState;

/// The service takes requests.
pub(crate) fn note_ready() {
    tell(&[NotifyState::Ready]);
}

/// The service reads again what it can read again while it runs. [`note_ready`] ends that.
pub(crate) fn note_reload() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now());
    tell(&states);
}

/// The service was asked to stop.
pub(crate) fn note_stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Gives a sign of life as often as the watchdog wants one, as long as no vital thread is stuck. This thread itself is
/// one: the signs are given from here.
pub(crate) fn keep_watchdog_quiet() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    actix_web::rt::spawn(async move {
        let mut is_stuck = false;
        loop {
            match stuck_thread() {
                None => tell(&[NotifyState::Watchdog]),
                Some(thread) if !std::mem::replace(&mut is_stuck, true) => {
                    tracing::error!(thread, "a part of the program is stuck: the watchdog is left to act");
                }
                Some(_) => {}
            }
            tokio::time::sleep(limit / 2).await;
        }
    });
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(error = %error, "systemd cannot be told about the service");
    }
}
