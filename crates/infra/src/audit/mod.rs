//! The record of who did what.

pub(crate) mod log;

pub use log::PostgresAuditLog;
