//! The audit log as a file for spreadsheets: the newest entries that the filter selects, up to a limit.

use actix_web::HttpResponse;
use actix_web::web::Query;
use intake_domain::{AuditEntry, AuditLog, EntryPosition, timestamp};

use crate::activity::entry::{actor, email, member_id, phrase_with_role};
use crate::activity::filter::Filter;
use crate::page::csv;
use crate::page::error::PageError;
use crate::page::part::Part;
use crate::page::visitor::Auditor;

/// Entries in one file: a few megabytes, which are sent within the time that a client has to read an answer. The last
/// line of a file that leaves some out says so.
const ENTRIES_MAX: usize = 10_000;
/// The same for readers.
pub(crate) const ENTRIES_MAX_TEXT: &str = "10,000";
const COLUMNS: usize = 10;
const HEADER: [&str; COLUMNS] =
    ["Time (UTC)", "Who", "Email", "What", "To what", "IP address", "Reason", "Key ID", "Member ID", "Entry ID"];

pub(crate) async fn download(
    Auditor(visitor): Auditor,
    filter: Option<Query<Filter>>,
    log: Part<dyn AuditLog>,
) -> Result<HttpResponse, PageError> {
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let filter = filter.to_entry_filter(visitor.zone()).map_err(|_| PageError::NotFound)?;
    // One more than the file holds, to see whether there are further ones.
    let limit = u32::try_from(ENTRIES_MAX + 1).unwrap_or(u32::MAX);
    let (mut found, mut position) = (Vec::new(), EntryPosition::Newest);
    // A search of everything is many statements, each of which is short.
    loop {
        let page = log.entries(visitor.organisation(), &filter, position, limit).await?;
        found.extend(page.entries);
        match page.searched_to {
            Some(entry) if found.len() <= ENTRIES_MAX => position = EntryPosition::Before(entry),
            _ => break,
        }
    }
    let notice = (found.len() > ENTRIES_MAX).then(|| {
        let notice = format!("This file stops at {ENTRIES_MAX_TEXT} entries. Choose fewer days to get the older ones.");
        let mut cells = [const { String::new() }; COLUMNS];
        cells[0] = notice;
        cells
    });
    let rows = found.iter().take(ENTRIES_MAX).map(cells);
    csv::file("activity", &visitor, HEADER, rows.chain(notice))
}

fn cells(entry: &AuditEntry) -> [String; COLUMNS] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        timestamp(entry.at),
        actor(&entry.actor),
        email(&entry.actor).to_owned(),
        phrase_with_role(entry),
        entry.subject.clone(),
        text(&entry.address),
        text(&entry.reason),
        entry.key.as_ref().map(|key| key.id.to_string()).unwrap_or_default(),
        member_id(&entry.actor),
        entry.id.to_string(),
    ]
}
