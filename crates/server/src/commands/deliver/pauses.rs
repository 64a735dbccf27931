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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_one_and_differ() {
        let [first, max] = PAUSES;
        for failures in 1..=40 {
            let whole = first.saturating_mul(1 << (failures - 1).min(20)).min(max);
            let pauses: Vec<_> = (0..20).map(|_| pause_after(failures, PAUSES)).collect();
            assert!(pauses.iter().all(|pause| (whole / 2..=whole).contains(pause)), "{failures}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{failures}: {pauses:?}");
        }
    }
}
