//! The port to the register over PostgreSQL: requests wait in a bounded queue, a few writers take all that waits and store
//! it with one statement; who only asks about a key goes along. An idle service stores batches of one, without delay; a busy one shares each commit among many.

mod backlog;
mod batch;
mod statement;
mod writer;

use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use intake_domain::{KeyDigest, KeyStanding, PatientRegister, Registered, Registration, StoreError};
use time::OffsetDateTime;
use tokio::sync::oneshot;

use crate::database_url::DatabaseUrl;
use crate::key_uses::KeyUses;
use crate::vital_thread::spawn_vital;
use backlog::Backlog;
use writer::Writer;

/// One core in four: a writer keeps PostgreSQL busy that waits for its log, and every further one shares the same patients
/// among more and smaller batches (docs/performance.md).
const CORES_PER_WRITER: usize = 4;
/// Beyond this many nothing was measured.
const USUAL_WRITERS_MAX: usize = 4;
/// As many as there may be connections, each of which waits for one answer at a time: half a second of work at full speed.
const QUEUE_LENGTH: usize = 16_384;

/// What a request wants.
enum Wish {
    /// A patient.
    Create(Arc<Registration>),
    /// To know what its key is worth, and no more: its moment, and its key.
    Look(OffsetDateTime, KeyDigest),
}

impl Wish {
    fn key(&self) -> &KeyDigest {
        match self {
            Self::Create(registration) => &registration.key,
            Self::Look(_, key) => key,
        }
    }

    fn moment(&self) -> OffsetDateTime {
        match self {
            Self::Create(registration) => registration.created_at,
            Self::Look(moment, _) => *moment,
        }
    }

    fn registration(&self) -> Option<&Registration> {
        match self {
            Self::Create(registration) => Some(registration),
            Self::Look(..) => None,
        }
    }
}

/// What became of a wish.
struct Answer {
    /// What its key is worth.
    standing: KeyStanding,
    /// What became of the patient, if there was one and the key was, or had been, good for it.
    registered: Option<Registered>,
}

/// One request on its way through the queue.
struct Job {
    wish: Wish,
    deadline: Instant,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
}

impl Job {
    fn safe_retry_key(&self) -> Option<&str> {
        Some(self.wish.registration()?.retry.as_ref()?.key.as_str())
    }
}

/// The port [`PatientRegister`] over PostgreSQL.
pub struct PostgresPatientRegister {
    queue: SyncSender<Job>,
    backlog: Arc<Backlog>,
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
        let (queue, jobs) = sync_channel(QUEUE_LENGTH);
        let jobs: Arc<Mutex<Receiver<Job>>> = Arc::new(Mutex::new(jobs));
        let backlog = Arc::new(Backlog::new(writers));
        for number in 0..writers {
            let writer = Writer::new(url.clone(), uses.clone(), Arc::clone(&backlog));
            let jobs = Arc::clone(&jobs);
            spawn_vital(std::thread::Builder::new().name(format!("writer-{number}")), move || writer.run(&jobs))?;
        }
        Ok(Self { queue, backlog, deadline })
    }
}

impl PostgresPatientRegister {
    async fn ask(&self, wish: Wish) -> Result<Answer, StoreError> {
        let _place = self.backlog.enter(self.deadline)?;
        let deadline = Instant::now() + self.deadline;
        let (answer, answered) = oneshot::channel();
        match self.queue.try_send(Job { wish, deadline, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(StoreError::Overloaded),
            Err(TrySendError::Disconnected(_)) => return Err(StoreError::Unexpected("no writer is left".into())),
        }
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(Ok(answer)) => answer,
            // A writer lets go of what is out of time, by a clock that may be a moment ahead of the one here.
            Ok(Err(dropped)) => Err(StoreError::Unavailable(dropped.into())),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        }
    }
}

#[async_trait]
impl PatientRegister for PostgresPatientRegister {
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError> {
        let Answer { standing, registered } = self.ask(Wish::Create(registration)).await?;
        match (registered, standing) {
            (Some(registered), _) => Ok(registered),
            (None, KeyStanding::Refused(refusal)) => Ok(Registered::Refused(refusal)),
            (None, KeyStanding::Active(_)) => Err(StoreError::Unexpected("a patient was left out".into())),
        }
    }

    async fn standing(&self, key: &KeyDigest, now: OffsetDateTime) -> Result<KeyStanding, StoreError> {
        Ok(self.ask(Wish::Look(now, *key)).await?.standing)
    }
}
