//! The schema and its grants, and what is checked of a database before a service or a command uses it.

pub mod environment;
pub mod grants;
pub mod guarantees;
pub mod means_to_read;
pub(crate) mod migrate;
pub mod migrations;
pub mod origin;
pub mod owner;
pub mod production;
pub(crate) mod readiness;
pub mod restored;
pub(crate) mod schema_error;
