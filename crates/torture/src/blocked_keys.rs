//! API keys are paused, limited to other networks, suspended with their organisation, revoked and replaced, and they
//! expire, while clients use them on every service; in the end their organisation is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::{ApiKey, KeyFormat};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::access_history::{AccessHistory, Answer, Known, Reason};
use crate::audit::Findings;
use crate::clock::now;
use crate::operations::{Operations, PAUSE, text};
use crate::random::Random;
use crate::test_bed::INSTANCES;
use crate::traffic::Sender;

/// The random stream of what is done; those of the clients that use the keys follow.
const STREAM: u64 = 11_000;
/// Changes in the life of an organisation.
const CHANGES: usize = 10;
/// Between two changes, in milliseconds.
const BETWEEN: (u64, u64) = (50, 300);
/// Between two uses of the keys on a service.
const USE: Duration = Duration::from_millis(10);
/// Time for which a key that expires is valid.
const VALID: Duration = Duration::from_millis(1_500);
/// The network to which a key is limited, in which no client is.
const ELSEWHERE: &str = "203.0.113.7";

/// An organisation from its beginning to its end.
struct Clinic<'a> {
    operations: &'a Operations<'a>,
    organisation: Uuid,
    keys: Mutex<Vec<Key>>,
}

struct Key {
    id: String,
    key: ApiKey,
    history: AccessHistory,
}

impl Operations<'_> {
    /// Blocks keys and lets them work again, until all faults are over.
    pub(crate) fn block_keys(&self) -> anyhow::Result<Findings> {
        let mut random = Random::new(self.seed, STREAM);
        let mut found = Findings::default();
        while !self.is_over() {
            let made = self.made(&["organisation", "create", "--name", "Short-lived"])?;
            let organisation = text(&made, "id")?.parse()?;
            let clinic = Clinic { operations: self, organisation, keys: Mutex::default() };
            clinic.live(&mut random, &mut found)?;
            clinic.keys().iter().for_each(|key| key.history.judge("a key", &mut found));
        }
        Ok(found)
    }
}

impl Clinic<'_> {
    fn live(&self, random: &mut Random, found: &mut Findings) -> anyhow::Result<()> {
        self.make_key(None)?;
        self.make_key(None)?;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (instance, stream) in (0..INSTANCES).zip(STREAM + 1..) {
                let is_over = &is_over;
                scope.spawn(move || self.use_keys(instance, stream, is_over));
            }
            let lived = self.change_and_close(random, found);
            is_over.store(true, Ordering::SeqCst);
            lived
        })
    }

    fn change_and_close(&self, random: &mut Random, found: &mut Findings) -> anyhow::Result<()> {
        for _ in 0..CHANGES {
            if self.operations.is_over() {
                break;
            }
            self.change(random, found)?;
            std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        }
        let organisation = self.organisation.to_string();
        self.carry_out(None, Reason::Ended, Known::Blocked, &["organisation", "close", &organisation, "--yes"])?;
        std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        Ok(())
    }

    fn change(&self, random: &mut Random, found: &mut Findings) -> anyhow::Result<()> {
        let organisation = self.organisation.to_string();
        let going_on = |(_, key): &(usize, &Key)| key.history.present(Reason::Ended) == Known::Free;
        let (index, id, present, is_free) = {
            let keys = self.keys();
            let all: Vec<_> = keys.iter().enumerate().filter(going_on).collect();
            let choice = usize::try_from(random.below(all.len() as u64))?;
            let Some((index, key)) = all.get(choice) else { return Ok(()) };
            let present = [Reason::Paused, Reason::Elsewhere, Reason::Suspended].map(|one| key.history.present(one));
            (*index, key.id.clone(), present.map(|known| known == Known::Blocked), key.history.is_free())
        };
        let becomes = |is_blocked: bool| if is_blocked { Known::Free } else { Known::Blocked };
        let [is_paused, is_elsewhere, is_suspended] = present;
        let keeps_time = self.operations.bed.keeps_time;
        match random.below(9) {
            0..2 => {
                let arguments = ["key", if is_paused { "resume" } else { "pause" }, &id];
                self.carry_out(Some(index), Reason::Paused, becomes(is_paused), &arguments)
            }
            2..4 => {
                let arguments = ["key", "networks", &id, "--allow", if is_elsewhere { "any" } else { ELSEWHERE }];
                self.carry_out(Some(index), Reason::Elsewhere, becomes(is_elsewhere), &arguments)
            }
            4..6 => {
                let arguments = ["organisation", if is_suspended { "resume" } else { "suspend" }, &organisation];
                self.carry_out(None, Reason::Suspended, becomes(is_suspended), &arguments)
            }
            6 => self.carry_out(Some(index), Reason::Ended, Known::Blocked, &["key", "revoke", &id]),
            // These ends are times of the database's clock.
            7 if is_free && keeps_time => self.replace(index, &id, found),
            // A suspended organisation gets no key.
            8 if !is_suspended && keeps_time => self.make_key(Some(VALID)).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Blocks a key or lets it work again; without one, all keys.
    fn carry_out(
        &self,
        index: Option<usize>,
        reason: Reason,
        becomes: Known,
        arguments: &[&str],
    ) -> anyhow::Result<()> {
        self.note(index, reason, Known::Changing);
        self.operations.until_done(&arguments.join(" "), || self.operations.command(arguments))?;
        self.note(index, reason, becomes);
        Ok(())
    }

    /// Replaces a key, and waits until the use of the next one has ended it.
    fn replace(&self, index: usize, id: &str, found: &mut Findings) -> anyhow::Result<()> {
        self.note(Some(index), Reason::Ended, Known::Changing);
        let next = self.add(&["key", "replace", id, "--ends-after", "now"], None)?;
        let mut sender = Sender::new(self.operations.traffic, STREAM);
        let mut gives_up = None;
        // What a service that is killed had not written is written at the next use.
        loop {
            self.send(&mut sender, 0, next);
            let answers = (0..INSTANCES).map(|instance| self.send(&mut sender, instance, index));
            if answers.collect::<Vec<_>>().iter().all(|status| *status == Some(401)) {
                break;
            }
            if self.operations.is_over() {
                let gives_up = gives_up.get_or_insert_with(|| Instant::now() + self.operations.traffic.patience());
                if Instant::now() > *gives_up {
                    found.is_wrong("a replaced key does not end");
                    return Ok(());
                }
            }
            std::thread::sleep(PAUSE);
        }
        self.note(Some(index), Reason::Ended, Known::Blocked);
        Ok(())
    }

    fn make_key(&self, valid: Option<Duration>) -> anyhow::Result<usize> {
        let organisation = self.organisation.to_string();
        let arguments = ["key", "create", "--organisation", &organisation, "--name", "Short-lived"];
        let Some(valid) = valid else { return self.add(&arguments, None) };
        let (end, at) = (Instant::now() + valid, now() + valid);
        self.add(&[&arguments[..], &["--expires", &at.format(&Rfc3339)?]].concat(), Some(end))
    }

    /// Adds the key that a command makes.
    fn add(&self, arguments: &[&str], end: Option<Instant>) -> anyhow::Result<usize> {
        let made = self.operations.made(arguments)?;
        let format = KeyFormat::new(&"intake".parse()?, self.operations.bed.environment);
        let key = format.parse(text(&made, "key")?)?;
        let mut history = AccessHistory::default();
        if let Some(end) = end {
            history.change(Reason::Ended, Known::Changing, Instant::now());
            history.change(Reason::Ended, Known::Blocked, end);
        }
        let mut keys = self.keys();
        keys.push(Key { id: text(&made, "id")?.to_owned(), key, history });
        Ok(keys.len() - 1)
    }

    /// Uses random keys on a service.
    fn use_keys(&self, instance: usize, stream: u64, is_over: &AtomicBool) {
        let mut random = Random::new(self.operations.seed, stream);
        let mut sender = Sender::new(self.operations.traffic, stream);
        while !is_over.load(Ordering::SeqCst) {
            let count = self.keys().len() as u64;
            self.send(&mut sender, instance, usize::try_from(random.below(count)).unwrap_or_default());
            std::thread::sleep(USE);
        }
    }

    /// Sends a patient with a key, and notes the answer. Returns the status; none: the outcome is open.
    fn send(&self, sender: &mut Sender<'_>, instance: usize, index: usize) -> Option<u16> {
        let key = self.keys().get(index)?.key.clone();
        let asked = Instant::now();
        let status = sender.send_with_ending_key(self.organisation, &key, instance)?;
        // A refusal needs no commit.
        if status == 401 && self.operations.bed.may_be_stale(asked) {
            return None;
        }
        self.keys().get_mut(index)?.history.answer(Answer { asked, answered: Instant::now(), status });
        Some(status)
    }

    fn note(&self, index: Option<usize>, reason: Reason, known: Known) {
        let at = Instant::now();
        let mut keys = self.keys();
        let chosen = keys.iter_mut().enumerate().filter(|(of, _)| index.is_none_or(|index| index == *of));
        chosen.for_each(|(_, key)| key.history.change(reason, known, at));
    }

    fn keys(&self) -> MutexGuard<'_, Vec<Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
