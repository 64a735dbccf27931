//! Requests wait in a queue; a few writers take all that wait and store them together. A writer that hangs is left
//! behind.

pub(crate) mod backlog;
pub(crate) mod in_progress;
pub(crate) mod job;
pub(crate) mod lane;
pub(crate) mod locked_keys;
pub(crate) mod locks;
pub(crate) mod measured;
pub(crate) mod queue;
pub(crate) mod supervisor;
pub(crate) mod trouble;
pub(crate) mod writer;
