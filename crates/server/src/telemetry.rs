//! The log: text on a terminal, JSON lines elsewhere, on standard error. Never a value of a patient, never a key.

use std::io::{IsTerminal, stderr};
use std::panic::PanicHookInfo;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Threads without which the service is only half alive.
const VITAL_THREADS: [&str; 4] = ["writer-", "key-uses", "certificates", "embedded-postgres"];
/// How the program ends when one of them fails.
const VITAL_THREAD_FAILED: i32 = 70;

pub(crate) fn start(filter: Targets) {
    let registry = tracing_subscriber::registry().with(filter);
    if stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(stderr).with_target(false)).init();
    } else {
        registry.with(fmt::layer().with_writer(stderr).json().flatten_event(true)).init();
    }
    std::panic::set_hook(Box::new(note_panic));
}

/// Logs where a panic was, not what it says: its message may quote a value.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    tracing::error!(place, thread = name, "a part of the program failed");
    if VITAL_THREADS.iter().any(|vital| name.starts_with(vital)) {
        std::process::exit(VITAL_THREAD_FAILED);
    }
}
