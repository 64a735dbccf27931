//! How a page shows a moment: in UTC and the language of the page, which a script turns into the reader's own time zone.

use intake_domain::timestamp;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// HTML that shows the moment. It holds nothing that a person typed, so templates insert it unescaped.
pub(crate) fn exact(at: OffsetDateTime) -> String {
    shown(at, "")
}

/// HTML that shows the moment, which a script turns into "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime) -> String {
    shown(at, " data-relative")
}

/// The offset from UTC of a visitor whose script says how many minutes that is; without one, none.
pub(crate) fn here(utc_offset: &str) -> UtcOffset {
    let seconds = utc_offset.parse::<i32>().ok().and_then(|minutes| minutes.checked_mul(60));
    seconds.and_then(|seconds| UtcOffset::from_whole_seconds(seconds).ok()).unwrap_or(UtcOffset::UTC)
}

fn shown(at: OffsetDateTime, attribute: &str) -> String {
    let format = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
    let text = at.to_offset(UtcOffset::UTC).format(format).unwrap_or_default();
    format!("<time datetime=\"{}\"{attribute}>{text}</time>", timestamp(at))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_moment_is_shown_in_the_language_of_the_page_with_its_zone() {
        assert_eq!(
            exact(datetime!(2025-12-03 10:05:00.123 +11)),
            "<time datetime=\"2025-12-02T23:05:00.123Z\">2 Dec 2025, 23:05 UTC</time>"
        );
    }
}
