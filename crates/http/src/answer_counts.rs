//! Counts answers by status, as a metric.

use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::StatusCode;
use intake_metrics::{Kind, MetricsText};

const FIRST: u16 = 100;
const STATUSES: usize = 500;

/// A counter for each status.
#[derive(Debug)]
pub(crate) struct AnswerCounts([AtomicU64; STATUSES]);

impl AnswerCounts {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; STATUSES])
    }

    /// Writes the counters; statuses that were never answered are left out.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let mut family = text.family("intake_answers_total", "Answers by status.", Kind::Counter);
        for (status, count) in (FIRST..).zip(&self.0) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                family.sample(&[("status", &status.to_string())], count);
            }
        }
    }

    pub(crate) fn add(&self, status: StatusCode) {
        let index = status.as_u16().checked_sub(FIRST).map(usize::from);
        if let Some(count) = index.and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_counted_apart() {
        let counts = AnswerCounts::new();
        for status in [201, 201, 422] {
            counts.add(StatusCode::from_u16(status).unwrap());
        }
        let mut text = MetricsText::default();
        counts.write(&mut text);
        let text = text.into_text();
        assert!(
            text.ends_with("intake_answers_total{status=\"201\"} 2\nintake_answers_total{status=\"422\"} 1\n"),
            "{text}"
        );
    }
}
