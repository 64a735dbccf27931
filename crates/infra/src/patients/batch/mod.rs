//! One batch over one connection: its statements, and what became of each request.

pub(crate) mod failure;
pub(crate) mod insert;
mod key_checks;
pub(crate) mod shard_function;
pub(crate) mod store;
pub(crate) mod stored_before;
pub(crate) mod task;
