//! The audit log as a file for spreadsheets: the newest entries that the filter selects, up to a limit.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::Query;
use csv::{QuoteStyle, Terminator, WriterBuilder};
use intake_domain::{AuditEntry, AuditLog, EntryPosition, timestamp};
use intake_edge as edge;
use time::Date;

use crate::activity::entry::{actor, email, member_id, phrase_with_role};
use crate::activity::filter::Filter;
use crate::page::error::PageError;
use crate::page::part::Part;
use crate::page::visitor::Auditor;

/// Entries in one file: a few megabytes, which are sent within the time that a client has to read an answer. The last
/// line of a file that leaves some out says so.
const ENTRIES_MAX: usize = 10_000;
/// The same for readers.
pub(crate) const ENTRIES_MAX_TEXT: &str = "10,000";
/// Byte order mark: Excel recognises UTF-8 by it, and would garble names without it.
const BYTE_ORDER_MARK: &str = "\u{FEFF}";
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
    let name = format!(
        "attachment; filename=\"{}\"",
        file_name(&visitor.signed_in.organisation_name, visitor.zone().day(edge::now()))
    );
    let mut response = HttpResponse::Ok();
    response.content_type("text/csv; charset=utf-8; header=present").insert_header((CONTENT_DISPOSITION, name));
    Ok(response.body(write(&found).map_err(|error| PageError::Unexpected(error.into()))?))
}

/// The name of a file that says whose activity is in it, in letters and digits that every system takes.
fn file_name(organisation: &str, day: Date) -> String {
    let words = organisation.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: String = words.map(|word| word.to_ascii_lowercase() + "-").collect();
    format!("activity-{words}{day}.csv")
}

fn write(entries: &[AuditEntry]) -> Result<Vec<u8>, csv::Error> {
    let start = BYTE_ORDER_MARK.as_bytes().to_vec();
    let mut writer =
        WriterBuilder::new().quote_style(QuoteStyle::Always).terminator(Terminator::CRLF).from_writer(start);
    writer.write_record(HEADER)?;
    for entry in entries.iter().take(ENTRIES_MAX) {
        let (at, who, phrase) = (timestamp(entry.at), actor(&entry.actor), phrase_with_role(entry));
        let (address, reason) = (entry.address.as_deref(), entry.reason.as_deref());
        let (address, reason) = (address.unwrap_or_default(), reason.unwrap_or_default());
        let key_id = entry.key.as_ref().map(|key| key.id.to_string()).unwrap_or_default();
        let (member_id, id) = (member_id(&entry.actor), entry.id.to_string());
        let email = email(&entry.actor);
        let cells = [&at, &who, email, &phrase, &entry.subject, address, reason, &key_id, &member_id, &id];
        writer.write_record(cells.map(|text| harmless(text).into_owned()))?;
    }
    if entries.len() > ENTRIES_MAX {
        let notice = format!("This file stops at {ENTRIES_MAX_TEXT} entries. Choose fewer days to get the older ones.");
        let mut cells = [""; COLUMNS];
        cells[0] = &notice;
        writer.write_record(cells)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// A text that no spreadsheet takes for a formula: members choose their names, and a name like `=HYPERLINK(…)` must not
/// become a link on another person's screen.
fn harmless(text: &str) -> Cow<'_, str> {
    let begins_formula = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let is_formula = text.starts_with(['\t', '\r', '\n']) || text.trim_start().starts_with(begins_formula);
    if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "+61412345678", "-5", "@SUM(A1)", "  =1", "\t=1", "\r=1", "＝1", "\u{a0}+1"] {
            assert_eq!(harmless(formula), format!("'{formula}"), "{formula:?}");
        }
        for text in ["Ada", "a=b", "'quoted'", "", "2025-12-03T10:30:00.000Z", "2001:db8::1"] {
            assert_eq!(harmless(text), text);
        }
    }
}
