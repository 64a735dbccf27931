//! Keys as their organisation sees them: one, all, or a page of those that are looked for.

use async_trait::async_trait;
use diesel::data_types::PgInterval;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{
    KEYS_PER_PAGE, KeyId, KeyList, KeyOrder, KeyPage, KeyRecord, KeyScope, KeySearch, KeySuccessor, OrganisationId,
    StoreError,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::audit::log::literal;
use crate::database::connecting::share::Share;
use crate::keys::network_sql::{Stored, read};
use crate::keys::status::refusal_at;
use crate::keys::{PostgresKeyStore, directory};
use crate::schema::{api_keys, key_uses, organisation_states};

/// Characters of a hint.
const HINT_LENGTH: usize = 4;
/// Keys whose name or hint fits what was typed, and which were not used since `$6`.
const FITS: &str =
    "(key.name ILIKE $2 OR key.hint = $3) AND ($6 IS NULL OR coalesce(used.last_used_at, key.created_at) < $6)";
/// The keys of the organisation, with their uses.
const FROM: &str = "FROM api_keys AS key
    LEFT JOIN key_uses AS used ON used.organisation_id = key.organisation_id AND used.key_id = key.id
    WHERE key.organisation_id = $1 AND $4 IS NOT NULL AND $5 IS NOT NULL";

impl PostgresKeyStore {
    /// The key, and the organisation that it belongs to. None: there is no such key.
    pub async fn find(&self, key: KeyId) -> Result<Option<(OrganisationId, KeyRecord)>, StoreError> {
        let id = *key.as_uuid();
        let found = self.0.run(Share::Common, move |connection| {
            let Some(organisation) = directory::organisation(connection, id)? else { return Ok(None) };
            let found = some(connection, organisation, &[id])?.pop();
            Ok(found.map(|key| (OrganisationId::from(organisation), key)))
        });
        found.await
    }
}

#[async_trait]
impl KeyList for PostgresKeyStore {
    async fn keys(&self, organisation: OrganisationId) -> Result<Option<Vec<KeyRecord>>, StoreError> {
        let id = *organisation.as_uuid();
        self.0.run(Share::Of(id), move |connection| all(connection, id)).await
    }

    async fn search(
        &self,
        organisation: OrganisationId,
        search: &KeySearch,
        now: OffsetDateTime,
    ) -> Result<KeyPage, StoreError> {
        let (id, search) = (*organisation.as_uuid(), search.clone());
        self.0.run(Share::Of(id), move |connection| page(connection, id, &search, now)).await
    }

    async fn key(&self, organisation: OrganisationId, key: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.0.run(Share::Of(organisation), move |connection| some(connection, organisation, &[key]));
        Ok(found.await?.pop())
    }
}

/// All keys of an organisation, the oldest first. None: there is no such organisation.
fn all(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<Option<Vec<KeyRecord>>> {
    let found = organisation_states::table.find(organisation).select(organisation_states::organisation_id);
    let found = found.first::<Uuid>(connection);
    if found.optional()?.is_none() {
        return Ok(None);
    }
    let of_organisation = with_uses().filter(api_keys::organisation_id.eq(organisation));
    let oldest_first = of_organisation.order((api_keys::created_at, api_keys::id)).select(KeyRow::as_select());
    Ok(Some(oldest_first.load(connection)?.into_iter().map(KeyRecord::from).collect()))
}

/// These keys of an organisation, as far as it has them, in no order.
pub(super) fn some(connection: &mut PgConnection, organisation: Uuid, ids: &[Uuid]) -> QueryResult<Vec<KeyRecord>> {
    let wanted = with_uses().filter(api_keys::organisation_id.eq(organisation).and(api_keys::id.eq_any(ids)));
    let rows = wanted.select(KeyRow::as_select()).load(connection)?;
    let successors = with_uses()
        .filter(api_keys::organisation_id.eq(organisation).and(api_keys::replaces.eq_any(ids)))
        .filter(api_keys::revoked_at.is_null())
        .select((
            api_keys::replaces.assume_not_null(),
            api_keys::id,
            key_uses::last_used_at.nullable().is_not_null(),
            api_keys::replaced_ends_after,
        ));
    let successors: Vec<(Uuid, Uuid, bool, Option<PgInterval>)> = successors.load(connection)?;
    let keys = rows.into_iter().map(|row| {
        let successor = successors.iter().find(|(replaced, ..)| *replaced == row.id);
        let successor = successor.map(|(_, id, is_used, ends_after)| KeySuccessor {
            id: (*id).into(),
            is_used: *is_used,
            ends_after: ends_after.as_ref().map_or(Duration::ZERO, duration),
        });
        KeyRecord { successor, ..KeyRecord::from(row) }
    });
    Ok(keys.collect())
}

fn duration(interval: &PgInterval) -> Duration {
    Duration::microseconds(interval.microseconds) + Duration::days(interval.days.into())
}

/// The page of an organisation's keys that is looked for.
fn page(
    connection: &mut PgConnection,
    organisation: Uuid,
    search: &KeySearch,
    now: OffsetDateTime,
) -> QueryResult<KeyPage> {
    let text = search.text.trim();
    let pattern = format!("%{}%", literal(text));
    let hint: String = text.chars().skip(text.chars().count().saturating_sub(HINT_LENGTH)).collect();
    let since = if let KeyScope::Current(since) = search.scope { since } else { now };
    let bound = |query: String| {
        diesel::sql_query(query)
            .bind::<SqlUuid, _>(organisation)
            .bind::<Text, _>(&pattern)
            .bind::<Text, _>(&hint)
            .bind::<Timestamptz, _>(now)
            .bind::<Timestamptz, _>(since)
            .bind::<Nullable<Timestamptz>, _>(search.unused_since)
    };
    let scope = is_within(search.scope);
    let counts = format!(
        "SELECT count(*) FILTER (WHERE {FITS} AND {scope}) AS found, count(*) FILTER (WHERE {FITS}) AS found_in_any_scope,
            count(*) AS total, count(used.last_used_at) > 0 AS is_any_used {FROM}"
    );
    let counts: Counts = bound(counts).get_result(connection)?;
    let mut page = counts.of_page(search.page);
    page.page = page.page.clamp(1, page.pages());
    let ids = format!(
        "SELECT key.id {FROM} AND {FITS} AND {scope} ORDER BY {} LIMIT {KEYS_PER_PAGE} OFFSET {}",
        order(search.order),
        KEYS_PER_PAGE * (page.page - 1),
    );
    let ids: Vec<Found> = bound(ids).load(connection)?;
    let ids: Vec<Uuid> = ids.into_iter().map(|found| found.id).collect();
    page.keys = some(connection, organisation, &ids)?;
    page.keys.sort_by_key(|key| ids.iter().position(|id| id == key.id.as_uuid()));
    Ok(page)
}

/// The scope as a condition: `$4` is now, `$5` since when a key is over recently.
fn is_within(scope: KeyScope) -> String {
    let is = |word: &str| format!("{} = '{word}'", refusal_at("$4"));
    match scope {
        KeyScope::Current(_) => "coalesce(key.revoked_at, key.expires_at, 'infinity') > $5".to_owned(),
        KeyScope::Active => format!("{} IS NULL", refusal_at("$4")),
        KeyScope::Suspended => is("suspended"),
        KeyScope::Paused => is("paused"),
        KeyScope::Expired => is("expired"),
        KeyScope::Revoked => is("revoked"),
        KeyScope::All => "true".to_owned(),
    }
}

fn order(order: KeyOrder) -> &'static str {
    match order {
        KeyOrder::Newest => "key.created_at DESC, key.id DESC",
        KeyOrder::Name => "lower(key.name), key.id",
        KeyOrder::Used => "used.last_used_at DESC NULLS LAST, key.id DESC",
        KeyOrder::Expires => "key.expires_at NULLS LAST, key.id DESC",
    }
}

#[diesel::dsl::auto_type]
fn with_uses() -> _ {
    let of_key: diesel::dsl::And<
        diesel::dsl::Eq<key_uses::key_id, api_keys::id>,
        diesel::dsl::Eq<key_uses::organisation_id, api_keys::organisation_id>,
    > = key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id));
    api_keys::table.left_join(key_uses::table.on(of_key))
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

#[derive(QueryableByName)]
struct Counts {
    #[diesel(sql_type = BigInt)]
    found: i64,
    #[diesel(sql_type = BigInt)]
    found_in_any_scope: i64,
    #[diesel(sql_type = BigInt)]
    total: i64,
    #[diesel(sql_type = Bool)]
    is_any_used: bool,
}

impl Counts {
    fn of_page(&self, page: u32) -> KeyPage {
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        KeyPage {
            keys: Vec::new(),
            page,
            found: count(self.found),
            found_in_any_scope: count(self.found_in_any_scope),
            total: count(self.total),
            is_any_used: self.is_any_used,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct KeyRow {
    id: Uuid,
    name: String,
    hint: String,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    suspended_at: Option<OffsetDateTime>,
    paused_at: Option<OffsetDateTime>,
    paused_by: Option<String>,
    revoked_at: Option<OffsetDateTime>,
    created_by: Option<String>,
    revoked_by: Option<String>,
    replaces: Option<Uuid>,
    note: Option<String>,
    allowed_networks: Stored,
    #[diesel(select_expression = key_uses::last_used_at.nullable())]
    last_used_at: Option<OffsetDateTime>,
    #[diesel(select_expression = key_uses::last_address.nullable())]
    last_address: Option<String>,
    #[diesel(select_expression = key_uses::last_program.nullable())]
    last_program: Option<String>,
    #[diesel(select_expression = key_uses::sent_in_clear_at.nullable())]
    sent_in_clear_at: Option<OffsetDateTime>,
    #[diesel(select_expression = key_uses::silence_announced_at.nullable())]
    silence_announced_at: Option<OffsetDateTime>,
    #[diesel(select_expression = key_uses::refusals_announced_at.nullable())]
    refusals_announced_at: Option<OffsetDateTime>,
}

impl From<KeyRow> for KeyRecord {
    fn from(row: KeyRow) -> Self {
        Self {
            id: row.id.into(),
            name: row.name,
            hint: row.hint,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            last_address: row.last_address,
            last_program: row.last_program,
            expires_at: row.expires_at,
            created_by: row.created_by,
            suspended_at: row.suspended_at,
            paused_at: row.paused_at,
            paused_by: row.paused_by,
            revoked_at: row.revoked_at,
            revoked_by: row.revoked_by,
            replaces: row.replaces.map(KeyId::from),
            note: row.note.unwrap_or_default(),
            allowed_networks: read(row.allowed_networks),
            sent_in_clear_at: row.sent_in_clear_at,
            silence_announced_at: row.silence_announced_at,
            refusals_announced_at: row.refusals_announced_at,
            successor: None,
        }
    }
}
