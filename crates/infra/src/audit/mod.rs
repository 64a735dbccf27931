//! The audit log: who did what, from where and when.

pub(crate) mod log;
mod row;

pub use log::PostgresAuditLog;
