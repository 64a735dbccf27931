//! The page of the audit log, with a filter, and pages in both directions.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Query;
use askama::Template;
use intake_domain::{AuditEntryId, AuditLog, ENTRIES_SEARCHED, EntryPage, EntryPosition, KeyRecord};
use intake_edge as edge;

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
    key: Option<KeyRecord>,
    day_error: Option<&'static str>,
    entries: Vec<EntryRow>,
    newer: Option<String>,
    older: Option<String>,
    /// Address at which a search goes on that has stopped before it found enough.
    further: Option<(String, &'static str)>,
    /// Number of entries that it looked at.
    searched: String,
    file: String,
    last_week: String,
    entries_max: &'static str,
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
        id => Some(own_key(&visitor, id, keys.as_ref()).await?),
    };
    let mut page = ActivityPage {
        shell: Shell::new("activity", &visitor),
        filter: &filter,
        key,
        day_error: None,
        entries: vec![],
        newer: None,
        older: None,
        further: None,
        searched: grouped(ENTRIES_SEARCHED.into()),
        file: filter.link(FILE, None),
        last_week: filter.last_week(visitor.zone().day(edge::now())).link(PAGE, None),
        entries_max: ENTRIES_MAX_TEXT,
    };
    let entries = match filter.to_entry_filter(visitor.zone()) {
        Ok(entries) => entries,
        Err(BadFilter::NoKey) => return Err(PageError::NotFound),
        Err(BadFilter::NoDay) => return page.wrong_day(NO_DAY),
        Err(BadFilter::Reversed) => return page.wrong_day("The first day is after the last one."),
    };
    let position = position(&filter)?;
    // One more than is shown, to see whether there are further ones.
    let limit = u32::try_from(PAGE_SIZE + 1).unwrap_or(u32::MAX);
    let found = log.entries(visitor.organisation(), &entries, position, limit).await?;
    if matches!(position, EntryPosition::After(_)) && found.entries.len() <= PAGE_SIZE && found.searched_to.is_none() {
        // The first page is full, and its address stays the same when entries are added.
        return Ok(redirect(&filter.link(PAGE, None)));
    }
    page.show(found, position);
    render(StatusCode::OK, &page)
}

impl ActivityPage<'_> {
    fn wrong_day(self, error: &'static str) -> Result<HttpResponse, PageError> {
        render(StatusCode::UNPROCESSABLE_ENTITY, &Self { day_error: Some(error), ..self })
    }

    /// Fills the page with the entries at a position, and links to those before and after them.
    fn show(&mut self, EntryPage { mut entries, searched_to }: EntryPage, position: EntryPosition) {
        let has_more = entries.len() > PAGE_SIZE;
        let (has_newer, has_older, further) = match position {
            EntryPosition::Newest => (false, has_more, ("before", "Search older entries")),
            EntryPosition::Before(_) => (true, has_more, ("before", "Search older entries")),
            EntryPosition::After(_) => (true, true, ("after", "Search newer entries")),
        };
        if has_more && matches!(position, EntryPosition::After(_)) {
            entries.remove(0);
        }
        entries.truncate(PAGE_SIZE);
        let link = |name, id: AuditEntryId| self.filter.link(PAGE, Some((name, &id.to_string())));
        self.newer = entries.first().filter(|_| has_newer).map(|entry| link("after", entry.id));
        self.older = entries.last().filter(|_| has_older).map(|entry| link("before", entry.id));
        self.further = searched_to.map(|entry| (link(further.0, entry), further.1));
        let zone = self.shell.zone;
        self.entries = entries.into_iter().map(|entry| EntryRow::new(entry, zone)).collect();
    }
}

fn position(filter: &Filter) -> Result<EntryPosition, PageError> {
    let entry = |text: &str| text.parse().map_err(|_| PageError::NotFound);
    match (filter.before.as_str(), filter.after.as_str()) {
        ("", "") => Ok(EntryPosition::Newest),
        ("", after) => entry(after).map(EntryPosition::After),
        (before, _) => entry(before).map(EntryPosition::Before),
    }
}
