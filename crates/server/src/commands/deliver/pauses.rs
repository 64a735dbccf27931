//! Pauses between the attempts to deliver an event.

use std::time::Duration;

use intake_edge as edge;

/// Shortest and longest pause between two attempts.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];
/// Longest pause that a target may ask for.
pub(crate) const ASKED_PAUSE_MAX: Duration = Duration::from_secs(10 * 60);

/// Pause after a number of failures: between half and all of its length, so that events do not come at once.
pub(crate) fn pause_after(failures: u32, [first, max]: [Duration; 2]) -> Duration {
    let [random] = edge::random();
    let pause = first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(max);
    pause.mul_f32(0.5 + f32::from(random) / 512.0)
}
