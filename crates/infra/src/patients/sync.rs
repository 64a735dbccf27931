//! What queue and desk are made of. A test puts loom's in its place and tries every order of events.

pub(crate) use std::sync::{Condvar, Mutex};
