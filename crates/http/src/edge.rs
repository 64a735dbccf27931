//! Where the clock is read and random bytes are drawn, for everything further in to take as values.
#![expect(clippy::disallowed_methods, reason = "this is the edge")]

use time::OffsetDateTime;

/// This moment.
#[must_use]
pub fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Random bytes from the operating system.
///
/// # Panics
/// If the system has none to give: then no id can be trusted to be new, and every request must fail.
#[expect(clippy::expect_used, reason = "there is no safe way on without random bytes")]
#[must_use]
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
