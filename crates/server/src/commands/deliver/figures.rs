//! Figures of a delivery, for its state and its metrics.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use intake_edge as edge;
use intake_infra::Backlog;
use time::OffsetDateTime;

use crate::commands::deliver::folder::Status;
use crate::commands::deliver::lock::lock;

/// The newest answer counts for one part in this many of the moving average.
const NEWEST_WEIGHT: u64 = 8;

pub(crate) struct Figures {
    delivered: AtomicU64,
    erased: AtomicU64,
    up_to_date_at: AtomicI64,
    /// The moving average of the time that the target takes to answer, in microseconds. Zero: it was not asked yet.
    answer_time: AtomicU64,
    backlog: Mutex<Backlog>,
}

impl Figures {
    /// Goes on counting where an earlier run ended.
    pub(crate) fn new(before: &Status) -> Self {
        Self {
            delivered: AtomicU64::new(before.delivered),
            erased: AtomicU64::new(before.erased),
            up_to_date_at: AtomicI64::new(edge::now().unix_timestamp()),
            answer_time: AtomicU64::new(0),
            backlog: Mutex::default(),
        }
    }

    /// Patients that the target has taken.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Erasures that the target has taken.
    pub(crate) fn erased(&self) -> u64 {
        self.erased.load(Ordering::Relaxed)
    }

    /// Events that the target has taken.
    pub(crate) fn taken(&self) -> u64 {
        self.delivered() + self.erased()
    }

    pub(crate) fn note_taken(&self, is_erased: bool) {
        let count = if is_erased { &self.erased } else { &self.delivered };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when the target had taken all that there was, or the delivery began, in seconds since 1970.
    pub(crate) fn up_to_date_at(&self) -> i64 {
        self.up_to_date_at.load(Ordering::Relaxed)
    }

    pub(crate) fn note_up_to_date(&self, at: OffsetDateTime) {
        self.up_to_date_at.store(at.unix_timestamp(), Ordering::Relaxed);
    }

    /// Time that the target takes to answer, on average. None: it was not asked yet.
    pub(crate) fn answer_time(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.answer_time.load(Ordering::Relaxed))).filter(|time| !time.is_zero())
    }

    pub(crate) fn note_answer(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let average = |known| if known == 0 { took } else { known - known / NEWEST_WEIGHT + took / NEWEST_WEIGHT };
        let _ = self.answer_time.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |known| Some(average(known)));
    }

    /// Events that wait in the feed, as they were counted last.
    pub(crate) fn backlog(&self) -> Backlog {
        *lock(&self.backlog)
    }

    pub(crate) fn note_backlog(&self, backlog: Backlog) {
        *lock(&self.backlog) = backlog;
    }
}
