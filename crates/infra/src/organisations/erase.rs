//! Erases the patients of a closed organisation, as the owner of the database. Its keys are revoked for good, so that
//! no statement stores one of them again, however late it is carried out.

use std::thread::sleep;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Uuid as SqlUuid};
use intake_domain::{Action, AuditContext, OrganisationId};
use uuid::Uuid;

use crate::audit::log::record;
use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Id;
use crate::database::schema::schema_error::{SchemaError, connect};
use crate::organisations::row::OrganisationRow;
use crate::schema::{key_answers, key_refusals, key_uses, organisations, patients};

/// Time to wait for statements that began while the keys were active.
const PATIENCE: LockPatience = LockPatience { limit: Duration::from_secs(3), tries: 5, pause: Duration::from_secs(1) };
const WAIT: &str = "LOCK TABLE patients IN SHARE MODE";

/// Lets nothing but the primary key lead to the patients, whatever the statistics say. They are often older than the
/// organisation, and a plan for a few rows compares each patient with each. Forbidden plans count as dear, and would
/// be compiled. On Citus the nodes plan by this, too.
const PLAN: &str =
    "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL jit = off; SET LOCAL enable_seqscan = off;
    SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off";
/// Patients that one transaction erases take a few hundredths of a second, so that the commits of others wait no
/// longer. The next one looks behind them, not at what they leave in the index.
const NEXT: &str = "SELECT id FROM patients WHERE organisation_id = $1 AND id > $2 ORDER BY id LIMIT 1000";
/// Readers get the id alone, as of any erasure.
const NOTE: &str = "INSERT INTO erasures (organisation_id, patient_id, key_id, erased_in)
    SELECT organisation_id, id, key_id, feed_number(organisation_id) FROM patients
    WHERE organisation_id = $1 AND id > $2 AND id <= $3 ON CONFLICT DO NOTHING";
/// Looks for the erasure as a scalar, because PostgreSQL would turn `EXISTS` into a join.
const ERASE: &str = "DELETE FROM patients WHERE organisation_id = $1 AND id > $2 AND id <= $3
    AND (SELECT true FROM erasures WHERE erasures.organisation_id = $1 AND patient_id = patients.id)";
const COUNT: &str = "UPDATE organisations SET erased_patients = erased_patients + $2 WHERE id = $1";

/// Outcome of an attempt to erase what an organisation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseOrganisation {
    /// This many patients were erased, by this run and any that were cut off.
    Erased(u64),
    /// It is not closed: nothing was erased.
    NotClosed,
    /// The caller did not agree: nothing was erased.
    NotAgreed,
    /// There is no such organisation.
    NotFound,
}

/// Erases the patients of a closed organisation and what is known of its requests, a batch at a time: where this is cut
/// off, it can be run again. `agrees` gets the organisation's name and the number of its patients.
pub fn erase_organisation(
    owner: &DatabaseUrl,
    organisation: OrganisationId,
    agrees: impl FnOnce(&str, i64) -> bool,
    audit: &AuditContext,
) -> Result<EraseOrganisation, SchemaError> {
    let mut connection = connect(owner)?;
    let id = *organisation.as_uuid();
    let found = with_lock_patience(owner, &mut connection, PATIENCE, |connection| {
        organisations::table.find(id).select(OrganisationRow::as_select()).first(connection).optional()
    })?;
    let Some(OrganisationRow { name, closed_at, .. }) = found else { return Ok(EraseOrganisation::NotFound) };
    if closed_at.is_none() {
        return Ok(EraseOrganisation::NotClosed);
    }
    let patients = with_lock_patience(owner, &mut connection, PATIENCE, |connection| {
        patients::table.filter(patients::organisation_id.eq(id)).count().get_result(connection)
    })?;
    if !agrees(&name, patients) {
        return Ok(EraseOrganisation::NotAgreed);
    }
    let erased = with_lock_patience(owner, &mut connection, PATIENCE, |connection| {
        connection.transaction(|connection| connection.batch_execute(WAIT))?;
        let mut last = Some(Uuid::nil());
        while let Some(after) = last {
            let began = Instant::now();
            last = connection.transaction(|connection| erase_batch(connection, id, after))?;
            // Half of the time belongs to others, whose creates need the same disk and processors.
            sleep(began.elapsed());
        }
        connection.transaction(|connection| finish(connection, id, audit))
    })?;
    // Otherwise values stay in the statistics, and rows in the pages, until autovacuum comes by.
    let vacuum = |connection: &mut PgConnection| connection.batch_execute("VACUUM (ANALYZE) patients");
    let vacuumed = with_lock_patience(owner, &mut connection, PATIENCE, vacuum).map_err(SchemaError::from);
    vacuumed.map_err(|why| SchemaError::NotVacuumed(Box::new(why)))?;
    Ok(EraseOrganisation::Erased(erased))
}

/// Erases the next patients after this one. Returns the last of them; None: there are none.
fn erase_batch(connection: &mut PgConnection, organisation: Uuid, after: Uuid) -> QueryResult<Option<Uuid>> {
    connection.batch_execute(PLAN)?;
    let with = |statement| diesel::sql_query(statement).bind::<SqlUuid, _>(organisation);
    let next: Vec<Id> = with(NEXT).bind::<SqlUuid, _>(after).load(connection)?;
    let Some(Id { id: last }) = next.last() else { return Ok(None) };
    with(NOTE).bind::<SqlUuid, _>(after).bind::<SqlUuid, _>(last).execute(connection)?;
    let erased = with(ERASE).bind::<SqlUuid, _>(after).bind::<SqlUuid, _>(last).execute(connection)?;
    // With the batch: a run that goes on after another was cut off knows what that one did.
    with(COUNT).bind::<BigInt, _>(i64::try_from(erased).unwrap_or(i64::MAX)).execute(connection)?;
    Ok(Some(*last))
}

/// Erases what is known of the organisation's requests, and records how many patients were erased in all.
fn finish(connection: &mut PgConnection, id: Uuid, audit: &AuditContext) -> QueryResult<u64> {
    diesel::delete(key_refusals::table.filter(key_refusals::organisation_id.eq(id))).execute(connection)?;
    diesel::delete(key_answers::table.filter(key_answers::organisation_id.eq(id))).execute(connection)?;
    let unknown = (key_uses::last_address.eq(None::<&str>), key_uses::last_program.eq(None::<&str>));
    diesel::update(key_uses::table.filter(key_uses::organisation_id.eq(id))).set(unknown).execute(connection)?;
    let erased: i64 = organisations::table.find(id).select(organisations::erased_patients).first(connection)?;
    let patients = if erased == 1 { "1 patient".to_owned() } else { format!("{erased} patients") };
    record(connection, id, Action::OrganisationErased, &patients, audit)?;
    Ok(u64::try_from(erased).unwrap_or_default())
}
