//! The limit on guesses at passwords and codes. Attempts by strangers are counted for each subscriber's network, for
//! each account tried from that network, for the larger network that one customer can have, and for each account
//! wherever they come from. Attempts from a network that a
//! member has signed in from before are counted only for this account from that network, so that attempts elsewhere, or
//! at other accounts, cannot lock the member out. Codes are short, so attempts at them are counted for each member
//! wherever they come from: only someone who knows the password gets that far.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use intake_domain::{EmailAddress, MemberId, Network, TokenDigest};
use intake_http::TokenBuckets;

const PER_ACCOUNT_AND_SUBSCRIBER: NonZeroU32 = NonZeroU32::new(10).unwrap();
const PER_ACCOUNT_AND_SUBSCRIBER_INTERVAL: Duration = Duration::from_secs(30);
const PER_SUBSCRIBER: NonZeroU32 = NonZeroU32::new(100).unwrap();
const PER_SUBSCRIBER_INTERVAL: Duration = Duration::from_secs(3);
/// Four of its subscribers at once: who has a network of IPv6 has thousands of them, and must not take the turns of
/// all others.
const PER_SITE: NonZeroU32 = NonZeroU32::new(400).unwrap();
const PER_SITE_INTERVAL: Duration = Duration::from_secs(1);
/// A hundred at once, then a hundred an hour: too few to find a password of twelve characters, and enough for a member
/// on the move to get through.
const PER_ACCOUNT: NonZeroU32 = NonZeroU32::new(100).unwrap();
const PER_ACCOUNT_INTERVAL: Duration = Duration::from_secs(36);
const CODES: NonZeroU32 = NonZeroU32::new(10).unwrap();
const CODES_INTERVAL: Duration = Duration::from_secs(60);
/// Reset links that one subscriber may ask for, such as a practice with many members.
const RESETS: NonZeroU32 = NonZeroU32::new(10).unwrap();
const RESETS_INTERVAL: Duration = Duration::from_secs(360);
const CONFIRMATIONS: NonZeroU32 = NonZeroU32::new(10).unwrap();
const CONFIRMATIONS_INTERVAL: Duration = Duration::from_secs(30);

/// Counts attempts. An account is identified by the email address that was typed, whether or not it is a member's: a
/// wait must not reveal which addresses are known. A text that is not an address belongs to no account.
pub(crate) struct Throttle {
    pairs: TokenBuckets<(String, Network)>,
    subscribers: TokenBuckets<Network>,
    sites: TokenBuckets<Network>,
    accounts: TokenBuckets<String>,
    codes: TokenBuckets<(MemberId, bool)>,
    confirmations: TokenBuckets<TokenDigest>,
    resets: TokenBuckets<Network>,
}

impl Throttle {
    /// A throttle without any attempts.
    pub(crate) fn new() -> Self {
        Self {
            pairs: TokenBuckets::new(PER_ACCOUNT_AND_SUBSCRIBER_INTERVAL, PER_ACCOUNT_AND_SUBSCRIBER),
            subscribers: TokenBuckets::new(PER_SUBSCRIBER_INTERVAL, PER_SUBSCRIBER),
            sites: TokenBuckets::new(PER_SITE_INTERVAL, PER_SITE),
            accounts: TokenBuckets::new(PER_ACCOUNT_INTERVAL, PER_ACCOUNT),
            codes: TokenBuckets::new(CODES_INTERVAL, CODES),
            confirmations: TokenBuckets::new(CONFIRMATIONS_INTERVAL, CONFIRMATIONS),
            resets: TokenBuckets::new(RESETS_INTERVAL, RESETS),
        }
    }

    /// Counts an attempt from an address. Returns how long to wait, if there were too many.
    pub(crate) fn wait(&self, account: Option<&EmailAddress>, address: Option<IpAddr>) -> Option<Duration> {
        let account = account?;
        self.pairs.take(&(account.folded(), Network::of_subscriber(address))).wait
    }

    /// Also counts the attempt as a stranger's. A member in a familiar network may sign in in spite of the wait. With a
    /// wrong password the member gets a stranger's answer, because another one would reveal who is a member.
    pub(crate) fn wait_as_stranger(&self, account: Option<&EmailAddress>, address: Option<IpAddr>) -> Option<Duration> {
        let by_site = self.wait_as_neighbour(address).or_else(|| self.sites.take(&Network::of_site(address)).wait);
        by_site.or_else(|| self.accounts.take(&account?.folded()).wait)
    }

    /// Counts the attempt as one from a familiar network, which strangers around it do not slow down.
    pub(crate) fn wait_as_neighbour(&self, address: Option<IpAddr>) -> Option<Duration> {
        self.subscribers.take(&Network::of_subscriber(address)).wait
    }

    /// Takes back what [`Throttle::wait_as_stranger`] counted, once the right password came from a familiar network, or
    /// the provider knew the person.
    pub(crate) fn was_no_stranger(&self, account: Option<&EmailAddress>, address: Option<IpAddr>) {
        self.subscribers.give_back(&Network::of_subscriber(address));
        self.sites.give_back(&Network::of_site(address));
        if let Some(account) = account {
            self.accounts.give_back(&account.folded());
        }
    }

    /// Counts an attempt at a code. Recovery codes are counted apart, so that guesses at the app's codes do not use up
    /// the owner's attempts at them.
    pub(crate) fn wait_for_code(&self, member: MemberId, is_recovery_code: bool) -> Option<Duration> {
        self.codes.take(&(member, is_recovery_code)).wait
    }

    /// Counts a reset link that is asked for.
    pub(crate) fn wait_for_reset(&self, address: Option<IpAddr>) -> Option<Duration> {
        self.resets.take(&Network::of_subscriber(address)).wait
    }

    /// Counts an attempt at the password in a session.
    pub(crate) fn wait_for_confirmation(&self, session: &TokenDigest) -> Option<Duration> {
        self.confirmations.take(session).wait
    }

    /// Takes back what [`Throttle::wait_for_confirmation`] counted: the password was right.
    pub(crate) fn was_confirmed(&self, session: &TokenDigest) {
        self.confirmations.give_back(session);
    }
}

/// The message after too many attempts.
pub(crate) fn too_many_attempts(wait: Duration) -> String {
    format!("Too many attempts. Try again in {} seconds.", wait.as_secs() + 1)
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> Option<EmailAddress> {
        Some(text.parse().unwrap())
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_stranger_elsewhere_does_not_use_up_the_owners_attempts() {
        let throttle = Throttle::new();
        let (stranger, owner) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..10 {
            assert_eq!(throttle.wait(account("Ada@Example.com").as_ref(), stranger), None);
        }
        assert!(throttle.wait(account("ada@example.com").as_ref(), stranger).is_some());
        assert_eq!(throttle.wait(account("ada@example.com").as_ref(), owner), None);
        assert_eq!(throttle.wait(account("grace@example.com").as_ref(), stranger), None);
    }

    #[test]
    fn every_address_of_a_subscriber_counts_as_one() {
        let throttle = Throttle::new();
        let ada = account("ada@example.com");
        let refused = |number: u128| {
            let address = Some(IpAddr::from((0x2001_0db8_u128 << 96 | number).to_be_bytes()));
            throttle.wait(ada.as_ref(), address).is_some()
        };
        assert_eq!((0..150).filter(|number| refused(*number)).count(), 140);
        assert!(!refused(1 << 64), "another subscriber");
    }

    #[test]
    fn one_subscriber_cannot_try_every_account() {
        let throttle = Throttle::new();
        let refused = |number: &i32| {
            let account = account(&format!("member{number}@example.com"));
            throttle.wait_as_stranger(account.as_ref(), address("10.0.0.1")).is_some()
        };
        assert_eq!((0..200).filter(refused).count(), 100);
    }

    #[test]
    fn a_customer_with_many_networks_of_ipv6_has_no_more_attempts_than_a_few_subscribers() {
        let throttle = Throttle::new();
        let refused = |number: u128| {
            let address = Some(IpAddr::from((0x2001_0db8_u128 << 96 | number << 64).to_be_bytes()));
            throttle.wait_as_stranger(None, address).is_some()
        };
        assert_eq!((0..1_000).filter(|number| refused(*number % 256)).count(), 600);
        assert!(!refused(1 << 16), "another customer");
        let address = Some(IpAddr::from((0x2001_0db8_u128 << 96 | 300 << 64).to_be_bytes()));
        assert_eq!(throttle.wait_as_neighbour(address), None, "a member who is at home there");
    }

    #[test]
    fn strangers_from_everywhere_have_a_hundred_attempts_at_each_account() {
        let throttle = Throttle::new();
        let try_from = |number: u32, name: &str| {
            throttle.wait_as_stranger(account(name).as_ref(), Some(IpAddr::V4(number.into()))).is_some()
        };
        assert_eq!((0..150).filter(|number| try_from(*number, "ada@example.com")).count(), 50);
        assert!(!try_from(1_000, "grace@example.com"));
    }
}
