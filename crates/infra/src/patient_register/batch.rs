//! Storing one batch over one connection, and reading what became of each row.

use diesel::prelude::*;
use intake_domain::{KeyHolder, KeyRefusal, Registered, Registration};
use time::OffsetDateTime;
use uuid::Uuid;

use super::statement::{InsertBatch, Outcome};
use crate::schema::patients;

/// What became of one registration, and whose it was.
pub(super) struct Answer {
    pub(super) registered: Registered,
    pub(super) holder: Option<KeyHolder>,
}

/// One row's key, as the statement found it.
struct Key {
    holder: KeyHolder,
    is_revoked: bool,
    has_expired: bool,
}

/// Stores the batch: one answer for each registration, in their order. Costs one round trip, and one more for each row
/// that was there before.
pub(super) fn store(connection: &mut PgConnection, batch: &[&Registration]) -> QueryResult<Vec<Answer>> {
    let statement: InsertBatch<'_> = batch.iter().copied().collect();
    let places = statement.key_places();
    let outcome: Outcome = statement.get_result(connection)?;
    let created = outcome.created.as_deref().unwrap_or_default();
    let are_all_created = created.len() == batch.len();
    let rows = batch.iter().zip(places);
    let answers = rows.map(|(registration, place)| {
        let is_created = are_all_created || created.contains(registration.id.as_uuid());
        answer(connection, registration, outcome.key(place), is_created)
    });
    answers.collect()
}

impl Outcome {
    fn key(&self, place: usize) -> Option<Key> {
        let key_id = (*self.key_ids.get(place)?)?;
        let organisation_id = (*self.organisation_ids.get(place)?)?;
        Some(Key {
            holder: KeyHolder { key_id: key_id.into(), organisation_id: organisation_id.into() },
            is_revoked: *self.are_revoked.get(place)?,
            has_expired: *self.have_expired.get(place)?,
        })
    }
}

fn answer(
    connection: &mut PgConnection,
    registration: &Registration,
    key: Option<Key>,
    is_created: bool,
) -> QueryResult<Answer> {
    let Some(key) = key else {
        return Ok(Answer { registered: Registered::Refused(KeyRefusal::Unknown), holder: None });
    };
    let holder = Some(key.holder);
    if is_created {
        return Ok(Answer { registered: Registered::Created(key.holder.organisation_id), holder });
    }
    // Not stored by this run. An earlier run of the same batch may have stored it and lost its answer, whatever has
    // become of the key since.
    if let Some(registered) = stored_before(connection, registration, &key)? {
        return Ok(Answer { registered, holder });
    }
    let refusal = if key.is_revoked {
        KeyRefusal::Revoked
    } else if key.has_expired {
        KeyRefusal::Expired
    } else {
        // The patient in whose favour the row was left out has gone since.
        return Err(diesel::result::Error::NotFound);
    };
    Ok(Answer { registered: Registered::Refused(refusal), holder: None })
}

/// What an earlier request, or an earlier run of this one, has stored. A statement of its own, because it must see what
/// was committed while the batch's statement ran.
fn stored_before(
    connection: &mut PgConnection,
    registration: &Registration,
    key: &Key,
) -> QueryResult<Option<Registered>> {
    type Stored = (Uuid, OffsetDateTime, Option<Vec<u8>>);
    let organisation_id = key.holder.organisation_id;
    let columns = (patients::id, patients::created_at, patients::request_digest);
    let of_organisation =
        patients::table.filter(patients::organisation_id.eq(organisation_id.as_uuid())).select(columns);
    let id = *registration.id.as_uuid();
    let same_id = of_organisation.filter(patients::id.eq(id)).first::<Stored>(connection).optional()?;
    if same_id.is_some() {
        return Ok(Some(Registered::Created(organisation_id)));
    }
    let is_active = !key.is_revoked && !key.has_expired;
    let Some(retry) = registration.retry.as_ref().filter(|_| is_active) else {
        return Ok(None);
    };
    let same_key = of_organisation.filter(patients::idempotency_key.eq(retry.key.as_str()));
    let Some((id, created_at, digest)) = same_key.first::<Stored>(connection).optional()? else {
        return Ok(None);
    };
    let digest = digest.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
    Ok(Some(Registered::Before { organisation_id, id: id.into(), created_at, digest }))
}
