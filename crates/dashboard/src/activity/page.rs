//! The page of the audit log, with a filter, and pages in both directions.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Query;
use askama::Template;
use intake_domain::{AuditEntry, AuditLog, ENTRIES_SEARCHED, EntryPage, EntryPosition};

use crate::activity::csv::ENTRIES_MAX_TEXT;
use crate::activity::entry::EntryRow;
use crate::activity::filter::{BadFilter, Filter};
use crate::api_keys::own_key;
use crate::page::day::NO_DAY;
use crate::page::error::PageError;
use crate::page::number::grouped;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Auditor;

/// Entries on a page: as many as are still easy to read through.
const PAGE_SIZE: usize = 50;
const PAGE: &str = "/settings/activity";
const FILE: &str = "/settings/activity.csv";

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage<'a> {
    shell: Shell,
    filter: &'a Filter,
    /// The key that the entries are about, if only one is asked for.
    key: Option<AboutKey>,
    day_error: Option<&'static str>,
    entries: Vec<EntryRow>,
    newer: Option<String>,
    older: Option<String>,
    /// Address at which a search goes on that has stopped before it found enough.
    further: Option<(String, &'static str)>,
    /// Number of entries that it looked at.
    searched: String,
    file: String,
    entries_max: &'static str,
}

/// Name and link of a key on the page.
struct AboutKey {
    id: String,
    name: String,
    hint: String,
}

pub(crate) async fn page(
    Auditor(visitor): Auditor,
    filter: Option<Query<Filter>>,
    log: Part<dyn AuditLog>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let key = match filter.key.as_str() {
        "" => None,
        id => {
            let key = own_key(&visitor, id, keys.as_ref()).await?;
            Some(AboutKey { id: key.id.to_string(), name: key.name, hint: key.hint })
        }
    };
    let shell = Shell::new("activity", &visitor);
    let file = filter.link(FILE, None);
    let mut page = ActivityPage {
        shell,
        filter: &filter,
        key,
        day_error: None,
        entries: vec![],
        newer: None,
        older: None,
        further: None,
        searched: grouped(ENTRIES_SEARCHED.into()),
        file,
        entries_max: ENTRIES_MAX_TEXT,
    };
    let entries = match filter.to_entry_filter() {
        Ok(entries) => entries,
        Err(error) => {
            page.day_error = Some(match error {
                BadFilter::NoKey => return Err(PageError::NotFound),
                BadFilter::NoDay => NO_DAY,
                BadFilter::Reversed => "The first day is after the last one.",
            });
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let position = position(&filter)?;
    // One more than is shown, to see whether there are further ones.
    let limit = u32::try_from(PAGE_SIZE + 1).unwrap_or(u32::MAX);
    let EntryPage { entries: mut found, searched_to } =
        log.entries(visitor.organisation(), &entries, position, limit).await?;
    let has_more = found.len() > PAGE_SIZE;
    let is_towards_newer = matches!(position, EntryPosition::After(_));
    if is_towards_newer && !has_more && searched_to.is_none() {
        // The first page is full, and its address stays the same when entries are added.
        return Ok(redirect(&filter.link(PAGE, None)));
    }
    if is_towards_newer && has_more {
        found.remove(0);
    }
    found.truncate(PAGE_SIZE);
    let link =
        |name, entry: Option<&AuditEntry>| entry.map(|entry| filter.link(PAGE, Some((name, &entry.id.to_string()))));
    let (has_newer, has_older) = match position {
        EntryPosition::Newest => (false, has_more),
        EntryPosition::Before(_) => (true, has_more),
        EntryPosition::After(_) => (true, true),
    };
    page.newer = link("after", found.first().filter(|_| has_newer));
    page.older = link("before", found.last().filter(|_| has_older));
    if let Some(entry) = searched_to {
        let (name, text) =
            if is_towards_newer { ("after", "Search newer entries") } else { ("before", "Search older entries") };
        page.further = Some((filter.link(PAGE, Some((name, &entry.to_string()))), text));
    }
    page.entries = found.into_iter().map(EntryRow::from).collect();
    render(StatusCode::OK, &page)
}

fn position(filter: &Filter) -> Result<EntryPosition, PageError> {
    let entry = |text: &str| text.parse().map_err(|_| PageError::NotFound);
    match (filter.before.as_str(), filter.after.as_str()) {
        ("", "") => Ok(EntryPosition::Newest),
        ("", after) => entry(after).map(EntryPosition::After),
        (before, _) => entry(before).map(EntryPosition::Before),
    }
}
