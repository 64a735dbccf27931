//! Counts answers by status, as a metric.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::StatusCode;

const FIRST: u16 = 100;
const STATUSES: usize = 500;

/// A counter for each status.
#[derive(Debug)]
pub struct AnswerCounts([AtomicU64; STATUSES]);

impl AnswerCounts {
    /// The counters in the text format of Prometheus; statuses that were never answered are left out.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text =
            String::from("# HELP intake_answers_total Answers by status.\n# TYPE intake_answers_total counter\n");
        for (status, count) in (FIRST..).zip(&self.0) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(text, "intake_answers_total{{status=\"{status}\"}} {count}");
            }
        }
        text
    }

    pub(crate) fn add(&self, status: StatusCode) {
        let index = status.as_u16().checked_sub(FIRST).map(usize::from);
        if let Some(count) = index.and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Default for AnswerCounts {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; STATUSES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_counted_apart() {
        let counts = AnswerCounts::default();
        for status in [201, 201, 422] {
            counts.add(StatusCode::from_u16(status).unwrap());
        }
        let text = counts.to_text();
        assert!(
            text.ends_with("intake_answers_total{status=\"201\"} 2\nintake_answers_total{status=\"422\"} 1\n"),
            "{text}"
        );
    }
}
