//! The register of patients over PostgreSQL.

pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod buckets;
pub(crate) mod in_progress;
pub(crate) mod interruption;
pub(crate) mod job;
pub(crate) mod queue;
pub(crate) mod register;
pub(crate) mod rights;
pub(crate) mod shared;
pub(crate) mod statement;
pub(crate) mod stored_before;
pub(crate) mod supervisor;
pub(crate) mod suspects;
pub(crate) mod sync;
pub(crate) mod writer;

pub use register::PostgresPatientRegister;
pub use rights::PostgresPatientRights;
