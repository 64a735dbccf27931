//! How a page shows a moment: in UTC, which a script turns into the reader's own locale and time zone.

use intake_domain::timestamp;
use time::OffsetDateTime;

/// HTML that shows the moment. It holds nothing that a person typed, so templates insert it unescaped.
pub(crate) fn exact(at: OffsetDateTime) -> String {
    shown(at, "")
}

/// HTML that shows the moment, which a script turns into "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime) -> String {
    shown(at, " data-relative")
}

fn shown(at: OffsetDateTime, attribute: &str) -> String {
    let full = timestamp(at);
    let text = full.get(..16).unwrap_or_default().replace('T', " ");
    format!("<time datetime=\"{full}\"{attribute}>{text} UTC</time>")
}
