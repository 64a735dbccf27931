//! The database: its address, its connections, what is checked of it, and its schema.

pub(crate) mod connect;
pub(crate) mod durability;
pub mod environment;
pub mod grants;
pub mod migrations;
pub mod origin;
pub mod owner;
pub(crate) mod pool;
pub mod pooler;
pub mod production;
pub(crate) mod readiness;
pub mod restored;
pub(crate) mod schema_error;
pub mod spread;
pub(crate) mod url;

pub use durability::Durability;
pub use pool::Database;
pub use readiness::Unready;
pub use schema_error::SchemaError;
pub use url::{DatabaseUrl, DatabaseUrlError};
