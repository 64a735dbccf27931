//! The register in PostgreSQL: finds the key's holder, routes the request to the lane of the holder's organisation, and
//! waits for the answer. An idle service stores batches of one, without delay; a busy one shares each commit among many
//! requests. A statement that hangs delays only its own requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use intake_domain::{
    Caller, CheckedFor, KeyCheck, KeyDigest, KeyHolder, KeyRefusal, PatientRegister, Registered, Registration,
    StoreError,
};
use tokio::task::JoinSet;

use crate::database::connecting::url::DatabaseUrl;
use crate::keys::activity::uses::KeyUses;
use crate::keys::directory::{KeyDirectory, home};
use crate::patients::batch::store::Context;
use crate::patients::batch::task::{Answer, Task};
use crate::patients::group_commit::job::Job;
use crate::patients::group_commit::lane::Lane;
use crate::patients::lanes::Lanes;

/// One writer keeps PostgreSQL busy while PostgreSQL waits for its log; more writers only make smaller batches
/// (docs/decisions/0017-choices-by-measurement.md).
const CORES_PER_WRITER: usize = 4;
/// We measured no more writers than this.
const USUAL_WRITERS_MAX: usize = 4;

/// The port [`PatientRegister`] over PostgreSQL.
pub struct PostgresPatientRegister {
    directory: KeyDirectory,
    lanes: Lanes,
    deadline: Duration,
}

impl PostgresPatientRegister {
    /// Starts this number of writers, or one that suits the machine. The writers end when the register is dropped and
    /// all waiting requests are answered. `deadline` limits the wait of each request.
    pub fn start(
        url: &DatabaseUrl,
        writers: Option<NonZeroUsize>,
        deadline: Duration,
        directory: &KeyDirectory,
        uses: &KeyUses,
    ) -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let writers = writers.map_or((cores / CORES_PER_WRITER).clamp(1, USUAL_WRITERS_MAX), NonZeroUsize::get);
        let context = Context { directory: directory.clone(), uses: uses.clone(), deadline };
        let lanes = Lanes::start(url, writers, context)?;
        Ok(Self { directory: directory.clone(), lanes, deadline })
    }

    /// Returns whether a writer completes an insert of no patients, or something else, within this time. On Citus a
    /// node must answer, whichever: the others are asked if the first lane's hangs. The job goes before all waiting
    /// requests, so that a long queue does not look like a writer that hangs.
    pub async fn is_storing(&self, limit: Duration) -> bool {
        let since = Instant::now();
        let first = std::slice::from_ref(self.lanes.first());
        let of_shards = self.lanes.of_shards();
        let is_completed = if of_shards.is_empty() {
            completes_probe(first, limit).await
        } else {
            completes_probe(first, limit / 4).await || completes_probe(&of_shards, limit * 3 / 4).await
        };
        // Before the job there may be a statement that takes nearly as long.
        is_completed || self.has_stored_since(since)
    }

    /// Returns whether a writer has stored something within the deadline of requests, and met no error since: it may be
    /// slow, and still answers them in time.
    #[must_use]
    pub fn has_stored_lately(&self) -> bool {
        Instant::now().checked_sub(self.deadline).is_some_and(|moment| self.has_stored_since(moment))
    }

    fn has_stored_since(&self, moment: Instant) -> bool {
        let has_stored = |lane: &Arc<Lane>| lane.trouble.has_stored_since(moment);
        has_stored(self.lanes.first()) || self.lanes.of_shards().iter().any(has_stored)
    }

    /// Holder of a key, from memory if known. None: the key does not exist.
    async fn holder(&self, key: &KeyDigest, since: Instant) -> Result<Option<KeyHolder>, StoreError> {
        if let Some(holder) = self.directory.holder(key) {
            return Ok(Some(holder));
        }
        match self.ask(&self.lanes.of(home(key)), Task::Find(*key), since).await? {
            Answer::Found(holder) => Ok(holder),
            _ => Err(StoreError::Unexpected("a key was not looked up".into())),
        }
    }

    async fn ask(&self, lane: &Lane, task: Task, since: Instant) -> Result<Answer, StoreError> {
        let _waiting = lane.backlog.enter(self.deadline)?;
        let deadline = since + self.deadline;
        let (job, answered) = Job::new(task, since, deadline);
        // This lane may have ended a moment ago; the first lane never ends.
        lane.push(job).or_else(|job| self.lanes.first().push(job)).map_err(|_| StoreError::Overloaded)?;
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(Ok(answer)) => answer,
            // The deadline has passed. The writer, which drops the job, may notice that before this timer does.
            Ok(Err(_)) | Err(_) => Err(StoreError::Unavailable(lane.trouble.cause())),
        }
    }
}

/// Returns whether one of the lanes completes a probe within this time.
async fn completes_probe(lanes: &[Arc<Lane>], limit: Duration) -> bool {
    let since = Instant::now();
    let deadline = since + limit;
    let mut probes = JoinSet::new();
    for lane in lanes {
        let (job, answered) = Job::new(Task::Probe, since, deadline);
        if lane.push_first(job).is_ok() {
            probes.spawn(tokio::time::timeout_at(deadline.into(), answered));
        }
    }
    while let Some(probe) = probes.join_next().await {
        if matches!(probe, Ok(Ok(Ok(Ok(_))))) {
            return true;
        }
    }
    false
}

impl Drop for PostgresPatientRegister {
    fn drop(&mut self) {
        self.lanes.close();
    }
}

#[async_trait]
impl PatientRegister for PostgresPatientRegister {
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError> {
        let since = Instant::now();
        let Some(holder) = self.holder(&registration.caller.key, since).await? else {
            return Ok(Registered::Refused(KeyRefusal::Unknown));
        };
        let lane = self.lanes.of(*holder.organisation_id.as_uuid());
        match self.ask(&lane, Task::Create(registration, holder), since).await? {
            Answer::Registered(registered) => Ok(registered),
            _ => Err(StoreError::Unexpected("a patient was not stored".into())),
        }
    }

    async fn check_key(&self, caller: &Caller, checked_for: CheckedFor) -> Result<KeyCheck, StoreError> {
        let since = Instant::now();
        let Some(holder) = self.holder(&caller.key, since).await? else {
            return Ok(KeyCheck::Refused(KeyRefusal::Unknown));
        };
        let lane = self.lanes.of(*holder.organisation_id.as_uuid());
        match self.ask(&lane, Task::Check(holder, caller.address, checked_for), since).await? {
            Answer::Checked(check) => Ok(check),
            _ => Err(StoreError::Unexpected("a key was not looked up".into())),
        }
    }
}
