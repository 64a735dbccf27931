//! Reads the clock and random bytes for the service. All other code takes them as values.
#![expect(clippy::disallowed_methods, reason = "this is the edge")]

use std::cell::RefCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use time::{Duration, OffsetDateTime};

/// Number of bytes that are read from the operating system at once: a call for each id would cost more than the id.
const POOL_SIZE: usize = 1_024;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_SIZE], used: POOL_SIZE }) };
}

/// Random bytes that have not been handed out yet.
struct Pool {
    bytes: [u8; POOL_SIZE],
    used: usize,
}

/// Time by the clock that is followed, at the moment when [`START`] was read, in microseconds since 1970. Zero: this
/// machine's own clock counts.
static FOLLOWED: AtomicI64 = AtomicI64::new(0);
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// This moment, by the clock that is followed.
#[must_use]
pub fn now() -> OffsetDateTime {
    match FOLLOWED.load(Ordering::Relaxed) {
        0 => machine_time(),
        at_start => OffsetDateTime::UNIX_EPOCH + Duration::microseconds(at_start) + START.elapsed(),
    }
}

/// This moment, by this machine's clock.
#[must_use]
pub fn machine_time() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Follows a clock that says it is this moment; none: this machine's.
pub fn follow(clock: Option<OffsetDateTime>) {
    let at_start = clock.map(|now| now - START.elapsed() - OffsetDateTime::UNIX_EPOCH);
    let at_start = at_start.and_then(|since| i64::try_from(since.whole_microseconds()).ok());
    FOLLOWED.store(at_start.unwrap_or_default(), Ordering::Relaxed);
}

/// Random bytes of the operating system, each handed out once.
///
/// # Panics
/// If the system provides none: then no id can be trusted to be unique, and every request must fail.
#[must_use]
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    POOL.with_borrow_mut(Pool::take)
}

impl Pool {
    #[expect(clippy::expect_used, reason = "there is no safe way on without random bytes")]
    fn take<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        if self.used + LENGTH > POOL_SIZE {
            getrandom::fill(&mut self.bytes).expect("the operating system gives random bytes");
            self.used = 0;
        }
        let mut taken = [0; LENGTH];
        if let Some(unused) = self.bytes.get_mut(self.used..self.used + LENGTH) {
            // Leaves zeros behind, because the bytes may become a secret.
            taken.swap_with_slice(unused);
        }
        self.used += LENGTH;
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bytes_are_handed_out_twice_and_none_stay_behind() {
        let mut seen = HashSet::new();
        for _ in 0..1_000 {
            assert!(seen.insert(random::<10>().to_vec()));
            assert!(seen.insert(random::<32>().to_vec()));
        }
        POOL.with_borrow(|pool| assert!(pool.bytes[..pool.used].iter().all(|byte| *byte == 0)));
    }
}
