//! Everyone who is connected, and who makes room when many are: first whoever has shaken no hand yet, then whoever has asked
//! nothing, then whoever has been idle for longest. No address may keep the others out, and nobody whose request is being
//! served is sent away.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use actix_web::http::StatusCode;

use crate::answer_counts::AnswerCounts;
use crate::connection::guests::{Guests, Signs, Standing};
use crate::envelope::TrustedProxies;

/// Places that are kept free for those who come while others are leaving: one in so many, and no more than the second.
const FREE: (usize, usize) = (16, 256);

/// Clients that may leave answers unread at once: beyond that whoever is next is let go without a wait. Every answer fits into
/// the buffers of the system, so that clients who read now and then are not among them.
const UNREAD_MAX: usize = 1_024;

/// All connections that are open, and how many there may be.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    most: usize,
    open: AtomicUsize,
    unread: AtomicUsize,
    proxies: TrustedProxies,
    counts: Arc<AnswerCounts>,
    guests: Mutex<Guests>,
}

/// The place of one connection, from when it is accepted until it is closed.
pub struct Place {
    connections: Connections,
    /// A trusted proxy has none: it speaks for many.
    number: Option<u64>,
    standing: Cell<Standing>,
    signs: Arc<Signs>,
}

/// One of the clients whose answers wait to be read.
pub(crate) struct Unread(Connections);

impl Connections {
    /// Room for that many connections, of which trusted proxies may have any number; who is answered on them is counted.
    #[must_use]
    pub fn new(most: usize, proxies: TrustedProxies, counts: Arc<AnswerCounts>) -> Self {
        let most = most.saturating_sub((most / FREE.0).clamp(1, FREE.1)).max(1);
        Self(Arc::new(Inner {
            most,
            open: AtomicUsize::new(0),
            unread: AtomicUsize::new(0),
            proxies,
            counts,
            guests: Mutex::default(),
        }))
    }

    /// Gives a newcomer a place, for which somebody else may have to leave; none to an address that has more than its share
    /// and needs all of it.
    #[must_use]
    pub fn admit(&self, peer: Option<IpAddr>) -> Option<Place> {
        let open = self.0.open.fetch_add(1, Ordering::Relaxed) + 1;
        let mut place = Place {
            connections: self.clone(),
            number: None,
            standing: Cell::new(Standing::Unknown),
            signs: Arc::default(),
        };
        if peer.is_some_and(|peer| self.0.proxies.contain(peer)) {
            return Some(place);
        }
        let address = whose(peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
        let mut guests = self.guests();
        let share = self.0.most / 4;
        let has_its_share = guests.held_by(address) >= share.max(1);
        let leaver = if open > self.0.most / 2 && has_its_share {
            Some(guests.take_leaver(Some(address))?)
        } else if open > self.0.most {
            guests.take_leaver(None)
        } else {
            None
        };
        place.number = Some(guests.add(address, Arc::clone(&place.signs)));
        drop(guests);
        if let Some(leaver) = leaver {
            leaver.must_go.store(true, Ordering::Release);
            leaver.waker.wake();
        }
        Some(place)
    }

    /// Lets an answer wait for its client, if not too many do.
    pub(crate) fn wait_for_reader(&self) -> Option<Unread> {
        let unread = Unread(self.clone());
        (self.0.unread.fetch_add(1, Ordering::Relaxed) < UNREAD_MAX).then_some(unread)
    }

    /// Whether idle connections should make way soon.
    pub(crate) fn are_crowded(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) > self.0.most / 4 * 3
    }

    /// How many are open, in the text format of Prometheus.
    #[must_use]
    pub fn to_text(&self) -> String {
        let open = self.0.open.load(Ordering::Relaxed);
        format!(
            "# HELP intake_connections Connections of clients that are open.\n# TYPE intake_connections gauge\nintake_connections {open}\n"
        )
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        // Nothing in it can be half done: a panic of another thread changes nothing.
        self.0.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits for something, unless the place is needed before.
    pub async fn keep_while<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => self.poll_must_go(context).map(|()| None),
        })
        .await
    }

    /// The client has shaken hands.
    pub fn shaken(&self) {
        self.rise(Standing::Shaken);
    }

    pub(crate) fn request_begins(&self) {
        self.rise(Standing::Asked);
        self.signs.is_busy.store(true, Ordering::Relaxed);
        self.signs.was_used.store(true, Ordering::Relaxed);
    }

    pub(crate) fn request_ends(&self, status: StatusCode) {
        self.signs.is_busy.store(false, Ordering::Relaxed);
        self.connections.0.counts.add(status);
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Ready when somebody else needs the place.
    pub(crate) fn poll_must_go(&self, context: &Context<'_>) -> Poll<()> {
        self.signs.waker.register(context.waker());
        if self.signs.must_go.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn rise(&self, standing: Standing) {
        if self.standing.get() < standing
            && let Some(number) = self.number
        {
            self.standing.set(standing);
            self.connections.guests().move_back(number, standing);
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.0.unread.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.connections.guests().remove(number);
        }
        self.connections.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whom an address belongs to: a subscriber has a whole /64 of IPv6.
fn whose(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 16 places, of which 15 are given away.
    fn connections() -> Connections {
        Connections::new(16, TrustedProxies::new(vec!["10.9.0.0/16".parse().unwrap()]), Arc::default())
    }

    fn from(connections: &Connections, address: [u8; 4]) -> Place {
        connections.admit(Some(address.into())).unwrap()
    }

    fn must_go(place: &Place) -> bool {
        place.signs.must_go.load(Ordering::Relaxed)
    }

    fn who_must_go(places: &[Place]) -> Vec<usize> {
        places.iter().enumerate().filter(|(_, place)| must_go(place)).map(|(index, _)| index).collect()
    }

    #[test]
    fn whoever_has_shown_least_and_come_first_goes_first() {
        let connections = connections();
        let places: Vec<_> = (0..15).map(|host| from(&connections, [10, 0, 0, host])).collect();
        places.iter().skip(2).for_each(Place::shaken);
        places.iter().skip(4).for_each(Place::request_begins);
        places.iter().skip(6).for_each(|place| place.request_ends(StatusCode::OK));
        let mut newcomers = Vec::new();
        for host in 100..106 {
            newcomers.push(from(&connections, [10, 0, 1, host]));
            newcomers.last().unwrap().request_begins();
        }
        // The busy ones, 4 and 5, stay; of the others everyone was used since the last look.
        assert_eq!(who_must_go(&places), [0, 1, 2, 3, 6, 7]);
    }

    #[test]
    fn an_address_gives_way_to_itself_when_others_might_need_its_places() {
        let connections = connections();
        let greedy: Vec<_> = (0..40).map(|_| from(&connections, [10, 0, 0, 1])).collect();
        assert_eq!(who_must_go(&greedy).len(), 40 - 7);
        assert!(!must_go(greedy.last().unwrap()));
        let other = from(&connections, [10, 0, 0, 2]);
        other.shaken();
        drop(from(&connections, [10, 0, 0, 1]));
        assert!(!must_go(&other));
    }

    #[test]
    fn an_address_that_is_busy_with_all_it_has_gets_no_more() {
        let connections = connections();
        let busy: Vec<_> = (0..7).map(|_| from(&connections, [10, 0, 0, 1])).collect();
        busy.iter().for_each(Place::request_begins);
        assert!(connections.admit(Some([10, 0, 0, 1].into())).is_none());
        assert!(connections.admit(Some([10, 0, 0, 2].into())).is_some());
        assert_eq!(who_must_go(&busy).len(), 0);
        drop(busy);
        assert!(connections.to_text().ends_with("intake_connections 0\n"), "{}", connections.to_text());
    }

    #[test]
    fn a_trusted_proxy_has_any_number_and_never_gives_way() {
        let connections = connections();
        let proxy: Vec<_> = (0..40).map(|_| from(&connections, [10, 9, 0, 1])).collect();
        assert_eq!(who_must_go(&proxy).len(), 0);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_a_mapped_one_is_its_own() {
        let told = |address: &str| whose(address.parse().unwrap()).to_string();
        assert_eq!(told("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(told("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(told("10.0.0.1"), "10.0.0.1");
    }
}
