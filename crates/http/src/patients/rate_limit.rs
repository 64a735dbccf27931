//! A token bucket for each key: a burst of requests, then a steady rate. Only buckets that are not full are kept, in
//! memory and up to a maximum: a full bucket is the same as none. Sign-ins are limited by the same kind of buckets.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderValue;
use foldhash::quality::RandomState;
use intake_domain::KeyDigest;
use serde::Serialize;

/// Buckets are spread over this many locks, so that workers seldom wait for each other.
const SHARDS: usize = 64;
/// A shard with fewer buckets is not worth tidying.
const TIDY_FROM: usize = 64;
/// Buckets of one shard, 65,536 in all: anyone can make up keys, addresses and accounts without end, and a bucket with
/// the longest of them takes some 300 bytes, 20 MiB in all.
const BUCKETS_MAX: usize = 1_024;

const RATE_LIMIT_WRONG: &str = "must be off, or RATE/BURST in requests, for example 100/1000";

/// Number of requests that a key may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Requests a second, in the long run.
    pub per_second: NonZeroU32,
    /// Requests in one burst, after a pause.
    pub burst: NonZeroU32,
}

/// The setting: a rate, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(pub Option<Rate>);

impl FromStr for RateLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        let (per_second, burst) = text.split_once('/').ok_or(RATE_LIMIT_WRONG)?;
        let number = |text: &str| text.parse().map_err(|_| RATE_LIMIT_WRONG);
        Ok(Self(Some(Rate { per_second: number(per_second)?, burst: number(burst)? })))
    }
}

/// The buckets of all API keys.
pub(crate) struct RateLimiter {
    /// The header `RateLimit-Policy`, which is the same for every request.
    policy: HeaderValue,
    rate: Rate,
    buckets: TokenBuckets<KeyDigest>,
}

impl RateLimiter {
    /// Full buckets for everyone.
    pub(crate) fn new(rate: Rate) -> Self {
        let Rate { per_second, burst } = rate;
        let policy = format!("\"default\";q={burst};w={}", burst.get().div_ceil(per_second.get()));
        Self {
            policy: header_value(policy),
            rate,
            buckets: TokenBuckets::new(Duration::from_secs(1) / per_second.get(), burst),
        }
    }

    /// Takes a token from the key's bucket, if one is left.
    pub(crate) fn take(&self, key: &KeyDigest) -> Allowance {
        self.buckets.take(key)
    }

    /// The rate of every key.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// The header `RateLimit-Policy`: `"default";q=1000;w=10`.
    pub(crate) fn policy(&self) -> &HeaderValue {
        &self.policy
    }
}

/// A bucket for each key, whatever a key is: an API key, an address, an account.
pub struct TokenBuckets<Key> {
    /// Time until a token comes back.
    token: Duration,
    /// Time until an empty bucket is full.
    whole: Duration,
    start: Instant,
    hasher: RandomState,
    shards: Vec<Mutex<Shard<Key>>>,
}

/// For each key the moment, since the start, at which its bucket is full again.
struct Shard<Key> {
    full_at: HashMap<Key, Duration, RandomState>,
    tidy_at: usize,
}

/// Answer of a bucket to one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Time to wait for a token; none: one was taken.
    pub wait: Option<Duration>,
    remaining: u64,
    /// Time until the next token of an empty bucket, else until the bucket is full.
    resets_in: Duration,
}

impl<Key: Clone + Eq + Hash> TokenBuckets<Key> {
    /// Full buckets of `burst` tokens for everyone; a token comes back after the time `token`.
    #[must_use]
    pub fn new(token: Duration, burst: NonZeroU32) -> Self {
        let shard = || Mutex::new(Shard { full_at: HashMap::default(), tidy_at: TIDY_FROM });
        let shards = (0..SHARDS).map(|_| shard()).collect();
        Self { token, whole: token * burst.get(), start: Instant::now(), hasher: RandomState::default(), shards }
    }

    /// Takes a token from the key's bucket, if one is left.
    pub fn take(&self, key: &Key) -> Allowance {
        self.take_at(key, self.start.elapsed())
    }

    /// Puts a token back that was taken for what turned out not to count.
    pub fn give_back(&self, key: &Key) {
        let Some(mut shard) = self.shard(key) else { return };
        if let Some(full_at) = shard.full_at.get_mut(key) {
            *full_at = full_at.saturating_sub(self.token);
        }
    }

    fn shard(&self, key: &Key) -> Option<MutexGuard<'_, Shard<Key>>> {
        let index = self.hasher.hash_one(key) % SHARDS as u64;
        let shard = usize::try_from(index).ok().and_then(|index| self.shards.get(index))?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_at(&self, key: &Key, now: Duration) -> Allowance {
        let Some(mut shard) = self.shard(key) else {
            return Allowance { wait: None, remaining: 0, resets_in: Duration::ZERO };
        };
        let full_at = shard.full_at.get(key).copied().unwrap_or_default().max(now);
        let full_in = full_at + self.token - now;
        if full_in > self.whole {
            let wait = full_in - self.whole;
            return Allowance { wait: Some(wait), remaining: 0, resets_in: wait };
        }
        shard.set(key, full_at + self.token, now);
        let remaining = (self.whole - full_in).as_nanos() / self.token.as_nanos().max(1);
        Allowance { wait: None, remaining: u64::try_from(remaining).unwrap_or(u64::MAX), resets_in: full_in }
    }
}

impl<Key: Clone + Eq + Hash> Shard<Key> {
    fn set(&mut self, key: &Key, full_at: Duration, now: Duration) {
        self.full_at.insert(key.clone(), full_at);
        if self.full_at.len() >= self.tidy_at {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.forget_the_fullest();
            self.tidy_at = (self.full_at.len() * 2).clamp(TIDY_FROM, BUCKETS_MAX);
        }
    }
}

impl<Key: Eq + Hash> Shard<Key> {
    /// Keeps the emptier half if there are too many. A flood that takes one token from each of many buckets must not
    /// reset those that are empty.
    fn forget_the_fullest(&mut self) {
        if self.full_at.len() < BUCKETS_MAX {
            return;
        }
        let mut moments: Vec<Duration> = self.full_at.values().copied().collect();
        let (_, median, _) = moments.select_nth_unstable(BUCKETS_MAX / 2);
        let median = *median;
        self.full_at.retain(|_, full_at| *full_at > median);
    }
}

impl Allowance {
    /// The header `RateLimit`: `"default";r=999;t=1`.
    pub(crate) fn header(self) -> HeaderValue {
        let seconds = self.resets_in.as_secs() + u64::from(self.resets_in.subsec_nanos() > 0);
        header_value(format!("\"default\";r={};t={seconds}", self.remaining))
    }
}

fn header_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use intake_domain::{Environment, KeyFormat};

    use super::*;

    fn key(number: u32) -> KeyDigest {
        let mut random = [0; 32];
        random[..4].copy_from_slice(&number.to_be_bytes());
        KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).mint(random).digest()
    }

    fn limiter(setting: &str) -> RateLimiter {
        RateLimiter::new(setting.parse::<RateLimit>().unwrap().0.unwrap())
    }

    #[test]
    fn a_burst_is_let_in_and_then_the_steady_rate() {
        let limiter = limiter("10/3");
        let at = |milliseconds| limiter.buckets.take_at(&key(1), Duration::from_millis(milliseconds));
        assert_eq!(
            [at(0), at(0), at(0)].map(|allowance| (allowance.wait, allowance.remaining)),
            [(None, 2), (None, 1), (None, 0)]
        );
        assert_eq!(at(0).wait, Some(Duration::from_millis(100)));
        assert_eq!(at(40).wait, Some(Duration::from_millis(60)), "a refused request costs no token");
        assert_eq!(at(100).wait, None);
        assert_eq!(at(100).wait, Some(Duration::from_millis(100)));
        assert_eq!(at(1_000).remaining, 2, "full again after a pause");
    }

    #[test]
    fn keys_do_not_share_buckets() {
        let limiter = limiter("1/1");
        assert_eq!(limiter.buckets.take_at(&key(1), Duration::ZERO).wait, None);
        assert!(limiter.buckets.take_at(&key(1), Duration::ZERO).wait.is_some());
        assert_eq!(limiter.buckets.take_at(&key(2), Duration::ZERO).wait, None);
    }

    #[test]
    fn full_buckets_are_forgotten() {
        let limiter = limiter("100/1000");
        for number in 0..100_000 {
            limiter.buckets.take_at(&key(number), Duration::from_millis(u64::from(number)));
        }
        let held: usize = limiter.buckets.shards.iter().map(|shard| shard.lock().unwrap().full_at.len()).sum();
        assert!(held <= SHARDS * TIDY_FROM, "{held}");
    }

    #[test]
    fn a_flood_of_keys_fills_no_memory_and_lifts_no_limit() {
        let buckets = TokenBuckets::new(Duration::from_secs(30), NonZeroU32::new(10).unwrap());
        let guarded = || buckets.take_at(&u32::MAX, Duration::ZERO).wait;
        while guarded().is_none() {}
        for number in 0..300_000 {
            assert_eq!(buckets.take_at(&number, Duration::ZERO).wait, None);
        }
        let held: usize = buckets.shards.iter().map(|shard| shard.lock().unwrap().full_at.len()).sum();
        assert!(held <= SHARDS * BUCKETS_MAX, "{held}");
        assert!(guarded().is_some());
    }

    #[test]
    fn headers_say_what_is_left() {
        let limiter = limiter("100/1000");
        assert_eq!(limiter.policy(), "\"default\";q=1000;w=10");
        assert_eq!(limiter.buckets.take_at(&key(1), Duration::ZERO).header(), "\"default\";r=999;t=1");
    }

    #[test]
    fn the_setting_is_off_or_two_numbers() {
        assert_eq!("off".parse(), Ok(RateLimit(None)));
        for bad in ["", "on", "100", "0/1", "1/0", "-1/5", "1/2/3", "a/b"] {
            assert_eq!(bad.parse::<RateLimit>(), Err(RATE_LIMIT_WRONG), "{bad}");
        }
    }
}
