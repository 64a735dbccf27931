//! Which lane stores the patients of an organisation. On one PostgreSQL all share one. On Citus each shard has a lane,
//! whose writer is connected to the node that holds it, so that a batch is one statement on one node and a node that is
//! away delays nobody else; the first lane then only finds out where the shards lie.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use uuid::Uuid;

use crate::database::cluster::nodes::connect_to_all;
use crate::database::cluster::shards::{Shard, Shards};
use crate::database::connecting::connect::{CONNECT_TIMEOUT, ConnectError, OpenConnection, ask, connect};
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::without_row_values;
use crate::patients::batch::store::Context;
use crate::patients::group_commit::lane::{Gather, Lane, LaneConfig, Place};
use crate::patients::group_commit::supervisor;

/// On Citus a statement costs more than its rows do: under load a writer lets some gather first.
const GATHER_PAUSE: Duration = Duration::from_millis(4);
const GATHER_LOAD: usize = 8;

pub(crate) struct Lanes {
    url: DatabaseUrl,
    context: Context,
    gather: Gather,
    /// Takes all that no other lane takes.
    first: Arc<Lane>,
    of_shards: RwLock<ShardLanes>,
}

/// The lanes of these shards, in their order.
#[derive(Default)]
struct ShardLanes {
    shards: Arc<Vec<Shard>>,
    lanes: Vec<Arc<Lane>>,
}

/// Target of a lane's connections: the node that holds its shard, or where the configured address leads.
struct Node {
    url: DatabaseUrl,
    shards: Shards,
    /// As it was when its lane began. None: the first lane's.
    shard: Option<Shard>,
}

impl Lanes {
    /// Starts the first lane, which will learn whether there are shards.
    pub(crate) fn start(url: &DatabaseUrl, writers: usize, context: Context) -> std::io::Result<Self> {
        let gather = Gather { pause: GATHER_PAUSE, load: GATHER_LOAD, running: Arc::new(AtomicUsize::new(0)) };
        let place = Box::new(Node { url: url.clone(), shards: context.directory.shards.clone(), shard: None });
        let first = supervisor::start(LaneConfig { place, context: context.clone(), writers, gather: None })?;
        Ok(Self { url: url.clone(), context, gather, first, of_shards: RwLock::default() })
    }

    pub(crate) fn first(&self) -> &Arc<Lane> {
        &self.first
    }

    /// The lane of the shard that holds rows of this value, an organisation's or a key's home. The first lane where
    /// there are no shards.
    pub(crate) fn of(&self, value: Uuid) -> Arc<Lane> {
        let shards = self.context.directory.shards.all();
        let mut of_shards = self.of_shards.read().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&shards, &of_shards.shards) {
            drop(of_shards);
            self.begin_lanes(&shards);
            of_shards = self.of_shards.read().unwrap_or_else(PoisonError::into_inner);
        }
        let place = Shards::place(&of_shards.shards, value);
        Arc::clone(place.and_then(|place| of_shards.lanes.get(place)).unwrap_or(&self.first))
    }

    /// The lanes of the shards; none on one PostgreSQL.
    pub(crate) fn of_shards(&self) -> Vec<Arc<Lane>> {
        self.of_shards.read().unwrap_or_else(PoisonError::into_inner).lanes.clone()
    }

    /// Accepts no more requests; those that wait are still answered.
    pub(crate) fn close(&self) {
        self.first.close();
        self.of_shards.read().unwrap_or_else(PoisonError::into_inner).lanes.iter().for_each(|lane| lane.close());
    }

    /// Begins lanes for these shards, and ends those of shards that are no more.
    fn begin_lanes(&self, shards: &Arc<Vec<Shard>>) {
        let mut of_shards = self.of_shards.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(shards, &of_shards.shards) {
            return;
        }
        let lanes: std::io::Result<Vec<_>> = shards.iter().map(|shard| self.lane(shard, &of_shards)).collect();
        let lanes = lanes.unwrap_or_else(|error| {
            tracing::warn!(%error, "no thread can be started for a shard; the first lane stores its patients");
            Vec::new()
        });
        let before = std::mem::replace(&mut *of_shards, ShardLanes { shards: Arc::clone(shards), lanes });
        // What waits in a lane that ends is still answered.
        let is_over = |old: &&Arc<Lane>| !of_shards.lanes.iter().any(|new| Arc::ptr_eq(old, new));
        before.lanes.iter().filter(is_over).for_each(|lane| lane.close());
        if !of_shards.lanes.is_empty() {
            tracing::info!(shards = of_shards.lanes.len(), "the map of shards is loaded");
        }
    }

    /// The lane for a shard: the one that it has, or a new one.
    fn lane(&self, shard: &Shard, known: &ShardLanes) -> std::io::Result<Arc<Lane>> {
        let mut lanes = known.shards.iter().zip(&known.lanes);
        if let Some((_, lane)) = lanes.find(|(old, _)| old.is_same_range(shard)) {
            return Ok(Arc::clone(lane));
        }
        let shards = self.context.directory.shards.clone();
        let place = Box::new(Node { url: self.url.clone(), shards, shard: Some(shard.clone()) });
        supervisor::start(LaneConfig {
            place,
            context: self.context.clone(),
            writers: 1,
            gather: Some(self.gather.clone()),
        })
    }
}

impl Node {
    /// The shard where it lies at this moment.
    fn shard(&self) -> Option<Shard> {
        let own = self.shard.as_ref()?;
        self.shards.all().iter().find(|shard| shard.is_same_range(own)).cloned()
    }

    /// Connects to the shard's node, or to another if it cannot be reached from here. That one passes the statements
    /// on, and the shard's node then runs them under its own settings.
    fn connect_for(&self, shard: &Shard, settings: &str) -> Result<OpenConnection, ConnectError> {
        match shard.url(&self.url).map(|url| connect(&url, settings)) {
            Some(Err(error @ ConnectError::NotDurable(_))) => return Err(error),
            Some(Ok(connection)) => return Ok(connection),
            Some(Err(_)) | None => {}
        }
        connect_to_all(&self.url, settings)
    }

    /// Connects to any node that holds a shard, where the configured address leads nowhere: its coordinator may be
    /// away.
    fn connect_anywhere(&self, settings: &str) -> Option<OpenConnection> {
        let shards = self.shards.all();
        let nodes: BTreeMap<String, &Shard> = shards.iter().map(|shard| (shard.node(), shard)).collect();
        nodes.values().find_map(|shard| connect_to_all(&shard.url(&self.url)?, settings).ok())
    }
}

impl Place for Node {
    /// Learns, too, where the shards lie.
    fn connect(&self, settings: &str) -> Result<OpenConnection, ConnectError> {
        let connection = match self.shard() {
            Some(shard) => self.connect_for(&shard, settings),
            None => connect_to_all(&self.url, settings).or_else(|error| self.connect_anywhere(settings).ok_or(error)),
        }?;
        let shards = self.shards.clone();
        let (connection, learned) = ask(connection, CONNECT_TIMEOUT, move |connection| shards.learn(connection))?;
        if let Err(error) = learned {
            let error = without_row_values(error);
            tracing::debug!(%error, "the shards of the patients cannot be seen");
        }
        Ok(connection)
    }

    fn name(&self) -> Option<String> {
        self.shard().map(|shard| shard.node())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use diesel::connection::SimpleConnection;
    use intake_test_support::TestDatabase;

    use super::*;
    use crate::database::connecting::durability::Durability;

    #[test]
    fn a_server_that_stops_once_it_is_connected_does_not_keep_a_lane_waiting() {
        let database = TestDatabase::new();
        let mut holder = database.connect();
        // What a new connection asks once it is set up waits for this lock.
        holder.batch_execute("BEGIN; LOCK TABLE pg_extension IN ACCESS EXCLUSIVE MODE").unwrap();
        let (done, connected) = channel();
        let url: DatabaseUrl = database.service.expose().parse().unwrap();
        let url = url.with_durability(Durability::None);
        std::thread::spawn(move || {
            let node = Node { url, shards: Shards::default(), shard: None };
            let _ = done.send(node.connect("").err());
        });
        let refused = connected.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(refused, Some(ConnectError::Hangs)), "{refused:?}");
        holder.batch_execute("ROLLBACK").unwrap();
    }
}
