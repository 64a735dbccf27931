//! How a moment is written for the world outside.

use time::OffsetDateTime;
use time::UtcOffset;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

const FORM: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// The moment in UTC and milliseconds: `2025-12-03T10:30:00.000Z`.
#[must_use]
pub fn timestamp(at: OffsetDateTime) -> String {
    // Formatting fails only for years that no clock shows.
    at.to_offset(UtcOffset::UTC).format(FORM).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_and_milliseconds() {
        assert_eq!(timestamp(datetime!(2025-12-03 10:30 UTC)), "2025-12-03T10:30:00.000Z");
        assert_eq!(timestamp(datetime!(2025-12-03 10:30:00.0129 +10)), "2025-12-03T00:30:00.012Z");
    }
}
