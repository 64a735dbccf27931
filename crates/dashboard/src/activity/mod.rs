//! Settings → Activity: the audit log, which can be searched, page by page or as a file.

mod csv;
mod entry;
mod filter;
mod page;

use actix_web::{Scope, web};

/// Adds the page and its file.
pub(crate) fn routes(pages: Scope) -> Scope {
    pages
        .route("/settings/activity", web::get().to(page::page))
        .route("/settings/activity.csv", web::get().to(csv::download))
}
