//! The port to the register over PostgreSQL: requests wait in a bounded queue, a few writers take all that wait and store
//! them with one statement; whoever only asks about a key goes along. An idle service stores batches of one, without delay;
//! a busy one shares each commit among many. Whatever hangs in the database holds up nobody but those who wait for that.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use intake_domain::{KeyDigest, KeyStanding, PatientRegister, Registered, Registration, StoreError};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::patients::crew::Crew;
use crate::patients::job::{Answer, Job, Task};

/// One core in four: a writer keeps PostgreSQL busy that waits for its log, and every further one shares the same patients
/// among more and smaller batches (docs/performance.md).
const CORES_PER_WRITER: usize = 4;
/// Beyond this many nothing was measured.
const USUAL_WRITERS_MAX: usize = 4;
/// The port [`PatientRegister`] over PostgreSQL.
pub struct PostgresPatientRegister {
    crew: Arc<Crew>,
    deadline: Duration,
}

impl PostgresPatientRegister {
    /// Starts the writers, as many as told or as suit the machine, which end when this is dropped and everything that waits
    /// is answered. `deadline` bounds the wait of each request.
    pub fn start(
        url: &DatabaseUrl,
        writers: Option<NonZeroUsize>,
        deadline: Duration,
        uses: &KeyUses,
    ) -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let writers = writers.map_or((cores / CORES_PER_WRITER).clamp(1, USUAL_WRITERS_MAX), NonZeroUsize::get);
        Ok(Self { crew: Crew::start(url, writers, uses)?, deadline })
    }

    async fn ask(&self, task: Task) -> Result<Answer, StoreError> {
        let _waiting = self.crew.backlog.enter(self.deadline)?;
        let deadline = Instant::now() + self.deadline;
        let (answer, answered) = oneshot::channel();
        let job = Job { task, deadline, answer, was_sent: false, is_held: false };
        self.crew.queue.push(job).map_err(|_| StoreError::Overloaded)?;
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(Ok(answer)) => answer,
            // A writer lets go of what is out of time, by a clock that may be a moment ahead of the one here.
            Ok(Err(dropped)) => Err(StoreError::Unavailable(dropped.into())),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        }
    }
}

impl Drop for PostgresPatientRegister {
    fn drop(&mut self) {
        self.crew.end();
    }
}

#[async_trait]
impl PatientRegister for PostgresPatientRegister {
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError> {
        let Answer { standing, registered, .. } = self.ask(Task::Create(registration)).await?;
        match (registered, standing) {
            (Some(registered), _) => Ok(registered),
            (None, KeyStanding::Refused(refusal)) => Ok(Registered::Refused(refusal)),
            (None, KeyStanding::Active(_)) => Err(StoreError::Unexpected("a patient was left out".into())),
        }
    }

    async fn standing(&self, key: &KeyDigest, now: OffsetDateTime) -> Result<KeyStanding, StoreError> {
        Ok(self.ask(Task::Check { moment: now, key: *key }).await?.standing)
    }
}
