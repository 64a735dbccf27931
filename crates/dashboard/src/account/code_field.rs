//! The field for a code of the second step: six digits that an app shows, which a phone types on its pad for numbers,
//! or a recovery code, which needs letters.

use serde::Deserialize;

use crate::page::destination::Destination;

/// Advice after a wrong code: an app shows each code for half a minute, and each counts once.
pub(crate) const WRONG_CODE: &str = "Incorrect code, or one that was used before. If you have just used it, wait for \
    the next one (up to 30 seconds).";

/// Query of a page with the field.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct CodeQuery {
    pub(crate) next: Destination,
    /// True if the field is for a recovery code.
    pub(crate) recovery: bool,
}

/// The address of a page with the field for the other kind of code.
pub(crate) fn other_kind(page: &str, next: &Destination, is_recovery: bool) -> String {
    let page = next.after(page);
    match (is_recovery, page.contains('?')) {
        (true, _) => page,
        (false, true) => format!("{page}&recovery=true"),
        (false, false) => format!("{page}?recovery=true"),
    }
}
