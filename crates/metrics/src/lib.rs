//! Counters, gauges and histograms for the crates that have something to measure, and the text in which Prometheus
//! reads them. Each is a few atomic numbers in a `static`: to count costs no lock and no allocation. A label never
//! names a key, an organisation or a person. With the feature `otlp` there are spans of traces, too.

mod histogram;
#[cfg_attr(not(feature = "otlp"), path = "no_spans.rs")]
mod spans;
mod text;
mod trace_parent;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use histogram::{Histogram, LATENCIES, Unit};
#[cfg(feature = "otlp")]
pub use spans::record_spans;
pub use spans::{CurrentSpan, RequestSpan};
pub use text::{Family, Kind, MEDIA_TYPE, MetricsText};
pub use trace_parent::TraceParent;

/// A statement that was sent to the database for a batch of requests, as their traces show it.
#[derive(Clone, Copy, Debug)]
pub struct StatementSpan<'a> {
    /// Time at which it was sent.
    pub sent: Instant,
    /// Time that it took.
    pub took: Duration,
    /// Number of requests that it carried.
    pub rows: usize,
    /// True if it succeeded.
    pub is_stored: bool,
    /// Which of several databases it went to.
    pub node: Option<&'a str>,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one more.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    /// Adds this many.
    pub fn add(&self, count: usize) {
        self.0.fetch_add(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Takes this many away.
    pub fn subtract(&self, count: usize) {
        self.0.fetch_sub(i64::try_from(count).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Replaces the number.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns how many there are. Two threads may be seen in the wrong order for a moment; there are never fewer than
    /// none.
    #[must_use]
    pub fn get(&self) -> u64 {
        u64::try_from(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }
}
