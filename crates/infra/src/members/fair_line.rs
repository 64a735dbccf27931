//! The line before the password hasher. Each waiter has at most one password in it. Members who are signed in go before
//! everyone who signs in, and of those, members in familiar networks and invited guests go before strangers. To fill
//! it, an attacker needs as many networks as it has places, and even then cannot keep out a member in a familiar
//! network.

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use intake_domain::Waiter;

use crate::metrics::HASHING_QUEUE_LENGTH;

/// Places for confirmations, for members and guests, and for strangers: a second or two of work each.
const PLACES: usize = 64;

pub(crate) struct FairLine<Job> {
    state: Mutex<State<Job>>,
    arrived: Condvar,
}

/// What became of an attempt to stand in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// The job waits for its turn.
    Waits,
    /// The same waiter is in line already.
    AlreadyInLine,
    /// Every place is taken.
    Full,
    /// Jobs are no longer taken.
    Closed,
}

struct State<Job> {
    confirmations: VecDeque<(Waiter, Job)>,
    first: VecDeque<(Waiter, Job)>,
    strangers: VecDeque<(Waiter, Job)>,
    waiters: HashSet<Waiter>,
    is_closed: bool,
}

impl<Job> FairLine<Job> {
    pub(crate) fn new() -> Self {
        let queue = || VecDeque::with_capacity(PLACES);
        let (confirmations, first, strangers) = (queue(), queue(), queue());
        let state = State { confirmations, first, strangers, waiters: HashSet::new(), is_closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new() }
    }

    pub(crate) fn enter(&self, waiter: Waiter, job: Job) -> Entered {
        let mut state = self.state();
        if state.is_closed {
            return Entered::Closed;
        }
        if state.waiters.contains(&waiter) {
            return Entered::AlreadyInLine;
        }
        let queue = match waiter {
            Waiter::Confirmation(_) | Waiter::NewPassword => &mut state.confirmations,
            Waiter::Member(_) | Waiter::Guest(_) => &mut state.first,
            Waiter::Stranger(_) => &mut state.strangers,
        };
        if queue.len() >= PLACES {
            return Entered::Full;
        }
        queue.push_back((waiter, job));
        HASHING_QUEUE_LENGTH.add(1);
        if waiter != Waiter::NewPassword {
            state.waiters.insert(waiter);
        }
        self.arrived.notify_one();
        Entered::Waits
    }

    /// The next job, as soon as there is one. None: the line is closed.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let confirmed = state.confirmations.pop_front();
            let next = confirmed.or_else(|| state.first.pop_front()).or_else(|| state.strangers.pop_front());
            if let Some((waiter, job)) = next {
                state.waiters.remove(&waiter);
                HASHING_QUEUE_LENGTH.subtract(1);
                return Some(job);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops all jobs, and refuses later ones.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        HASHING_QUEUE_LENGTH.subtract(state.confirmations.len() + state.first.len() + state.strangers.len());
        state.confirmations.clear();
        state.first.clear();
        state.strangers.clear();
        self.arrived.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<Job>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use intake_domain::{Network, Token};
    use uuid::Uuid;

    use super::*;

    fn stranger(address: impl Into<IpAddr>) -> Waiter {
        Waiter::Stranger(Network::of_neighbours(Some(address.into())))
    }

    fn member(number: u128) -> Waiter {
        Waiter::Member(Uuid::from_u128(number).into())
    }

    #[test]
    fn of_each_waiter_one_is_in_line() {
        let line = FairLine::new();
        assert_eq!(line.enter(stranger([203, 0, 113, 1]), 1), Entered::Waits);
        assert_eq!(line.enter(stranger([203, 0, 113, 2]), 2), Entered::AlreadyInLine);
        assert_eq!(line.enter(stranger([198, 51, 100, 1]), 3), Entered::Waits);
        assert_eq!(line.next(), Some(1));
        assert_eq!(line.enter(stranger([203, 0, 113, 2]), 4), Entered::Waits, "the first one has left the line");
        assert_eq!((line.next(), line.next()), (Some(3), Some(4)));
    }

    #[test]
    fn members_and_guests_go_before_strangers_even_when_those_fill_their_places() {
        let line = FairLine::new();
        for number in 0..PLACES {
            assert_eq!(line.enter(stranger([10, 0, u8::try_from(number).unwrap(), 1]), number), Entered::Waits);
        }
        assert_eq!(line.enter(stranger([192, 0, 2, 1]), 1_000), Entered::Full);
        assert_eq!(line.enter(member(1), 1_001), Entered::Waits);
        assert_eq!(line.enter(Waiter::Guest(Token::new([1; 32]).digest()), 1_002), Entered::Waits);
        assert_eq!([line.next(), line.next(), line.next()], [Some(1_001), Some(1_002), Some(0)]);
    }

    #[test]
    fn a_change_of_the_password_goes_before_every_sign_in() {
        let line = FairLine::new();
        for number in 0..PLACES {
            assert_eq!(line.enter(member(number as u128), number), Entered::Waits);
        }
        let session = |number: u8| Waiter::Confirmation(Token::new([number; 32]).digest());
        assert_eq!(line.enter(session(1), 1_001), Entered::Waits);
        assert_eq!(line.enter(session(1), 1_002), Entered::AlreadyInLine);
        assert_eq!(line.enter(session(2), 1_003), Entered::Waits);
        assert_eq!(line.enter(Waiter::NewPassword, 1_004), Entered::Waits);
        assert_eq!(line.enter(Waiter::NewPassword, 1_005), Entered::Waits, "each was confirmed by itself");
        let order: Vec<_> = (0..5).map(|_| line.next().unwrap()).collect();
        assert_eq!(order, [1_001, 1_003, 1_004, 1_005, 0]);
    }

    #[test]
    fn a_closed_line_drops_its_jobs_and_takes_no_more() {
        let line = FairLine::new();
        line.enter(member(1), 1);
        line.close();
        assert_eq!(line.next(), None);
        assert_eq!(line.enter(member(2), 2), Entered::Closed);
    }
}
