//! The log on standard error: text on a terminal, JSON lines elsewhere. It never holds a patient's value or a key.

use std::io::{IsTerminal, stderr};
use std::panic::PanicHookInfo;

use intake_infra::is_vital_thread;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The exit status when a vital thread has panicked.
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

/// Logs where a panic was, but not its message, which may quote a value.
fn note_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    tracing::error!(location, thread = name, "a part of the program failed");
    if is_vital_thread() {
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

    #[test]
    fn a_panic_is_logged_without_what_it_says() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            std::panic::set_hook(Box::new(note_panic));
            let panicked = std::panic::catch_unwind(|| panic!("Canary-Bird cannot be stored"));
            drop(std::panic::take_hook());
            assert!(panicked.is_err());
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("a part of the program failed") && text.contains("telemetry.rs"), "{text}");
        assert!(!text.contains("Canary"), "{text}");
    }
}
