//! The mails that wait for the mail server, each until it is due. An organisation has a limited number of places, so
//! that none can crowd out the mails of another.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::Mail;
use uuid::Uuid;

use crate::metrics::{MAILS_DROPPED, MAILS_WAITING};

/// Mails of one organisation that wait: news for every member of a large one.
const OF_ONE_MAX: usize = 500;
/// Mails of all organisations that wait: a few megabytes.
const OF_ALL_MAX: usize = 5_000;
/// Between two lines of the log about dropped mails.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A mail that waits for the mail server.
#[derive(Debug)]
pub(super) struct QueuedMail {
    pub(super) mail: Mail,
    /// The `Message-ID`, which is the same for each attempt.
    pub(super) id: Uuid,
    pub(super) since: Instant,
    pub(super) pause: Duration,
    pub(super) due_at: Instant,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<QueuedMail>,
    dropped: u64,
    reported_at: Option<Instant>,
    /// No mail is waited for any more: those that are there are taken at once, each for the last time.
    is_closed: bool,
    /// The thread that took them has ended.
    is_done: bool,
}

#[derive(Debug, Default)]
pub(super) struct MailQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl MailQueue {
    /// Adds a mail, unless its organisation, or all of them, have too many.
    pub(super) fn add(&self, waiting: QueuedMail) {
        self.lock().add(waiting);
        self.changed.notify_one();
    }

    /// Waits for a mail that is due, and takes it. None: the queue was closed, and is empty.
    pub(super) fn take(&self) -> Option<QueuedMail> {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            state.report(now);
            if let Some(waiting) = state.take(now) {
                return Some(waiting);
            }
            if state.is_closed {
                return None;
            }
            let due_at = state.waiting.iter().map(|waiting| waiting.due_at).min();
            let pause = due_at.map_or(REPORT_INTERVAL, |due_at| due_at.saturating_duration_since(now));
            let waited = self.changed.wait_timeout(state, pause.min(REPORT_INTERVAL));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the waiting for mails.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Marks the end of the thread that takes mails.
    pub(super) fn end(&self) {
        self.lock().is_done = true;
        self.changed.notify_all();
    }

    /// Waits for that, but no longer than this. Returns how many are left.
    pub(super) fn wait_until_done(&self, limit: Duration) -> usize {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !state.is_done);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.waiting.len() + usize::from(!state.is_done)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, waiting: QueuedMail) {
        let own = self.waiting.iter().filter(|other| other.mail.organisation == waiting.mail.organisation).count();
        if self.is_closed || own >= OF_ONE_MAX || self.waiting.len() >= OF_ALL_MAX {
            self.dropped += 1;
            return MAILS_DROPPED.add_one();
        }
        self.waiting.push(waiting);
        MAILS_WAITING.add(1);
    }

    /// Takes the mail that is due first.
    fn take(&mut self, now: Instant) -> Option<QueuedMail> {
        let due = self.waiting.iter().enumerate().filter(|(_, waiting)| self.is_closed || waiting.due_at <= now);
        let (index, _) = due.min_by_key(|(_, waiting)| waiting.due_at)?;
        MAILS_WAITING.subtract(1);
        Some(self.waiting.remove(index))
    }

    /// Logs the mails that were dropped, once a minute.
    fn report(&mut self, now: Instant) {
        if self.dropped == 0 || self.reported_at.is_some_and(|at| now < at + REPORT_INTERVAL) {
            return;
        }
        let dropped = std::mem::take(&mut self.dropped);
        tracing::error!(dropped, "emails were dropped: too many are waiting for the mail server");
        self.reported_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An email of an organisation, and when it is due.
    fn waiting(by: u8, to: &str, due_at: Instant) -> QueuedMail {
        let organisation = Uuid::from_bytes([by; 16]).into();
        let [subject, text, footer] = [const { String::new() }; 3];
        let mail = Mail { organisation, to: to.parse().unwrap(), subject, text, footer };
        QueuedMail { mail, id: Uuid::nil(), since: due_at, pause: Duration::ZERO, due_at }
    }

    fn receivers(taken: impl Iterator<Item = QueuedMail>) -> Vec<String> {
        taken.map(|taken| taken.mail.to.to_string()).collect()
    }

    #[test]
    fn mails_are_taken_in_the_order_in_which_they_are_due() {
        let (mut state, now) = (State::default(), Instant::now());
        let second = Duration::from_secs(1);
        for (to, due_at) in [("again@b.example", now + second), ("a@b.example", now), ("c@b.example", now)] {
            state.add(waiting(1, to, due_at));
        }
        assert_eq!(receivers(std::iter::from_fn(|| state.take(now))), ["a@b.example", "c@b.example"]);
        assert_eq!(receivers(std::iter::from_fn(|| state.take(now + second))), ["again@b.example"]);
    }

    #[test]
    fn an_organisation_with_too_many_mails_drops_its_own_alone() {
        let (mut state, now) = (State::default(), Instant::now());
        for _ in 0..OF_ONE_MAX + 3 {
            state.add(waiting(1, "a@b.example", now));
        }
        state.add(waiting(2, "a@b.example", now));
        assert_eq!((state.waiting.len(), state.dropped), (OF_ONE_MAX + 1, 3));
    }

    #[test]
    fn closing_the_queue_ends_the_wait_and_takes_no_more() {
        let (queue, now) = (MailQueue::default(), Instant::now());
        let add = |to: &str| queue.add(waiting(1, to, now + Duration::from_secs(60)));
        add("a@b.example");
        add("c@b.example");
        queue.close();
        add("late@b.example");
        assert_eq!(receivers(std::iter::from_fn(|| queue.take())), ["a@b.example", "c@b.example"]);
        assert_eq!(queue.wait_until_done(Duration::from_millis(1)), 1, "it may still be sending one");
        queue.end();
        assert_eq!(queue.wait_until_done(Duration::from_secs(60)), 0);
    }
}
