//! Takes a database that was restored or moved for the register from here on, as its owner.

use std::collections::{HashMap, HashSet};

use diesel::connection::SimpleConnection;
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Text, Uuid as SqlUuid};
use intake_domain::{Action, AuditEntryId, OrganisationId, PatientId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::cluster::spread::is_spread;
use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{SchemaError, connect};
use crate::schema::{audit_entries, erasures, organisations, patients};

/// Numbers of transactions that came along from another cluster stay below all that are given from here on. Never less
/// than before, or marks would lose what they have seen.
const SHIFT: &str = "UPDATE origin SET system_identifier = here.system_identifier, timeline = here.timeline,
        audit_table = 'audit_entries'::regclass::oid::bigint, accepted_at = now(), acceptances = acceptances || $1,
        added = greatest(added, (SELECT coalesce(max(created_in), 0) FROM patients) - txid_current() + 1,
            (SELECT coalesce(max(erased_in), 0) FROM erasures) - txid_current() + 1,
            (SELECT coalesce(max(recorded_in), 0) FROM audit_entries) - txid_current() + 1)
    FROM origin_now() AS here RETURNING added";

/// Each shard finds its own numbers (`migrations/citus_numbers.sql`), and nobody knows what the marks have seen.
/// Citus updates nothing from a function that returns several columns. Beside `origin` the coordinator answers.
const HERE: &str = "SELECT here.system_identifier, here.timeline FROM origin, origin_now() AS here";
const ACCEPT_CLUSTER: &str = "UPDATE origin SET system_identifier = $1, timeline = $2,
        audit_table = 'audit_entries'::regclass::oid::bigint, accepted_at = now(), acceptances = acceptances || $3";

/// Actions that let people in or give them another password, and may have ended since the restored moment.
const SIGNED_IN: [&str; 5] = ["sessions", "waiting_sign_ins", "passkey_challenges", "password_resets", "email_changes"];

/// The time of the newest audit entry: no later change is in this database. None: there are no entries.
pub fn newest_entry(owner: &DatabaseUrl) -> Result<Option<OffsetDateTime>, SchemaError> {
    patiently(owner, |connection| {
        let newest = audit_entries::table.select(audit_entries::at).into_boxed();
        // On Citus the numbers of different shards cannot be compared.
        let newest = if is_spread(connection)? {
            newest.order(audit_entries::at.desc())
        } else {
            newest.order(audit_entries::recorded_in.desc())
        };
        newest.first(connection).optional()
    })
}

/// The newest patient of an organisation.
pub struct NewestPatient {
    /// The organisation.
    pub organisation: OrganisationId,
    /// Its name.
    pub name: String,
    /// Time at which the patient was created. None: the organisation has no patient.
    pub created_at: Option<OffsetDateTime>,
}

/// The newest patient of each organisation, the oldest organisation first: what came later is not in this database.
pub fn newest_patients(owner: &DatabaseUrl) -> Result<Vec<NewestPatient>, SchemaError> {
    let oldest_first = organisations::table.order((organisations::created_at, organisations::id));
    patiently(owner, |connection| {
        let all = oldest_first.select((organisations::id, organisations::name)).load::<(Uuid, String)>(connection)?;
        let newest = |(organisation, name): (Uuid, String)| {
            // By their ids, which are in the order of their moments and in an index, unlike those.
            let newest = patients::table.filter(patients::organisation_id.eq(organisation)).order(patients::id.desc());
            let created_at = newest.select(patients::created_at).first(connection).optional()?;
            Ok(NewestPatient { organisation: organisation.into(), name, created_at })
        };
        all.into_iter().map(newest).collect()
    })
}

/// The organisations that require two-step sign-in of every member.
pub fn requiring_second_factor(owner: &DatabaseUrl) -> Result<HashSet<OrganisationId>, SchemaError> {
    let requiring = organisations::table.filter(organisations::second_factor_required).select(organisations::id);
    let found = patiently(owner, |connection| requiring.load::<Uuid>(connection))?;
    Ok(found.into_iter().map(OrganisationId::from).collect())
}

/// Those of these audit entries that are not in the database.
pub fn missing_entries(owner: &DatabaseUrl, entries: &[AuditEntryId]) -> Result<Vec<AuditEntryId>, SchemaError> {
    #[derive(QueryableByName)]
    struct Missing {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }

    let query = "SELECT id FROM unnest($1) AS id WHERE id NOT IN (SELECT id FROM audit_entries)";
    let entries: Vec<Uuid> = entries.iter().map(|entry| *entry.as_uuid()).collect();
    let missing: Vec<Missing> =
        patiently(owner, |connection| diesel::sql_query(query).bind::<Array<SqlUuid>, _>(&entries).load(connection))?;
    Ok(missing.into_iter().map(|missing| missing.id.into()).collect())
}

/// Returns whether none of these entries came after an operator last took this database for the register. Numbers of
/// different organisations cannot be compared, and an old entry may be gone from a copy that goes on.
pub fn end_before_a_restore(owner: &DatabaseUrl, entries: &[AuditEntryId]) -> Result<bool, SchemaError> {
    let last = format!(
        "SELECT organisation_id AS id, max(recorded_in) AS number FROM audit_entries
        WHERE action = '{}' GROUP BY organisation_id",
        Action::RegisterRestored.as_str()
    );
    let since = format!(
        "SELECT told.id FROM audit_entries AS told JOIN ({last}) AS last ON last.id = told.organisation_id
        WHERE told.recorded_in >= last.number AND told.id = ANY($1) LIMIT 1"
    );
    let entries: Vec<Uuid> = entries.iter().map(|entry| *entry.as_uuid()).collect();
    patiently(owner, |connection| {
        let is_restored = diesel::sql_query(&last).execute(connection)? > 0;
        let since = diesel::sql_query(&since).bind::<Array<SqlUuid>, _>(&entries).execute(connection)?;
        Ok(is_restored && since == 0)
    })
}

/// Place of a patient's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatientPlace {
    /// In the register.
    Stored,
    /// Only among the erasures.
    Erased,
}

/// Returns where these patients are; those that are nowhere are left out.
pub fn patient_places(
    owner: &DatabaseUrl,
    asked: &[(OrganisationId, PatientId)],
) -> Result<HashMap<(OrganisationId, PatientId), PatientPlace>, SchemaError> {
    patiently(owner, |connection| {
        let mut places = HashMap::new();
        for (organisation, patient) in asked {
            let key = (*organisation.as_uuid(), *patient.as_uuid());
            let place = if diesel::select(exists(patients::table.find(key))).get_result(connection)? {
                PatientPlace::Stored
            } else if diesel::select(exists(erasures::table.find(key))).get_result(connection)? {
                PatientPlace::Erased
            } else {
                continue;
            };
            places.insert((*organisation, *patient), place);
        }
        Ok(places)
    })
}

/// Signs everyone out, and notes that the register is whole here: services start again, and feeds go on. No other
/// acceptance has this id. `record` writes to the audit log.
pub(crate) fn accept(
    owner: &DatabaseUrl,
    id: AuditEntryId,
    record: impl Fn(&mut PgConnection) -> QueryResult<()>,
) -> Result<(), SchemaError> {
    #[derive(QueryableByName)]
    struct Shift {
        #[diesel(sql_type = BigInt)]
        added: i64,
    }

    #[derive(QueryableByName)]
    struct Here {
        #[diesel(sql_type = BigInt)]
        system_identifier: i64,
        #[diesel(sql_type = Text)]
        timeline: String,
    }

    let accept = |connection: &mut PgConnection| {
        for table in SIGNED_IN {
            connection.batch_execute(&format!("DELETE FROM {table}"))?;
        }
        // Keys that are not used until their clients are back have not fallen silent.
        connection.batch_execute("DELETE FROM key_watches")?;
        if is_spread(connection)? {
            let Here { system_identifier, timeline } = diesel::sql_query(HERE).get_result(connection)?;
            let accepted = diesel::sql_query(ACCEPT_CLUSTER).bind::<BigInt, _>(system_identifier);
            accepted.bind::<Text, _>(timeline).bind::<SqlUuid, _>(id.as_uuid()).execute(connection)?;
            connection.batch_execute("DELETE FROM feed_marks; DELETE FROM feed_places")?;
            return Ok(true);
        }
        // Nobody may get a number in between.
        connection.batch_execute("LOCK TABLE patients, erasures, audit_entries IN ACCESS EXCLUSIVE MODE")?;
        let Shift { added } = diesel::sql_query(SHIFT).bind::<SqlUuid, _>(id.as_uuid()).get_result(connection)?;
        for (table, column) in [("patients", "created_in"), ("erasures", "erased_in"), ("audit_entries", "recorded_in")]
        {
            let shift = format!("ALTER TABLE {table} ALTER {column} SET DEFAULT txid_current() + {added}");
            connection.batch_execute(&shift)?;
        }
        record(connection)?;
        Ok(false)
    };
    // On Citus the shards have numbers again only after the commit.
    let is_spread = patiently(owner, |connection| connection.transaction(accept))?;
    if is_spread { patiently(owner, |connection| connection.transaction(&record)) } else { Ok(()) }
}

/// A restored database may hold a transaction prepared that holds a table, and a restore that still runs holds all.
pub(crate) fn patiently<T>(
    owner: &DatabaseUrl,
    work: impl FnMut(&mut PgConnection) -> QueryResult<T>,
) -> Result<T, SchemaError> {
    Ok(with_lock_patience(owner, &mut connect(owner)?, LockPatience::OF_A_COMMAND, work)?)
}
