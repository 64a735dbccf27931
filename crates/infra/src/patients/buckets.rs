//! Which writers store the patients of an organisation. On one PostgreSQL all of them share one bucket. On Citus each shard has a
//! bucket, whose writer is connected to the node that holds it, so that a batch is one statement on one node and a node that is away
//! delays nobody else; the first bucket then only finds out whose an unknown key is.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use diesel::QueryResult;
use diesel::pg::PgConnection;
use intake_domain::{KeyDigest, OrganisationId};

use crate::database::url::DatabaseUrl;
use crate::keys::uses::KeyUses;
use crate::patients::shared::{Node, Shared};
use crate::patients::supervisor;
use crate::shards::{Shard, Shards};

pub(crate) struct Buckets {
    /// Takes all that no other bucket takes.
    first: Arc<Shared>,
    /// One for each shard, in the order of their ranges.
    of_shards: RwLock<Vec<Arc<Shared>>>,
    uses: KeyUses,
}

impl Buckets {
    /// Starts the writers of the first bucket, which will learn whether there are shards.
    pub(crate) fn start(url: &DatabaseUrl, writers: usize, uses: &KeyUses) -> std::io::Result<Arc<Self>> {
        let buckets = Arc::new_cyclic(|buckets| Self {
            first: Arc::new(Shared::new(url, writers, uses, Weak::clone(buckets))),
            of_shards: RwLock::default(),
            uses: uses.clone(),
        });
        supervisor::start(&buckets.first, writers)?;
        Ok(buckets)
    }

    pub(crate) fn first(&self) -> &Arc<Shared> {
        &self.first
    }

    /// The bucket for requests with this key.
    pub(crate) fn of_key(&self, key: &KeyDigest) -> Arc<Shared> {
        let bucket = || self.of(self.uses.homes.holder(key)?.organisation_id);
        let bucket = if self.uses.shards.are_none() { None } else { bucket() };
        bucket.unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// The bucket of the organisation's shard. None: there are no shards.
    pub(crate) fn of(&self, organisation: OrganisationId) -> Option<Arc<Shared>> {
        let place = self.uses.shards.of(organisation)?;
        self.of_shards.read().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// Accepts no more requests; those that wait are still answered.
    pub(crate) fn close(&self) {
        self.first.close();
        self.of_shards.read().unwrap_or_else(PoisonError::into_inner).iter().for_each(|bucket| bucket.close());
    }

    /// Learns which shards there are, and where. What is wrong until then only costs time.
    pub(crate) fn learn(&self, connection: &mut PgConnection) -> QueryResult<()> {
        let seen = Shards::look(connection)?;
        if self.uses.shards.are(&seen) {
            return Ok(());
        }
        let mut of_shards = self.of_shards.write().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<_> = self.uses.shards.all().into_iter().zip(of_shards.iter().cloned()).collect();
        match seen.iter().map(|shard| self.bucket(shard, &known)).collect::<std::io::Result<Vec<_>>>() {
            Ok(buckets) => {
                let over = std::mem::replace(&mut *of_shards, buckets);
                self.uses.shards.set(seen);
                // Whoever waits in a bucket that is no more is still answered.
                let is_over = |bucket: &&Arc<Shared>| !of_shards.iter().any(|other| Arc::ptr_eq(bucket, other));
                over.iter().filter(is_over).for_each(|bucket| bucket.close());
                tracing::info!(shards = of_shards.len(), "the shards of the patients are known");
            }
            Err(error) => tracing::warn!(%error, "no thread can be started for a shard; trying again later"),
        }
        Ok(())
    }

    /// The bucket for a shard: the one that it has, or a new one.
    fn bucket(&self, shard: &Shard, known: &[(Shard, Arc<Shared>)]) -> std::io::Result<Arc<Shared>> {
        let node = Node { name: shard.node(), url: shard.url(&self.first.url) };
        if let Some((_, bucket)) = known.iter().find(|(known, _)| known.is_same_range(shard)) {
            bucket.move_to(node);
            return Ok(Arc::clone(bucket));
        }
        let bucket = Arc::new(self.first.beside(node));
        supervisor::start(&bucket, 1)?;
        Ok(bucket)
    }
}
