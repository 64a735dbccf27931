//! The database: its address, its connections, what is checked of it, and its schema.

pub mod clock;
pub(crate) mod cluster;
pub(crate) mod connect;
pub(crate) mod conninfo;
pub(crate) mod durability;
pub mod environment;
pub mod grants;
pub(crate) mod lasting;
pub(crate) mod lock_wait;
pub(crate) mod migrate;
pub mod migrations;
pub mod origin;
pub mod owner;
pub(crate) mod pool;
pub mod pooler;
pub mod production;
pub(crate) mod readiness;
pub mod restored;
pub(crate) mod schema_error;
pub(crate) mod time_limits;
pub(crate) mod url;
pub(crate) mod url_error;

pub use cluster::{nodes, spread};
pub use durability::Durability;
pub use migrate::migrate;
pub use pool::Database;
pub use readiness::Unready;
pub use schema_error::{CheckConnection, SchemaError};
pub use url::{DatabaseUrl, DatabaseUrlError};
