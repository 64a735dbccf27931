//! The register of patients over PostgreSQL. `group_commit` has the threads and deadlines, and no SQL; `batch` has the
//! SQL of one batch, and starts no threads.

pub(crate) mod batch;
pub(crate) mod group_commit;
pub(crate) mod lanes;
pub(crate) mod register;
pub(crate) mod rights;
mod trial;

pub use batch::shard_function::make_direct_writes;
pub use register::PostgresPatientRegister;
pub use rights::PostgresPatientRights;
pub use trial::{Trial, try_to_store};
