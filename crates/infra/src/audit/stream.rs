//! The audit log as it is, the oldest entry first: the rows of one statement pass through, so that the memory that it
//! takes does not grow with the log. PostgreSQL sorts them, on disk if there are many.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::{Pg, PgConnection, PgRowByRowLoadingMode};
use diesel::prelude::*;
use intake_domain::{AuditEntry, StoreError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::follower::{FollowError, assert_readable};
use crate::audit::row::EntryRow;
use crate::audit::selection::AuditSelection;
use crate::database::connecting::pool::Database;
use crate::diesel_errors::store_error;
use crate::schema::audit_entries;

/// Entries that are read before they are asked for.
const READ_AHEAD: usize = 1_000;

/// Time in which the next entry must come: PostgreSQL sorts tens of millions of entries in less.
const PATIENCE: Duration = Duration::from_secs(300);

/// The entry that comes next; none: all have come.
type Next = Result<Option<AuditEntry>, StoreError>;

/// The selected entries, one after the other. After an error there are no more.
pub struct AuditStream(Option<Receiver<Next>>);

impl AuditStream {
    /// Begins to read. With a limit, only that many of the selected entries, the newest, are read.
    pub async fn open(database: &Database, selection: AuditSelection, limit: Option<u32>) -> Result<Self, FollowError> {
        assert_readable(database).await?;
        let opener = database.opener().clone();
        let (entries, stream) = sync_channel(READ_AHEAD);
        let read = move || {
            let mut connection = match opener.open() {
                Ok(connection) => connection,
                Err(error) => return drop(entries.send(Err(StoreError::Unavailable(error.into())))),
            };
            let last = read(&mut connection, &selection, limit, &entries);
            drop(entries.send(last.map(|()| None).map_err(store_error)));
        };
        // Nobody waits for the thread: a database that hangs would keep it for ever.
        let spawned = Builder::new().name("audit log".into()).spawn(read);
        spawned.map_err(|error| StoreError::Unexpected(error.into()))?;
        Ok(Self(Some(stream)))
    }
}

impl Iterator for AuditStream {
    type Item = Result<AuditEntry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match self.0.as_ref()?.recv_timeout(PATIENCE) {
            Ok(next) => next,
            Err(RecvTimeoutError::Timeout) => Err(StoreError::Unavailable("a statement hangs in the database".into())),
            Err(RecvTimeoutError::Disconnected) => Err(StoreError::Unexpected("reading the log panicked".into())),
        };
        if !matches!(next, Ok(Some(_))) {
            self.0 = None;
        }
        next.transpose()
    }
}

/// Reads until all is read, or nobody takes it any more.
fn read(
    connection: &mut PgConnection,
    selection: &AuditSelection,
    limit: Option<u32>,
    entries: &SyncSender<Next>,
) -> QueryResult<()> {
    // What prints the entries may be slow.
    connection.batch_execute("SET statement_timeout = 0")?;
    let first = limit.map(|limit| first_of(connection, selection, limit)).transpose()?.flatten();
    let selected = from(first, selection.entries(connection)?);
    let in_order = selected.order((audit_entries::at, audit_entries::organisation_id, audit_entries::id));
    let rows = in_order.select((audit_entries::organisation_id, EntryRow::as_select()));
    let rows = rows.limit(limit.map_or(i64::MAX, i64::from));
    for row in rows.load_iter::<(Uuid, EntryRow), PgRowByRowLoadingMode>(connection)? {
        let (organisation, row) = row?;
        if entries.send(Ok(Some(row.into_entry(organisation.into())))).is_err() {
            break;
        }
    }
    Ok(())
}

type Position = (OffsetDateTime, Uuid, Uuid);

/// The oldest of the newest entries, up to this number. None: there are fewer.
fn first_of(connection: &mut PgConnection, selection: &AuditSelection, limit: u32) -> QueryResult<Option<Position>> {
    let newest_first = (audit_entries::at.desc(), audit_entries::organisation_id.desc(), audit_entries::id.desc());
    let position = (audit_entries::at, audit_entries::organisation_id, audit_entries::id);
    let selected = selection.entries(connection)?.order(newest_first).select(position);
    selected.offset(i64::from(limit) - 1).limit(1).first(connection).optional()
}

/// Those of these entries that do not come before a position.
fn from(
    position: Option<Position>,
    entries: audit_entries::BoxedQuery<'static, Pg>,
) -> audit_entries::BoxedQuery<'static, Pg> {
    let Some((at, organisation, id)) = position else { return entries };
    let is_same = audit_entries::organisation_id.eq(organisation).and(audit_entries::id.ge(id));
    let is_later = audit_entries::organisation_id.gt(organisation).or(is_same);
    entries.filter(audit_entries::at.gt(at).or(audit_entries::at.eq(at).and(is_later)))
}
