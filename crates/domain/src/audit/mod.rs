//! The audit log: who did what, from where and when.

pub(crate) mod action;
pub(crate) mod context;
pub(crate) mod entry;
pub(crate) mod kind;
pub(crate) mod log;

pub use action::{Action, Actor, Operator, RecordedAction, RecordedActor};
pub use context::{AuditContext, Origin};
pub use entry::{AuditDetails, AuditEntry, AuditedKey};
pub use kind::ActionKind;
pub use log::{AuditLog, ENTRIES_SEARCHED, EntryFilter, EntryPage, EntryPosition, RefusedAction};

#[cfg(feature = "mocks")]
pub use log::MockAuditLog;
