//! The port to the register over PostgreSQL: requests wait in a bounded queue, a few writers take all that waits and store
//! it with one statement. An idle service stores batches of one, without delay; a busy one shares each commit among many.

mod batch;
mod statement;
mod writer;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use intake_domain::{PatientRegister, Registered, Registration, StoreError};
use tokio::sync::oneshot;

use crate::database_url::DatabaseUrl;
use crate::key_uses::KeyUses;
use writer::Writer;

/// More writers made less throughput on two cores: they wait for the same log.
const WRITERS: usize = 2;
/// A few seconds of work at full speed; whoever comes when it is full is told so at once.
const QUEUE_LENGTH: usize = 8_192;

/// One request on its way through the queue.
struct Job {
    registration: Arc<Registration>,
    deadline: Instant,
    answer: oneshot::Sender<Result<Registered, StoreError>>,
}

impl Job {
    fn safe_retry_key(&self) -> Option<&str> {
        self.registration.retry.as_ref().map(|retry| retry.key.as_str())
    }
}

/// The port [`PatientRegister`] over PostgreSQL.
pub struct PostgresPatientRegister {
    queue: SyncSender<Job>,
    deadline: Duration,
}

impl PostgresPatientRegister {
    /// Starts the writers, which end when this is dropped and everything that waits is answered. `deadline` bounds the
    /// wait of each request.
    pub fn start(url: &DatabaseUrl, deadline: Duration, uses: &KeyUses) -> std::io::Result<Self> {
        let (queue, jobs) = sync_channel(QUEUE_LENGTH);
        let jobs: Arc<Mutex<Receiver<Job>>> = Arc::new(Mutex::new(jobs));
        for number in 0..WRITERS {
            let writer = Writer::new(url.clone(), uses.clone());
            let jobs = Arc::clone(&jobs);
            std::thread::Builder::new().name(format!("writer-{number}")).spawn(move || writer.run(&jobs))?;
        }
        Ok(Self { queue, deadline })
    }
}

#[async_trait]
impl PatientRegister for PostgresPatientRegister {
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError> {
        let deadline = Instant::now() + self.deadline;
        let (answer, answered) = oneshot::channel();
        match self.queue.try_send(Job { registration, deadline, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(StoreError::Overloaded),
            Err(TrySendError::Disconnected(_)) => return Err(StoreError::Unexpected("no writer is left".into())),
        }
        match tokio::time::timeout_at(deadline.into(), answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(dropped)) => Err(StoreError::Unexpected(dropped.into())),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        }
    }
}
