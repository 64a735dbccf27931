//! How days and moments are written for the world outside.

use time::{Date, OffsetDateTime, UtcOffset};

/// The day: `1985-12-10`.
#[must_use]
pub fn day(day: Date) -> String {
    let mut text = String::with_capacity(10);
    push_day(&mut text, day);
    text
}

/// The moment in UTC and milliseconds: `2025-12-03T10:30:00.000Z`.
#[must_use]
pub fn timestamp(at: OffsetDateTime) -> String {
    let at = at.to_offset(UtcOffset::UTC);
    let mut text = String::with_capacity(24);
    push_day(&mut text, at.date());
    for (before, number) in [('T', at.hour()), (':', at.minute()), (':', at.second())] {
        text.push(before);
        push_digits::<2>(&mut text, number.into());
    }
    text.push('.');
    push_digits::<3>(&mut text, at.millisecond().into());
    text.push('Z');
    text
}

fn push_day(text: &mut String, day: Date) {
    // No clock and no patient is older than this era.
    push_digits::<4>(text, day.year().unsigned_abs());
    for number in [u8::from(day.month()), day.day()] {
        text.push('-');
        push_digits::<2>(text, number.into());
    }
}

/// Written by hand because every answer has two of these, and formats parsed at run time cost ten times as much.
fn push_digits<const COUNT: u32>(text: &mut String, number: u32) {
    for place in (0..COUNT).rev() {
        let digit = number / 10_u32.pow(place) % 10;
        text.push(char::from_digit(digit, 10).unwrap_or('0'));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};
    use time::macros::{date, datetime, format_description};

    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_and_milliseconds() {
        assert_eq!(timestamp(datetime!(2025-12-03 10:30 UTC)), "2025-12-03T10:30:00.000Z");
        assert_eq!(timestamp(datetime!(2025-12-03 10:30:00.0129 +10)), "2025-12-03T00:30:00.012Z");
        assert_eq!(day(date!(1850 - 01 - 02)), "1850-01-02");
    }

    proptest! {
        #[test]
        fn every_moment_is_written_as_the_format_says(seconds in 0_i64..253_402_300_799, nanoseconds in 0_u32..1_000_000_000) {
            let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap().replace_nanosecond(nanoseconds).unwrap();
            let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
            prop_assert_eq!(timestamp(at), at.format(form).unwrap());
        }
    }
}
