//! Storing one batch over one connection, and reading what became of each row.

use diesel::prelude::*;
use intake_domain::{KeyHolder, KeyRefusal, KeyStanding, OrganisationId, Registered, Registration};
use time::OffsetDateTime;
use uuid::Uuid;

use super::statement::{InsertBatch, InsertOne, Outcome, OutcomeOfOne, Rehearsal};
use super::{Answer, Wish};
use crate::schema::patients;

/// Stores the batch: one answer for each wish, in their order. Costs one round trip, and one more for each row that was
/// there before.
pub(super) fn store(connection: &mut PgConnection, wishes: &[&Wish]) -> QueryResult<Vec<Answer>> {
    let statement: InsertBatch<'_> = wishes.iter().copied().collect();
    let (places, rows) = (statement.key_places(), statement.rows());
    let outcome: Outcome = match wishes {
        [Wish::Create(_)] => InsertOne(statement).get_result::<OutcomeOfOne>(connection).optional()?.into(),
        _ => statement.get_result(connection)?,
    };
    let created = outcome.created.as_deref().unwrap_or_default();
    let are_all_created = created.len() == rows;
    let answers = wishes.iter().zip(places).map(|(wish, place)| {
        let (standing, organisation) = outcome.key(place);
        let registered = match wish.registration().zip(organisation) {
            None => None,
            Some((registration, organisation)) => {
                if are_all_created || created.contains(registration.id.as_uuid()) {
                    Some(Registered::Created(organisation))
                } else {
                    // Not stored by this run. An earlier run of the same batch may have stored it and lost its answer,
                    // whatever has become of the key since.
                    stored_before(connection, registration, organisation, standing)?
                }
            }
        };
        Ok(Answer { standing, registered })
    });
    answers.collect()
}

/// Whether something in the batch is what the database does not take: then it cannot even be rehearsed, while a batch of
/// nothing can.
pub(super) fn is_at_fault(connection: &mut PgConnection, wishes: &[&Wish]) -> bool {
    let mut rehearse = |wishes: &[&Wish]| Rehearsal(wishes.iter().copied().collect()).execute(connection);
    rehearse(wishes).is_err() && rehearse(&[]).is_ok()
}

impl Outcome {
    /// What the key at this place is worth, and whose it is, worth something or not.
    fn key(&self, place: usize) -> (KeyStanding, Option<OrganisationId>) {
        let id = |ids: &[Option<Uuid>]| ids.get(place).copied().flatten();
        let (Some(key_id), Some(organisation_id)) = (id(&self.key_ids), id(&self.organisation_ids)) else {
            return (KeyStanding::Refused(KeyRefusal::Unknown), None);
        };
        let holder = KeyHolder { key_id: key_id.into(), organisation_id: organisation_id.into() };
        let is = |so: &[bool]| so.get(place).copied().unwrap_or_default();
        let standing = if is(&self.are_revoked) {
            KeyStanding::Refused(KeyRefusal::Revoked)
        } else if is(&self.have_expired) {
            KeyStanding::Refused(KeyRefusal::Expired)
        } else {
            KeyStanding::Active(holder)
        };
        (standing, Some(holder.organisation_id))
    }
}

/// What an earlier request, or an earlier run of this one, has stored. A statement of its own, because it must see what
/// was committed while the batch's statement ran.
fn stored_before(
    connection: &mut PgConnection,
    registration: &Registration,
    organisation_id: OrganisationId,
    standing: KeyStanding,
) -> QueryResult<Option<Registered>> {
    type Stored = (Uuid, OffsetDateTime, Option<Vec<u8>>);
    let columns = (patients::id, patients::created_at, patients::request_digest);
    let of_organisation =
        patients::table.filter(patients::organisation_id.eq(organisation_id.as_uuid())).select(columns);
    let id = *registration.id.as_uuid();
    let same_id = of_organisation.filter(patients::id.eq(id)).first::<Stored>(connection).optional()?;
    if same_id.is_some() {
        return Ok(Some(Registered::Created(organisation_id)));
    }
    let is_active = matches!(standing, KeyStanding::Active(_));
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
