//! Several deliveries at a time. All events of a patient go through one worker, in their order.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use anyhow::bail;
use intake_domain::{Change, FeedError, PatientId, StoreError, StoredPatient};
use intake_edge as edge;
use time::OffsetDateTime;

use crate::commands::deliver::event::Event;
use crate::commands::deliver::folder::{Folder, Status};
use crate::commands::deliver::register::Register;
use crate::commands::deliver::target::{Fault, Target};
use crate::commands::deliver::window::Window;
use crate::export::Stop;

/// Events that wait for a worker.
const QUEUE_MAX: usize = 64;
/// Between two looks if a worker takes something again.
const FULL_INTERVAL: Duration = Duration::from_millis(20);
/// Shortest and longest pause between two attempts.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];
/// Longest pause that a target may ask for.
const ASKED_PAUSE_MAX: Duration = Duration::from_secs(10 * 60);
/// Attempts after which an event is refused, if others were taken meanwhile: some eight minutes.
const ATTEMPTS_MAX: u32 = 15;

/// The delivery was asked to stop. What was not taken is delivered by the next run.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

pub(crate) struct Workers {
    queues: Vec<SyncSender<Event>>,
    shared: Arc<Shared>,
}

/// State of all workers.
pub(crate) struct Shared {
    target: Target,
    pub(crate) folder: Folder,
    stop: Stop,
    pauses: [Duration; 2],
    /// Reads a patient again who may have been erased while they waited.
    register: Mutex<Register>,
    window: Mutex<Window>,
    /// Events that are neither taken nor refused.
    open: AtomicU64,
    delivered: AtomicU64,
    erased: AtomicU64,
    up_to_date_at: AtomicI64,
    fault: Mutex<Option<String>>,
    /// Reason why the folder cannot be written.
    failure: Mutex<Option<anyhow::Error>>,
}

impl Workers {
    /// Starts workers that go on counting where an earlier run ended.
    pub(crate) fn start(
        count: u8,
        target: Target,
        folder: Folder,
        before: &Status,
        register: Register,
        stop: Stop,
        pauses: [Duration; 2],
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            target,
            folder,
            stop,
            pauses,
            register: Mutex::new(register),
            window: Mutex::default(),
            open: AtomicU64::new(0),
            delivered: AtomicU64::new(before.delivered),
            erased: AtomicU64::new(before.erased),
            up_to_date_at: AtomicI64::new(edge::now().unix_timestamp()),
            fault: Mutex::new(None),
            failure: Mutex::new(None),
        });
        let start = |number| {
            let (queue, events) = sync_channel(QUEUE_MAX);
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("deliver-{number}")).spawn(move || shared.work(&events))?;
            Ok(queue)
        };
        Ok(Self { queues: (0..count).map(start).collect::<anyhow::Result<_>>()?, shared })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Begins a span after this patient.
    pub(crate) fn start_span(&self, after: Option<PatientId>) {
        *lock(&self.shared.window) = Window::after(after);
    }

    /// Hands the next change of the span to its worker.
    pub(crate) fn write(&self, change: &Change) -> anyhow::Result<()> {
        let event = Event::new(self.shared.target.form(), change)?;
        if !event.is_erased {
            lock(&self.shared.window).open(event.id);
        }
        self.take(event)
    }

    /// Hands an event to its worker, and waits while that has enough.
    pub(crate) fn take(&self, mut event: Event) -> anyhow::Result<()> {
        let mut hasher = DefaultHasher::new();
        event.id.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % self.queues.len() as u64)?;
        self.shared.open.fetch_add(1, Ordering::SeqCst);
        while let Some(queue) = self.queues.get(place) {
            match queue.try_send(event) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(same)) => event = same,
                Err(TrySendError::Disconnected(_)) => break,
            }
            self.shared.expect_work()?;
            sleep(FULL_INTERVAL);
        }
        self.shared.expect_work()?;
        bail!("a worker has ended")
    }

    /// Returns whether every event is taken or refused; waits a moment where one is not.
    pub(crate) fn is_done(&self) -> anyhow::Result<bool> {
        self.shared.expect_work()?;
        let is_done = self.shared.open.load(Ordering::SeqCst) == 0;
        if !is_done {
            sleep(Duration::from_millis(1));
        }
        Ok(is_done)
    }
}

impl Shared {
    /// Patients that the target has taken.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Erasures that the target has taken.
    pub(crate) fn erased(&self) -> u64 {
        self.erased.load(Ordering::Relaxed)
    }

    /// Returns when the target had taken all that there was, or the delivery began, in seconds since 1970.
    pub(crate) fn up_to_date_at(&self) -> i64 {
        self.up_to_date_at.load(Ordering::Relaxed)
    }

    /// Notes that it has.
    pub(crate) fn note_up_to_date(&self, at: OffsetDateTime) {
        self.up_to_date_at.store(at.unix_timestamp(), Ordering::Relaxed);
    }

    /// Reason why the target takes nothing at present.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// The patient of the span up to whom everybody is taken or refused.
    pub(crate) fn after(&self) -> Option<PatientId> {
        lock(&self.window).settled_up_to()
    }

    fn expect_work(&self) -> anyhow::Result<()> {
        if let Some(failure) = lock(&self.failure).take() {
            return Err(failure);
        }
        if self.stop.is_asked() { Err(Stopped.into()) } else { Ok(()) }
    }

    fn work(&self, events: &Receiver<Event>) {
        for event in events {
            let id = event.id;
            match self.deliver(event) {
                Ok(()) => {
                    lock(&self.window).settle(id);
                    self.open.fetch_sub(1, Ordering::SeqCst)
                }
                Err(failure) => {
                    if !failure.is::<Stopped>() {
                        *lock(&self.failure) = Some(failure);
                    }
                    return;
                }
            };
        }
    }

    /// Returns when the event is taken or refused, or the patient is erased.
    fn deliver(&self, mut event: Event) -> anyhow::Result<()> {
        if event.is_erased {
            // At once, whatever the target does: nothing of the patient stays here.
            self.folder.forget(event.id)?;
        }
        let taken = || self.delivered() + self.erased();
        let [first_pause, pause_max] = self.pauses;
        let (mut attempts, mut pause, taken_before) = (0, first_pause, taken());
        loop {
            if event.is_stale() {
                // The erasure follows.
                let Some(patient) = self.read(event.id)? else { return Ok(()) };
                event = Event::new(self.target.form(), &Change::Stored(Box::new(patient)))?;
            }
            let (why, asked_pause) = match self.target.take(&event) {
                Ok(()) => {
                    let count = if event.is_erased { &self.erased } else { &self.delivered };
                    count.fetch_add(1, Ordering::Relaxed);
                    *lock(&self.fault) = None;
                    return Ok(());
                }
                Err(Fault::Refused(why)) => return self.folder.refuse(event, why),
                Err(Fault::Later(why, asked_pause)) => (why, asked_pause),
            };
            attempts += 1;
            if attempts >= ATTEMPTS_MAX && taken() > taken_before {
                return self.folder.refuse(event, why);
            }
            *lock(&self.fault) = Some(why);
            if self.stop.comes_within(varied(pause).max(asked_pause.unwrap_or_default().min(ASKED_PAUSE_MAX))) {
                return Err(Stopped.into());
            }
            pause = (pause * 2).min(pause_max);
        }
    }

    /// Reads a patient again, for as long as it takes. None: they were erased.
    fn read(&self, id: PatientId) -> anyhow::Result<Option<StoredPatient>> {
        match lock(&self.register).patient(id) {
            Err(FeedError::Store(StoreError::Unavailable(_))) if self.stop.is_asked() => Err(Stopped.into()),
            read => Ok(read?),
        }
    }
}

/// Between half of a pause and all of it, so that workers do not come at once.
fn varied(pause: Duration) -> Duration {
    let [random] = edge::random();
    pause.mul_f32(0.5 + f32::from(random) / 512.0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use intake_domain::FeedScope;
    use intake_infra::PostgresPatientFeed;

    use super::*;
    use crate::commands::deliver::target::Secrets;

    /// A clinic's program that fails for one patient, and takes all others.
    #[test]
    fn an_event_that_fails_again_and_again_is_refused_once_others_were_taken() {
        let [folder, inbox] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let address = inbox.path().to_str().unwrap().parse().unwrap();
        let target = Target::new(address, false, Secrets::default(), Duration::from_secs(1)).unwrap();
        let organisation_id = "01a1fced-567a-70c8-8fd6-60195f06c180".parse().unwrap();
        let scope = FeedScope { organisation_id, key_id: None };
        let feed = PostgresPatientFeed::new(&"postgres://127.0.0.1:1/none".parse().unwrap(), |_, _| false);
        let state = Folder::create(folder.path()).unwrap();
        let (before, pauses) = (Status::default(), [Duration::from_millis(1); 2]);
        let register = Register::new(feed, scope);
        let workers = Workers::start(4, target, state, &before, register, Stop::default(), pauses).unwrap();
        let erasure = |id| Event::again(id, true, String::new());
        let bad = PatientId::new(edge::now(), [7; 10]);
        // A folder cannot be removed as a file.
        std::fs::create_dir(inbox.path().join(format!("{bad}.json"))).unwrap();
        workers.take(erasure(bad)).unwrap();
        sleep(Duration::from_millis(100));
        assert_eq!(workers.shared().folder.refused().unwrap(), 0, "nothing was taken: the target may be away");
        let fault = workers.shared().fault();
        assert!(fault.is_some(), "{fault:?}");
        for number in 0..100 {
            workers.take(erasure(PatientId::new(edge::now(), [number; 10]))).unwrap();
        }
        while !workers.is_done().unwrap() {}
        assert_eq!((workers.shared().folder.refused().unwrap(), workers.shared().fault()), (1, None));
    }
}
