//! A bounded queue in which requests wait for a writer. Where more wait than a writer takes, their owners take turns.
//! Explored exhaustively by `tests/interleavings.rs`.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::PoisonError;

use super::locks::{Condvar, Mutex, MutexGuard};

/// An item whose owner takes turns with others.
pub(crate) trait InTurn {
    type Owner: Copy + Eq + Hash;

    fn owner(&self) -> Self::Owner;
}

pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    arrival: Condvar,
    capacity: usize,
}

struct Waiting<T> {
    items: VecDeque<T>,
    /// True if there may be items of more than one owner: as long as there is one, turns cost nothing.
    is_mixed: bool,
    is_closed: bool,
    /// Number of writers that sleep, and of those among them that have been woken and do not run yet.
    sleeping: usize,
    woken: usize,
}

impl<T: InTurn> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let waiting = Waiting { items: VecDeque::new(), is_mixed: false, is_closed: false, sleeping: 0, woken: 0 };
        Self { waiting: Mutex::new(waiting), arrival: Condvar::new(), capacity }
    }

    /// Adds an item at the end. Gives it back if the queue is full or closed.
    pub(crate) fn push(&self, item: T) -> Result<(), T> {
        self.add(item, VecDeque::push_back)
    }

    /// Adds an item at the front. Gives it back if the queue is full or closed.
    pub(crate) fn push_first(&self, item: T) -> Result<(), T> {
        self.add(item, VecDeque::push_front)
    }

    fn add(&self, item: T, put: impl FnOnce(&mut VecDeque<T>, T)) -> Result<(), T> {
        let mut waiting = self.waiting();
        if waiting.is_closed || waiting.items.len() >= self.capacity {
            return Err(item);
        }
        waiting.is_mixed |= waiting.items.back().is_some_and(|last| last.owner() != item.owner());
        put(&mut waiting.items, item);
        self.wake(waiting);
        Ok(())
    }

    /// Waits for a first item, then takes all that are there, up to `max`. None: the queue is closed and empty.
    pub(crate) fn take(&self, max: usize) -> Option<Vec<T>> {
        let mut waiting = self.waiting();
        while waiting.items.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting.sleeping += 1;
            waiting = self.arrival.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.sleeping -= 1;
            waiting.woken = waiting.woken.saturating_sub(1);
        }
        if waiting.items.len() > max && waiting.is_mixed {
            take_turns(&mut waiting.items);
        }
        let count = waiting.items.len().min(max);
        let taken = waiting.items.drain(..count).collect();
        if waiting.items.is_empty() {
            waiting.is_mixed = false;
        } else {
            // What was added while a woken writer was on its way woke no other.
            self.wake(waiting);
        }
        Some(taken)
    }

    /// Accepts no more items. Those that wait can still be taken.
    pub(crate) fn close(&self) {
        self.waiting().is_closed = true;
        self.arrival.notify_all();
    }

    /// Wakes a writer if one sleeps: a call into the kernel, which a busy queue does without.
    fn wake(&self, mut waiting: MutexGuard<'_, Waiting<T>>) {
        if waiting.sleeping > waiting.woken {
            waiting.woken += 1;
            drop(waiting);
            self.arrival.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sorts the items by turns: the first of each owner, then the second of each, and so on.
fn take_turns<T: InTurn>(items: &mut VecDeque<T>) {
    let mut turns: HashMap<T::Owner, usize> = HashMap::new();
    items.make_contiguous().sort_by_cached_key(|item| {
        let turn = turns.entry(item.owner()).or_default();
        *turn += 1;
        *turn
    });
}
