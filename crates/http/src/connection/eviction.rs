//! The connections that may be closed to make room for others, in the order in which they would be.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::task::AtomicWaker;

/// How many busy connections are passed over in search of an idle one, before the newcomer is turned away itself.
const CANDIDATES_MAX: usize = 32;

/// All connections except those of trusted proxies.
#[derive(Default)]
pub(crate) struct EvictionOrder {
    last_number: u64,
    connections: HashMap<u64, Entry>,
    by_rank: BTreeMap<Rank, u64>,
    by_address: BTreeMap<(IpAddr, Rank), u64>,
    count_by_address: HashMap<IpAddr, usize>,
}

pub(crate) struct Entry {
    address: IpAddr,
    rank: Rank,
    signals: Arc<Signals>,
}

/// The lowest rank is closed first: the stage that was reached, then the order in which connections reached it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(Reached, u64);

/// How far a connection has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    Accepted,
    Handshake,
    Request,
}

/// What a connection and this register tell each other without a lock.
#[derive(Default)]
pub(crate) struct Signals {
    pub(crate) is_busy: AtomicBool,
    pub(crate) was_used: AtomicBool,
    pub(crate) is_evicted: AtomicBool,
    pub(crate) waker: AtomicWaker,
}

impl EvictionOrder {
    /// How many connections an address has.
    pub(crate) fn count(&self, address: IpAddr) -> usize {
        self.count_by_address.get(&address).copied().unwrap_or_default()
    }

    /// Adds a new connection behind all others that have got no further, and returns its number.
    pub(crate) fn add(&mut self, address: IpAddr, signals: Arc<Signals>) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        self.insert(number, Entry { address, rank: Rank(Reached::Accepted, number), signals });
        number
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.connections.remove(&number)?;
        self.by_rank.remove(&entry.rank);
        self.by_address.remove(&(entry.address, entry.rank));
        if let Some(count) = self.count_by_address.get_mut(&entry.address) {
            *count -= 1;
            if *count == 0 {
                self.count_by_address.remove(&entry.address);
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

    /// Removes the first connection that is not busy, of one address or of all, and returns its signals. None if all
    /// candidates are busy.
    pub(crate) fn evict(&mut self, address: Option<IpAddr>) -> Option<Arc<Signals>> {
        for _ in 0..CANDIDATES_MAX {
            let number = match address {
                None => self.by_rank.first_key_value().map(|(_, number)| *number),
                Some(address) => {
                    let lowest = (address, Rank(Reached::Accepted, 0));
                    let mut own = self.by_address.range(lowest..);
                    own.next().filter(|((of, _), _)| *of == address).map(|(_, number)| *number)
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
        self.by_address.insert((entry.address, entry.rank), number);
        *self.count_by_address.entry(entry.address).or_default() += 1;
        self.connections.insert(number, entry);
    }
}
