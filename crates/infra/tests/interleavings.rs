//! Tries every order in which producers, writers and their supervisor can use the queue and the work in progress: each
//! request is answered exactly once, a writer knows which requests it sends again, and no thread waits for ever (loom
//! fails a run in which all threads wait).
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../src/patients/group_commit/in_progress.rs"]
mod in_progress;
#[path = "../src/patients/group_commit/queue.rs"]
mod queue;

/// Replaces the locks of the standard library.
mod locks {
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use std::time::{Duration, Instant};

use loom::sync::{Arc, Mutex};
use loom::thread;

use in_progress::InProgress;
use queue::{InTurn, Queue};

/// A request: its number, and whether it was sent to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    number: u32,
    was_sent: bool,
}

impl InTurn for Request {
    type Owner = u32;

    fn owner(&self) -> u32 {
        self.number
    }
}

/// As an item, a number whose tens say whose it is.
impl InTurn for u32 {
    type Owner = u32;

    fn owner(&self) -> u32 {
        self / 10
    }
}

fn request(number: u32) -> Request {
    Request { number, was_sent: false }
}

/// Events that the database and the clients saw.
#[derive(Default)]
struct Seen {
    /// Numbers that were sent, and whether the writer knew that they had been sent before.
    sent: Vec<(u32, bool)>,
    answered: Vec<u32>,
}

/// The loop of a writer: takes what waits, puts it where it can be taken over, sends it, takes it back and answers.
fn work(queue: &Queue<Request>, in_progress: &InProgress<Vec<Request>>, seen: &Mutex<Seen>, handed_over: Vec<Request>) {
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
        in_progress.begin(batch, Instant::now(), Some(Duration::ZERO));
        seen.lock().unwrap().sent.extend(attempts);
        let Some(done) = in_progress.finish() else { return };
        seen.lock().unwrap().answered.extend(done.iter().map(|one| one.number));
        batch = Vec::new();
    }
}

/// A time at which every call is overdue.
fn long_after() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// The most switches away from a thread that could continue: defects of this kind need one or two.
const PREEMPTIONS: usize = 3;

#[test]
fn a_request_is_answered_once_whenever_its_writer_is_replaced() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(PREEMPTIONS);
    bounded.check(|| {
        let (queue, seen) = (Arc::new(Queue::new(2)), Arc::new(Mutex::new(Seen::default())));
        let in_progress = Arc::new(InProgress::new());
        let writer = {
            let (queue, in_progress, seen) = (Arc::clone(&queue), Arc::clone(&in_progress), Arc::clone(&seen));
            thread::spawn(move || work(&queue, &in_progress, &seen, Vec::new()))
        };
        let watch = {
            let (queue, in_progress, seen) = (Arc::clone(&queue), Arc::clone(&in_progress), Arc::clone(&seen));
            thread::spawn(move || {
                if in_progress.is_overdue(long_after())
                    && let Some(taken) = in_progress.take_over(long_after())
                {
                    work(&queue, &InProgress::new(), &seen, taken);
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
fn each_item_is_taken_once_and_every_thread_ends() {
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
        queue.push(1_u32).unwrap();
        queue.push_first(2).unwrap();
        queue.close();
        assert_eq!(queue.push(3), Err(3), "closed");
        let mut all: Vec<u32> = takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// A writer is woken only if one sleeps that was not woken already: whatever the order, none sleeps beside an item.
#[test]
fn no_item_is_left_beside_a_writer_that_sleeps() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(PREEMPTIONS);
    bounded.check(|| {
        let queue = Arc::new(Queue::new(9));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.take(2).map_or(0, |taken| taken.len()))
            })
            .collect();
        // No end wakes them: each must be woken for an item.
        queue.push(1_u32).unwrap();
        queue.push(2).unwrap();
        queue.push(3).unwrap();
        let taken: usize = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert!((2..=3).contains(&taken), "{taken}");
    });
}

/// A quiet organisation waits for one batch, however many requests of another are before it.
#[test]
fn owners_take_turns_where_more_waits_than_is_taken() {
    loom::model(|| {
        let queue = Queue::new(99);
        for item in [10, 11, 12, 13, 14, 20, 30, 31, 15] {
            queue.push(item).unwrap();
        }
        assert_eq!(queue.take(4), Some(vec![10, 20, 30, 11]), "the first of each, then the second of each");
        assert_eq!(queue.take(4), Some(vec![31, 12, 13, 14]));
        queue.push_first(40).unwrap();
        assert_eq!(queue.take(4), Some(vec![40, 15]));
        for item in [50, 51, 52] {
            queue.push(item).unwrap();
        }
        assert_eq!(queue.take(2), Some(vec![50, 51]), "a lone owner");
        assert_eq!(queue.take(2), Some(vec![52]));
    });
}

#[test]
fn a_full_queue_gives_the_item_back() {
    loom::model(|| {
        let queue = Queue::new(1);
        queue.push(1_u32).unwrap();
        assert_eq!((queue.push(2), queue.push_first(3)), (Err(2), Err(3)));
        assert_eq!(queue.take(9), Some(vec![1]));
    });
}

#[test]
fn only_one_thread_gets_the_work() {
    loom::model(|| {
        let in_progress = Arc::new(InProgress::new());
        in_progress.begin(1, Instant::now(), Some(Duration::ZERO));
        let watch = {
            let in_progress = Arc::clone(&in_progress);
            thread::spawn(move || in_progress.take_over(long_after()))
        };
        let own = in_progress.finish();
        let taken = watch.join().unwrap();
        assert_eq!([own, taken].iter().flatten().count(), 1);
        assert_eq!(in_progress.finish(), None, "finished already, or taken over");
    });
}

#[test]
fn work_is_not_taken_over_in_time_or_without_a_limit() {
    loom::model(|| {
        let in_progress = InProgress::new();
        let now = Instant::now();
        for (patience, when) in [(Some(Duration::from_secs(120)), long_after()), (None, long_after())] {
            in_progress.begin(1, now, patience);
            assert!(!in_progress.is_overdue(when));
            assert_eq!(in_progress.take_over(when), None);
            assert_eq!(in_progress.finish(), Some(1));
        }
    });
}
