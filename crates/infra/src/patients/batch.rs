//! Stores one batch over one connection, and reads the outcome of each row.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use intake_domain::{KeyHolder, KeyRefusal, KeyStanding, Registered, StoreError};
use uuid::Uuid;

use crate::database::grants::missing_grants;
use crate::database::schema_error::SchemaError;
use crate::patients::job::{Answer, Task};
use crate::patients::statement::{InsertBatch, InsertMany, InsertOne, Outcome, OutcomeOfOne, Rehearsal};
use crate::patients::stored_before::StoredBefore;

/// A task on its way to the database.
pub(crate) struct Attempt {
    pub(crate) task: Task,
    /// It was sent before, with unknown outcome.
    pub(crate) is_repeated: bool,
}

impl Attempt {
    /// Whether another transaction may hold its row: one with the same idempotency key, or an earlier statement of this
    /// service that is still running.
    pub(crate) fn may_be_held(&self) -> bool {
        let retry = self.task.registration().and_then(|row| row.retry.as_ref());
        self.is_repeated || retry.is_some()
    }
}

/// Why a batch has no answers.
pub(crate) struct Failed {
    pub(crate) error: diesel::result::Error,
    /// The rows are stored; only the lookup of those that were stored before has failed.
    pub(crate) is_stored: bool,
}

impl From<diesel::result::Error> for Failed {
    fn from(error: diesel::result::Error) -> Self {
        Self { error, is_stored: false }
    }
}

/// Stores the batch: one answer for each attempt, in their order. Costs one round trip, and a second one if some rows
/// may have been stored before.
pub(crate) fn store(
    connection: &mut PgConnection,
    attempts: &[Attempt],
) -> Result<Vec<Result<Answer, StoreError>>, Failed> {
    let statement: InsertBatch<'_> = attempts.iter().map(|attempt| &attempt.task).collect();
    let (key_indexes, rows) = (statement.key_indexes(), statement.rows());
    let is_one = matches!(attempts, [Attempt { task: Task::Create(_), .. }]);
    let outcome: Outcome = match (is_one, statement.has_idempotency_keys()) {
        (true, false) => InsertOne::<false>(statement).get_result::<OutcomeOfOne>(connection).optional()?.into(),
        (true, true) => InsertOne::<true>(statement).get_result::<OutcomeOfOne>(connection).optional()?.into(),
        (false, false) => InsertMany::<false>(statement).get_result(connection)?,
        (false, true) => InsertMany::<true>(statement).get_result(connection)?,
    };
    let created = outcome.created.as_deref().unwrap_or_default();
    let are_all_created = created.len() == rows;
    let mut answers = Vec::with_capacity(attempts.len());
    let mut uncertain = Vec::new();
    let mut stored_before = StoredBefore::default();
    for (attempt, key_index) in attempts.iter().zip(key_indexes) {
        let (standing, holder) = outcome.key(key_index);
        let mut answer = Answer { standing, holder, registered: None };
        if let Some((registration, holder)) = attempt.task.registration().zip(holder) {
            let is_active = matches!(standing, KeyStanding::Active(_));
            if are_all_created || created.contains(registration.id.as_uuid()) {
                answer.registered = Some(Registered::Created(holder.organisation_id));
            } else if is_active || attempt.is_repeated {
                // An earlier run may have stored it and lost the answer, whatever the key is worth now.
                stored_before.ask(holder.organisation_id, registration, is_active);
                uncertain.push(answers.len());
            }
        }
        answers.push(Ok(answer));
    }
    let found = stored_before.find(connection).map_err(|error| Failed { error, is_stored: true })?;
    for (index, registered) in uncertain.into_iter().zip(found) {
        let is_repeated = attempts.get(index).is_some_and(|attempt| attempt.is_repeated);
        if let Some(answer) = answers.get_mut(index) {
            settle(answer, registered, is_repeated);
        }
    }
    Ok(answers)
}

/// A patient that was sent before and is not stored may still be: the server may be working on it. Then nothing can be
/// answered, not even that it was refused.
fn settle(answer: &mut Result<Answer, StoreError>, found: Option<Registered>, is_repeated: bool) {
    match answer {
        Ok(known) if found.is_some() || !is_repeated => known.registered = found,
        _ => *answer = Err(StoreError::Unavailable("an earlier statement may still take effect".into())),
    }
}

/// What is at fault when a statement fails.
pub(crate) enum Fault {
    /// The database does not accept a value in the batch.
    Batch,
    /// The service's role lacks a privilege.
    Grants(SchemaError),
    /// The database, or nothing: trying again may help.
    Neither,
}

/// A batch that the database does not accept fails in a rehearsal, too, while an empty batch does not. A rehearsal that
/// fails after the lock timeout says nothing about the batch: another transaction holds the table.
pub(crate) fn fault(connection: &mut PgConnection, attempts: &[Attempt], lock_timeout: Duration) -> Fault {
    let started = Instant::now();
    let mut rehearse = |attempts: &[Attempt]| {
        Rehearsal(InsertMany(attempts.iter().map(|attempt| &attempt.task).collect())).execute(connection)
    };
    if rehearse(attempts).is_ok() || started.elapsed() >= lock_timeout {
        Fault::Neither
    } else if rehearse(&[]).is_ok() {
        Fault::Batch
    } else {
        missing_grants(connection).map_or(Fault::Neither, Fault::Grants)
    }
}

impl Outcome {
    /// The standing of the key at this index, and its holder, whatever the standing is.
    fn key(&self, index: usize) -> (KeyStanding, Option<KeyHolder>) {
        let id = |ids: &[Option<Uuid>]| ids.get(index).copied().flatten();
        let (Some(key_id), Some(organisation_id)) = (id(&self.key_ids), id(&self.organisation_ids)) else {
            return (KeyStanding::Refused(KeyRefusal::Unknown), None);
        };
        let holder = KeyHolder { key_id: key_id.into(), organisation_id: organisation_id.into() };
        let flag = |flags: &[bool]| flags.get(index).copied().unwrap_or_default();
        let standing = if flag(&self.are_revoked) {
            KeyStanding::Refused(KeyRefusal::Revoked)
        } else if flag(&self.have_expired) {
            KeyStanding::Refused(KeyRefusal::Expired)
        } else {
            KeyStanding::Active(holder)
        };
        (standing, Some(holder))
    }
}
