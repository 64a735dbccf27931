//! Stores one batch over one connection, and reads the outcome of each request.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use intake_domain::{CheckedFor, KeyCheck, KeyHolder, Registered, StoreError};

use super::failure::{Failed, failed};
use super::insert::InsertBatch;
use super::key_checks::KeyChecks;
use super::shard_function;
use super::stored_before::StoredBefore;
use super::task::{Answer, Request, Task};
use crate::database::connecting::commit_wait::assert_commits;
use crate::keys::activity::uses::KeyUses;
use crate::keys::directory::KeyDirectory;

/// PostgreSQL plans the statement once per connection, perhaps while the tables are empty: without these settings the
/// plan would later scan whole tables. Citus must know the values to choose the nodes. The insert must see every
/// erasure that was committed before the insert locked the table (`rights.rs`), so the role's own isolation level must
/// not apply.
const SETTINGS: &str = "SET default_transaction_isolation = 'read committed'; SELECT set_config('plan_cache_mode',
    CASE WHEN to_regproc('citus_version') IS NULL THEN 'force_generic_plan' ELSE 'force_custom_plan' END, false);
    SET enable_seqscan = off; SET jit = off";

/// Larger than most patients, so that it fails on a disk that is too full for them.
const TRIAL: &str = "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth,
        email, address_line1, address_line2, suburb, created_at, updated_at)
    SELECT gen_random_uuid(), gen_random_uuid(), filler, filler, '+61412345678', '1985-03-21',
        filler, filler, filler, filler, now(), now() FROM repeat('x', 255) AS filler";

/// Settings of a writer's connection.
pub(crate) fn settings(lock_timeout: Duration) -> String {
    format!("{SETTINGS}; SET lock_timeout = {}", lock_timeout.as_millis())
}

/// Shared memory of batches, known keys and the uses of keys, and the deadline of their requests.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) directory: KeyDirectory,
    pub(crate) uses: KeyUses,
    pub(crate) deadline: Duration,
}

/// Stores the batch and returns one outcome for each request, in their order. Costs one round trip if the batch creates
/// all its patients, one more to look up keys, and two more if not every patient was created.
pub(crate) fn store(
    connection: &mut PgConnection,
    requests: &[Request],
    context: &Context,
    lock_timeout: Duration,
    was_away: bool,
) -> Result<Vec<Result<Answer, StoreError>>, Failed> {
    let started = Instant::now();
    let mut is_stored = false;
    let answers = answers(connection, requests, context, was_away, &mut is_stored);
    let took_long = started.elapsed() >= lock_timeout;
    answers.map_err(|error| failed(connection, requests, error, is_stored, took_long.then_some(lock_timeout)))
}

fn answers(
    connection: &mut PgConnection,
    requests: &[Request],
    context: &Context,
    was_away: bool,
    is_stored: &mut bool,
) -> QueryResult<Vec<Result<Answer, StoreError>>> {
    let asked =
        requests.iter().filter_map(|request| if let Task::Find(key) = &request.task { Some(key) } else { None });
    context.directory.learn(connection, asked)?;
    let is_spread = context.directory.shards.is_spread();
    let batch: InsertBatch<'_> = requests.iter().filter_map(Request::row).collect();
    let rows = batch.rows();
    let is_probe = requests.iter().any(|request| matches!(request.task, Task::Probe));
    if is_probe {
        probe(connection, context.deadline, is_spread, was_away)?;
    }
    let stored = match context.directory.shards.function(batch.organisations()) {
        Some(shard) => shard_function::store(&batch, shard, connection)?,
        None => None,
    };
    let stored = stored.map_or_else(|| batch.store(connection, is_probe && !is_spread, is_spread), Ok)?;
    let are_all_created = stored == rows;
    *is_stored = true;
    let is_open = |request: &&Request| !are_all_created || matches!(request.task, Task::Check(..));
    let checks = KeyChecks::of(connection, requests.iter().filter(is_open))?;
    let mut found = match are_all_created {
        true => Vec::new(),
        false => found_before(connection, requests, &checks, is_spread)?,
    }
    .into_iter();
    let check = |request: &Request, holder: &KeyHolder| checks.check(holder, request.address());
    let answer = |request: &Request| match &request.task {
        Task::Find(key) => Ok(Answer::Found(context.directory.holder(key))),
        Task::Probe => Ok(Answer::Probed),
        Task::Check(holder, ..) => Ok(Answer::Checked(check(request, holder))),
        Task::Create(_, holder) if are_all_created => {
            Ok(Answer::Registered(Registered::Created(holder.organisation_id)))
        }
        Task::Create(_, holder) => {
            outcome(found.next().flatten(), check(request, holder), request.was_sent).map(Answer::Registered)
        }
    };
    let answers: Vec<_> = requests.iter().map(answer).collect();
    note_uses(&context.uses, requests, &answers);
    Ok(answers)
}

/// Tests what the insert does not. A single shard of Citus may be away, which must not take the whole instance out of
/// service, so the node is asked. A database that was away has to prove that its disk takes patients. An insert of no
/// patients does not wait for a standby, so the commits of others are looked at.
fn probe(connection: &mut PgConnection, deadline: Duration, is_spread: bool, was_away: bool) -> QueryResult<()> {
    assert_commits(connection, deadline)?;
    match (is_spread, was_away) {
        (true, _) => diesel::sql_query("SELECT 1").execute(connection).map(drop),
        (false, true) => connection.transaction(|connection| write_and_roll_back(connection, 1)),
        (false, false) => Ok(()),
    }
}

fn note_uses(uses: &KeyUses, requests: &[Request], answers: &[Result<Answer, StoreError>]) {
    uses.note(requests.iter().zip(answers).filter_map(|(request, answer)| {
        let has_created = match (answer, &request.task) {
            (Ok(Answer::Registered(Registered::Created(_))), _) => true,
            (Ok(Answer::Registered(Registered::Before { .. })), _)
            | (Ok(Answer::Checked(KeyCheck::Active(_))), Task::Check(.., CheckedFor::Use)) => false,
            _ => return None,
        };
        Some((request.holder()?, request.since, has_created))
    }));
}

/// Stores patients of no organisation and rolls back, because only a write shows that the disk is full.
pub(crate) fn write_and_roll_back(connection: &mut PgConnection, patients: usize) -> QueryResult<()> {
    use diesel::result::Error::{QueryBuilderError, RollbackTransaction};

    let taken_back = connection.transaction(|connection| {
        for _ in 0..patients {
            if diesel::sql_query(TRIAL).execute(connection)? == 0 {
                return Err(QueryBuilderError(
                    "the database stored nothing, without an error: is there a trigger?".into(),
                ));
            }
        }
        Err(RollbackTransaction)
    });
    if let Err(RollbackTransaction) = taken_back { Ok(()) } else { taken_back }
}

/// The stored patient for each request, from this run or an earlier one that lost the answer, even if the key is no
/// longer active.
fn found_before(
    connection: &mut PgConnection,
    requests: &[Request],
    checks: &KeyChecks,
    is_spread: bool,
) -> QueryResult<Vec<Option<Registered>>> {
    let mut stored_before = StoredBefore::default();
    for (registration, holder) in requests.iter().filter_map(Request::row) {
        let is_active = matches!(checks.check(&holder, registration.caller.address), KeyCheck::Active(_));
        stored_before.ask(holder.organisation_id, registration, is_active);
    }
    stored_before.find(connection, is_spread)
}

/// If a patient was sent before, an earlier statement may still store it, so even a refusal could be wrong. The same
/// holds if the key became visible only after the insert.
fn outcome(found: Option<Registered>, check: KeyCheck, was_sent: bool) -> Result<Registered, StoreError> {
    match (found, check) {
        (Some(registered), _) => Ok(registered),
        (None, KeyCheck::Refused(refusal)) if !was_sent => Ok(Registered::Refused(refusal)),
        (None, _) => Err(StoreError::Unavailable("an earlier statement may still take effect".into())),
    }
}
