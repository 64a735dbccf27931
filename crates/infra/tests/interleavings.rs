//! Every order in which producers, writers and the one who looks after writers can meet at the queue and at a desk, tried
//! one after the other: each request is answered exactly once, what is sent again is known to be, and nobody waits for ever
//! (loom fails a run in which all threads wait).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../src/patients/desk.rs"]
mod desk;
#[path = "../src/patients/queue.rs"]
mod queue;

/// In the place of the standard library's.
mod sync {
    pub(super) use loom::sync::{Condvar, Mutex};
}

use std::time::{Duration, Instant};

use loom::sync::{Arc, Mutex};
use loom::thread;

use desk::Desk;
use queue::Queue;

/// A request: its number, and whether it has gone to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    number: u32,
    was_sent: bool,
}

fn request(number: u32) -> Request {
    Request { number, was_sent: false }
}

/// What the database and the clients saw.
#[derive(Default)]
struct Seen {
    /// Numbers that were sent, and whether the writer knew that they had been before.
    sent: Vec<(u32, bool)>,
    answered: Vec<u32>,
}

/// As a writer works: takes what waits, lays it on its desk, sends it, takes it up again and answers.
fn work(queue: &Queue<Request>, desk: &Desk<Vec<Request>>, seen: &Mutex<Seen>, handed_over: Vec<Request>) {
    let mut batch = handed_over;
    loop {
        if batch.is_empty() {
            match queue.take(2) {
                Some(taken) => batch = taken,
                None => return,
            }
        }
        let attempts: Vec<_> = batch.iter().map(|one| (one.number, one.was_sent)).collect();
        batch.iter_mut().for_each(|one| one.was_sent = true);
        desk.put(batch, Instant::now(), Some(Duration::ZERO));
        seen.lock().unwrap().sent.extend(attempts);
        let Some(done) = desk.take_up() else { return };
        seen.lock().unwrap().answered.extend(done.iter().map(|one| one.number));
        batch = Vec::new();
    }
}

/// As long as the patience of every writer is over, whatever the clock says.
fn long_after() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// Every order with up to so many switches away from a thread that could go on: defects of this kind need one or two.
const PREEMPTIONS: usize = 3;

#[test]
fn a_request_is_answered_once_whenever_its_writer_is_left_behind() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(PREEMPTIONS);
    bounded.check(|| {
        let (queue, seen) = (Arc::new(Queue::new(2)), Arc::new(Mutex::new(Seen::default())));
        let desk = Arc::new(Desk::new());
        let writer = {
            let (queue, desk, seen) = (Arc::clone(&queue), Arc::clone(&desk), Arc::clone(&seen));
            thread::spawn(move || work(&queue, &desk, &seen, Vec::new()))
        };
        let watch = {
            let (queue, desk, seen) = (Arc::clone(&queue), Arc::clone(&desk), Arc::clone(&seen));
            thread::spawn(move || {
                if desk.is_overdue(long_after())
                    && let Some(taken) = desk.leave_behind(long_after())
                {
                    work(&queue, &Desk::new(), &seen, taken);
                }
            })
        };
        queue.push(request(1)).unwrap();
        queue.push(request(2)).unwrap();
        queue.close();
        writer.join().unwrap();
        watch.join().unwrap();

        let mut seen = seen.lock().unwrap();
        seen.answered.sort_unstable();
        assert_eq!(seen.answered, [1, 2]);
        for number in [1, 2] {
            let times: Vec<bool> = seen.sent.iter().filter(|sent| sent.0 == number).map(|sent| sent.1).collect();
            assert!(times == [false] || times.len() == 2 && times.contains(&true), "{times:?}");
        }
    });
}

#[test]
fn whatever_is_pushed_is_taken_once_and_everyone_comes_home() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(PREEMPTIONS);
    bounded.check(|| {
        let queue = Arc::new(Queue::new(2));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let mut taken = Vec::new();
                    while let Some(some) = queue.take(1) {
                        taken.extend(some);
                    }
                    taken
                })
            })
            .collect();
        queue.push(1).unwrap();
        queue.push_first(2).unwrap();
        queue.close();
        assert_eq!(queue.push(3), Err(3), "closed");
        let mut all: Vec<u32> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

#[test]
fn a_full_queue_gives_back_what_has_no_room() {
    loom::model(|| {
        let queue = Queue::new(1);
        queue.push(1).unwrap();
        assert_eq!((queue.push(2), queue.push_first(3)), (Err(2), Err(3)));
        assert_eq!(queue.take(9), Some(vec![1]));
    });
}

#[test]
fn work_is_in_one_pair_of_hands() {
    loom::model(|| {
        let desk = Arc::new(Desk::new());
        desk.put(1, Instant::now(), Some(Duration::ZERO));
        let watch = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || desk.leave_behind(long_after()))
        };
        let own = desk.take_up();
        let taken = watch.join().unwrap();
        assert_eq!([own, taken].iter().flatten().count(), 1);
        assert_eq!(desk.take_up(), None, "an empty desk, or one that was left behind");
    });
}

#[test]
fn nobody_is_left_behind_in_time_or_while_one_more_must_not_hang() {
    loom::model(|| {
        let desk = Desk::new();
        let now = Instant::now();
        for (patience, when) in [(Some(Duration::from_secs(120)), long_after()), (None, long_after())] {
            desk.put(1, now, patience);
            assert!(!desk.is_overdue(when));
            assert_eq!(desk.leave_behind(when), None);
            assert_eq!(desk.take_up(), Some(1));
        }
    });
}
