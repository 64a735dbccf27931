//! The history of an API key, or of a member: since when each reason to refuse requests certainly held or did not, and
//! what they were answered. An answer is wrong only if no moment of its request allows it.

use std::time::Instant;

use crate::audit::Findings;

/// A reason to refuse a key or a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was revoked, it has expired, its replacement is in use, or its organisation is closed; or the member lost the
    /// role, the session or the membership.
    Ended,
    Paused,
    /// It is accepted from another network only.
    Elsewhere,
    /// Its organisation is suspended.
    Suspended,
}

/// Knowledge of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Free,
    Blocked,
    /// A change has begun, and may have taken effect.
    Changing,
}

/// Everything that is known of a key, or of a member.
#[derive(Debug, Default)]
pub(crate) struct AccessHistory {
    changes: Vec<(Reason, Known, Instant)>,
    answers: Vec<Answer>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
    pub(crate) status: u16,
}

impl Reason {
    const ALL: [Self; 4] = [Self::Ended, Self::Paused, Self::Elsewhere, Self::Suspended];
}

impl AccessHistory {
    /// Adds what is known of a reason from this moment on.
    pub(crate) fn change(&mut self, reason: Reason, known: Known, at: Instant) {
        self.changes.push((reason, known, at));
    }

    pub(crate) fn answer(&mut self, answer: Answer) {
        self.answers.push(answer);
    }

    /// Returns what is known of a reason at present.
    pub(crate) fn present(&self, reason: Reason) -> Known {
        let now = Instant::now();
        self.between(reason, now, now)
    }

    pub(crate) fn is_free(&self) -> bool {
        Reason::ALL.into_iter().all(|reason| self.present(reason) == Known::Free)
    }

    /// Adds each answer that must never come.
    pub(crate) fn judge(&self, what: &str, found: &mut Findings) {
        for Answer { asked, answered, status } in &self.answers {
            let known = |reason| self.between(reason, *asked, *answered);
            let blocked = Reason::ALL.into_iter().find(|reason| known(*reason) == Known::Blocked);
            match (status, blocked) {
                (201, Some(reason)) => {
                    found.is_admitted(format!("{what} was accepted that was {reason:?} before the request began"));
                }
                (401, None) if Reason::ALL.into_iter().all(|reason| known(reason) == Known::Free) => {
                    found.is_wrong(format!("{what} was refused that nothing blocked"));
                }
                _ => {}
            }
        }
    }

    /// Returns what was known of a reason during all of this time.
    fn between(&self, reason: Reason, from: Instant, to: Instant) -> Known {
        let mut known = Known::Free;
        for (_, next, at) in self.changes.iter().filter(|(of, _, _)| *of == reason) {
            if *at <= from {
                known = *next;
            } else if *at <= to && known != *next {
                return Known::Changing;
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A key that is paused from second 10 to 11 on, and resumed from 20 to 21.
    fn judged(asked: u64, answered: u64, status: u16) -> (u64, u64) {
        let start = Instant::now();
        let second = |number| start + Duration::from_secs(number);
        let mut key = AccessHistory::default();
        for (known, at) in [(Known::Changing, 10), (Known::Blocked, 11), (Known::Changing, 20), (Known::Free, 21)] {
            key.change(Reason::Paused, known, second(at));
        }
        key.answer(Answer { asked: second(asked), answered: second(answered), status });
        let mut found = Findings::default();
        key.judge("a key", &mut found);
        (found.admitted, found.wrong)
    }

    #[test]
    fn an_answer_is_wrong_only_if_no_moment_of_its_request_allows_it() {
        for (asked, answered) in [(8, 9), (8, 10), (8, 13), (10, 10), (19, 22), (20, 20), (22, 23)] {
            assert_eq!(judged(asked, answered, 201), (0, 0), "{asked} to {answered}");
        }
        for (asked, answered) in [(8, 10), (10, 10), (8, 13), (12, 13), (19, 22), (20, 20), (20, 22)] {
            assert_eq!(judged(asked, answered, 401), (0, 0), "{asked} to {answered}");
        }
        assert_eq!(judged(11, 12, 201), (1, 0));
        assert_eq!(judged(8, 9, 401), (0, 1));
        assert_eq!(judged(21, 22, 401), (0, 1));
    }

    #[test]
    fn one_reason_is_enough_to_refuse_and_none_may_be_left_to_accept() {
        let start = Instant::now();
        let mut key = AccessHistory::default();
        key.change(Reason::Suspended, Known::Blocked, start);
        key.change(Reason::Paused, Known::Changing, start);
        assert!(!key.is_free());
        for status in [201, 401] {
            key.answer(Answer { asked: start, answered: start, status });
        }
        let mut found = Findings::default();
        key.judge("a key", &mut found);
        assert_eq!((found.admitted, found.wrong), (1, 0));
    }
}
