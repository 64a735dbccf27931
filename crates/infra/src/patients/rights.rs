//! The port [`PatientRights`] over one connection of the owner.

use std::thread::sleep;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use intake_domain::{
    Action, Deed, EraseOutcome, Held, HeldPatient, OrganisationId, PatientId, PatientRights, StoreError,
};
use uuid::Uuid;

use crate::audit::log::record;
use crate::database::connect::{OpenConnection, connect};
use crate::database::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure, store_error};
use crate::feed::page;
use crate::schema::{api_keys, erasures, patients};

/// How long an erasure waits for statements that insert, and those that come later wait for it: longer than PostgreSQL takes
/// to interrupt an autovacuum that is in the way (`deadlock_timeout`), and shorter than requests wait.
const SETTINGS: &str = "SET lock_timeout = '3s'";
/// How often to try, and how long to let others work in between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Moves a patient into the record of erasures, of which only the database knows the time.
const NOTE: &str = "INSERT INTO erasures (organisation_id, patient_id, key_id, idempotency_digest)
    SELECT organisation_id, id, key_id, sha256(convert_to(idempotency_key, 'UTF8'))
    FROM patients WHERE organisation_id = $1 AND id = $2";

/// A patient's rights, over PostgreSQL.
pub struct PostgresPatientRights(DatabaseUrl);

impl PostgresPatientRights {
    /// Works as the owner of the register, who connects for each call.
    #[must_use]
    pub fn new(owner: &DatabaseUrl) -> Self {
        Self(owner.clone())
    }

    fn connect(&self) -> Result<OpenConnection, StoreError> {
        connect(&self.0, SETTINGS).map_err(|error| StoreError::Unavailable(error.into()))
    }
}

impl PatientRights for PostgresPatientRights {
    fn show(&mut self, organisation: OrganisationId, patient: PatientId, deed: &Deed) -> Result<Held, StoreError> {
        let shown = self.connect()?.transaction(|connection| show(connection, organisation, patient, deed));
        shown.map_err(store_error)
    }

    fn erase(
        &mut self,
        organisation: OrganisationId,
        patient: PatientId,
        deed: &Deed,
    ) -> Result<EraseOutcome, StoreError> {
        let (organisation, patient) = (*organisation.as_uuid(), *patient.as_uuid());
        let mut tries = 1;
        loop {
            let erased = self.connect()?.transaction(|connection| erase(connection, organisation, patient, deed));
            match erased {
                // Diesel does not tell a lock that could not be had from other failures.
                Err(error) if tries < TRIES && failure(&error) != Failure::Refused => {}
                done => return done.map_err(store_error),
            }
            tries += 1;
            sleep(PAUSE);
        }
    }
}

fn show(
    connection: &mut PgConnection,
    organisation: OrganisationId,
    patient: PatientId,
    deed: &Deed,
) -> QueryResult<Held> {
    let key = (*organisation.as_uuid(), *patient.as_uuid());
    let Some(stored) = page::patient(connection, organisation, patient)? else {
        let erased = erasures::table.find(key).select(erasures::erased_at).first(connection).optional()?;
        return Ok(erased.map_or(Held::Nothing, |at| Held::Erased { at }));
    };
    let idempotency_key = patients::table.find(key).select(patients::idempotency_key).first(connection)?;
    let key_name = match stored.key_id {
        Some(id) => api_keys::table
            .find((*organisation.as_uuid(), *id.as_uuid()))
            .select(api_keys::name)
            .first(connection)
            .optional()?,
        None => None,
    };
    record(connection, *organisation.as_uuid(), Action::PatientShown, &patient.to_string(), deed)?;
    Ok(Held::Patient(Box::new(HeldPatient { patient: stored, idempotency_key, key_name })))
}

fn erase(connection: &mut PgConnection, organisation: Uuid, patient: Uuid, deed: &Deed) -> QueryResult<EraseOutcome> {
    let found = patients::table.find((organisation, patient));
    match found.select(patients::idempotency_key.is_not_null()).first(connection).optional()? {
        None => {
            let erased = erasures::table.find((organisation, patient)).select(erasures::erased_at);
            let erased = erased.first(connection).optional()?;
            return Ok(erased.map_or(EraseOutcome::NotFound, |at| EraseOutcome::AlreadyErased { at }));
        }
        // An insert that began before this is committed does not see the erasure, and would find the idempotency key free
        // again. So all that have begun end first, and those that begin later see it.
        Some(true) => connection.batch_execute("LOCK TABLE patients IN SHARE ROW EXCLUSIVE MODE")?,
        Some(false) => {}
    }
    let note = diesel::sql_query(NOTE).bind::<SqlUuid, _>(organisation).bind::<SqlUuid, _>(patient);
    note.execute(connection)?;
    // Not by RETURNING, which Citus does not know to tell of a column that the database fills in.
    let erased_at = erasures::table.find((organisation, patient)).select(erasures::erased_at).first(connection)?;
    diesel::delete(found).execute(connection)?;
    record(connection, organisation, Action::PatientErased, &patient.to_string(), deed)?;
    Ok(EraseOutcome::Erased { at: erased_at })
}
