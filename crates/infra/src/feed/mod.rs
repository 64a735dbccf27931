//! The change feed over PostgreSQL, and the roles that may read it.

pub(crate) mod backlog;
pub(crate) mod page;
pub(crate) mod patient_feed;
pub mod readers;

pub use backlog::Backlog;
pub use patient_feed::PostgresPatientFeed;
