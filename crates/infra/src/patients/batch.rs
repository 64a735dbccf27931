//! Stores one batch over one connection, and reads the outcome of each row.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use intake_domain::{KeyHolder, KeyRefusal, KeyStanding, Registered, StoreError};

use crate::database::grants::missing_grants;
use crate::database::schema_error::SchemaError;
use crate::keys::homes::KeyHomes;
use crate::patients::job::{Answer, Task};
use crate::patients::shared::Shared;
use crate::patients::statement::{InsertBatch, Rehearsal, Standings};
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

/// An attempt without an answer.
pub(crate) enum Unanswered {
    Failed(StoreError),
    /// The patients of its organisation are stored by the writers of this bucket.
    Elsewhere(Arc<Shared>),
}

/// Stores the batch: one outcome for each attempt, in their order. Costs one round trip, one more if a key is not known yet, and two
/// more if not every patient was created.
pub(crate) fn store(
    connection: &mut PgConnection,
    attempts: &[Attempt],
    shared: &Shared,
) -> Result<Vec<Result<Answer, Unanswered>>, Failed> {
    shared.uses.homes.learn(connection, attempts.iter().map(|attempt| attempt.task.key()))?;
    let is_spread = !shared.uses.shards.are_none();
    let mut answers: Vec<_> = attempts.iter().map(|attempt| unanswered(attempt, shared, is_spread)).collect();
    let rows = attempts.iter().zip(&answers).filter_map(|(attempt, answer)| {
        let holder = answer.as_ref().ok()?.holder?;
        Some((attempt.task.registration()?, holder))
    });
    let batch: InsertBatch<'_> = rows.collect();
    let rows = batch.rows();
    // On Citus one shard or another may be away, which must not take the whole instance out of service.
    let has_probe = attempts.iter().any(|attempt| matches!(attempt.task, Task::Probe { .. }));
    let is_probed = has_probe && !is_spread;
    let are_all_created = batch.store(connection, is_probed, is_spread)? == rows;
    let mut standings = Standings::default();
    for (attempt, answer) in attempts.iter().zip(&mut answers) {
        let Ok(Answer { standing, holder: Some(holder), registered }) = answer else { continue };
        if are_all_created && attempt.task.registration().is_some() {
            *standing = KeyStanding::Active(*holder);
            *registered = Some(Registered::Created(holder.organisation_id));
        } else {
            standings.ask(*holder);
        }
    }
    let stored = |error| Failed { error, is_stored: true };
    let standings = standings.find(connection).map_err(stored)?;
    settle(connection, attempts, &mut answers, &standings, is_spread).map_err(stored)?;
    Ok(answers)
}

/// The answer to an attempt whose key is unknown, as which a key counts until more is found out.
fn unanswered(attempt: &Attempt, shared: &Shared, is_spread: bool) -> Result<Answer, Unanswered> {
    let holder = shared.uses.homes.holder(attempt.task.key());
    match holder.filter(|_| is_spread).and_then(|holder| shared.elsewhere(holder.organisation_id)) {
        Some(bucket) => Err(Unanswered::Elsewhere(bucket)),
        None => Ok(Answer { standing: KeyStanding::Refused(KeyRefusal::Unknown), holder, registered: None }),
    }
}

/// Gives the keys their standings where not every patient was created, and finds out what has become of each patient.
fn settle(
    connection: &mut PgConnection,
    attempts: &[Attempt],
    answers: &mut [Result<Answer, Unanswered>],
    standings: &HashMap<KeyHolder, KeyStanding>,
    is_spread: bool,
) -> QueryResult<()> {
    let mut uncertain = Vec::new();
    let mut stored_before = StoredBefore::default();
    for (attempt, answer) in attempts.iter().zip(answers) {
        let Ok(Answer { standing, holder, registered: None }) = answer else { continue };
        let Some(KeyHolder { organisation_id, .. }) = *holder else { continue };
        match holder.and_then(|holder| standings.get(&holder)) {
            Some(found) => *standing = *found,
            // It was remembered, and the database was put back to a moment before it.
            None => *holder = None,
        }
        let is_active = matches!(standing, KeyStanding::Active(_));
        if let Some(registration) = attempt.task.registration() {
            // This run has stored it, or an earlier one that lost the answer, whatever the key is worth now.
            stored_before.ask(organisation_id, registration, is_active);
            uncertain.push((attempt, answer));
        }
    }
    for ((attempt, answer), registered) in uncertain.into_iter().zip(stored_before.find(connection, is_spread)?) {
        // A patient that was sent before and is not stored may still be: the server may be working on it. Then nothing can be answered,
        // not even that it was refused. Neither if the key has become visible only after the insert.
        match answer {
            Ok(known) if registered.is_some() => known.registered = registered,
            Ok(Answer { standing: KeyStanding::Refused(_), .. }) if !attempt.is_repeated => {}
            _ => {
                let error = "an earlier statement may still take effect";
                *answer = Err(Unanswered::Failed(StoreError::Unavailable(error.into())));
            }
        }
    }
    Ok(())
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
pub(crate) fn fault(
    connection: &mut PgConnection,
    attempts: &[Attempt],
    homes: &KeyHomes,
    lock_timeout: Duration,
) -> Fault {
    let started = Instant::now();
    let mut rehearse = |attempts: &[Attempt]| {
        let rows = attempts.iter().filter_map(|attempt| {
            let holder = homes.holder(attempt.task.key())?;
            Some((attempt.task.registration()?, holder))
        });
        Rehearsal::of(rows.collect()).execute(connection)
    };
    if rehearse(attempts).is_ok() || started.elapsed() >= lock_timeout {
        Fault::Neither
    } else if rehearse(&[]).is_ok() {
        Fault::Batch
    } else {
        missing_grants(connection).map_or(Fault::Neither, Fault::Grants)
    }
}
