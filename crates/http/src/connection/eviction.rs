//! The connections that may be closed to make room for others, in the order in which they would be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::task::AtomicWaker;
use intake_domain::Network;

/// Number of busy connections that are passed over in search of an idle one, before the newcomer is turned away itself.
const CANDIDATES_MAX: usize = 32;

/// All connections except those of trusted proxies.
#[derive(Default)]
pub(crate) struct EvictionOrder {
    last_number: u64,
    connections: HashMap<u64, Entry>,
    by_rank: BTreeMap<Rank, u64>,
    by_network: BTreeMap<(Network, Rank), u64>,
    count_by_network: HashMap<Network, usize>,
}

pub(crate) struct Entry {
    network: Network,
    rank: Rank,
    signals: Arc<Signals>,
}

/// The lowest rank is closed first: the stage that was reached, then the order in which connections reached it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(Reached, u64);

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    Accepted,
    Handshake,
    Request,
}

/// Signals between a connection and this register, without a lock.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) is_busy: AtomicBool,
    pub(crate) was_used: AtomicBool,
    pub(crate) is_evicted: AtomicBool,
    pub(crate) waker: AtomicWaker,
}

impl EvictionOrder {
    /// Returns how many connections a network has.
    pub(crate) fn count(&self, network: Network) -> usize {
        self.count_by_network.get(&network).copied().unwrap_or_default()
    }

    /// Adds a new connection behind all others that have got no further, and returns its number.
    pub(crate) fn add(&mut self, network: Network, signals: Arc<Signals>) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        self.insert(number, Entry { network, rank: Rank(Reached::Accepted, number), signals });
        number
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.connections.remove(&number)?;
        self.by_rank.remove(&entry.rank);
        self.by_network.remove(&(entry.network, entry.rank));
        if let Some(count) = self.count_by_network.get_mut(&entry.network) {
            *count -= 1;
            if *count == 0 {
                self.count_by_network.remove(&entry.network);
            }
        }
        Some(entry)
    }

    /// Moves a connection behind all others that have got as far.
    pub(crate) fn move_back(&mut self, number: u64, reached: Reached) {
        if let Some(entry) = self.remove(number) {
            self.last_number += 1;
            self.insert(number, Entry { rank: Rank(reached, self.last_number), ..entry });
        }
    }

    /// Removes the first connection that is not busy, of one network or of all, and returns its signals. None if all
    /// candidates are busy.
    pub(crate) fn evict(&mut self, network: Option<Network>) -> Option<Arc<Signals>> {
        for _ in 0..CANDIDATES_MAX {
            let number = match network {
                None => self.by_rank.first_key_value().map(|(_, number)| *number),
                Some(network) => {
                    let lowest = (network, Rank(Reached::Accepted, 0));
                    let mut own = self.by_network.range(lowest..);
                    own.next().filter(|((of, _), _)| *of == network).map(|(_, number)| *number)
                }
            }?;
            let signals = &self.connections.get(&number)?.signals;
            if signals.was_used.swap(false, Ordering::Relaxed) || signals.is_busy.load(Ordering::Relaxed) {
                self.move_back(number, Reached::Request);
            } else {
                return self.remove(number).map(|entry| entry.signals);
            }
        }
        None
    }

    fn insert(&mut self, number: u64, entry: Entry) {
        self.by_rank.insert(entry.rank, number);
        self.by_network.insert((entry.network, entry.rank), number);
        *self.count_by_network.entry(entry.network).or_default() += 1;
        self.connections.insert(number, entry);
    }
}
