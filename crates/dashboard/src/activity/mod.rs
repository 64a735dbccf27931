//! Settings → Activity: the audit log, which can be searched, page by page or as a file.

mod csv;
mod entry;
mod filter;
mod page;

pub(crate) use csv::download;
pub(crate) use page::page;
