//! The audit log: who did what, from where and when.

mod follower;
pub(crate) mod log;
mod row;
pub(crate) mod selection;
mod stream;
mod whole_register;

pub use follower::{AuditFollower, AuditPosition, FollowError};
pub use log::PostgresAuditLog;
pub use selection::AuditSelection;
pub use stream::AuditStream;
pub use whole_register::{accept_restored, record_migrations, record_reader};
