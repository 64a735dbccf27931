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

/// Stores the batch: one answer for each registration, in their order. Costs one round trip, and one more for each row
/// that was there before.
pub(super) fn store(connection: &mut PgConnection, batch: &[&Registration]) -> QueryResult<Vec<Answer>> {
    let statement: InsertBatch<'_> = batch.iter().copied().collect();
    let mut outcomes: Vec<Outcome> = statement.load(connection)?;
    // On a distributed PostgreSQL, rows come back in any order.
    outcomes.sort_unstable_by_key(|outcome| outcome.ordinal);
    if outcomes.len() != batch.len() {
        return Err(diesel::result::Error::NotFound);
    }
    batch.iter().zip(outcomes).map(|(registration, outcome)| answer(connection, registration, &outcome)).collect()
}

fn answer(connection: &mut PgConnection, registration: &Registration, outcome: &Outcome) -> QueryResult<Answer> {
    let (Some(key_id), Some(organisation_id)) = (outcome.key_id, outcome.organisation_id) else {
        return Ok(Answer { registered: Registered::Refused(KeyRefusal::Unknown), holder: None });
    };
    let holder = KeyHolder { key_id: key_id.into(), organisation_id: organisation_id.into() };
    if outcome.is_created {
        return Ok(Answer { registered: Registered::Created(holder.organisation_id), holder: Some(holder) });
    }
    // Not stored by this run. An earlier run of the same batch may have stored it and lost its answer, whatever has
    // become of the key since.
    if let Some(registered) = stored_before(connection, registration, organisation_id, outcome)? {
        return Ok(Answer { registered, holder: Some(holder) });
    }
    let refusal = if outcome.is_revoked {
        KeyRefusal::Revoked
    } else if outcome.has_expired {
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
    organisation: Uuid,
    outcome: &Outcome,
) -> QueryResult<Option<Registered>> {
    type Stored = (Uuid, OffsetDateTime, Option<Vec<u8>>);
    let columns = (patients::id, patients::created_at, patients::request_digest);
    let of_organisation = patients::table.filter(patients::organisation_id.eq(organisation)).select(columns);
    let id = *registration.id.as_uuid();
    let same_id = of_organisation.filter(patients::id.eq(id)).first::<Stored>(connection).optional()?;
    if same_id.is_some() {
        return Ok(Some(Registered::Created(organisation.into())));
    }
    let is_active = !outcome.is_revoked && !outcome.has_expired;
    let Some(retry) = registration.retry.as_ref().filter(|_| is_active) else {
        return Ok(None);
    };
    let same_key = of_organisation.filter(patients::idempotency_key.eq(retry.key.as_str()));
    let Some((id, created_at, digest)) = same_key.first::<Stored>(connection).optional()? else {
        return Ok(None);
    };
    let digest = digest.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
    Ok(Some(Registered::Before { organisation_id: organisation.into(), id: id.into(), created_at, digest }))
}
