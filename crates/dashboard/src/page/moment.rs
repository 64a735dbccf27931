//! How a page shows a moment: in UTC and the language of the page, which a script turns into the reader's own time
//! zone.

use std::fmt;

use askama::filters::HtmlSafe;
use intake_domain::timestamp;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// A moment as a page shows it.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    at: OffsetDateTime,
    /// Whether a script turns it into "5 minutes ago".
    is_relative: bool,
}

/// The moment, with its day and time.
pub(crate) fn exact(at: OffsetDateTime) -> Moment {
    Moment { at, is_relative: false }
}

/// The moment, which a script turns into "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime) -> Moment {
    Moment { at, is_relative: true }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
        let text = self.at.to_offset(UtcOffset::UTC).format(format).map_err(|_| fmt::Error)?;
        let attribute = if self.is_relative { " data-relative" } else { "" };
        write!(f, "<time datetime=\"{}\"{attribute}>{text}</time>", timestamp(self.at))
    }
}

/// It holds nothing that a person typed.
impl HtmlSafe for Moment {}

/// The offset from UTC of a visitor whose script says how many minutes that is; without one, none.
pub(crate) fn here(utc_offset: &str) -> UtcOffset {
    let seconds = utc_offset.parse::<i32>().ok().and_then(|minutes| minutes.checked_mul(60));
    seconds.and_then(|seconds| UtcOffset::from_whole_seconds(seconds).ok()).unwrap_or(UtcOffset::UTC)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_shown_in_the_language_of_the_page_with_its_zone() {
        assert_eq!(
            exact(datetime!(2025-12-03 10:05:00.123 +11)).to_string(),
            "<time datetime=\"2025-12-02T23:05:00.123Z\">2 Dec 2025, 23:05 UTC</time>"
        );
    }
}
