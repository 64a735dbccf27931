//! Whether the register is where it was known to be whole. A restored backup brings revoked keys back to life, and a
//! new timeline is begun by a restore and by the promotion of a standby alike, while a copied data folder begins none.
//! A dump makes tables anew. What tells the others apart is a service that was running: if the newest audit entry
//! that it has seen is there, then everything before it is, because PostgreSQL's log has an order, and a commit is seen
//! by others only when it is on disk.

use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Timestamptz};
use intake_domain::StoreError;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::cluster::spread::has_citus;
use crate::database::pool::Database;
use crate::database::schema_error::{CheckConnection, SchemaError, failed};
use crate::diesel_errors::without_row_values;
use crate::schema::audit_entries;

/// Within one cluster a dump comes back as tables with other numbers than those that it was taken from.
const ORIGIN: &str = "SELECT origin.system_identifier = here.system_identifier
        AND origin.audit_table = 'audit_entries'::regclass::oid::bigint AS is_same_cluster,
    origin.timeline = here.timeline AS is_same_timeline, origin.timeline = 'restored' AS is_condemned, origin.accepted_at
    FROM origin, origin_now() AS here";
/// Only by a service that knows the timeline that it replaces.
const ADOPT: &str =
    "UPDATE origin SET timeline = here.timeline FROM origin_now() AS here WHERE origin.timeline <> 'restored'";
/// Makes sure that nobody starts here, or goes on, who has not seen what is missing. No timeline has this name.
const CONDEMN: &str = "UPDATE origin SET timeline = 'restored'";

#[derive(QueryableByName)]
struct Origin {
    #[diesel(sql_type = Bool)]
    is_same_cluster: bool,
    #[diesel(sql_type = Bool)]
    is_same_timeline: bool,
    #[diesel(sql_type = Bool)]
    is_condemned: bool,
    #[diesel(sql_type = Timestamptz)]
    accepted_at: OffsetDateTime,
}

/// What a service has seen of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The newest audit entry. None: there was none.
    newest_entry: Option<(Uuid, Uuid)>,
    /// When an operator last said that the register is whole.
    accepted_at: OffsetDateTime,
}

/// What a look at the database has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is the one that is known.
    Known(Seen),
    /// A standby was promoted, and what was recorded before is there.
    Promoted(Seen),
    /// It was restored to an earlier moment, or moved here.
    Restored,
}

/// Refuses a database that is not where it was known to be whole.
pub fn assert_origin(over: &mut CheckConnection) -> Result<(), SchemaError> {
    let CheckConnection(connection) = over;
    match diesel::sql_query(ORIGIN).get_result::<Origin>(connection) {
        Ok(origin) if origin.is_same_cluster && origin.is_same_timeline => Ok(()),
        Ok(_) => Err(SchemaError::Restored),
        // Only the coordinator of a cluster has it. The keys are on other nodes, and a running service checks again
        // each second.
        Err(error) if has_citus(connection).unwrap_or(false) => {
            let error = without_row_values(error);
            tracing::warn!(%error, "the coordinator does not say whether the register was restored; looking again when it is back");
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

impl Database {
    /// Looks whether the register is still where it was and what it was, for a service that has seen this before.
    pub async fn look_at_origin(&self, seen: Option<Seen>) -> Result<Look, StoreError> {
        self.run(move |connection| look(connection, seen)).await
    }
}

fn look(connection: &mut PgConnection, seen: Option<Seen>) -> QueryResult<Look> {
    let origin: Origin = diesel::sql_query(ORIGIN).get_result(connection)?;
    let is_known = origin.is_same_cluster && origin.is_same_timeline;
    // An operator who has since said that the register is whole knows better.
    let seen = seen.filter(|seen| seen.accepted_at >= origin.accepted_at);
    let is_missing = match seen.and_then(|seen| seen.newest_entry) {
        Some(entry) => !diesel::select(exists(audit_entries::table.find(entry))).get_result::<bool>(connection)?,
        // Nothing was recorded, so nothing can be missing.
        None => false,
    };
    if is_missing {
        diesel::sql_query(CONDEMN).execute(connection)?;
    }
    let is_promoted = origin.is_same_cluster && !origin.is_condemned && seen.is_some();
    if is_missing || !(is_known || is_promoted) {
        return Ok(Look::Restored);
    }
    if !is_known {
        diesel::sql_query(ADOPT).execute(connection)?;
    }
    let newest = audit_entries::table.order(audit_entries::at.desc());
    let newest = newest.select((audit_entries::organisation_id, audit_entries::id)).first(connection).optional()?;
    let seen = Seen { newest_entry: newest, accepted_at: origin.accepted_at };
    Ok(if is_known { Look::Known(seen) } else { Look::Promoted(seen) })
}
