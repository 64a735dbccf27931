//! The audit log: written within the transaction of each change, read page by page.

use async_trait::async_trait;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Binary, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{
    Action, Actor, AuditContext, AuditDetails, AuditEntryId, AuditLog, AuditedKey, ENTRIES_SEARCHED, EntryFilter,
    EntryPage, EntryPosition, IdempotencyDigest, Name, OrganisationId, RefusedAction, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::row::EntryRow;
use crate::audit::selection::of_person;
use crate::database::cluster::spread::is_spread;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::grants::RECORDABLE;
use crate::schema::{audit_entries, memberships, organisations};

/// The port [`AuditLog`] over PostgreSQL.
pub struct PostgresAuditLog(Database);

impl PostgresAuditLog {
    /// A log over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl AuditLog for PostgresAuditLog {
    async fn entries(
        &self,
        organisation: OrganisationId,
        filter: &EntryFilter,
        position: EntryPosition,
        limit: u32,
    ) -> Result<EntryPage, StoreError> {
        let (id, filter) = (*organisation.as_uuid(), filter.clone());
        let found = self.0.run(Share::Of(id), move |connection| entries(connection, id, &filter, position, limit));
        let (found, searched_to) = found.await?;
        let entries = found.into_iter().map(|row| row.into_entry(organisation)).collect();
        Ok(EntryPage { entries, searched_to: searched_to.map(AuditEntryId::from) })
    }

    async fn note_refusal(&self, refused: &RefusedAction, audit: &AuditContext) -> Result<(), StoreError> {
        let (id, refused, audit) = (*refused.organisation.as_uuid(), refused.clone(), audit.clone());
        self.0
            .run(Share::Of(id), move |connection| record(connection, id, refused.action, &refused.route, &audit))
            .await
    }
}

/// The entries that are looked for, and the last one that was looked at, if that was not enough.
fn entries(
    connection: &mut PgConnection,
    organisation: Uuid,
    filter: &EntryFilter,
    position: EntryPosition,
    limit: u32,
) -> QueryResult<(Vec<EntryRow>, Option<Uuid>)> {
    let beside = match position {
        EntryPosition::Newest => None,
        EntryPosition::Before(entry) | EntryPosition::After(entry) => {
            // Entries are sorted by the database's clock; the moment in their ids is the service's.
            let moment = audit_entries::table.find((organisation, entry.as_uuid())).select(audit_entries::at);
            match moment.first::<OffsetDateTime>(connection).optional()? {
                Some(at) => Some((at, *entry.as_uuid())),
                None => return Ok((Vec::new(), None)),
            }
        }
    };
    let is_towards_newer = matches!(position, EntryPosition::After(_));
    let all = || in_order(organisation, filter, is_towards_newer, beside);
    let mut last = None;
    if filter.kind.is_some() || filter.person.is_some() {
        let searched = all().offset(i64::from(ENTRIES_SEARCHED) - 1).select((audit_entries::at, audit_entries::id));
        last = searched.first::<(OffsetDateTime, Uuid)>(connection).optional()?;
    }
    let mut found = fitting(connection, organisation, filter, all())?;
    if let Some((at, id)) = last {
        let is_same = audit_entries::at.eq(at);
        found = if is_towards_newer {
            found.filter(audit_entries::at.lt(at).or(is_same.and(audit_entries::id.le(id))))
        } else {
            found.filter(audit_entries::at.gt(at).or(is_same.and(audit_entries::id.ge(id))))
        };
    }
    let mut rows: Vec<EntryRow> = found.limit(limit.into()).select(EntryRow::as_select()).load(connection)?;
    let is_enough = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    if is_towards_newer {
        rows.reverse();
    }
    Ok((rows, last.filter(|_| !is_enough).map(|(_, id)| id)))
}

/// Entries of this organisation, period and key, starting at the cursor.
fn in_order(
    organisation: Uuid,
    filter: &EntryFilter,
    is_towards_newer: bool,
    beside: Option<(OffsetDateTime, Uuid)>,
) -> audit_entries::BoxedQuery<'static, Pg> {
    let mut all = audit_entries::table.filter(audit_entries::organisation_id.eq(organisation)).into_boxed();
    if let Some(key) = filter.key {
        all = all.filter(audit_entries::key_id.eq(*key.as_uuid()));
    }
    if let Some(from) = filter.from {
        all = all.filter(audit_entries::at.ge(from));
    }
    if let Some(until) = filter.until {
        all = all.filter(audit_entries::at.lt(until));
    }
    if let Some((at, id)) = beside {
        let is_same = audit_entries::at.eq(at);
        all = if is_towards_newer {
            all.filter(audit_entries::at.gt(at).or(is_same.and(audit_entries::id.gt(id))))
        } else {
            all.filter(audit_entries::at.lt(at).or(is_same.and(audit_entries::id.lt(id))))
        };
    }
    if is_towards_newer {
        all.order((audit_entries::at, audit_entries::id))
    } else {
        all.order((audit_entries::at.desc(), audit_entries::id.desc()))
    }
}

/// Those of these entries that fit the filter.
fn fitting(
    connection: &mut PgConnection,
    organisation: Uuid,
    filter: &EntryFilter,
    mut fitting: audit_entries::BoxedQuery<'static, Pg>,
) -> QueryResult<audit_entries::BoxedQuery<'static, Pg>> {
    if let Some(kind) = filter.kind {
        let names: Vec<_> = kind.actions().map(Action::as_str).collect();
        fitting = fitting.filter(audit_entries::action.eq_any(names));
    }
    match &filter.person {
        Some(person) => of_person(connection, Some(organisation), person, fitting),
        None => Ok(fitting),
    }
}

/// The organisation's entries of an action that were recorded after this moment.
#[diesel::dsl::auto_type]
pub(crate) fn recorded_since(organisation: Uuid, action: Action, since: OffsetDateTime) -> _ {
    let name: &'static str = action.as_str();
    audit_entries::table
        .filter(audit_entries::organisation_id.eq(organisation))
        .filter(audit_entries::action.eq(name))
        .filter(audit_entries::at.gt(since))
}

/// Adds the entry of a change, within its transaction. Adding it twice leaves one entry.
pub(crate) fn record(
    connection: &mut PgConnection,
    organisation: Uuid,
    action: Action,
    subject: &str,
    audit: &AuditContext,
) -> QueryResult<()> {
    record_details(connection, organisation, action, subject, &AuditDetails::default(), audit)
}

/// The same with what repeats the change after a restore.
pub(crate) fn record_details(
    connection: &mut PgConnection,
    organisation: Uuid,
    action: Action,
    subject: &str,
    details: &AuditDetails,
    audit: &AuditContext,
) -> QueryResult<()> {
    add(connection, organisation, action, subject, None, details, audit)
}

/// Records, in each organisation of a person, what was done to the person's account.
pub(crate) fn record_in_all(
    connection: &mut PgConnection,
    member: Uuid,
    action: Action,
    subject: &str,
    audit: &AuditContext,
) -> QueryResult<()> {
    let own = memberships::table.filter(memberships::member_id.eq(member)).order(memberships::organisation_id);
    let organisations: Vec<Uuid> = own.select(memberships::organisation_id).load(connection)?;
    organisations.into_iter().try_for_each(|organisation| record(connection, organisation, action, subject, audit))
}

/// Records, in each organisation, what was done to the register as a whole.
pub(crate) fn record_in_each(
    connection: &mut PgConnection,
    action: Action,
    subject: &str,
    audit: &AuditContext,
) -> QueryResult<()> {
    let all: Vec<Uuid> = organisations::table.select(organisations::id).order(organisations::id).load(connection)?;
    all.into_iter().try_for_each(|organisation| record(connection, organisation, action, subject, audit))
}

/// Returns whether the entry of this change is stored: by an earlier run that was committed and whose answer was lost.
pub(crate) fn is_recorded(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
) -> QueryResult<bool> {
    let entry = audit_entries::table.find((organisation, audit.entry_id.as_uuid()));
    diesel::select(diesel::dsl::exists(entry)).get_result(connection)
}

/// Adds the entry of a change of an API key.
pub(crate) fn record_about_key(
    connection: &mut PgConnection,
    organisation: Uuid,
    action: Action,
    subject: &str,
    key: &AuditedKey,
    audit: &AuditContext,
) -> QueryResult<()> {
    add(connection, organisation, action, subject, Some(key), &AuditDetails::default(), audit)
}

/// Adds the entry of a key that was made: anew, or in the place of another one.
pub(crate) fn record_made_key(
    connection: &mut PgConnection,
    organisation: Uuid,
    subject: &str,
    key: &AuditedKey,
    details: &AuditDetails,
    audit: &AuditContext,
) -> QueryResult<()> {
    let action = if details.replaced_key.is_some() { Action::KeyReplaced } else { Action::KeyCreated };
    add(connection, organisation, action, subject, Some(key), details, audit)
}

fn add(
    connection: &mut PgConnection,
    organisation: Uuid,
    action: Action,
    subject: &str,
    key: Option<&AuditedKey>,
    details: &AuditDetails,
    audit: &AuditContext,
) -> QueryResult<()> {
    let (member, operator) = match &audit.actor {
        Actor::Member { id, email, .. } => (Some((id.as_uuid(), email.as_str())), None),
        Actor::Operator(operator) => (None, Some(operator)),
        Actor::Stranger => (None, None),
    };
    let reason = operator.map(|operator| operator.reason.as_str()).filter(|reason| !reason.is_empty());
    // On Citus only the node that holds the entry knows its number.
    let number = ", feed_number(organisation_id) FROM organisation_states WHERE organisation_id = $1";
    let (own, numbered, number) =
        if is_spread(connection)? { ("organisation_id", ", recorded_in", number) } else { ("$1", "", "") };
    let add = format!(
        "INSERT INTO audit_entries ({RECORDABLE}{numbered})
            SELECT {own}, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16{number} ON CONFLICT DO NOTHING"
    );
    let (member_id, member_email) = member.unzip();
    diesel::sql_query(add)
        .bind::<SqlUuid, _>(organisation)
        .bind::<SqlUuid, _>(audit.entry_id.as_uuid())
        .bind::<Text, _>(action.as_str())
        .bind::<Nullable<Text>, _>(name_of(&audit.actor))
        .bind::<Nullable<SqlUuid>, _>(member_id)
        .bind::<Nullable<Text>, _>(member_email)
        .bind::<Nullable<Text>, _>(operator.and_then(|operator| operator.name.as_ref()).map(Name::as_str))
        .bind::<Nullable<Text>, _>(reason)
        .bind::<Text, _>(subject)
        .bind::<Nullable<Text>, _>(audit.address.map(|address| address.to_string()))
        .bind::<Nullable<SqlUuid>, _>(key.map(|key| *key.id.as_uuid()))
        .bind::<Nullable<Text>, _>(key.map(|key| key.hint.as_str()))
        .bind::<Nullable<SqlUuid>, _>(details.replaced_key.map(|key| *key.as_uuid()))
        .bind::<Nullable<Timestamptz>, _>(details.key_expires_at)
        .bind::<Nullable<Binary>, _>(details.idempotency_digest.as_ref().map(IdempotencyDigest::as_bytes))
        .bind::<Nullable<Text>, _>(details.role)
        .execute(connection)
        .map(drop)
}

/// A member's name; operators and strangers have none.
pub(crate) fn name_of(actor: &Actor) -> Option<&str> {
    match actor {
        Actor::Member { name, .. } => Some(name.as_str()),
        Actor::Operator(_) | Actor::Stranger => None,
    }
}
