//! What a key created on one day, or a part of it, as numbers and a digest: a holder of the same ids compares
//! them with the register without reading it, and halves the day to find an id that is missing.

use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;

use crate::ids::PatientId;

/// Bits of a UUID of version 7 after its milliseconds.
const BITS_AFTER_TIME: u32 = 80;

/// Ids of patients after one and up to another, all of one day in UTC. An id begins with the moment of the patient's
/// creation, so ids are enough to find those of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayPart {
    day: Date,
    after: PatientId,
    until: PatientId,
}

impl DayPart {
    /// The ids of this day, after and up to these, if they are given.
    #[must_use]
    pub fn new(day: Date, after: Option<PatientId>, until: Option<PatientId>) -> Self {
        let midnight = day.midnight().assume_utc();
        // No id of version 7 is equal to these, because its version follows its milliseconds.
        let (start, end) = (before(midnight, Duration::ZERO), before(midnight, Duration::DAY));
        Self { day, after: after.map_or(start, |id| id.max(start)), until: until.map_or(end, |id| id.min(end)) }
    }

    /// The day.
    #[must_use]
    pub fn day(&self) -> Date {
        self.day
    }

    /// The part begins after this id.
    #[must_use]
    pub fn after(&self) -> PatientId {
        self.after
    }

    /// The part ends with this id.
    #[must_use]
    pub fn until(&self) -> PatientId {
        self.until
    }
}

/// The id before all ids of the moment that is so long after midnight.
fn before(midnight: OffsetDateTime, later: Duration) -> PatientId {
    let milliseconds = midnight.unix_timestamp_nanos() / 1_000_000 + later.whole_milliseconds();
    PatientId::from(Uuid::from_u128(u128::try_from(milliseconds).unwrap_or(0) << BITS_AFTER_TIME))
}

/// Patients that a key created in a part of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedInPart {
    /// Number of patients that still exist.
    pub existing: u64,
    /// Number of patients that were erased since.
    pub erased: u64,
    /// SHA-256 of the existing patients' ids, in lower case with hyphens, in ascending order, each followed by a line
    /// feed.
    pub digest: [u8; 32],
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn a_part_holds_the_ids_of_its_day_and_no_other() {
        let part = DayPart::new(date!(2025 - 12 - 03), None, None);
        let holds =
            |at, random| (part.after() < PatientId::new(at, random)) && (PatientId::new(at, random) <= part.until());
        for random in [[0; 10], [0xFF; 10]] {
            assert!(holds(datetime!(2025-12-03 00:00 UTC), random));
            assert!(holds(datetime!(2025-12-03 23:59:59.999 UTC), random));
            assert!(!holds(datetime!(2025-12-02 23:59:59.999 UTC), random));
            assert!(!holds(datetime!(2025-12-04 00:00 UTC), random));
        }
    }

    #[test]
    fn ids_of_other_days_do_not_widen_a_part() {
        let day = date!(2025 - 12 - 03);
        let [before, within, after] =
            [-1, 1, 25].map(|hours| PatientId::new(datetime!(2025-12-03 00:00 UTC) + Duration::hours(hours), [1; 10]));
        let whole = DayPart::new(day, None, None);
        assert_eq!(DayPart::new(day, Some(before), Some(after)), whole);
        assert_eq!(DayPart::new(day, Some(within), Some(within)).until(), within);
        assert_eq!(DayPart::new(day, Some(within), None), DayPart { after: within, ..whole });
    }

    #[test]
    fn every_day_that_can_be_written_has_a_part() {
        for day in [Date::MIN, date!(1850 - 01 - 01), date!(9999 - 12 - 31)] {
            let part = DayPart::new(day, None, None);
            assert!(part.after() <= part.until() && part.day() == day, "{part:?}");
        }
    }
}
