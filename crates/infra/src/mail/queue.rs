//! The mails that wait for the mail server. Organisations take turns, and each has a limited number of places, so that
//! none can delay or crowd out the mails of another.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::{Mail, OrganisationId};
use uuid::Uuid;

use crate::metrics::{MAILS_DROPPED, MAILS_WAITING};

/// Mails of one organisation that wait: news for every member of a large one.
const OF_ONE_MAX: usize = 500;
/// Mails of all organisations that wait: a few megabytes.
const OF_ALL_MAX: usize = 5_000;
/// How long news waits for more of its kind.
const BURST: Duration = Duration::from_secs(60);
/// Paragraphs of news in one mail.
const PARAGRAPHS_MAX: usize = 50;
/// Between two lines of the log about dropped mails.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A mail that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) mail: Mail,
    /// The `Message-ID`, which is the same for each attempt.
    pub(super) id: Uuid,
    pub(super) since: Instant,
    pub(super) pause: Duration,
    pub(super) due_at: Instant,
    pub(super) paragraphs: usize,
    /// Whether it waits for more of its kind.
    pub(super) is_gathering: bool,
}

impl Waiting {
    pub(super) fn new(mail: Mail, id: Uuid, pause: Duration, now: Instant) -> Self {
        let is_gathering = mail.subject_of_many.is_some() && !mail.is_urgent;
        let due_at = if is_gathering { now + BURST } else { now };
        Self { mail, id, since: now, pause, due_at, paragraphs: 1, is_gathering }
    }

    /// Adds a mail of the same burst. Returns it if it is of another one.
    fn merge(&mut self, later: Mail) -> Option<Mail> {
        let mail = &mut self.mail;
        let is_same = mail.subject_of_many.is_some()
            && (&mail.organisation, &mail.to, &mail.subject_of_many)
                == (&later.organisation, &later.to, &later.subject_of_many);
        if !is_same || !self.is_gathering {
            return Some(later);
        }
        self.paragraphs += 1;
        mail.subject = later.subject_of_many.unwrap_or(later.subject);
        match self.paragraphs {
            ..=PARAGRAPHS_MAX => mail.text = format!("{}\n\n{}", mail.text, later.text),
            paragraphs if paragraphs == PARAGRAPHS_MAX + 1 => mail.text += "\n\nThere was more of the kind.",
            _ => {}
        }
        None
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    /// When each organisation had its last turn, counted in turns.
    last_turns: HashMap<OrganisationId, u64>,
    turns: u64,
    /// When the last urgent mail of a kind is due: organisation, person and subject.
    urgent: HashMap<(OrganisationId, String, String), Instant>,
    dropped: u64,
    reported_at: Option<Instant>,
    /// No mail is waited for any more: those that are there are taken at once, each for the last time.
    is_closed: bool,
    /// The thread that took them has ended.
    is_done: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct MailQueue {
    state: Mutex<State>,
    changed: Condvar,
}

impl MailQueue {
    /// Adds a mail, unless its organisation, or all of them, have too many.
    pub(super) fn add(&self, waiting: Waiting) {
        self.lock().add(waiting);
        self.changed.notify_one();
    }

    /// Waits for a mail that is due, and takes it. None: the queue was closed, and is empty.
    pub(super) fn take(&self) -> Option<Waiting> {
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
    fn add(&mut self, mut waiting: Waiting) {
        if self.is_closed {
            self.dropped += 1;
            return MAILS_DROPPED.add_one();
        }
        for earlier in &mut self.waiting {
            match earlier.merge(waiting.mail) {
                Some(mail) => waiting.mail = mail,
                None => return,
            }
        }
        let own = self.waiting.iter().filter(|other| other.mail.organisation == waiting.mail.organisation).count();
        if own >= OF_ONE_MAX || self.waiting.len() >= OF_ALL_MAX {
            self.dropped += 1;
            return MAILS_DROPPED.add_one();
        }
        self.delay_after_another(&mut waiting);
        self.waiting.push(waiting);
        MAILS_WAITING.add(1);
    }

    /// Lets an urgent mail wait for more of its kind, if one was due less than a minute ago.
    fn delay_after_another(&mut self, waiting: &mut Waiting) {
        let now = waiting.since;
        if waiting.due_at > now {
            // It waits for more already, or for another try.
            return;
        }
        self.urgent.retain(|_, due_at| now < *due_at + BURST);
        let Mail { organisation, to, subject_of_many: Some(subject), is_urgent: true, .. } = &waiting.mail else {
            return;
        };
        let kind = (*organisation, to.to_string(), subject.clone());
        if let Some(earlier) = self.urgent.get(&kind) {
            waiting.due_at = *earlier + BURST;
            waiting.is_gathering = true;
        }
        self.urgent.insert(kind, waiting.due_at);
    }

    /// Takes the mail that is due first, of the organisation whose last turn was longest ago.
    fn take(&mut self, now: Instant) -> Option<Waiting> {
        let due = self.waiting.iter().enumerate().filter(|(_, waiting)| self.is_closed || waiting.due_at <= now);
        let turn = |waiting: &Waiting| self.last_turns.get(&waiting.mail.organisation).copied().unwrap_or_default();
        let (index, _) = due.min_by_key(|(_, waiting)| (turn(waiting), waiting.due_at))?;
        let taken = self.waiting.remove(index);
        MAILS_WAITING.subtract(1);
        self.turns += 1;
        self.last_turns.insert(taken.mail.organisation, self.turns);
        let waiting = &self.waiting;
        self.last_turns.retain(|organisation, _| waiting.iter().any(|other| other.mail.organisation == *organisation));
        Some(taken)
    }

    /// Logs the mails that were dropped, once a minute.
    fn report(&mut self, now: Instant) {
        if self.dropped == 0 || self.reported_at.is_some_and(|at| now < at + REPORT_INTERVAL) {
            return;
        }
        let dropped = std::mem::take(&mut self.dropped);
        tracing::error!(dropped, "mails were dropped: too many are waiting for the mail server");
        self.reported_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn organisation(number: u8) -> OrganisationId {
        Uuid::from_bytes([number; 16]).into()
    }

    fn mail(by: u8, to: &str, subject_of_many: Option<&str>) -> Mail {
        Mail {
            organisation: organisation(by),
            to: to.parse().unwrap(),
            subject: "One".to_owned(),
            text: format!("to {to}"),
            footer: String::new(),
            subject_of_many: subject_of_many.map(str::to_owned),
            is_urgent: false,
        }
    }

    fn add(state: &mut State, mail: Mail, now: Instant) {
        state.add(Waiting::new(mail, Uuid::nil(), Duration::ZERO, now));
    }

    #[test]
    fn organisations_take_turns() {
        let (mut state, now) = (State::default(), Instant::now());
        for _ in 0..3 {
            add(&mut state, mail(1, "a@b.example", None), now);
        }
        add(&mut state, mail(2, "a@b.example", None), now + Duration::from_millis(1));
        let later = now + Duration::from_secs(1);
        let order: Vec<_> = std::iter::from_fn(|| state.take(later)).map(|taken| taken.mail.organisation).collect();
        assert_eq!(order, [1, 2, 1, 1].map(organisation));
    }

    #[test]
    fn an_organisation_with_too_many_mails_drops_its_own_alone() {
        let (mut state, now) = (State::default(), Instant::now());
        for _ in 0..OF_ONE_MAX + 3 {
            add(&mut state, mail(1, "a@b.example", None), now);
        }
        add(&mut state, mail(2, "a@b.example", None), now);
        assert_eq!((state.waiting.len(), state.dropped), (OF_ONE_MAX + 1, 3));
    }

    #[test]
    fn closing_the_queue_ends_the_wait_and_takes_no_more() {
        let (queue, now) = (MailQueue::default(), Instant::now());
        let add = |to: &str| queue.add(Waiting::new(mail(1, to, Some("Many")), Uuid::nil(), Duration::ZERO, now));
        add("a@b.example");
        add("c@b.example");
        queue.close();
        add("late@b.example");
        let taken: Vec<_> = std::iter::from_fn(|| queue.take()).map(|taken| taken.mail.to.to_string()).collect();
        assert_eq!(taken, ["a@b.example", "c@b.example"]);
        assert_eq!(queue.wait_until_done(Duration::from_millis(1)), 1, "it may still be sending one");
        queue.end();
        assert_eq!(queue.wait_until_done(Duration::from_secs(60)), 0);
    }

    #[test]
    fn urgent_news_is_sent_at_once_and_what_follows_within_a_minute_is_one_mail() {
        let (mut state, now) = (State::default(), Instant::now());
        let urgent = |subject: &str| Mail { is_urgent: true, ..mail(1, "a@b.example", Some(subject)) };
        for later in [0, 1, 59] {
            add(&mut state, urgent("Many"), now + Duration::from_secs(later));
        }
        add(&mut state, urgent("Others"), now);
        let subjects = |state: &mut State, at| {
            let taken: Vec<_> = std::iter::from_fn(|| state.take(at)).collect();
            taken.into_iter().map(|taken| (taken.mail.subject, taken.paragraphs)).collect::<Vec<_>>()
        };
        let (one, many) = (|| ("One".to_owned(), 1), ("Many".to_owned(), 2));
        assert_eq!(subjects(&mut state, now + Duration::from_secs(59)), [one(), one()]);
        assert_eq!(subjects(&mut state, now + BURST), [many]);
        add(&mut state, urgent("Many"), now + BURST + Duration::from_secs(1));
        assert!(subjects(&mut state, now + BURST + Duration::from_secs(2)).is_empty(), "one a minute");
        assert_eq!(subjects(&mut state, now + BURST * 2), [one()]);
        add(&mut state, urgent("Many"), now + BURST * 3);
        assert_eq!(subjects(&mut state, now + BURST * 3), [one()], "another burst");
    }

    #[test]
    fn news_of_a_minute_is_one_mail() {
        let (mut state, now) = (State::default(), Instant::now());
        for _ in 0..PARAGRAPHS_MAX + 10 {
            add(&mut state, mail(1, "a@b.example", Some("Many")), now);
        }
        add(&mut state, mail(1, "c@b.example", Some("Many")), now);
        add(&mut state, mail(2, "a@b.example", Some("Many")), now);
        add(&mut state, mail(1, "a@b.example", Some("Others")), now);
        assert_eq!(state.waiting.len(), 4, "another receiver, organisation or kind");
        assert!(state.take(now + BURST / 2).is_none());
        let sent = state.take(now + BURST).unwrap().mail;
        assert_eq!((sent.subject.as_str(), sent.text.matches("to a@b.example").count()), ("Many", PARAGRAPHS_MAX));
        assert!(sent.text.ends_with("There was more of the kind."), "{}", sent.text);
    }
}
