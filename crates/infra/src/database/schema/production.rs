//! What production requires of its database: that it keeps what it has committed, and has the right time.

use diesel::pg::PgConnection;
use time::OffsetDateTime;

use crate::database::cluster::nodes;
use crate::database::connecting::clock;
use crate::database::connecting::connect::connect as connect_durably;
use crate::database::connecting::durability::Durability;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Refuses a server that could lose commits, whatever a connection sets for itself. Every later connection checks this
/// again.
pub fn assert_durable(url: &DatabaseUrl) -> Result<(), SchemaError> {
    match connect_durably(url, "") {
        Ok(mut connection) if url.durability() == Durability::Full => assert_nodes_durable(&mut connection),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A node that is away is checked by each connection that leads to it.
fn assert_nodes_durable(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let found = nodes::look(connection).map_err(failed)?;
    for node in found.unreached {
        tracing::warn!(
            node,
            "the nodes of the database do not all reach each other as the service's role: does each have the passwords (docs/scale.md)?"
        );
    }
    if found.weak.is_empty() { Ok(()) } else { Err(SchemaError::NotDurable(found.weak.join(", "))) }
}

/// The database's time at this moment.
pub fn database_time(over: &mut CheckConnection) -> Result<OffsetDateTime, SchemaError> {
    clock::read(&mut over.0).map_err(failed)
}
