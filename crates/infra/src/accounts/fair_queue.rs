//! The queue of the password hasher, and that before the provider of single sign-on. Each requester has at most one job
//! in it, and a familiar network a few. Members who are signed in go before everyone who signs in; members in familiar
//! networks and invited guests go before strangers. To fill the queue, an attacker needs as many networks as the queue
//! has places, and even then cannot keep out a member in a familiar network.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use intake_domain::Requester;
use intake_metrics::Gauge;

/// Places for confirmations, for members and guests, and for strangers: a second or two of work each.
const PLACES: usize = 64;
/// Places of a familiar network: colleagues who begin their day at the same moment.
const OF_NEIGHBOURS: usize = 8;

pub(crate) struct FairQueue<Job> {
    state: Mutex<State<Job>>,
    arrived: Condvar,
    /// Number of waiting jobs, for the metrics.
    length: &'static Gauge,
}

/// Outcome of a job that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The job waits for its turn.
    Queued,
    /// The requester has as many jobs in the queue as it may.
    AlreadyQueued,
    /// Every place is taken.
    Full,
    /// Jobs are no longer taken.
    Closed,
}

struct State<Job> {
    confirmations: VecDeque<(Requester, Job)>,
    first: VecDeque<(Requester, Job)>,
    strangers: VecDeque<(Requester, Job)>,
    /// Number of jobs that each requester has in the queue.
    requesters: HashMap<Requester, usize>,
    is_closed: bool,
}

impl<Job> FairQueue<Job> {
    pub(crate) fn new(length: &'static Gauge) -> Self {
        let queue = || VecDeque::with_capacity(PLACES);
        let (confirmations, first, strangers) = (queue(), queue(), queue());
        let state = State { confirmations, first, strangers, requesters: HashMap::new(), is_closed: false };
        Self { state: Mutex::new(state), arrived: Condvar::new(), length }
    }

    pub(crate) fn push(&self, requester: Requester, job: Job) -> Pushed {
        let mut state = self.state();
        if state.is_closed {
            return Pushed::Closed;
        }
        if state.requesters.get(&requester).is_some_and(|count| *count >= most(requester)) {
            return Pushed::AlreadyQueued;
        }
        let queue = match requester {
            Requester::Confirmation(_) | Requester::NewPassword => &mut state.confirmations,
            Requester::Member(_) | Requester::Guest(_) | Requester::Neighbour(_) => &mut state.first,
            Requester::Stranger(_) => &mut state.strangers,
        };
        if queue.len() >= PLACES {
            return Pushed::Full;
        }
        queue.push_back((requester, job));
        *state.requesters.entry(requester).or_default() += 1;
        self.length.add(1);
        self.arrived.notify_one();
        Pushed::Queued
    }

    /// The next job, as soon as there is one. None: the queue is closed.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let confirmed = state.confirmations.pop_front();
            let next = confirmed.or_else(|| state.first.pop_front()).or_else(|| state.strangers.pop_front());
            if let Some((requester, job)) = next {
                state.left(requester);
                self.length.subtract(1);
                return Some(job);
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Drops all jobs, and refuses later ones.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.length.subtract(state.confirmations.len() + state.first.len() + state.strangers.len());
        state.confirmations.clear();
        state.first.clear();
        state.strangers.clear();
        self.arrived.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<Job>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Job> State<Job> {
    /// A job of the requester is no longer in the queue.
    fn left(&mut self, requester: Requester) {
        if let Entry::Occupied(mut count) = self.requesters.entry(requester) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Returns how many jobs a requester may have in the queue.
fn most(requester: Requester) -> usize {
    match requester {
        Requester::NewPassword => PLACES,
        Requester::Neighbour(_) => OF_NEIGHBOURS,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use intake_domain::{Network, Token};
    use uuid::Uuid;

    use super::*;

    static LENGTH: Gauge = Gauge::new();

    fn stranger(address: impl Into<IpAddr>) -> Requester {
        Requester::Stranger(Network::of_neighbours(Some(address.into())))
    }

    fn member(number: u128) -> Requester {
        Requester::Member(Uuid::from_u128(number).into())
    }

    #[test]
    fn each_requester_has_one_job_in_the_queue() {
        let queue = FairQueue::new(&LENGTH);
        assert_eq!(queue.push(stranger([203, 0, 113, 1]), 1), Pushed::Queued);
        assert_eq!(queue.push(stranger([203, 0, 113, 2]), 2), Pushed::AlreadyQueued);
        assert_eq!(queue.push(stranger([198, 51, 100, 1]), 3), Pushed::Queued);
        assert_eq!(queue.next(), Some(1));
        assert_eq!(queue.push(stranger([203, 0, 113, 2]), 4), Pushed::Queued, "the first one has left the queue");
        assert_eq!((queue.next(), queue.next()), (Some(3), Some(4)));
    }

    #[test]
    fn members_and_guests_go_before_strangers_even_when_those_fill_their_places() {
        let queue = FairQueue::new(&LENGTH);
        for number in 0..PLACES {
            assert_eq!(queue.push(stranger([10, 0, u8::try_from(number).unwrap(), 1]), number), Pushed::Queued);
        }
        assert_eq!(queue.push(stranger([192, 0, 2, 1]), 1_000), Pushed::Full);
        assert_eq!(queue.push(member(1), 1_001), Pushed::Queued);
        assert_eq!(queue.push(Requester::Guest(Token::new([1; 32]).digest()), 1_002), Pushed::Queued);
        assert_eq!([queue.next(), queue.next(), queue.next()], [Some(1_001), Some(1_002), Some(0)]);
    }

    #[test]
    fn several_from_one_familiar_network_wait_and_not_all() {
        let queue = FairQueue::new(&LENGTH);
        let neighbour = |third| Requester::Neighbour(Network::of_neighbours(Some([10, 0, third, 1].into())));
        assert_eq!(queue.push(stranger([10, 0, 0, 1]), 0), Pushed::Queued);
        for number in 1..=OF_NEIGHBOURS {
            assert_eq!(queue.push(neighbour(0), number), Pushed::Queued);
        }
        assert_eq!(queue.push(neighbour(0), 100), Pushed::AlreadyQueued);
        assert_eq!(queue.push(neighbour(1), 101), Pushed::Queued);
        assert_eq!(queue.next(), Some(1), "before the stranger");
        assert_eq!(queue.push(neighbour(0), 102), Pushed::Queued);
    }

    #[test]
    fn a_change_of_the_password_goes_before_every_sign_in() {
        let queue = FairQueue::new(&LENGTH);
        for number in 0..PLACES {
            assert_eq!(queue.push(member(number as u128), number), Pushed::Queued);
        }
        let session = |number: u8| Requester::Confirmation(Token::new([number; 32]).digest());
        assert_eq!(queue.push(session(1), 1_001), Pushed::Queued);
        assert_eq!(queue.push(session(1), 1_002), Pushed::AlreadyQueued);
        assert_eq!(queue.push(session(2), 1_003), Pushed::Queued);
        assert_eq!(queue.push(Requester::NewPassword, 1_004), Pushed::Queued);
        assert_eq!(queue.push(Requester::NewPassword, 1_005), Pushed::Queued, "each was confirmed by itself");
        let order: Vec<_> = (0..5).map(|_| queue.next().unwrap()).collect();
        assert_eq!(order, [1_001, 1_003, 1_004, 1_005, 0]);
    }

    #[test]
    fn a_closed_queue_drops_its_jobs_and_takes_no_more() {
        let queue = FairQueue::new(&LENGTH);
        queue.push(member(1), 1);
        queue.close();
        assert_eq!(queue.next(), None);
        assert_eq!(queue.push(member(2), 2), Pushed::Closed);
    }
}
