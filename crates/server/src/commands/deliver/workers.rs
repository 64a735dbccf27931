//! Several deliveries at a time. An event that fails is kept in the folder and tried again later, and the feed
//! continues without it. Each patient is read right before they are sent, so that no erased patient is.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use intake_domain::{Change, FeedError, PatientId, StoreError, StoredPatient};

use crate::commands::deliver::event::Event;
use crate::commands::deliver::figures::Figures;
use crate::commands::deliver::folder::{Folder, Status};
use crate::commands::deliver::lock::lock;
use crate::commands::deliver::pauses::{ASKED_PAUSE_MAX, pause_after};
use crate::commands::deliver::queue::{Queue, Task};
use crate::commands::deliver::register::Register;
use crate::commands::deliver::target::{Fault, Target};
use crate::commands::deliver::window::Window;
use crate::export::Stop;

/// Between two looks if there is room, or everything is settled.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Failures while others were taken, after which an event is refused: some eight minutes.
const OWN_FAILURES_MAX: u32 = 15;
/// Failures in a row after which the target is reported to take nothing.
const FAULT_MIN: u32 = 3;
/// Failures in a row, and events that failed, from which on the target counts as away and is asked less often.
const AWAY_MIN: u32 = 8;

/// The delivery was asked to stop. What was not taken is delivered by the next run.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

pub(crate) struct Workers {
    shared: Arc<Shared>,
}

/// State of all workers.
pub(crate) struct Shared {
    target: Target,
    pub(crate) folder: Folder,
    stop: Stop,
    pauses: [Duration; 2],
    pub(crate) register: Register,
    pub(crate) figures: Figures,
    queue: Queue,
    window: Mutex<Window>,
    /// Failures since the target took something.
    failures: AtomicU32,
    fault: Mutex<Option<String>>,
    /// Reason why the folder cannot be written.
    failure: Mutex<Option<anyhow::Error>>,
}

/// Result of an attempt.
enum Outcome {
    /// The event was taken or refused, or the patient is erased.
    Settled,
    /// Reason, and time of the next attempt.
    Failed(String, Instant),
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
            register,
            figures: Figures::new(before),
            queue: Queue::new(count.into()),
            window: Mutex::default(),
            failures: AtomicU32::new(0),
            fault: Mutex::new(None),
            failure: Mutex::new(None),
        });
        for number in 0..count {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("deliver-{number}")).spawn(move || shared.work())?;
        }
        Ok(Self { shared })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Begins a span after this patient.
    pub(crate) fn start_span(&self, after: Option<PatientId>) {
        *lock(&self.shared.window) = Window::after(after);
    }

    /// Hands the next change of the span to the workers. Only after [`Self::has_room`].
    pub(crate) fn write(&self, change: &Change) {
        let event = Event::new(self.shared.target.form(), change);
        if !event.is_erased {
            lock(&self.shared.window).open(event.id);
        }
        self.shared.queue.push(event);
    }

    /// Returns whether the workers can have another change; waits a moment where they cannot.
    pub(crate) fn has_room(&self) -> anyhow::Result<bool> {
        self.wait_unless(Queue::has_room)
    }

    /// Returns whether every change is taken, refused or kept; waits a moment where one is not.
    pub(crate) fn is_settled(&self) -> anyhow::Result<bool> {
        self.wait_unless(Queue::is_settled)
    }

    fn wait_unless(&self, is_so: impl Fn(&Queue) -> bool) -> anyhow::Result<bool> {
        if let Some(failure) = lock(&self.shared.failure).take() {
            return Err(failure);
        }
        if self.shared.stop.is_asked() {
            return Err(Stopped.into());
        }
        let is_so = is_so(&self.shared.queue);
        if !is_so {
            sleep(LOOK_INTERVAL);
        }
        Ok(is_so)
    }

    /// Tries kept events again, those of an earlier run and those that an operator has asked for.
    pub(crate) fn take_kept(&self) -> anyhow::Result<()> {
        let queue = &self.shared.queue;
        queue.add_kept(self.shared.folder.again(|id| queue.wants(id))?);
        Ok(())
    }
}

impl Shared {
    /// Reason why the target takes nothing at present.
    pub(crate) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// The patient of the span up to whom everybody is taken, refused or kept.
    pub(crate) fn after(&self) -> Option<PatientId> {
        lock(&self.window).settled_up_to()
    }

    fn work(&self) {
        while let Some(task) = self.queue.next(&self.stop) {
            if let Err(failure) = self.deliver(task) {
                if !failure.is::<Stopped>() {
                    *lock(&self.failure) = Some(failure);
                }
                return;
            }
        }
    }

    /// Tries an event. When this has returned, the event is settled or kept.
    fn deliver(&self, mut task: Task) -> anyhow::Result<()> {
        let (id, is_of_window) = (task.event.id, !task.is_kept && !task.event.is_erased);
        let failed = match self.attempt(&mut task)? {
            Outcome::Settled => None,
            Outcome::Failed(why, due) => Some((why, due)),
        };
        match &failed {
            Some((why, _)) if !task.is_kept => self.folder.keep(&task.event, why.clone())?,
            None if task.is_kept => self.folder.settle(&task.event)?,
            _ => {}
        }
        if is_of_window {
            lock(&self.window).settle(id);
        }
        match failed {
            Some((_, due)) => self.put_back(Task { is_kept: true, due, ..task }),
            None => self.queue.done(id),
        }
        Ok(())
    }

    fn attempt(&self, task: &mut Task) -> anyhow::Result<Outcome> {
        let id = task.event.id;
        let patient = if task.event.is_erased {
            // At once, whatever the target does: nothing of the patient stays here.
            self.folder.forget(id)?;
            self.queue.forget(id);
            None
        } else {
            // The erasure follows.
            let Some(patient) = self.read(id)? else { return Ok(Outcome::Settled) };
            Some(Event::of_patient(self.target.form(), &patient)?)
        };
        if task.failures == 0 {
            task.taken_before = self.figures.taken();
        }
        let asked = Instant::now();
        let taken = self.target.take(patient.as_ref().unwrap_or(&task.event));
        self.figures.note_answer(asked.elapsed());
        match taken {
            Ok(()) => Ok(self.taken_now(task)),
            Err(Fault::Refused(why)) => {
                self.folder.refuse(&task.event, why)?;
                Ok(Outcome::Settled)
            }
            Err(Fault::Later(why, asked_pause)) => self.later(task, why, asked_pause),
            Err(Fault::Busy(why, pause)) => {
                self.queue.be_quiet_until(Instant::now() + pause.min(ASKED_PAUSE_MAX));
                *lock(&self.fault) = Some(why.clone());
                Ok(Outcome::Failed(why, Instant::now()))
            }
        }
    }

    /// Decides if an erasure that was taken must be sent once more, because the patient may be stored after it.
    fn taken_now(&self, task: &mut Task) -> Outcome {
        *lock(&self.fault) = None;
        if self.failures.swap(0, Ordering::Relaxed) >= AWAY_MIN {
            self.queue.end_quiet();
        }
        if let (true, false, Some(due)) = (task.event.is_erased, task.is_repeat, self.target.late_until()) {
            task.is_repeat = true;
            return Outcome::Failed("taken, but an earlier request may still be carried out".to_owned(), due);
        }
        self.figures.note_taken(task.event.is_erased);
        Outcome::Settled
    }

    /// Decides on an event that failed by what the target made of others.
    fn later(&self, task: &mut Task, why: String, asked_pause: Option<Duration>) -> anyhow::Result<Outcome> {
        let taken = self.figures.taken();
        task.failures += 1;
        if taken > task.taken_before {
            task.own_failures += 1;
        } else if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= FAULT_MIN {
            *lock(&self.fault) = Some(why.clone());
        }
        task.taken_before = taken;
        if task.own_failures >= OWN_FAILURES_MAX {
            self.folder.refuse(&task.event, why)?;
            return Ok(Outcome::Settled);
        }
        let pause = pause_after(task.failures, self.pauses).max(asked_pause.unwrap_or_default().min(ASKED_PAUSE_MAX));
        Ok(Outcome::Failed(why, Instant::now() + pause))
    }

    fn put_back(&self, task: Task) {
        let failed = self.queue.put_back(task);
        let failures = self.failures.load(Ordering::Relaxed);
        if failures >= AWAY_MIN && failed >= AWAY_MIN as usize {
            self.queue.be_quiet_until(Instant::now() + pause_after(failures / AWAY_MIN, self.pauses));
        }
    }

    /// Reads a patient, for as long as it takes. None: they were erased.
    fn read(&self, id: PatientId) -> anyhow::Result<Option<StoredPatient>> {
        match self.register.patient(id) {
            Err(FeedError::Store(StoreError::Unavailable(_))) if self.stop.is_asked() => Err(Stopped.into()),
            read => Ok(read?),
        }
    }
}

#[cfg(test)]
mod tests {
    use intake_domain::FeedScope;
    use intake_edge as edge;
    use intake_infra::PostgresPatientFeed;

    use super::*;
    use crate::commands::deliver::secrets::SecretFiles;

    /// A clinic's program that fails for one patient, and takes all others.
    #[test]
    fn an_event_that_fails_again_and_again_is_refused_once_others_were_taken() {
        let [folder, inbox] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let address = inbox.path().to_str().unwrap().parse().unwrap();
        let target = Target::new(address, false, SecretFiles::default(), Duration::from_secs(1)).unwrap();
        let organisation_id = "01a1fced-567a-70c8-8fd6-60195f06c180".parse().unwrap();
        let scope = FeedScope { organisation_id, key_id: None };
        let feed = PostgresPatientFeed::new(&"postgres://127.0.0.1:1/none".parse().unwrap(), |_, _| false);
        let state = Folder::create(folder.path()).unwrap();
        let (before, pauses) = (Status::default(), [Duration::from_millis(1); 2]);
        let register = Register::new(feed, scope);
        let workers = Workers::start(4, target, state, &before, register, Stop::default(), pauses).unwrap();
        let erasure = |id| Event { id, is_erased: true, body: String::new() };
        let bad = PatientId::new(edge::now(), [7; 10]);
        // A folder cannot be removed as a file.
        std::fs::create_dir(inbox.path().join(format!("{bad}.json"))).unwrap();
        let shared = workers.shared();
        shared.queue.push(erasure(bad));
        sleep(Duration::from_millis(100));
        assert_eq!(shared.folder.refused().unwrap(), 0, "nothing was taken: the target may be away");
        let fault = shared.fault();
        assert!(fault.is_some(), "{fault:?}");
        for number in 0..100 {
            shared.queue.push(erasure(PatientId::new(edge::now(), [number; 10])));
            while !workers.is_settled().unwrap() {}
            sleep(Duration::from_millis(5));
        }
        assert_eq!((shared.folder.refused().unwrap(), shared.folder.waiting().unwrap(), shared.fault()), (1, 0, None));
    }
}
