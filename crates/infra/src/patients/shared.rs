//! What the writers of one register share.

use std::sync::atomic::AtomicBool;

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::left_behind::LeftBehind;
use crate::patients::backlog::Backlog;
use crate::patients::job::{Job, QUEUE_LENGTH};
use crate::patients::queue::Queue;
use crate::patients::suspects::Suspects;

pub(crate) struct Shared {
    pub(crate) url: DatabaseUrl,
    pub(crate) uses: KeyUses,
    pub(crate) backlog: Backlog,
    /// Jobs that have not been tried yet.
    pub(crate) queue: Queue<Job>,
    /// Rows that may have to wait for another transaction: they are tried separately, so that they delay no others.
    pub(crate) held: Queue<Job>,
    pub(crate) suspects: Suspects,
    pub(crate) left_behind: LeftBehind,
    /// Whether the last try found the database away: logged when it changes, not at every try.
    pub(crate) is_away: AtomicBool,
}

impl Shared {
    pub(crate) fn new(url: &DatabaseUrl, writers: usize, uses: &KeyUses) -> Self {
        Self {
            url: url.clone(),
            uses: uses.clone(),
            backlog: Backlog::new(writers),
            queue: Queue::new(QUEUE_LENGTH),
            held: Queue::new(QUEUE_LENGTH),
            suspects: Suspects::default(),
            left_behind: LeftBehind::default(),
            is_away: AtomicBool::new(false),
        }
    }

    /// Accepts no more jobs; those that wait are still stored.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.held.close();
    }
}
