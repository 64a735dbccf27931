//! Keys whose use has changed, which is announced to their organisation: a key that fell silent, one that is refused
//! more often than usual, and one of which every request is refused. Days are in UTC.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::ids::{KeyId, OrganisationId};
use crate::store_error::StoreError;
use crate::zone::Zone;

/// Days that show what is usual for a key: four weeks, so that each day of the week counts.
pub const USUAL_DAYS: i32 = 28;
/// Only a key that was used on this many of those days is watched. A key that is used on weekdays was used on 20.
pub const BUSY_DAYS: i32 = 10;
/// Accepted requests in those days. The refusals of a key with fewer are only watched for whether all is refused.
pub const BUSY_REQUESTS: i32 = 100;
/// Factor by which the pauses of a key with fewer requests must be exceeded: such pauses vary.
pub const QUIET_TIMES: i32 = 3;
/// Refused requests in a day that are worth a mail: more than a few patients with a wrong phone number.
pub const REFUSED_MIN: i32 = 50;
/// Refused requests, with none that created a patient, that are worth a mail: more than one patient, sent again and
/// again by hand. Most channels of a clinic send few in a day.
pub const ONLY_REFUSED_MIN: i32 = 5;
/// Factor by which refusals must exceed the most of a usual day to be unusual.
pub const REFUSED_TIMES: i32 = 3;
/// Between two mails about the refusals of a key. Who got the first one is at work on it.
pub const REFUSALS_ANNOUNCED_EVERY: Duration = Duration::days(7);

/// A key whose use has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusualKey {
    /// The organisation whose key it is.
    pub organisation_id: OrganisationId,
    /// The organisation's name.
    pub organisation_name: String,
    /// The zone in which its members see days and times.
    pub zone: Zone,
    /// The key.
    pub id: KeyId,
    /// The name that its maker gave the key.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
    /// The company or person to call about it; empty: nobody is named.
    pub contact: String,
    /// Change that was found.
    pub change: UnusualUse,
}

/// Change in the use of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnusualUse {
    /// The key has not been used for longer than its longest pause, and a day.
    Silent {
        /// Time at which a request was last accepted with it.
        last_used_at: OffsetDateTime,
        /// On how many of the [`USUAL_DAYS`] it was used.
        used_days: i64,
        /// The most days from one day of use to the next.
        days_apart: i64,
    },
    /// Far more requests were refused in a day than usual. Failures of the service do not count.
    Refused {
        /// Refused requests of today or yesterday, whichever had more.
        lately: i64,
        /// The most on one of the days before.
        before: i64,
    },
    /// Every request of the last day was refused, with a key that created patients on most days.
    OnlyRefused {
        /// Time at which a request was last accepted with it.
        last_used_at: OffsetDateTime,
        /// Refused requests since.
        refused: i64,
        /// The field that most of them named.
        field: Option<String>,
    },
}

/// Finds the keys whose use has changed.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait UnusualKeyStore: Send + Sync {
    /// The keys of all organisations whose use has changed, as far as their organisation got no such news today. Each
    /// is given once, to the first caller.
    async fn claim_unusual(&self) -> Result<Vec<UnusualKey>, StoreError>;
}
