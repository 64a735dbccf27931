//! The audit log: who did what, from where and when.

mod follower;
pub(crate) mod log;
mod row;

pub use follower::{AuditFollower, FollowError};
pub use log::PostgresAuditLog;
