//! One batch over one connection: its statements, and what became of each request.

pub(crate) mod direct;
pub(crate) mod failure;
pub(crate) mod insert;
pub(crate) mod request;
pub(crate) mod store;
pub(crate) mod stored_before;
