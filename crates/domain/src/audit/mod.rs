//! The audit log: who did what, from where and when.

pub(crate) mod action;
pub(crate) mod log;

pub use action::{Action, Actor, AuditEntry, Deed, Origin, RecordedAction};
pub use log::AuditLog;

#[cfg(feature = "mocks")]
pub use log::MockAuditLog;
