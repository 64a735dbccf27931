//! The audit log: who did what, from where and when.

pub(crate) mod log;

pub use log::PostgresAuditLog;
