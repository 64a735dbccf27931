//! Erases the patients of a closed organisation, as the owner of the database. Its keys are revoked for good, so that
//! no statement stores one of them again, however late it is carried out.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use intake_domain::{Action, AuditContext, OrganisationId};

use crate::audit::log::record;
use crate::database::lock_wait::{LockPatience, with_lock_patience};
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;
use crate::organisations::row::OrganisationRow;
use crate::schema::{key_answers, key_refusals, key_uses, organisations};

/// How long to wait for statements that began while the keys were active.
const PATIENCE: LockPatience = LockPatience { limit: Duration::from_secs(3), tries: 5, pause: Duration::from_secs(1) };
const WAIT: &str = "LOCK TABLE patients IN SHARE MODE";

/// Patients that one transaction erases take about a second. Readers get the id alone, as of any erasure.
const NOTE: &str = "INSERT INTO erasures (organisation_id, patient_id, key_id, erased_in)
    SELECT organisation_id, id, key_id, feed_number(organisation_id) FROM patients
    WHERE organisation_id = $1 ORDER BY id LIMIT 10000 ON CONFLICT DO NOTHING";
const ERASE: &str = "DELETE FROM patients WHERE organisation_id = $1
    AND id IN (SELECT id FROM patients WHERE organisation_id = $1 ORDER BY id LIMIT 10000)
    AND EXISTS (SELECT FROM erasures WHERE erasures.organisation_id = $1 AND patient_id = patients.id)";

/// What became of an attempt to erase what an organisation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EraseOrganisation {
    /// This many patients were erased.
    Erased(u64),
    /// It is not closed: nothing was erased.
    NotClosed,
    /// There is no such organisation.
    NotFound,
}

/// Erases the patients of a closed organisation and what is known of its requests, a batch at a time: where this is cut
/// off, it can be run again.
pub fn erase_organisation(
    owner: &DatabaseUrl,
    organisation: OrganisationId,
    audit: &AuditContext,
) -> Result<EraseOrganisation, SchemaError> {
    let mut connection = connect(owner)?;
    let id = *organisation.as_uuid();
    let found = with_lock_patience(owner, &mut connection, PATIENCE, |connection| {
        organisations::table.find(id).select(OrganisationRow::as_select()).first(connection).optional()
    })?;
    match found {
        None => return Ok(EraseOrganisation::NotFound),
        Some(OrganisationRow { closed_at: None, .. }) => return Ok(EraseOrganisation::NotClosed),
        Some(_) => {}
    }
    let mut erased = 0;
    with_lock_patience(owner, &mut connection, PATIENCE, |connection| {
        connection.transaction(|connection| connection.batch_execute(WAIT))?;
        loop {
            let batch = connection.transaction(|connection| {
                diesel::sql_query(NOTE).bind::<SqlUuid, _>(id).execute(connection)?;
                diesel::sql_query(ERASE).bind::<SqlUuid, _>(id).execute(connection)
            })?;
            erased += batch as u64;
            if batch == 0 {
                break;
            }
        }
        connection.transaction(|connection| {
            diesel::delete(key_refusals::table.filter(key_refusals::organisation_id.eq(id))).execute(connection)?;
            diesel::delete(key_answers::table.filter(key_answers::organisation_id.eq(id))).execute(connection)?;
            let unknown = (key_uses::last_address.eq(None::<&str>), key_uses::last_program.eq(None::<&str>));
            diesel::update(key_uses::table.filter(key_uses::organisation_id.eq(id)))
                .set(unknown)
                .execute(connection)?;
            let patients = if erased == 1 { "1 patient".to_owned() } else { format!("{erased} patients") };
            record(connection, id, Action::OrganisationErased, &patients, audit)
        })
    })?;
    // Otherwise values stay in the statistics, and rows in the pages, until autovacuum comes by.
    diesel::sql_query("VACUUM (ANALYZE) patients").execute(&mut connection).map_err(failed)?;
    Ok(EraseOrganisation::Erased(erased))
}
