//! Whoever is connected and may be asked to leave, in the order in which they would be.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::task::AtomicWaker;

/// How many who are busy are passed over for a newcomer before it is turned away itself.
const LOOKS_MAX: usize = 32;

/// Everyone who is connected, except trusted proxies.
#[derive(Default)]
pub(crate) struct Guests {
    last: u64,
    guests: HashMap<u64, Guest>,
    by_turn: BTreeMap<Turn, u64>,
    by_address: BTreeMap<(IpAddr, Turn), u64>,
    of_address: HashMap<IpAddr, usize>,
}

pub(crate) struct Guest {
    address: IpAddr,
    turn: Turn,
    signs: Arc<Signs>,
}

/// When somebody would have to leave: the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(Standing, u64);

/// What a connection has shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// That it can connect.
    Unknown,
    /// That it can shake hands.
    Shaken,
    /// A request.
    Asked,
}

/// What a connection and the register tell each other without a lock.
#[derive(Default)]
pub(crate) struct Signs {
    pub(crate) is_busy: AtomicBool,
    pub(crate) was_used: AtomicBool,
    pub(crate) must_go: AtomicBool,
    pub(crate) waker: AtomicWaker,
}

impl Guests {
    /// How many connections an address has.
    pub(crate) fn held_by(&self, address: IpAddr) -> usize {
        self.of_address.get(&address).copied().unwrap_or_default()
    }

    /// Puts a newcomer behind all others who have shown no more, and gives its number.
    pub(crate) fn add(&mut self, address: IpAddr, signs: Arc<Signs>) -> u64 {
        self.last += 1;
        let number = self.last;
        self.insert(number, Guest { address, turn: Turn(Standing::Unknown, number), signs });
        number
    }

    /// Somebody has left.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Guest> {
        let guest = self.guests.remove(&number)?;
        self.by_turn.remove(&guest.turn);
        self.by_address.remove(&(guest.address, guest.turn));
        if let Some(held) = self.of_address.get_mut(&guest.address) {
            *held -= 1;
            if *held == 0 {
                self.of_address.remove(&guest.address);
            }
        }
        Some(guest)
    }

    /// Puts somebody behind all others of that standing.
    pub(crate) fn move_back(&mut self, number: u64, standing: Standing) {
        if let Some(guest) = self.remove(number) {
            self.last += 1;
            self.insert(number, Guest { turn: Turn(standing, self.last), ..guest });
        }
    }

    /// Takes out whose turn it is to leave, of an address or of all: nobody if all who are looked at are busy.
    pub(crate) fn take_leaver(&mut self, address: Option<IpAddr>) -> Option<Arc<Signs>> {
        for _ in 0..LOOKS_MAX {
            let number = match address {
                None => self.by_turn.first_key_value().map(|(_, number)| *number),
                Some(address) => {
                    let first = (address, Turn(Standing::Unknown, 0));
                    let mut held = self.by_address.range(first..);
                    held.next().filter(|((of, _), _)| *of == address).map(|(_, number)| *number)
                }
            }?;
            let signs = &self.guests.get(&number)?.signs;
            if signs.was_used.swap(false, Ordering::Relaxed) || signs.is_busy.load(Ordering::Relaxed) {
                self.move_back(number, Standing::Asked);
            } else {
                return self.remove(number).map(|guest| guest.signs);
            }
        }
        None
    }

    fn insert(&mut self, number: u64, guest: Guest) {
        self.by_turn.insert(guest.turn, number);
        self.by_address.insert((guest.address, guest.turn), number);
        *self.of_address.entry(guest.address).or_default() += 1;
        self.guests.insert(number, guest);
    }
}
