//! The audit log as it grows, each entry once. What was read is known by numbers that only grow, not by a clock, and by
//! the transactions that were running then, because an entry is seen only when its transaction has ended.

use std::collections::BTreeMap;

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt};
use intake_domain::{AuditEntry, StoreError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::audit::row::EntryRow;
use crate::audit::selection::AuditSelection;
use crate::database::cluster::parts::{Part, parts};
use crate::database::cluster::workers::REMEMBERED;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::origin::{EntryKey, are_there};
use crate::schema::audit_entries;

/// Entries that are read at a time.
const PAGE: i64 = 1_000;

/// Query that finds a row if the connected role may read the log.
const MAY_READ: &str = "SELECT 1 WHERE has_table_privilege('audit_entries', 'SELECT')
    AND has_function_privilege('audit_now(uuid)', 'EXECUTE')";

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
    /// The right to read the log has ended.
    #[error("this role may not read the audit log")]
    Unreadable,
}

/// Reads the selected entries, and then what is added.
pub struct AuditFollower {
    database: Database,
    selection: AuditSelection,
    position: AuditPosition,
    /// Looks that are still to be read.
    glances: Vec<Glance>,
}

/// Entries that were read of each part of the register.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct AuditPosition(BTreeMap<i32, Read>);

/// The transactions of which nothing is seen: all from `next` on, and those that are running.
#[derive(Clone, Default, QueryableByName)]
struct Sight {
    #[diesel(sql_type = BigInt)]
    next: i64,
    #[diesel(sql_type = Array<BigInt>)]
    running: Vec<i64>,
}

/// State of reading one part.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "StoredRead", into = "StoredRead")]
struct Read {
    /// Transactions that the glance did not contain.
    unread: Sight,
    newest: Vec<EntryKey>,
    organisations: Option<Vec<Uuid>>,
}

/// The same as it is stored, with ids as numbers.
#[derive(Serialize, Deserialize)]
struct StoredRead {
    next: i64,
    running: Vec<i64>,
    newest: Vec<(u128, u128)>,
    organisations: Option<Vec<u128>>,
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
    /// A follower that goes on at a position; at the default one, it has read nothing.
    #[must_use]
    pub fn new(database: Database, selection: AuditSelection, position: AuditPosition) -> Self {
        Self { database, selection, position, glances: Vec::new() }
    }

    /// Position at which another follower goes on, when [`Self::next_page`] has returned none.
    #[must_use]
    pub fn position(&self) -> &AuditPosition {
        &self.position
    }

    /// The next entries, in the order of their numbers. None: that is all for now.
    pub async fn next_page(&mut self) -> Result<Option<Vec<AuditEntry>>, FollowError> {
        let found = self.read_on().await;
        // The error does not tell a right that has ended from a database that is away.
        match found {
            Err(FollowError::Store(_)) => match assert_readable(&self.database).await {
                Err(unreadable @ FollowError::Unreadable) => Err(unreadable),
                _ => found,
            },
            found => found,
        }
    }

    async fn read_on(&mut self) -> Result<Option<Vec<AuditEntry>>, FollowError> {
        if self.glances.is_empty() {
            self.glances = self.glance().await?;
        }
        while let Some(glance) = self.glances.last_mut() {
            let (asked, read) = (glance.clone(), self.position.0.get(&glance.part.number).cloned().unwrap_or_default());
            let selection = self.selection.clone();
            let found = self
                .database
                .run(Share::Common, move |connection| page(connection, &asked, &read.unread, &selection))
                .await?;
            if let Some(last) = found.last() {
                glance.after = (last.number, *last.organisation_id.as_uuid(), *last.id.as_uuid());
                return Ok(Some(found));
            }
            self.position.0.insert(glance.part.number, glance.becomes.clone());
            self.glances.pop();
        }
        Ok(None)
    }

    /// Looks at each part. Organisations are listed after that: an entry that a glance sees belongs to one of them.
    async fn glance(&self) -> Result<Vec<Glance>, FollowError> {
        let mut glances = BTreeMap::new();
        for part in self.database.run(Share::Common, parts).await? {
            let read = self.position.0.get(&part.number).cloned();
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
            let only = self.selection.organisation.map(|organisation| *organisation.as_uuid());
            match (only, &mut glance.part.organisations) {
                (Some(only), Some(all)) if !all.contains(&only) => continue,
                (Some(only), organisations) => *organisations = Some(vec![only]),
                (None, _) => {}
            }
            complete.push(glance);
        }
        Ok(complete)
    }
}

impl From<Read> for StoredRead {
    fn from(read: Read) -> Self {
        let Read { unread: Sight { next, running }, newest, organisations } = read;
        let newest = newest.iter().map(|(organisation, id)| (organisation.as_u128(), id.as_u128())).collect();
        let organisations = organisations.map(|all| all.iter().map(Uuid::as_u128).collect());
        Self { next, running, newest, organisations }
    }
}

impl From<StoredRead> for Read {
    fn from(stored: StoredRead) -> Self {
        let StoredRead { next, running, newest, organisations } = stored;
        let id = Uuid::from_u128;
        let newest = newest.into_iter().map(|(organisation, entry)| (id(organisation), id(entry))).collect();
        let organisations = organisations.map(|all| all.into_iter().map(id).collect());
        Self { unread: Sight { next, running }, newest, organisations }
    }
}

/// Refuses a role that may not read the log.
pub(super) async fn assert_readable(database: &Database) -> Result<(), FollowError> {
    let ask = |connection: &mut PgConnection| diesel::sql_query(MAY_READ).execute(connection);
    if database.run(Share::Common, ask).await? > 0 { Ok(()) } else { Err(FollowError::Unreadable) }
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
    selection: &AuditSelection,
) -> QueryResult<Vec<AuditEntry>> {
    let number = audit_entries::recorded_in;
    let (last, organisation, id) = glance.after;
    let is_behind = audit_entries::organisation_id
        .gt(organisation)
        .or(audit_entries::organisation_id.eq(organisation).and(audit_entries::id.gt(id)));
    let first = unread.running.iter().copied().fold(unread.next, i64::min).max(last);
    let mut found = selection
        .entries(connection)?
        // Where an index begins to read.
        .filter(number.ge(first))
        .filter(number.ge(unread.next).or(number.eq_any(unread.running.clone())))
        .filter(number.lt(glance.sees.next).and(number.ne_all(glance.sees.running.clone())))
        .filter(number.gt(last).or(number.eq(last).and(is_behind)));
    if let Some(own) = &glance.part.organisations {
        found = found.filter(audit_entries::organisation_id.eq_any(own.clone()));
    }
    let in_order = found.order((number, audit_entries::organisation_id, audit_entries::id)).limit(PAGE);
    let found = in_order.select((audit_entries::organisation_id, EntryRow::as_select()));
    let found = found.load::<(Uuid, EntryRow)>(connection)?.into_iter();
    Ok(found.map(|(organisation, row)| row.into_entry(organisation.into())).collect())
}
