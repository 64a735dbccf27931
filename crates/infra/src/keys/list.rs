//! Keys as their organisation sees them: one, all, or a page of those that are looked for.

use async_trait::async_trait;
use diesel::data_types::PgInterval;
use diesel::dsl::{And, Eq, count, count_star};
use diesel::helper_types::LeftJoinQuerySource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text, Timestamptz};
use intake_domain::{
    KEYS_PER_PAGE, KeyId, KeyList, KeyOrder, KeyPage, KeyRecord, KeyScope, KeySearch, KeySuccessor, OrganisationId,
    StoreError,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::audit::log::literal;
use crate::database::connecting::share::Share;
use crate::keys::network_sql::{Stored, read};
use crate::keys::status::refusal;
use crate::keys::{PostgresKeyStore, directory};
use crate::schema::{api_keys, key_uses, organisation_states};

/// Characters of a hint.
const HINT_LENGTH: usize = 4;

diesel::define_sql_function! {
    fn coalesce(first: Nullable<Timestamptz>, second: Timestamptz) -> Timestamptz;
}
diesel::define_sql_function! {
    fn lower(text: Text) -> Text;
}

type OfKey = And<Eq<key_uses::key_id, api_keys::id>, Eq<key_uses::organisation_id, api_keys::organisation_id>>;
/// A condition on keys and their uses.
type Condition =
    Box<dyn BoxableExpression<LeftJoinQuerySource<api_keys::table, key_uses::table, OfKey>, Pg, SqlType = Bool>>;

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
    let fits = || fits(search);
    let is_found = || fits().and(is_within(search.scope, now));
    let of_organisation = with_uses().filter(api_keys::organisation_id.eq(organisation));
    let counts = (
        count(api_keys::id).aggregate_filter(is_found()),
        count(api_keys::id).aggregate_filter(fits()),
        count_star(),
        count(key_uses::last_used_at.nullable()),
    );
    let counts = of_organisation.select(counts).first::<(i64, i64, i64, i64)>(connection)?;
    let [found, found_in_any_scope, total, used] =
        <[i64; 4]>::from(counts).map(|count| u64::try_from(count).unwrap_or_default());
    let mut page =
        KeyPage { keys: Vec::new(), page: search.page, found, found_in_any_scope, total, is_any_used: used > 0 };
    page.page = page.page.clamp(1, page.pages());
    let ids = of_organisation
        .filter(is_found())
        .select(api_keys::id)
        .limit(KEYS_PER_PAGE.into())
        .offset((KEYS_PER_PAGE * (page.page - 1)).into())
        .into_boxed();
    let ids = match search.order {
        KeyOrder::Newest => ids.order((api_keys::created_at.desc(), api_keys::id.desc())),
        KeyOrder::Name => ids.order((lower(api_keys::name), api_keys::id)),
        KeyOrder::Used => ids.order((key_uses::last_used_at.nullable().desc().nulls_last(), api_keys::id.desc())),
        KeyOrder::Expires => ids.order((api_keys::expires_at.asc().nulls_last(), api_keys::id.desc())),
    };
    let ids: Vec<Uuid> = ids.load(connection)?;
    page.keys = some(connection, organisation, &ids)?;
    page.keys.sort_by_key(|key| ids.iter().position(|id| id == key.id.as_uuid()));
    Ok(page)
}

/// Condition that the name or the hint of a key fits what was typed, and that it was unused for as long as is asked.
fn fits(search: &KeySearch) -> Condition {
    let text = search.text.trim();
    let hint: String = text.chars().skip(text.chars().count().saturating_sub(HINT_LENGTH)).collect();
    let is_named = api_keys::name.ilike(format!("%{}%", literal(text))).or(api_keys::hint.eq(hint));
    let last_used_or_made = coalesce(key_uses::last_used_at.nullable(), api_keys::created_at);
    match search.unused_since {
        None => Box::new(is_named),
        Some(since) => Box::new(is_named.and(last_used_or_made.lt(since))),
    }
}

fn is_within(scope: KeyScope, now: OffsetDateTime) -> Condition {
    let is_refused = |word: &'static str| refusal(now).is_not_distinct_from(word);
    match scope {
        KeyScope::Current(since) => {
            Box::new(coalesce(api_keys::revoked_at, coalesce(api_keys::expires_at, now)).gt(since))
        }
        KeyScope::Active => Box::new(refusal(now).is_null()),
        KeyScope::Suspended => Box::new(is_refused("suspended")),
        KeyScope::Paused => Box::new(is_refused("paused")),
        KeyScope::Expired => Box::new(is_refused("expired")),
        KeyScope::Revoked => Box::new(is_refused("revoked")),
        KeyScope::All => Box::new(true.into_sql::<Bool>()),
    }
}

#[diesel::dsl::auto_type]
fn with_uses() -> _ {
    let of_key: OfKey = key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id));
    api_keys::table.left_join(key_uses::table.on(of_key))
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
