//! What is measured of a batch: for the metrics, and for the traces of its requests.

use std::time::{Duration, Instant};

use intake_metrics::{CurrentSpan, StatementSpan};

use super::lane::Place;
use crate::metrics::{BATCH_ROWS, QUEUE_WAIT, STATEMENT};
use crate::patients::batch::task::Request;

/// Records a batch that is about to be sent, and returns the longest wait of requests that were not sent before.
pub(crate) fn note_sent(requests: &[Request], now: Instant) -> Duration {
    BATCH_ROWS.observe(requests.len() as u64);
    let first_sent = requests.iter().filter(|request| !request.was_sent);
    let waits = first_sent.map(|request| {
        request.span.record_wait(request.since, now);
        now.saturating_duration_since(request.since)
    });
    waits.inspect(|wait| QUEUE_WAIT.observe_time(*wait)).max().unwrap_or_default()
}

/// Records the statement of a batch, whatever became of it.
pub(crate) fn note_statement(requests: &[Request], sent: Instant, took: Duration, is_stored: bool, place: &dyn Place) {
    STATEMENT.observe_time(took);
    if CurrentSpan::are_recorded() {
        let node = place.name();
        let statement = StatementSpan { sent, took, rows: requests.len(), is_stored, node: node.as_deref() };
        requests.iter().for_each(|request| request.span.record_statement(&statement));
    }
}
