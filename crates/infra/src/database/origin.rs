//! Whether the register is where it was known to be whole. A restored backup brings revoked keys back to life, and a new timeline
//! is begun by a restore and by the promotion of a standby alike. What tells them apart is a service that was running: if the
//! newest recorded deed that it has seen is there, then everything before it is, because PostgreSQL's log has an order.

use diesel::prelude::*;
use diesel::sql_types::Bool;
use intake_domain::StoreError;
use uuid::Uuid;

use crate::database::pool::Database;
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;
use crate::schema::audit_entries;

const ORIGIN: &str = "SELECT origin.system_identifier = here.system_identifier AS is_same_cluster,
    origin.timeline = here.timeline AS is_same_timeline FROM origin, origin_now() AS here";
/// Only by whoever knows the timeline that it replaces.
const ADOPT: &str = "UPDATE origin SET timeline = here.timeline FROM origin_now() AS here";

#[derive(QueryableByName)]
struct Origin {
    #[diesel(sql_type = Bool)]
    is_same_cluster: bool,
    #[diesel(sql_type = Bool)]
    is_same_timeline: bool,
}

/// The newest recorded deed that a service has seen. None: there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestDeed(Option<(Uuid, Uuid)>);

/// What a look at the database has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is the one that is known.
    Known(NewestDeed),
    /// A standby was promoted, and what was recorded before is there.
    Promoted(NewestDeed),
    /// It was restored to an earlier moment, or moved here.
    Restored,
}

/// Refuses a database that is not where it was known to be whole.
pub fn assert_origin(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let origin: Origin = diesel::sql_query(ORIGIN).get_result(&mut connect(url)?).map_err(failed)?;
    if origin.is_same_cluster && origin.is_same_timeline { Ok(()) } else { Err(SchemaError::Restored) }
}

impl Database {
    /// Looks whether the register is still where it was, for a service that has seen this deed before.
    pub async fn look_at_origin(&self, seen: Option<NewestDeed>) -> Result<Look, StoreError> {
        self.run(move |connection| look(connection, seen)).await
    }
}

fn look(connection: &mut PgConnection, seen: Option<NewestDeed>) -> QueryResult<Look> {
    let origin: Origin = diesel::sql_query(ORIGIN).get_result(connection)?;
    let is_known = origin.is_same_cluster && origin.is_same_timeline;
    if !is_known {
        let is_there = match seen {
            Some(NewestDeed(Some(entry))) => {
                let found = audit_entries::table.find(entry);
                diesel::select(diesel::dsl::exists(found)).get_result(connection)?
            }
            // Nothing was recorded, so nothing can be missing.
            Some(NewestDeed(None)) => true,
            None => false,
        };
        if !origin.is_same_cluster || !is_there {
            return Ok(Look::Restored);
        }
        diesel::sql_query(ADOPT).execute(connection)?;
    }
    let newest = audit_entries::table.order(audit_entries::at.desc());
    let newest = newest.select((audit_entries::organisation_id, audit_entries::id)).first(connection).optional()?;
    Ok(if is_known { Look::Known(NewestDeed(newest)) } else { Look::Promoted(NewestDeed(newest)) })
}
