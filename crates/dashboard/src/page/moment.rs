//! How a page shows a moment: in UTC, for a script to turn into the reader's own locale.

use intake_domain::timestamp;
use time::OffsetDateTime;

/// HTML that shows the moment. Holds digits and punctuation alone, so templates take it as it is.
pub(crate) fn exact(at: OffsetDateTime) -> String {
    shown(at, "")
}

/// The same, to be shown as "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime) -> String {
    shown(at, " data-relative")
}

fn shown(at: OffsetDateTime, attribute: &str) -> String {
    let full = timestamp(at);
    let text = full.get(..16).unwrap_or_default().replace('T', " ");
    format!("<time datetime=\"{full}\"{attribute}>{text} UTC</time>")
}
