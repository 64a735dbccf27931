//! The log of requests that the service could not serve, with their causes.

use std::time::Instant;

use actix_web::http::StatusCode;
use intake_domain::RefusalReason;

use crate::answer_note::Note;
use crate::log_pace::LogPace;

/// The paces at which refusals are logged: those that a request ordered, or that say that the service is full, hide no
/// others.
static SIMULATED: LogPace = LogPace::new();
static FULL: LogPace = LogPace::new();
static UNAVAILABLE: LogPace = LogPace::new();

/// Says why the service failed. While it serves nobody, not for each request.
pub(crate) fn log(note: &Note, request_id: &str, status: StatusCode) {
    let (number, cause) = (status.as_u16(), || note.cause.as_ref().map_or("unknown".to_owned(), ToString::to_string));
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(request_id, status = number, cause = cause(), "a request failed unexpectedly");
        return;
    }
    let pace = match note.refusal {
        _ if note.is_simulated => &SIMULATED,
        Some(RefusalReason::Full) => &FULL,
        _ => &UNAVAILABLE,
    };
    if let Some(suppressed) = pace.next(Instant::now()) {
        let simulated = note.is_simulated.then_some(true);
        tracing::warn!(request_id, status = number, simulated, cause = cause(), suppressed, "a request was refused");
    }
}
