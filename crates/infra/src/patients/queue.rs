//! A bounded queue in which requests wait for a writer. Explored exhaustively by `tests/interleavings.rs`.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex};

pub(crate) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    arrival: Condvar,
    capacity: usize,
}

struct Waiting<T> {
    items: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        let waiting = Waiting { items: VecDeque::new(), is_closed: false };
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
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_closed || waiting.items.len() >= self.capacity {
            return Err(item);
        }
        put(&mut waiting.items, item);
        drop(waiting);
        self.arrival.notify_one();
        Ok(())
    }

    /// Waits for a first item, then takes all that are there, up to `max`. None: the queue is closed and empty.
    pub(crate) fn take(&self, max: usize) -> Option<Vec<T>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.items.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.arrival.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let count = waiting.items.len().min(max);
        let taken = waiting.items.drain(..count).collect();
        if !waiting.items.is_empty() {
            // Another writer may still sleep: each arrival wakes only one.
            self.arrival.notify_one();
        }
        Some(taken)
    }

    /// Accepts no more items. Those that wait can still be taken.
    pub(crate) fn close(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.arrival.notify_all();
    }
}
