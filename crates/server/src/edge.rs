//! Where the clock is read and random bytes are drawn, for everything further in to take as values.
#![expect(clippy::disallowed_methods, reason = "this is the edge")]

use time::OffsetDateTime;

pub(crate) fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

pub(crate) fn random<const LENGTH: usize>() -> anyhow::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    Ok(bytes)
}
