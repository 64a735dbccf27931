//! The port [`PatientRights`] over one connection of the owner.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::{Binary, Bool, Nullable, Uuid as SqlUuid};
use intake_domain::{
    Action, AuditContext, AuditDetails, Erasable, EraseOutcome, IdempotencyDigest, KeyId, Lookup, OrganisationId,
    PatientId, PatientRights, Presence, StoreError, StoredRecord,
};
use uuid::Uuid;

use crate::audit::log::{record, record_details};
use crate::database::cluster::nodes::connect_to_all;
use crate::database::connecting::connect::OpenConnection;
use crate::database::connecting::lock_wait::{LockPatience, Undone, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::store_error;
use crate::feed::page;
use crate::schema::{api_keys, erasures, patients};

/// Time for which an erasure waits for statements that insert, and those that come later wait for it: longer than
/// PostgreSQL takes to interrupt an autovacuum that is in the way (`deadlock_timeout`), and shorter than requests wait.
const PATIENCE: LockPatience = LockPatience { limit: Duration::from_secs(3), tries: 5, pause: Duration::from_secs(1) };

/// Moves a patient into the record of erasures, of which only the database knows the time. An earlier erasure under the
/// same id is of a patient that a program before this one let come back.
const NOTE: &str = "INSERT INTO erasures (organisation_id, patient_id, key_id, idempotency_digest, erased_in)
    SELECT organisation_id, id, key_id, $3, feed_number(organisation_id)
    FROM patients WHERE organisation_id = $1 AND id = $2
    ON CONFLICT (organisation_id, patient_id)
        DO UPDATE SET erased_at = excluded.erased_at, erased_in = excluded.erased_in";

/// The same for a patient whose row a restore has lost. The number is of a column, so that on Citus the node which
/// holds the organisation gives it.
const NOTE_LOST: &str = "INSERT INTO erasures (organisation_id, patient_id, idempotency_digest, erased_in)
    SELECT organisation_id, $2, $3, feed_number(organisation_id) FROM organisation_states WHERE organisation_id = $1
    ON CONFLICT DO NOTHING";

/// The digest of a patient's idempotency key, as the record of erasures keeps it.
const DIGEST: &str = "sha256(convert_to(idempotency_key, 'UTF8'))";

/// The statistics of the columns (`pg_stats`) are samples of their values. Autovacuum renews them when a tenth of the
/// table has changed, which may take years.
const RENEW_STATISTICS: &str = "ANALYZE patients";

/// A patient's rights, over PostgreSQL.
pub struct PostgresPatientRights(DatabaseUrl);

impl PostgresPatientRights {
    /// Works as the owner of the register, who connects for each call.
    #[must_use]
    pub fn new(owner: &DatabaseUrl) -> Self {
        Self(owner.clone())
    }

    fn connect(&self) -> Result<OpenConnection, StoreError> {
        connect_to_all(&self.0, "").map_err(|error| StoreError::Unavailable(error.into()))
    }
}

impl PatientRights for PostgresPatientRights {
    fn show(
        &mut self,
        organisation: OrganisationId,
        patient: PatientId,
        audit: &AuditContext,
    ) -> Result<Lookup, StoreError> {
        let mut connection = self.connect()?;
        let shown = with_lock_patience(&self.0, &mut connection, PATIENCE, |connection| {
            connection.transaction(|connection| show(connection, organisation, patient, audit))
        });
        shown.map_err(unfinished)
    }

    fn find(&mut self, organisation: OrganisationId, patient: PatientId) -> Result<Presence, StoreError> {
        let mut connection = self.connect()?;
        let key = (*organisation.as_uuid(), *patient.as_uuid());
        let found = with_lock_patience(&self.0, &mut connection, PATIENCE, |connection| {
            // Stored first: an older program let some come back after an erasure.
            let stored = patients::table.find(key).select((patients::created_at, patients::key_id));
            if let Some((created_at, key_id)) = stored.first::<(_, Option<Uuid>)>(connection).optional()? {
                return Ok(Presence::Stored { created_at, key_id: key_id.map(KeyId::from) });
            }
            let erased = erasures::table.find(key).select(erasures::erased_at).first(connection).optional()?;
            Ok(erased.map_or(Presence::Nothing, |at| Presence::Erased { at }))
        });
        found.map_err(unfinished)
    }

    fn erase(
        &mut self,
        organisation: OrganisationId,
        patient: Erasable,
        audit: &AuditContext,
    ) -> Result<Option<EraseOutcome>, StoreError> {
        let organisation = *organisation.as_uuid();
        let mut connection = self.connect()?;
        let erased = with_lock_patience(&self.0, &mut connection, PATIENCE, |connection| {
            // What comes after the lock must see all that was committed before it.
            let mut transaction = connection.build_transaction().read_committed().read_write();
            transaction.run(|connection| erase(connection, organisation, patient, audit))
        });
        let outcome = erased.map_err(unfinished)?;
        if outcome.is_some() {
            // After an earlier erasure, too, which may have ended before this.
            let renew = |connection: &mut PgConnection| connection.batch_execute(RENEW_STATISTICS);
            let renewed = with_lock_patience(&self.0, &mut connection, PATIENCE, renew);
            renewed.map_err(|undone| {
                let what = "the patient is erased, but the statistics of the table may still show details: run the command again";
                StoreError::Unavailable(anyhow::Error::from(unfinished(undone)).context(what).into())
            })?;
        }
        Ok(outcome)
    }

    fn sent_again(
        &mut self,
        organisation: OrganisationId,
        digest: &IdempotencyDigest,
    ) -> Result<Option<PatientId>, StoreError> {
        let mut connection = self.connect()?;
        let found = with_lock_patience(&self.0, &mut connection, PATIENCE, |connection| {
            let has_digest = sql::<Bool>(DIGEST).sql(" = ").bind::<Binary, _>(digest.as_bytes());
            let own = patients::table.filter(patients::organisation_id.eq(organisation.as_uuid()));
            let sent = own.filter(patients::idempotency_key.is_not_null()).filter(has_digest).select(patients::id);
            sent.first::<Uuid>(connection).optional()
        });
        let found = found.map_err(unfinished)?;
        Ok(found.map(PatientId::from))
    }
}

fn unfinished(undone: Undone<diesel::result::Error>) -> StoreError {
    match undone {
        Undone::Locked(holders) => StoreError::Unavailable(holders.into()),
        Undone::Failed(error) => store_error(error),
    }
}

fn show(
    connection: &mut PgConnection,
    organisation: OrganisationId,
    patient: PatientId,
    audit: &AuditContext,
) -> QueryResult<Lookup> {
    let key = (*organisation.as_uuid(), *patient.as_uuid());
    let Some(stored) = page::patient(connection, organisation, patient)? else {
        let erased = erasures::table.find(key).select(erasures::erased_at).first(connection).optional()?;
        return Ok(erased.map_or(Lookup::Nothing, |at| Lookup::Erased { at }));
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
    record(connection, *organisation.as_uuid(), Action::PatientShown, &patient.to_string(), audit)?;
    Ok(Lookup::Patient(Box::new(StoredRecord { patient: stored, idempotency_key, key_name })))
}

fn erase(
    connection: &mut PgConnection,
    organisation: Uuid,
    patient: Erasable,
    audit: &AuditContext,
) -> QueryResult<Option<EraseOutcome>> {
    let (id, lost) = match patient {
        Erasable::Stored(id) => (*id.as_uuid(), None),
        Erasable::PerhapsLost(id, digest) => (*id.as_uuid(), Some(digest)),
    };
    let found = patients::table.find((organisation, id));
    let held = found.select(sql::<Nullable<Binary>>(DIGEST)).first::<Option<Vec<u8>>>(connection).optional()?;
    let held = held.map(|digest| digest.and_then(|digest| digest.try_into().ok()));
    let erased = erasures::table.find((organisation, id)).select(erasures::erased_at);
    if held.is_some() || lost.is_some() {
        // An insert may have looked for erasures before this one is committed, and store the patient after that, under
        // the same id or the same idempotency key. It holds a lock on the table from before its look until its end. So
        // all that have begun end first, however long they sleep, and those that begin later see the erasure.
        connection.batch_execute("LOCK TABLE patients IN SHARE ROW EXCLUSIVE MODE")?;
        let digest = held.or(lost).flatten();
        let note = if held.is_some() { NOTE } else { NOTE_LOST };
        if self::note(connection, note, organisation, id, digest)? > 0 {
            diesel::delete(found).execute(connection)?;
            let details = AuditDetails { idempotency_digest: digest, ..AuditDetails::default() };
            record_details(connection, organisation, Action::PatientErased, &id.to_string(), &details, audit)?;
            // Not by RETURNING: Citus cannot return a column that the database fills in.
            return Ok(Some(EraseOutcome::Erased { at: erased.first(connection)? }));
        }
    }
    let erased = erased.first(connection).optional()?;
    Ok(erased.map(|at| EraseOutcome::AlreadyErased { at }))
}

/// Adds to the record of erasures. Each digest is there once: a patient who was sent again has it under two ids.
fn note(
    connection: &mut PgConnection,
    statement: &str,
    organisation: Uuid,
    id: Uuid,
    digest: Option<IdempotencyDigest>,
) -> QueryResult<usize> {
    let digest = digest.as_ref().map(IdempotencyDigest::as_bytes);
    let of_digest = erasures::organisation_id.eq(organisation).and(erasures::idempotency_digest.eq(digest));
    let is_known = diesel::select(exists(erasures::table.filter(of_digest))).get_result::<bool>(connection)?;
    let note = diesel::sql_query(statement).bind::<SqlUuid, _>(organisation).bind::<SqlUuid, _>(id);
    note.bind::<Nullable<Binary>, _>(digest.filter(|_| !is_known)).execute(connection)
}
