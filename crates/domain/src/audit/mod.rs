//! The record of who did what.

pub(crate) mod deed;
pub(crate) mod log;

pub use deed::{Action, Actor, AuditEntry, Deed, Origin, RecordedAction};
pub use log::AuditLog;

#[cfg(feature = "mocks")]
pub use log::MockAuditLog;
