//! What the tables themselves must guarantee: nothing is stored twice, and a crash takes nothing away. A restore that
//! could not build an index, or a table that was made unlogged for a fast load, looks like a whole database.

use diesel::prelude::*;
use diesel::sql_types::{Array, Text};

use crate::database::rows::Named;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Unique indexes on which promises rest.
const UNIQUE: [&str; 5] = [
    "patients_pkey",
    "patients_by_idempotency_key",
    "erasures_pkey",
    "erasures_by_idempotency_digest",
    "audit_entries_pkey",
];
const MISSING: &str = "SELECT name FROM unnest($1) AS name WHERE NOT EXISTS (SELECT FROM pg_index
    WHERE indexrelid = to_regclass(name) AND indisunique AND indisvalid)";
const UNLOGGED: &str = "SELECT relname::text AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relpersistence <> 'p' ORDER BY relname";

/// Refuses a migrated database that could store something twice, or that loses tables in a crash.
pub fn assert_guaranteed(over: &mut CheckConnection) -> Result<(), SchemaError> {
    let missing = diesel::sql_query(MISSING).bind::<Array<Text>, _>(&UNIQUE[..]).load(&mut over.0).map_err(failed)?;
    if !missing.is_empty() {
        return Err(SchemaError::MissingIndex(names(missing)));
    }
    let unlogged = diesel::sql_query(UNLOGGED).load(&mut over.0).map_err(failed)?;
    if unlogged.is_empty() { Ok(()) } else { Err(SchemaError::Unlogged(names(unlogged))) }
}

fn names(found: Vec<Named>) -> String {
    found.into_iter().map(|named| named.name).collect::<Vec<_>>().join(", ")
}
