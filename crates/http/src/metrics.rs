//! What is measured here: answers, how long requests took, and why keys were refused.

use std::time::Duration;

use actix_web::http::StatusCode;
use intake_domain::{KeyRefusal, MalformedKey};
use intake_metrics::{Counter, Kind, MetricsText};

use crate::answer_counts::AnswerCounts;
use crate::problem::Problem;
use crate::request_times::RequestTimes;
use crate::route::Route;

pub(crate) static ANSWERS: AnswerCounts = AnswerCounts::new();
static TIMES: RequestTimes = RequestTimes::new();
static REFUSALS: [Counter; REASONS.len()] = [const { Counter::new() }; REASONS.len()];
static KEYS_LIMITED: Counter = Counter::new();
static SENT_IN_CLEAR: Counter = Counter::new();

/// Why a key was refused.
const REASONS: [&str; 7] = ["missing", "malformed", "other-environment", "checksum", "unknown", "revoked", "expired"];

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

/// Counts a request that was answered.
pub(crate) fn note_answer(route: &Route, status: StatusCode, time: Duration) {
    TIMES.observe(route, status, time);
}

pub(crate) fn note_sent_in_clear() {
    SENT_IN_CLEAR.add_one();
}

/// Counts a problem that is the key's.
pub(crate) fn note_problem(problem: &Problem) {
    let reason = match problem {
        Problem::NoKey => "missing",
        Problem::MalformedKey(MalformedKey::Shape) => "malformed",
        Problem::MalformedKey(MalformedKey::OtherEnvironment) => "other-environment",
        Problem::MalformedKey(MalformedKey::Checksum) => "checksum",
        Problem::KeyRefused(KeyRefusal::Unknown) => "unknown",
        Problem::KeyRefused(KeyRefusal::Revoked) => "revoked",
        Problem::KeyRefused(KeyRefusal::Expired) => "expired",
        Problem::RateExceeded(_) => return KEYS_LIMITED.add_one(),
        _ => return,
    };
    let index = REASONS.iter().position(|known| *known == reason);
    index.and_then(|index| REFUSALS.get(index)).into_iter().for_each(Counter::add_one);
}
