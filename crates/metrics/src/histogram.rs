//! Counts values in buckets with fixed bounds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::text::Family;

/// Nanoseconds in a second.
const NANOSECONDS: f64 = 1_000_000_000.0;

/// A microsecond, as the bounds of times are given.
const MICROSECOND: u64 = 1_000;
/// A millisecond.
const MILLISECOND: u64 = 1_000 * MICROSECOND;

/// The bounds of times that a client waits for: from a refusal without the database to beyond the deadline, finest
/// where a create and its statement usually are.
pub const LATENCIES: [u64; 14] = [
    100 * MICROSECOND,
    250 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    2 * MILLISECOND,
    4 * MILLISECOND,
    8 * MILLISECOND,
    16 * MILLISECOND,
    32 * MILLISECOND,
    64 * MILLISECOND,
    250 * MILLISECOND,
    1_000 * MILLISECOND,
    5_000 * MILLISECOND,
    10_000 * MILLISECOND,
];

/// Unit of a histogram's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times, kept in nanoseconds.
    Seconds,
    /// Numbers of things.
    Count,
}

/// Counts of the values in each bucket. The bounds are in nanoseconds for times; what exceeds the last one has a
/// bucket of its own.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    unit: Unit,
    bounds: &'static [u64; N],
    buckets: [AtomicU64; N],
    beyond: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    /// No values yet. The bounds must grow.
    #[must_use]
    pub const fn new(unit: Unit, bounds: &'static [u64; N]) -> Self {
        let buckets = [const { AtomicU64::new(0) }; N];
        Self { unit, bounds, buckets, beyond: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    /// Counts a time.
    pub fn observe_time(&self, time: Duration) {
        self.observe(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts a value.
    pub fn observe(&self, value: u64) {
        let fitting = self.bounds.iter().position(|bound| value <= *bound);
        let bucket = fitting.and_then(|index| self.buckets.get(index)).unwrap_or(&self.beyond);
        bucket.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().chain([&self.beyond]).all(|bucket| bucket.load(Ordering::Relaxed) == 0)
    }

    /// Writes it as Prometheus reads it: each bucket includes those below it.
    pub fn write(&self, family: &mut Family<'_>, labels: &[(&str, &str)]) {
        let mut count = 0;
        for (bound, bucket) in self.bounds.iter().zip(&self.buckets) {
            count += bucket.load(Ordering::Relaxed);
            family.part("_bucket", labels, Some(("le", &self.shown(*bound).to_string())), count);
        }
        count += self.beyond.load(Ordering::Relaxed);
        family.part("_bucket", labels, Some(("le", "+Inf")), count);
        family.part("_sum", labels, None, self.shown(self.sum.load(Ordering::Relaxed)));
        family.part("_count", labels, None, count);
    }

    fn shown(&self, value: u64) -> f64 {
        match self.unit {
            Unit::Seconds => value as f64 / NANOSECONDS,
            Unit::Count => value as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Kind, MetricsText};

    #[test]
    fn a_value_counts_in_its_bucket_and_in_all_above() {
        static HISTOGRAM: Histogram<2> = Histogram::new(Unit::Seconds, &[1_000_000, 2_500_000]);
        assert!(HISTOGRAM.is_empty());
        for microseconds in [1_000, 1_001, 2_500, 9_000_000] {
            HISTOGRAM.observe_time(Duration::from_micros(microseconds));
        }
        assert!(!HISTOGRAM.is_empty());
        let mut text = MetricsText::default();
        HISTOGRAM.write(&mut text.family("wait_seconds", "A wait.", Kind::Histogram), &[("route", "/a")]);
        let expected = "# HELP wait_seconds A wait.\n# TYPE wait_seconds histogram\n\
            wait_seconds_bucket{route=\"/a\",le=\"0.001\"} 1\nwait_seconds_bucket{route=\"/a\",le=\"0.0025\"} 3\n\
            wait_seconds_bucket{route=\"/a\",le=\"+Inf\"} 4\nwait_seconds_sum{route=\"/a\"} 9.004501\n\
            wait_seconds_count{route=\"/a\"} 4\n";
        assert_eq!(text.into_text(), expected);
    }
}
