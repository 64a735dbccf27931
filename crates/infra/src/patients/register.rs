//! The port to the register over PostgreSQL. Requests wait in a bounded queue; a few writers take all that wait and
//! store them with one statement, which also answers requests that only check a key. An idle service stores batches of
//! one, without delay; a busy one shares each commit among many. A statement that hangs delays only its own requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use intake_domain::{KeyDigest, KeyStanding, PatientRegister, Registered, Registration, StoreError};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::patients::buckets::Buckets;
use crate::patients::job::{Answer, Job, Task};

/// One writer keeps PostgreSQL busy while it waits for its log; every further one only makes more and smaller batches
/// of the same patients (docs/performance.md).
const CORES_PER_WRITER: usize = 4;
/// More writers than this have not been measured.
const USUAL_WRITERS_MAX: usize = 4;

/// The port [`PatientRegister`] over PostgreSQL.
pub struct PostgresPatientRegister {
    buckets: Arc<Buckets>,
    deadline: Duration,
}

impl PostgresPatientRegister {
    /// Starts the writers: as many as given, else as many as suit the machine. They end when this is dropped and all
    /// waiting requests are answered. `deadline` bounds the wait of each request.
    pub fn start(
        url: &DatabaseUrl,
        writers: Option<NonZeroUsize>,
        deadline: Duration,
        uses: &KeyUses,
    ) -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let writers = writers.map_or((cores / CORES_PER_WRITER).clamp(1, USUAL_WRITERS_MAX), NonZeroUsize::get);
        Ok(Self { buckets: Buckets::start(url, writers, uses)?, deadline })
    }

    /// Whether a writer carries out the statement within this time: with a key that nobody has, so that nothing is stored,
    /// and before all requests that wait, so that a long queue does not look like a writer that hangs.
    pub async fn is_storing(&self, unknown_key: KeyDigest, now: OffsetDateTime, limit: Duration) -> bool {
        let since = Instant::now();
        let deadline = since + limit;
        let (answer, answered) = oneshot::channel();
        let task = Task::Probe { moment: now, key: unknown_key };
        let job = Job { task, since, deadline, answer, was_sent: false, is_held: false };
        let is_accepted = self.buckets.first().push_first(job).is_ok();
        is_accepted && matches!(tokio::time::timeout_at(deadline.into(), answered).await, Ok(Ok(Ok(_))))
    }

    async fn ask(&self, task: Task) -> Result<Answer, StoreError> {
        let bucket = self.buckets.of_key(task.key());
        let _waiting = bucket.backlog.enter(self.deadline)?;
        let since = Instant::now();
        let deadline = since + self.deadline;
        let (answer, answered) = oneshot::channel();
        let job = Job { task, since, deadline, answer, was_sent: false, is_held: false };
        // A bucket may have ended a moment ago; the first one never does.
        bucket.push(job).or_else(|job| self.buckets.first().push(job)).map_err(|_| StoreError::Overloaded)?;
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(Ok(answer)) => answer,
            // The writer dropped it because its deadline has passed: it may notice a moment earlier than this timer.
            Ok(Err(dropped)) => Err(StoreError::Unavailable(dropped.into())),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        }
    }
}

impl Drop for PostgresPatientRegister {
    fn drop(&mut self) {
        self.buckets.close();
    }
}

#[async_trait]
impl PatientRegister for PostgresPatientRegister {
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError> {
        let Answer { standing, registered, .. } = self.ask(Task::Create(registration)).await?;
        match (registered, standing) {
            (Some(registered), _) => Ok(registered),
            (None, KeyStanding::Refused(refusal)) => Ok(Registered::Refused(refusal)),
            (None, KeyStanding::Active(_)) => Err(StoreError::Unexpected("a patient was not stored".into())),
        }
    }

    async fn standing(&self, key: &KeyDigest, now: OffsetDateTime) -> Result<KeyStanding, StoreError> {
        Ok(self.ask(Task::Check { moment: now, key: *key }).await?.standing)
    }
}
