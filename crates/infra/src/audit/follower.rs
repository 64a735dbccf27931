//! The audit log as it grows, each entry once. What was read is known by numbers that only grow, not by a clock, and by
//! the transactions that were running then, because an entry is seen only when its transaction has ended.

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt};
use intake_domain::{AuditEntry, OrganisationId, StoreError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::row::EntryRow;
use crate::database::cluster::parts::{Part, parts};
use crate::database::cluster::workers::REMEMBERED;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::origin::{EntryKey, are_there};
use crate::schema::audit_entries;

/// Entries that are read at a time.
const PAGE: i64 = 1_000;

/// Reason why the log cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The store failed. The next try goes on where this one was.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database was restored or spread: what was read says nothing about what is new.
    #[error(
        "the database is another one than before: entries that were read are missing, or lie elsewhere. Start again with --since"
    )]
    Replaced,
}

/// Reads the entries of an organisation, or of all, since a moment, and then what is added.
pub struct AuditFollower {
    database: Database,
    organisation: Option<Uuid>,
    since: OffsetDateTime,
    /// Entries read of each part of the register.
    read: BTreeMap<i32, Read>,
    /// Looks that are still to be read.
    glances: Vec<Glance>,
}

/// The transactions of which nothing is seen: all from `next` on, and those that are running.
#[derive(Clone, Default, QueryableByName)]
struct Sight {
    #[diesel(sql_type = BigInt)]
    next: i64,
    #[diesel(sql_type = Array<BigInt>)]
    running: Vec<i64>,
}

/// State of reading one part.
#[derive(Clone, Default)]
struct Read {
    /// Transactions that the glance did not contain.
    unread: Sight,
    newest: Vec<EntryKey>,
    organisations: Option<Vec<Uuid>>,
}

/// A glance at a part.
#[derive(Clone)]
struct Glance {
    part: Part,
    sees: Sight,
    becomes: Read,
    /// The number and the key of the last entry that was read.
    after: (i64, Uuid, Uuid),
}

impl AuditFollower {
    /// A follower that has read nothing.
    #[must_use]
    pub fn new(database: Database, organisation: Option<OrganisationId>, since: OffsetDateTime) -> Self {
        let organisation = organisation.map(|organisation| *organisation.as_uuid());
        Self { database, organisation, since, read: BTreeMap::new(), glances: Vec::new() }
    }

    /// The next entries, in the order of their numbers. None: that is all for now.
    pub async fn next_page(&mut self) -> Result<Option<Vec<AuditEntry>>, FollowError> {
        if self.glances.is_empty() {
            self.glances = self.glance().await?;
        }
        while let Some(glance) = self.glances.last_mut() {
            let (asked, read) = (glance.clone(), self.read.get(&glance.part.number).cloned().unwrap_or_default());
            let since = self.since;
            let found = self
                .database
                .run(Share::Common, move |connection| page(connection, &asked, &read.unread, since))
                .await?;
            if let Some(last) = found.last() {
                glance.after = (last.number, *last.organisation_id.as_uuid(), *last.id.as_uuid());
                return Ok(Some(found));
            }
            self.read.insert(glance.part.number, glance.becomes.clone());
            self.glances.pop();
        }
        Ok(None)
    }

    /// Looks at each part. Organisations are listed after that: an entry that a glance sees belongs to one of them.
    async fn glance(&self) -> Result<Vec<Glance>, FollowError> {
        let mut glances = BTreeMap::new();
        for part in self.database.run(Share::Common, parts).await? {
            let read = self.read.get(&part.number).cloned();
            let number = part.number;
            let glance = self
                .database
                .run(Share::Common, move |connection| glance(connection, part.clone(), read.as_ref()))
                .await?;
            glances.insert(number, glance.ok_or(FollowError::Replaced)?);
        }
        let mut complete = Vec::new();
        for part in self.database.run(Share::Common, parts).await? {
            let Some(mut glance) = glances.remove(&part.number) else { continue };
            glance.becomes.organisations.clone_from(&part.organisations);
            glance.part = part;
            match (self.organisation, &mut glance.part.organisations) {
                (Some(only), Some(all)) if !all.contains(&only) => continue,
                (Some(only), organisations) => *organisations = Some(vec![only]),
                (None, _) => {}
            }
            complete.push(glance);
        }
        Ok(complete)
    }
}

/// Returns what a statement sees of this part. None: it is not what was read.
fn glance(connection: &mut PgConnection, part: Part, read: Option<&Read>) -> QueryResult<Option<Glance>> {
    // Citus needs the value when it plans.
    let near = part.organisations.iter().flatten().next().copied().unwrap_or_default();
    let now = format!("SELECT next, running FROM audit_now('{near}')");
    let sees: Sight = diesel::sql_query(now).get_result(connection)?;
    let mut newest = audit_entries::table.filter(audit_entries::recorded_in.lt(sees.next)).into_boxed();
    if let Some(own) = &part.organisations {
        newest = newest.filter(audit_entries::organisation_id.eq_any(own.clone()));
    }
    let columns = (audit_entries::recorded_in, audit_entries::organisation_id, audit_entries::id);
    let newest = newest.order(audit_entries::recorded_in.desc()).limit(REMEMBERED).select(columns);
    let newest: Vec<(i64, Uuid, Uuid)> = newest.load(connection)?;
    // After a crash PostgreSQL gives the numbers of transactions out again that left nothing. It gives out none that is
    // lower than one of which an entry is seen.
    let next = newest.first().map_or(0, |(number, ..)| number + 1);
    let newest: Vec<EntryKey> = newest.into_iter().map(|(_, organisation, id)| (organisation, id)).collect();
    if let Some(read) = read {
        let is_same = match (&read.organisations, &part.organisations) {
            (Some(before), Some(now)) => before.iter().all(|organisation| now.contains(organisation)),
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same || !are_there(connection, &read.newest, &newest)? {
            return Ok(None);
        }
    }
    let running = sees.running.iter().copied().filter(|number| *number < next).collect();
    let becomes = Read { unread: Sight { next, running }, newest, organisations: part.organisations.clone() };
    Ok(Some(Glance { part, sees, becomes, after: (0, Uuid::nil(), Uuid::nil()) }))
}

/// The next entries that a glance sees and that were not read.
fn page(
    connection: &mut PgConnection,
    glance: &Glance,
    unread: &Sight,
    since: OffsetDateTime,
) -> QueryResult<Vec<AuditEntry>> {
    let number = audit_entries::recorded_in;
    let (last, organisation, id) = glance.after;
    let is_behind = audit_entries::organisation_id
        .gt(organisation)
        .or(audit_entries::organisation_id.eq(organisation).and(audit_entries::id.gt(id)));
    let first = unread.running.iter().copied().fold(unread.next, i64::min).max(last);
    let mut found = audit_entries::table
        // Where an index begins to read.
        .filter(number.ge(first))
        .filter(number.ge(unread.next).or(number.eq_any(unread.running.clone())))
        .filter(number.lt(glance.sees.next).and(number.ne_all(glance.sees.running.clone())))
        .filter(number.gt(last).or(number.eq(last).and(is_behind)))
        .filter(audit_entries::at.ge(since))
        .into_boxed();
    if let Some(own) = &glance.part.organisations {
        found = found.filter(audit_entries::organisation_id.eq_any(own.clone()));
    }
    let in_order = found.order((number, audit_entries::organisation_id, audit_entries::id)).limit(PAGE);
    let found = in_order.select((audit_entries::organisation_id, EntryRow::as_select()));
    let found = found.load::<(Uuid, EntryRow)>(connection)?.into_iter();
    Ok(found.map(|(organisation, row)| row.into_entry(organisation.into())).collect())
}
