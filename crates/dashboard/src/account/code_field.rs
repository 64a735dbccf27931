//! The field for a code of the second step: six digits that an app shows, which a phone types on its pad for numbers,
//! or a recovery code, which needs letters.

use serde::Deserialize;

use crate::page::destination::Destination;

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
