//! How often somebody may try a password: per account and address, so that a stranger elsewhere never locks the owner out,
//! and per address, so that nobody tries one password on every account. Codes are few, so tries of them are counted for each
//! member wherever they come from: only who knows the password gets so far.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use intake_domain::MemberId;
use intake_http::TokenBuckets;

const PER_ACCOUNT: NonZeroU32 = NonZeroU32::new(10).unwrap();
const PER_ACCOUNT_INTERVAL: Duration = Duration::from_secs(30);
const PER_ADDRESS: NonZeroU32 = NonZeroU32::new(100).unwrap();
const PER_ADDRESS_INTERVAL: Duration = Duration::from_secs(3);
const CODES: NonZeroU32 = NonZeroU32::new(10).unwrap();
const CODES_INTERVAL: Duration = Duration::from_secs(60);

/// The tries of everyone.
pub struct Throttle {
    accounts: TokenBuckets<(String, Option<IpAddr>)>,
    addresses: TokenBuckets<Option<IpAddr>>,
    codes: TokenBuckets<MemberId>,
}

impl Throttle {
    /// Nobody has tried yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            accounts: TokenBuckets::new(PER_ACCOUNT_INTERVAL, PER_ACCOUNT),
            addresses: TokenBuckets::new(PER_ADDRESS_INTERVAL, PER_ADDRESS),
            codes: TokenBuckets::new(CODES_INTERVAL, CODES),
        }
    }

    /// Notes a try. Gives how long to wait if there were too many.
    pub(crate) fn wait(&self, account: &str, address: Option<IpAddr>) -> Option<Duration> {
        let by_address = self.addresses.take(&address).wait;
        by_address.or_else(|| self.accounts.take(&(account.to_lowercase(), address)).wait)
    }

    /// The same of a code.
    pub(crate) fn wait_for_code(&self, member: MemberId) -> Option<Duration> {
        self.codes.take(&member).wait
    }
}

/// What somebody is told who tried too often.
pub(crate) fn told(wait: Duration) -> String {
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

    #[test]
    fn a_stranger_elsewhere_does_not_lock_the_owner_out() {
        let throttle = Throttle::new();
        let (stranger, owner) = (Some([10, 0, 0, 1].into()), Some([10, 0, 0, 2].into()));
        for _ in 0..10 {
            assert_eq!(throttle.wait("Ada@Example.com", stranger), None);
        }
        assert!(throttle.wait("ada@example.com", stranger).is_some());
        assert_eq!(throttle.wait("ada@example.com", owner), None);
        assert_eq!(throttle.wait("grace@example.com", stranger), None);
    }

    #[test]
    fn one_address_cannot_try_every_account() {
        let throttle = Throttle::new();
        let address = Some([10, 0, 0, 1].into());
        let refused = (0..200).filter(|number| throttle.wait(&number.to_string(), address).is_some()).count();
        assert_eq!(refused, 100);
    }
}
