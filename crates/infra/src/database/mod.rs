//! The database: its address, its connections, what is checked of it, and its schema.

pub(crate) mod cluster;
pub(crate) mod connecting;
pub(crate) mod rows;
pub(crate) mod schema;

pub use cluster::{nodes, spread};
pub use connecting::durability::Durability;
pub use connecting::pool::Database;
pub use connecting::url::{DatabaseUrl, DatabaseUrlError};
pub use connecting::{clock, pooler};
pub use schema::migrate::migrate;
pub use schema::readiness::Unready;
pub use schema::schema_error::{CheckConnection, SchemaError};
pub use schema::{environment, grants, guarantees, means_to_read, migrations, origin, owner, production, restored};
