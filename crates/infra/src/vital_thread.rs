//! Threads that the service cannot work without: when one of them panics, the program should end and be restarted, instead
//! of continuing without it.

use std::cell::Cell;
use std::thread::{Builder, JoinHandle};

thread_local! {
    static IS_VITAL: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread whose panic the program should not survive.
pub fn spawn_vital<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    builder.spawn(|| {
        IS_VITAL.set(true);
        work()
    })
}

/// Whether this thread is vital: asked by the program's panic hook, which runs on the thread that panics.
#[must_use]
pub fn is_vital_thread() -> bool {
    IS_VITAL.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_whether_it_is_vital() {
        assert!(spawn_vital(Builder::new(), is_vital_thread).unwrap().join().unwrap());
        assert!(!Builder::new().spawn(is_vital_thread).unwrap().join().unwrap());
    }
}
