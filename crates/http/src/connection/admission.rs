//! Which connections are let in, and which are closed to make room when there are too many: first those without a TLS
//! handshake, then those without a request, then those that have been idle longest. No address can keep the others out,
//! and no connection is closed while a request on it is being served.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use intake_domain::Network;
use intake_metrics::{Gauge, Kind, MetricsText};

use crate::connection::eviction::{EvictionOrder, Reached, Signals};
use crate::hsts::Hsts;
use crate::trusted_proxies::TrustedProxies;

/// The part of all connections that is kept free for newcomers while evicted connections are still closing.
const RESERVED_PART: usize = 16;
const RESERVED_MAX: usize = 256;

/// Clients that may leave answers unread at once; the next one is disconnected without a wait. Every answer fits into
/// the system's buffers, so clients that read now and then do not count.
const UNREAD_MAX: usize = 1_024;

/// All open connections, and how many there may be.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    max: usize,
    open: AtomicUsize,
    /// Those that have shaken hands and not sent a request yet.
    secured: Gauge,
    /// Those that have sent a request.
    used: Gauge,
    /// Those on which a request is being served.
    busy: Gauge,
    unread: AtomicUsize,
    are_draining: AtomicBool,
    proxies: TrustedProxies,
    hsts: Hsts,
    documentation: Option<String>,
    evictable: Mutex<EvictionOrder>,
}

/// The slot of one connection, from when it is accepted until it is closed.
pub struct Slot {
    connections: Connections,
    /// None for a trusted proxy, whose connections are never evicted: it speaks for many clients.
    number: Option<u64>,
    reached: Cell<Reached>,
    signals: Arc<Signals>,
}

/// Counts one client whose answers wait to be read.
pub(crate) struct Unread(Connections);

impl Connections {
    /// Allows up to `max` connections, not counting those of trusted proxies. Refusals link to the documentation at
    /// this address.
    #[must_use]
    pub fn new(max: usize, proxies: TrustedProxies, hsts: Hsts, documentation: Option<String>) -> Self {
        let max = max.saturating_sub((max / RESERVED_PART).clamp(1, RESERVED_MAX)).max(1);
        Self(Arc::new(Inner {
            max,
            open: AtomicUsize::new(0),
            secured: Gauge::new(),
            used: Gauge::new(),
            busy: Gauge::new(),
            unread: AtomicUsize::new(0),
            are_draining: AtomicBool::new(false),
            proxies,
            hsts,
            documentation,
            evictable: Mutex::default(),
        }))
    }

    pub(crate) fn hsts(&self) -> Hsts {
        self.0.hsts
    }

    pub(crate) fn documentation(&self) -> Option<&str> {
        self.0.documentation.as_deref()
    }

    /// Gives a new connection a slot, and evicts another one if it must. None for an address that has its share and is
    /// busy on all of its connections. Proxies are trusted on the plain listener only.
    #[must_use]
    pub fn admit(&self, peer: Option<IpAddr>, is_secure: bool) -> Option<Slot> {
        let open = self.0.open.fetch_add(1, Ordering::Relaxed) + 1;
        let mut slot = Slot {
            connections: self.clone(),
            number: None,
            reached: Cell::new(Reached::Accepted),
            signals: Arc::default(),
        };
        if !is_secure && peer.is_some_and(|peer| self.0.proxies.contain(peer)) {
            return Some(slot);
        }
        let network = Network::of_subscriber(peer);
        let mut evictable = self.evictable();
        let share = self.0.max / 4;
        let has_its_share = evictable.count(network) >= share.max(1);
        let evicted = if open > self.0.max / 2 && has_its_share {
            Some(evictable.evict(Some(network))?)
        } else if open > self.0.max {
            evictable.evict(None)
        } else {
            None
        };
        slot.number = Some(evictable.add(network, Arc::clone(&slot.signals)));
        drop(evictable);
        if let Some(evicted) = evicted {
            evicted.is_evicted.store(true, Ordering::Release);
            evicted.waker.wake();
        }
        Some(slot)
    }

    /// Allows an answer to wait for its client, unless too many do.
    pub(crate) fn wait_for_reader(&self) -> Option<Unread> {
        let unread = Unread(self.clone());
        (self.0.unread.fetch_add(1, Ordering::Relaxed) < UNREAD_MAX).then_some(unread)
    }

    /// Returns whether idle connections should be closed early.
    pub(crate) fn are_crowded(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > self.0.max / 4 * 3
    }

    /// Makes the next answer over each connection its last, so that clients connect elsewhere.
    pub fn drain(&self) {
        self.0.are_draining.store(true, Ordering::Relaxed);
    }

    /// Returns whether the next answer over each connection is its last.
    #[must_use]
    pub fn are_draining(&self) -> bool {
        self.0.are_draining.load(Ordering::Relaxed)
    }

    /// Returns whether there are connections over which no request has come yet.
    #[must_use]
    pub fn have_newcomers(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) as u64 > self.0.used.get()
    }

    /// Writes how many are open, and what happens on them.
    pub fn write_metrics(&self, text: &mut MetricsText) {
        let open = self.0.open.load(Ordering::Relaxed);
        text.gauge("intake_connections", "Connections of clients that are open.", open);
        text.gauge("intake_connections_max", "Connections of clients that there may be.", self.0.max);
        let help = "Connections of clients by what happens on them.";
        let mut by_state = text.family("intake_connections_by_state", help, Kind::Gauge);
        for (state, number) in self.by_state() {
            by_state.sample(&[("state", state)], number);
        }
        text.gauge("intake_requests_in_flight", "Requests that are being served.", self.0.busy.get());
    }

    /// Returns how many connections wait for a TLS handshake or a first request, have shaken hands and sent no request
    /// yet, wait for another request, and have one that is being served.
    fn by_state(&self) -> [(&'static str, u64); 4] {
        let open = self.0.open.load(Ordering::Relaxed) as u64;
        let (secured, used, busy) = (self.0.secured.get(), self.0.used.get(), self.0.busy.get());
        let accepted = open.saturating_sub(secured + used);
        [("accepted", accepted), ("secured", secured), ("idle", used.saturating_sub(busy)), ("busy", busy)]
    }

    fn evictable(&self) -> MutexGuard<'_, EvictionOrder> {
        // No method of it can panic halfway through a change.
        self.0.evictable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Waits for a future, unless the slot is taken away first.
    pub async fn keep_while<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll_evicted(context).map(|()| None),
        })
        .await
    }

    /// The TLS handshake is complete.
    pub fn handshake_done(&self) {
        self.promote(Reached::Handshake);
    }

    pub(crate) fn request_begins(&self) {
        self.promote(Reached::Request);
        if !self.signals.is_busy.swap(true, Ordering::Relaxed) {
            self.connections.0.busy.add(1);
        }
        self.signals.was_used.store(true, Ordering::Relaxed);
    }

    pub(crate) fn request_ends(&self) {
        if self.signals.is_busy.swap(false, Ordering::Relaxed) {
            self.connections.0.busy.subtract(1);
        }
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Ready when another connection needs the slot.
    pub(crate) fn poll_evicted(&self, context: &Context<'_>) -> Poll<()> {
        self.signals.waker.register(context.waker());
        if self.signals.is_evicted.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn promote(&self, reached: Reached) {
        let before = self.reached.get();
        if before >= reached {
            return;
        }
        self.reached.set(reached);
        // Counted as further on first, so that it is never counted as neither.
        self.count(reached).into_iter().for_each(|count| count.add(1));
        self.count(before).into_iter().for_each(|count| count.subtract(1));
        if let Some(number) = self.number {
            self.connections.evictable().move_back(number, reached);
        }
    }

    /// The number of connections that have got just as far.
    fn count(&self, reached: Reached) -> Option<&Gauge> {
        match reached {
            Reached::Accepted => None,
            Reached::Handshake => Some(&self.connections.0.secured),
            Reached::Request => Some(&self.connections.0.used),
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.0.unread.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.connections.evictable().remove(number);
        }
        self.request_ends();
        self.count(self.reached.get()).into_iter().for_each(|count| count.subtract(1));
        self.connections.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 16 slots, one of them reserved.
    fn connections() -> Connections {
        Connections::new(16, TrustedProxies::new(vec!["10.9.0.0/16".parse().unwrap()]), Hsts::Host, None)
    }

    fn from(connections: &Connections, address: [u8; 4]) -> Slot {
        connections.admit(Some(address.into()), false).unwrap()
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.signals.is_evicted.load(Ordering::Relaxed)
    }

    fn evicted(slots: &[Slot]) -> Vec<usize> {
        slots.iter().enumerate().filter(|(_, slot)| is_evicted(slot)).map(|(index, _)| index).collect()
    }

    #[test]
    fn the_connection_that_got_least_far_and_came_first_is_evicted_first() {
        let connections = connections();
        let slots: Vec<_> = (0..15).map(|host| from(&connections, [10, 0, 0, host])).collect();
        slots.iter().skip(2).for_each(Slot::handshake_done);
        slots.iter().skip(4).for_each(Slot::request_begins);
        slots.iter().skip(6).for_each(Slot::request_ends);
        let mut newcomers = Vec::new();
        for host in 100..106 {
            newcomers.push(from(&connections, [10, 0, 1, host]));
            newcomers.last().unwrap().request_begins();
        }
        // The busy ones, 4 and 5, stay; all others were used since they were last candidates.
        assert_eq!(evicted(&slots), [0, 1, 2, 3, 6, 7]);
    }

    #[test]
    fn an_address_with_its_share_evicts_its_own_connections_when_half_are_taken() {
        let connections = connections();
        let greedy: Vec<_> = (0..40).map(|_| from(&connections, [10, 0, 0, 1])).collect();
        assert_eq!(evicted(&greedy).len(), 40 - 7);
        assert!(!is_evicted(greedy.last().unwrap()));
        let other = from(&connections, [10, 0, 0, 2]);
        other.handshake_done();
        drop(from(&connections, [10, 0, 0, 1]));
        assert!(!is_evicted(&other));
    }

    #[test]
    fn an_address_that_is_busy_on_its_whole_share_gets_no_more() {
        let connections = connections();
        let busy: Vec<_> = (0..7).map(|_| from(&connections, [10, 0, 0, 1])).collect();
        busy.iter().for_each(Slot::request_begins);
        assert!(connections.admit(Some([10, 0, 0, 1].into()), false).is_none());
        assert!(connections.admit(Some([10, 0, 0, 2].into()), false).is_some());
        assert_eq!(evicted(&busy).len(), 0);
        drop(busy);
    }

    #[test]
    fn a_trusted_proxy_is_evicted_like_anyone_over_the_listener_that_takes_no_proxies() {
        for is_secure in [false, true] {
            let connections = connections();
            let proxy = connections.admit(Some([10, 9, 0, 1].into()), is_secure).unwrap();
            let others: Vec<_> = (0..15).map(|host| from(&connections, [10, 0, 0, host])).collect();
            assert_eq!((is_evicted(&proxy), others.len()), (is_secure, 15));
        }
    }

    #[test]
    fn every_connection_is_counted_in_one_state() {
        let connections = connections();
        let counted = || connections.by_state().map(|(_, number)| number);
        let slots: Vec<_> = (0..4).map(|host| from(&connections, [10, 0, 0, host])).collect();
        let proxy = from(&connections, [10, 9, 0, 1]);
        assert_eq!(counted(), [5, 0, 0, 0]);
        slots.iter().skip(1).for_each(Slot::handshake_done);
        slots.iter().skip(2).for_each(Slot::request_begins);
        proxy.request_begins();
        slots.iter().skip(3).for_each(Slot::request_ends);
        assert_eq!(counted(), [1, 1, 1, 2]);
        // The end of what was no request, and of a connection in the midst of one.
        slots.iter().skip(3).for_each(Slot::request_ends);
        assert_eq!(counted(), [1, 1, 1, 2]);
        drop((slots, proxy));
        assert_eq!(counted(), [0, 0, 0, 0]);
    }

    #[test]
    fn a_trusted_proxy_has_no_limit_and_is_never_evicted() {
        let connections = connections();
        let proxy: Vec<_> = (0..40).map(|_| from(&connections, [10, 9, 0, 1])).collect();
        assert_eq!(evicted(&proxy).len(), 0);
    }
}
