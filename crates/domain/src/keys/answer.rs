//! How requests with a key were answered.

use time::{Date, Duration, OffsetDateTime};

use crate::keys::client::KeyClient;
use crate::zone::Zone;

/// The interface's code for an answer. The domain counts answers by their code and does not know what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnswerCode(pub u16);

/// An answer to a request with a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyAnswer {
    /// Time at which it was given.
    pub at: OffsetDateTime,
    /// Its code.
    pub code: AnswerCode,
    /// The client, if the request was accepted.
    pub client: Option<KeyClient>,
}

/// Time for which the counts of a key's answers are kept: the span of the usage chart.
pub const ANSWERS_KEPT: Duration = Duration::days(30);

/// The first of the days whose counts are kept, the last of which is today.
#[must_use]
pub fn first_kept_day(zone: Zone, now: OffsetDateTime) -> Date {
    zone.day(now) - (ANSWERS_KEPT - Duration::DAY)
}

/// Name under which an answer that repeated an earlier one is counted, besides its code.
pub const REPLAYED: &str = "replayed";

/// Number of requests with a key that were answered with one code on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerCount {
    /// The day, in the zone that the organisation had when the answers were counted.
    pub day: Date,
    /// The code of the answers.
    pub code: AnswerCode,
    /// Given: only the answers that named this field, were about a patient with this [`Doubt`](crate::Doubt), or
    /// repeated an earlier answer ([`REPLAYED`]). None: all answers with the code.
    pub field: Option<String>,
    /// Number of answers.
    pub count: u64,
}
