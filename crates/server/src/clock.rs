//! Compares this machine's clock with the database's. Where they differ, the program goes by the database's: what one
//! instance stores, another one, or the database itself, compares with the time.

use std::sync::atomic::{AtomicI64, Ordering};

use intake_edge as edge;
use intake_metrics::MetricsText;
use time::{Duration, OffsetDateTime};

/// Clocks that are kept by a time service differ by far less.
const SKEW_MAX: Duration = Duration::seconds(2);

/// Milliseconds by which this machine's clock is ahead.
static SKEW: AtomicI64 = AtomicI64::new(0);
/// Difference that was last logged; zero: the clocks agree.
static REPORTED: AtomicI64 = AtomicI64::new(0);

/// Takes note of the database's time, which was just read.
pub(crate) fn compare(database: OffsetDateTime) {
    let skew = edge::machine_time() - database;
    let is_wrong = skew.abs() > SKEW_MAX;
    edge::follow(is_wrong.then_some(database));
    let skew = milliseconds(skew);
    SKEW.store(skew, Ordering::Relaxed);
    let reported = if is_wrong { skew } else { 0 };
    let before = REPORTED.swap(reported, Ordering::Relaxed);
    if i128::from(reported).abs_diff(before.into()) <= u128::from(milliseconds(SKEW_MAX).unsigned_abs()) {
        return;
    }
    if is_wrong {
        tracing::warn!(
            seconds_ahead = skew as f64 / 1_000.0,
            "this machine's clock differs from the database's, whose time is used: synchronise both with a time server"
        );
    } else {
        tracing::info!("this machine's clock agrees with the database's again");
    }
}

pub(crate) fn write_metrics(text: &mut MetricsText) {
    let help = "By how many seconds this machine's clock is ahead of the database's.";
    text.gauge("intake_clock_skew_seconds", help, SKEW.load(Ordering::Relaxed) as f64 / 1_000.0);
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.whole_milliseconds()).unwrap_or(i64::MAX)
}
