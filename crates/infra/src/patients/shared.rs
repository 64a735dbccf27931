//! What the writers of one bucket share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use intake_domain::OrganisationId;

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::left_behind::LeftBehind;
use crate::metrics::WAITING;
use crate::patients::backlog::Backlog;
use crate::patients::buckets::Buckets;
use crate::patients::job::{Job, QUEUE_LENGTH};
use crate::patients::queue::Queue;
use crate::patients::suspects::Suspects;

pub(crate) struct Shared {
    /// The way in that the operator gave.
    pub(crate) url: DatabaseUrl,
    pub(crate) uses: KeyUses,
    pub(crate) backlog: Backlog,
    /// Jobs that have not been tried yet.
    queue: Queue<Job>,
    /// Rows that may have to wait for another transaction: they are tried separately, so that they delay no others.
    held: Queue<Job>,
    pub(crate) suspects: Suspects,
    pub(crate) left_behind: LeftBehind,
    /// Whether the last try found the database away: logged when it changes, not at every try.
    pub(crate) is_away: AtomicBool,
    /// The node that holds the shard. None: this is the first bucket, for what no other takes.
    node: RwLock<Option<Node>>,
    buckets: Weak<Buckets>,
    /// How many statements run, in all buckets together.
    statements: Arc<AtomicUsize>,
}

/// A statement that runs.
pub(crate) struct Busy(Arc<AtomicUsize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A node of Citus.
#[derive(Clone)]
pub(crate) struct Node {
    /// What people call it.
    pub(crate) name: String,
    /// None: it must not be connected to.
    pub(crate) url: Option<DatabaseUrl>,
}

impl Shared {
    pub(crate) fn new(url: &DatabaseUrl, writers: usize, uses: &KeyUses, buckets: Weak<Buckets>) -> Self {
        Self {
            url: url.clone(),
            uses: uses.clone(),
            backlog: Backlog::new(writers),
            queue: Queue::new(QUEUE_LENGTH),
            held: Queue::new(QUEUE_LENGTH),
            suspects: Suspects::default(),
            left_behind: LeftBehind::default(),
            is_away: AtomicBool::new(false),
            node: RwLock::default(),
            buckets,
            statements: Arc::default(),
        }
    }

    /// Another bucket of the same register, for a shard that this node holds.
    pub(crate) fn beside(&self, node: Node) -> Self {
        let mut bucket = Self::new(&self.url, 1, &self.uses, Weak::clone(&self.buckets));
        bucket.statements = Arc::clone(&self.statements);
        bucket.move_to(node);
        bucket
    }

    /// Its shard lies on this node now. The next connection leads there.
    pub(crate) fn move_to(&self, node: Node) {
        *self.node.write().unwrap_or_else(PoisonError::into_inner) = Some(node);
    }

    pub(crate) fn node(&self) -> Option<Node> {
        self.node.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a statement until this is dropped.
    pub(crate) fn busy(&self) -> Busy {
        self.statements.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(&self.statements))
    }

    /// Whether statements run for other shards.
    pub(crate) fn are_others_busy(&self) -> bool {
        self.statements.load(Ordering::Relaxed) > 0 && !self.is_first()
    }

    fn is_first(&self) -> bool {
        self.node.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// How people call its node, for the log. None: it has none of its own.
    pub(crate) fn node_name(&self) -> Option<String> {
        self.node().map(|node| node.name)
    }

    /// All buckets of the register. None: it is gone.
    pub(crate) fn buckets(&self) -> Option<Arc<Buckets>> {
        self.buckets.upgrade()
    }

    /// The bucket of an organisation whose patients are not stored here.
    pub(crate) fn elsewhere(&self, organisation: OrganisationId) -> Option<Arc<Shared>> {
        if self.is_first() { self.buckets()?.of(organisation) } else { None }
    }

    /// Puts a job at the end of the queue. Gives it back if there is no room.
    pub(crate) fn push(&self, job: Job) -> Result<(), Job> {
        counted(|| self.queue.push(job))
    }

    /// Puts a job before all others that wait.
    pub(crate) fn push_first(&self, job: Job) -> Result<(), Job> {
        counted(|| self.queue.push_first(job))
    }

    /// Puts a held row into the queue of those: at its end if the row is known to be held, else before the others.
    pub(crate) fn push_held(&self, job: Job) -> Result<(), Job> {
        counted(|| if job.is_held { self.held.push(job) } else { self.held.push_first(job) })
    }

    /// Waits for jobs that have not been tried, and takes up to so many. None: the queue is closed and empty.
    pub(crate) fn take(&self, max: usize) -> Option<Vec<Job>> {
        self.queue.take(max).inspect(|jobs| WAITING.subtract(jobs.len()))
    }

    /// The same for held rows.
    pub(crate) fn take_held(&self, max: usize) -> Option<Vec<Job>> {
        self.held.take(max).inspect(|jobs| WAITING.subtract(jobs.len()))
    }

    /// Accepts no more jobs; those that wait are still stored.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.held.close();
    }
}

/// Counted before it can be taken.
fn counted(push: impl FnOnce() -> Result<(), Job>) -> Result<(), Job> {
    WAITING.add(1);
    push().inspect_err(|_| WAITING.subtract(1))
}
