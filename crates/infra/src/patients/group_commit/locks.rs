//! The locks of `queue.rs` and `in_progress.rs`. A test replaces them with loom's to try every order of events.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
