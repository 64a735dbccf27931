//! What is measured here: answers, how long requests took, and why keys were refused.

use std::time::Duration;

use actix_web::http::StatusCode;
use intake_domain::RefusalReason;
use intake_metrics::{Counter, Kind, MetricsText};

use crate::answer_counts::AnswerCounts;
use crate::answer_note::Note;
use crate::request_times::RequestTimes;
use crate::route_name::Route;

static ANSWERS: AnswerCounts = AnswerCounts::new();
static TIMES: RequestTimes = RequestTimes::new();
static REFUSALS: [Counter; REASONS.len()] = [const { Counter::new() }; REASONS.len()];
static KEYS_LIMITED: Counter = Counter::new();
static SENT_IN_CLEAR: Counter = Counter::new();

/// Reason why a key was refused.
const REASONS: [&str; 10] = [
    "missing",
    "malformed",
    "other-environment",
    "checksum",
    "unknown",
    "revoked",
    "suspended",
    "expired",
    "paused",
    "elsewhere",
];

/// Writes all metrics of this crate, except those of [`crate::Connections`].
pub fn write_metrics(text: &mut MetricsText) {
    ANSWERS.write(text);
    TIMES.write(text);
    let mut refused = text.family("intake_keys_refused_total", "API keys that were refused, by reason.", Kind::Counter);
    for (reason, count) in REASONS.into_iter().zip(&REFUSALS) {
        refused.sample(&[("reason", reason)], count.get());
    }
    let limited = "Requests that were refused because their API key had exceeded its rate limit.";
    text.counter("intake_keys_rate_limited_total", limited, KEYS_LIMITED.get());
    let sent_in_clear = "Well-formed API keys that came over a connection that was not encrypted.";
    text.counter("intake_keys_sent_in_clear_total", sent_in_clear, SENT_IN_CLEAR.get());
}

/// Counts an answer. None: what was answered was no request.
pub(crate) fn note_answer(note: &Note, status: StatusCode, request: Option<(&Route, Duration)>) {
    ANSWERS.add(status);
    if let Some((route, time)) = request {
        TIMES.observe(route, status, time);
    }
    if note.refusal == Some(RefusalReason::RateExceeded) {
        KEYS_LIMITED.add_one();
    }
    let index = note.key_fault.and_then(|fault| REASONS.iter().position(|known| *known == fault));
    index.and_then(|index| REFUSALS.get(index)).into_iter().for_each(Counter::add_one);
}

pub(crate) fn note_sent_in_clear() {
    SENT_IN_CLEAR.add_one();
}
