//! The log on standard error: text on a terminal, JSON lines elsewhere. It never holds a patient's value or a key, and
//! nothing waits for it.

use std::io::{IsTerminal, stderr};
use std::panic::PanicHookInfo;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use intake_domain::timestamp;
use intake_infra::is_vital_thread;
use time::OffsetDateTime;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::log_output::{self, Missing};

/// The exit status when a vital thread has panicked.
const VITAL_THREAD_FAILED: i32 = 70;
/// Time for which the end of the program waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// The target of the line that says why the program ends, which no filter hides.
const END: &str = "intake::end";
/// The target of the line for each request.
const REQUESTS: &str = "intake::requests";

/// Filter of `INTAKE_LOG`, and a handle to change it.
static FILTER: OnceLock<(Targets, reload::Handle<Targets, Registry>)> = OnceLock::new();

static MISSING: OnceLock<Missing> = OnceLock::new();
/// Writes what waits when it is dropped.
static GUARD: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Starts the log.
pub(crate) fn start(filter: Targets) {
    let (lines, guard, missing) = log_output::start(stderr(), note_missing);
    let _ = MISSING.set(missing);
    *GUARD.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    let filter = filter.with_target(END, LevelFilter::ERROR);
    let (layer, handle) = reload::Layer::new(filter.clone());
    let _ = FILTER.set((filter, handle));
    let registry = tracing_subscriber::registry().with(layer);
    if stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(lines).with_target(false)).init();
    } else {
        registry.with(fmt::layer().with_writer(lines).json().flatten_event(true)).init();
    }
    std::panic::set_hook(Box::new(note_panic));
}

fn note_missing(lines: u64, since: OffsetDateTime) {
    tracing::warn!(
        lines,
        since = timestamp(since),
        "lines of the log were dropped, because nothing read standard error in time: restart the program that reads it, \
         make room on its disk, or log less (INTAKE_LOG)"
    );
}

/// Logs every request and what helps to find a fault, from now on.
pub(crate) fn tell_more() {
    let Some((filter, handle)) = FILTER.get() else { return };
    let more = filter.clone().with_target("intake", LevelFilter::DEBUG).with_target(REQUESTS, LevelFilter::INFO);
    if handle.reload(more).is_ok() {
        tracing::info!("verbose logging is on until SIGUSR2");
    }
}

/// Restores the filter of `INTAKE_LOG`.
pub(crate) fn tell_as_set() {
    let Some((filter, handle)) = FILTER.get() else { return };
    tracing::info!("verbose logging is off");
    let _ = handle.reload(filter.clone());
}

/// Logs why the service ends, even if it has not read yet how to log.
pub(crate) fn note_end(error: &anyhow::Error) {
    if !tracing::dispatcher::has_been_set() {
        start(Targets::new().with_default(LevelFilter::INFO));
    }
    tracing::error!(target: END, "{}", one_line(error));
}

/// Waits until the log is written, but not for long: the program is about to end.
pub(crate) fn flush() {
    // Another thread that ends the program waits here as well.
    let mut held = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(guard) = held.take() else { return };
    let (done, ended) = sync_channel::<()>(0);
    // On a thread of its own: a guard that finds no room says so on standard output, which may have no reader, either.
    if Builder::new().name("log-end".to_owned()).spawn(move || drop((guard, done))).is_ok() {
        let _ = ended.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// Returns how many lines were dropped so far.
pub(crate) fn dropped_lines() -> u64 {
    MISSING.get().map_or(0, Missing::count)
}

/// An error with all its causes.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Logs where a panic was, but not its message, which may quote a value.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    tracing::error!(target: END, location, thread = name, "a part of the program failed");
    if is_vital_thread() {
        flush();
        std::process::exit(VITAL_THREAD_FAILED);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged_by(work: impl FnOnce()) -> String {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_that_were_dropped_are_reported_with_their_number_the_time_and_the_cure() {
        let text = logged_by(|| note_missing(7, OffsetDateTime::UNIX_EPOCH));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        let fields = &line["fields"];
        assert_eq!((&fields["lines"], &fields["since"]), (&7.into(), &"1970-01-01T00:00:00.000Z".into()), "{text}");
        assert!(fields["message"].as_str().unwrap().contains("restart the program that reads it"), "{text}");
    }

    #[test]
    fn a_panic_is_logged_without_what_it_says() {
        let text = logged_by(|| {
            std::panic::set_hook(Box::new(note_panic));
            let panicked = std::panic::catch_unwind(|| panic!("Canary-Bird cannot be stored"));
            drop(std::panic::take_hook());
            assert!(panicked.is_err());
        });
        assert!(text.contains("a part of the program failed") && text.contains("telemetry.rs"), "{text}");
        assert!(!text.contains("Canary"), "{text}");
    }
}
