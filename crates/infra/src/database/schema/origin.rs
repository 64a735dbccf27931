//! Whether the register is where it was known to be whole. A restored backup brings revoked keys back to life, and a
//! new timeline is begun by a restore and by the promotion of a standby alike, while a copied data folder begins none.
//! A dump makes tables anew. What tells the others apart is a service that was running: if the newest audit entry
//! that it has seen is there, then everything before it is, because PostgreSQL's log has an order, and a commit is seen
//! by others only when it is on disk. The newest has the highest number of a transaction, because clocks are set back.
//! Transactions end in another order than they begin, so the newest few are remembered. On Citus all that holds for
//! each worker alone.

use std::collections::BTreeMap;

use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Text, Uuid as SqlUuid};
use intake_domain::StoreError;
use uuid::Uuid;

use crate::database::cluster::extension::has_citus;
use crate::database::cluster::workers::REMEMBERED;
use crate::database::cluster::workers::workers;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};
use crate::diesel_errors::without_row_values;
use crate::metrics::REGISTER;
use crate::schema::audit_entries;

/// Within one cluster a dump comes back as tables with other numbers than those that it was taken from.
const ORIGIN: &str = "SELECT origin.system_identifier = here.system_identifier
        AND origin.audit_table = 'audit_entries'::regclass::oid::bigint AS is_same_cluster,
    origin.timeline = here.timeline AS is_same_timeline, origin.timeline = 'restored' AS is_condemned,
    origin.acceptances, here.timeline,
    hashtextextended(origin.system_identifier || '.' || origin.audit_table, 0) & x'ffffffffffff'::bigint AS register
    FROM origin, origin_now() AS here";
/// Only by a service that knows the timeline that it replaces.
const ADOPT: &str = "UPDATE origin SET timeline = $1 WHERE timeline <> 'restored'";
/// Makes sure that nobody starts here, or goes on, who has not seen what is missing. No timeline has this name.
/// Unless an operator has said in the meantime that the register is whole.
const CONDEMN: &str = "UPDATE origin SET timeline = 'restored' WHERE acceptances = $1";

#[derive(QueryableByName)]
struct Origin {
    #[diesel(sql_type = Bool)]
    is_same_cluster: bool,
    #[diesel(sql_type = Bool)]
    is_same_timeline: bool,
    #[diesel(sql_type = Bool)]
    is_condemned: bool,
    #[diesel(sql_type = Array<SqlUuid>)]
    acceptances: Vec<Uuid>,
    #[diesel(sql_type = Text)]
    timeline: String,
    /// A number that a database of another installation does not have.
    #[diesel(sql_type = BigInt)]
    register: i64,
}

/// The organisation and the id of an audit entry.
pub(crate) type EntryKey = (Uuid, Uuid);

/// State of the register that a service has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The newest audit entries of each worker, by the number of the worker; on one PostgreSQL those of 0.
    newest_entries: BTreeMap<i32, Vec<EntryKey>>,
    /// One for each time at which an operator said that the register is whole.
    acceptances: Vec<Uuid>,
}

/// Result of a look at the database.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Looks whether the register is still where it was and what it was, for a service that has seen this before. On
    /// Citus each turn is another worker's.
    pub async fn look_at_origin(&self, seen: Option<Seen>, turn: usize) -> Result<Look, StoreError> {
        self.run(Share::Common, move |connection| look(connection, seen.as_ref(), turn)).await
    }
}

fn look(connection: &mut PgConnection, seen: Option<&Seen>, turn: usize) -> QueryResult<Look> {
    let origin: Origin = diesel::sql_query(ORIGIN).get_result(connection)?;
    REGISTER.set(origin.register);
    let is_known = origin.is_same_cluster && origin.is_same_timeline;
    let is_accepted_as_seen = |seen: &&Seen| seen.acceptances == origin.acceptances;
    let mut is_missing =
        seen.is_some_and(|seen| !is_accepted_as_seen(&seen) && seen.acceptances.starts_with(&origin.acceptances));
    // An operator who has since said that the register is whole knows better.
    let seen = seen.filter(is_accepted_as_seen);
    let (looked_at, newest) = newest_entries(connection, turn)?;
    let mut newest_entries = seen.map(|seen| seen.newest_entries.clone()).unwrap_or_default();
    for (worker, entries) in &newest_entries {
        if *worker == looked_at || !is_known {
            is_missing |= !are_there(connection, entries, &newest)?;
        }
    }
    if is_missing {
        let condemned = diesel::sql_query(CONDEMN).bind::<Array<SqlUuid>, _>(&origin.acceptances);
        if condemned.execute(connection)? == 0 {
            return look(connection, seen, turn);
        }
    }
    let is_promoted = origin.is_same_cluster && !origin.is_condemned && seen.is_some();
    if is_missing || !(is_known || is_promoted) {
        return Ok(Look::Restored);
    }
    if !is_known {
        diesel::sql_query(ADOPT).bind::<Text, _>(&origin.timeline).execute(connection)?;
    }
    newest_entries.insert(looked_at, newest);
    let seen = Seen { newest_entries, acceptances: origin.acceptances };
    Ok(if is_known { Look::Known(seen) } else { Look::Promoted(seen) })
}

/// Returns whether these entries are in the database, where some of them were found.
pub(crate) fn are_there(connection: &mut PgConnection, entries: &[EntryKey], found: &[EntryKey]) -> QueryResult<bool> {
    for entry in entries.iter().filter(|entry| !found.contains(entry)) {
        if !diesel::select(exists(audit_entries::table.find(*entry))).get_result::<bool>(connection)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of the worker whose turn it is, and its newest audit entries.
fn newest_entries(connection: &mut PgConnection, turn: usize) -> QueryResult<(i32, Vec<EntryKey>)> {
    let workers = workers(connection)?;
    if let Some(worker) = turn.checked_rem(workers.len()).and_then(|number| workers.get(number)) {
        return Ok((worker.number, worker.newest_entries(connection)?));
    }
    let newest = audit_entries::table.order(audit_entries::recorded_in.desc()).limit(REMEMBERED);
    Ok((0, newest.select((audit_entries::organisation_id, audit_entries::id)).load(connection)?))
}
