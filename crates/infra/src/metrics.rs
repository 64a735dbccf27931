//! What is measured here: the queue before the database, the statements, the connections, and the line of passwords.

use diesel::result::{DatabaseErrorKind, Error};
use intake_metrics::{Counter, Gauge, Histogram, Kind, LATENCIES, MetricsText, Unit};

/// Up to the largest batch.
const ROWS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Requests that wait for a writer.
pub(crate) static WAITING: Gauge = Gauge::new();
/// Time for which requests waited before they were first sent to the database.
pub(crate) static QUEUE_WAIT: Histogram<{ LATENCIES.len() }> = Histogram::new(Unit::Seconds, &LATENCIES);
/// Number of requests that went to the database together.
pub(crate) static BATCH_ROWS: Histogram<{ ROWS.len() }> = Histogram::new(Unit::Count, &ROWS);
/// Time that the statement for a batch took, whatever became of it.
pub(crate) static STATEMENT: Histogram<{ LATENCIES.len() }> = Histogram::new(Unit::Seconds, &LATENCIES);
/// A number that the instances of one register have in common.
pub(crate) static REGISTER: Gauge = Gauge::new();
/// Connections to the database, also those that hang.
pub(crate) static CONNECTIONS: Gauge = Gauge::new();
/// Connections that were given up because they failed or hung; those that were renewed for their age do not count.
pub(crate) static RECONNECTS: Counter = Counter::new();
/// Emails that the mail server took.
pub(crate) static MAILS_SENT: Counter = Counter::new();
/// Mails that were never sent: too many waited, or the mail server refused them for good.
pub(crate) static MAILS_DROPPED: Counter = Counter::new();
/// Emails that wait for the mail server.
pub(crate) static MAILS_WAITING: Gauge = Gauge::new();
/// Sweeps of expired rows that failed.
pub(crate) static SWEEP_FAILURES: Counter = Counter::new();
/// Passwords that wait to be hashed.
pub(crate) static HASHING_QUEUE_LENGTH: Gauge = Gauge::new();
/// Steps of single sign-on that wait for their turn to ask the provider.
pub(crate) static PROVIDER_QUEUE_LENGTH: Gauge = Gauge::new();
static ERRORS: [Counter; CLASSES.len()] = [const { Counter::new() }; CLASSES.len()];

/// The classes of SQLSTATE that Diesel tells apart. It keeps the codes of all others to itself.
const CLASSES: [&str; 5] = ["08", "23", "25", "40", "other"];

/// The class of a connection that failed or was not made.
const CONNECTION: &str = "08";

/// Writes all metrics of this crate.
pub fn write_metrics(text: &mut MetricsText) {
    text.gauge("intake_queue_length", "Requests that wait for a writer.", WAITING.get());
    let waits = "How long requests waited before they were first sent to the database.";
    QUEUE_WAIT.write(&mut text.family("intake_queue_wait_seconds", waits, Kind::Histogram), &[]);
    let rows = "How many requests one statement carried.";
    BATCH_ROWS.write(&mut text.family("intake_batch_rows", rows, Kind::Histogram), &[]);
    let times = "How long the statement for a batch took, whatever became of it.";
    STATEMENT.write(&mut text.family("intake_statement_duration_seconds", times, Kind::Histogram), &[]);
    let connections = "Connections to the database, also those that hang.";
    text.gauge("intake_database_connections", connections, CONNECTIONS.get());
    let register = "A number that is the same on all instances of one register; 0 in development.";
    text.gauge("intake_register", register, REGISTER.get());
    let reconnects = "Connections to the database that were given up because they failed or hung.";
    text.counter("intake_database_reconnects_total", reconnects, RECONNECTS.get());
    let errors = "Failures of the database by class of SQLSTATE, as far as it is known.";
    let mut family = text.family("intake_database_errors_total", errors, Kind::Counter);
    for (class, count) in CLASSES.into_iter().zip(&ERRORS) {
        family.sample(&[("class", class)], count.get());
    }
    text.counter("intake_mails_sent_total", "Emails that the mail server took.", MAILS_SENT.get());
    let dropped = "Emails that were given up: too many waited, or the mail server refused them for good.";
    text.counter("intake_mails_dropped_total", dropped, MAILS_DROPPED.get());
    text.gauge("intake_mails_waiting", "Emails that wait for the mail server.", MAILS_WAITING.get());
    let sweeps = "Sweeps of expired rows that failed; the next one comes within the hour.";
    text.counter("intake_sweep_failures_total", sweeps, SWEEP_FAILURES.get());
    let hashing = "Passwords that wait to be hashed.";
    text.gauge("intake_hashing_queue_length", hashing, HASHING_QUEUE_LENGTH.get());
    let rounds = "Codes of single sign-on that wait for their turn at the provider.";
    text.gauge("intake_provider_queue_length", rounds, PROVIDER_QUEUE_LENGTH.get());
}

/// Counts a statement that failed.
pub(crate) fn note_error(error: &Error) {
    count(match error {
        Error::DatabaseError(kind, _) => match kind {
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand => CONNECTION,
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::ExclusionViolation
            | DatabaseErrorKind::RestrictViolation => "23",
            DatabaseErrorKind::ReadOnlyTransaction => "25",
            DatabaseErrorKind::SerializationFailure => "40",
            _ => "other",
        },
        _ => "other",
    });
}

/// Counts a connection that could not be made.
pub(crate) fn note_unreachable() {
    count(CONNECTION);
}

fn count(class: &str) {
    let index = CLASSES.iter().position(|known| *known == class);
    index.and_then(|index| ERRORS.get(index)).into_iter().for_each(Counter::add_one);
}
