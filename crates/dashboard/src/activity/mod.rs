//! Activity: the audit log, which can be searched, page by page or as a file.

mod csv;
mod entry;
mod filter;
mod page;

use crate::page::router::Pages;

/// Adds the page and its file.
pub(crate) fn routes(pages: Pages) -> Pages {
    pages.get("/settings/activity", page::page).get("/settings/activity.csv", csv::download)
}
