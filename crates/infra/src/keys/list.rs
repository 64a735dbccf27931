//! Keys as their organisation sees them: one, all, or a page of those that are looked for.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_domain::{
    KEYS_PER_PAGE, KeyId, KeyList, KeyOrder, KeyPage, KeyRecord, KeySearch, MemberId, OrganisationId, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::connecting::share::Share;
use crate::keys::known::{Known, with_uses};
use crate::keys::makers::made_by;
use crate::keys::network_sql::{Stored, read};
use crate::keys::search::{Counts, Scopes};
use crate::keys::{PostgresKeyStore, directory};
use crate::schema::{api_keys, key_uses, organisation_states};

diesel::define_sql_function! {
    fn lower(text: Text) -> Text;
}

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

    async fn made_by(&self, organisation: OrganisationId, member: MemberId) -> Result<Vec<KeyId>, StoreError> {
        let (organisation, member) = (*organisation.as_uuid(), *member.as_uuid());
        let found = self.0.run(Share::Of(organisation), move |connection| made_by(connection, organisation, member));
        Ok(found.await?.into_iter().map(KeyId::from).collect())
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
    Ok(records(rows, &mut Known::read(connection, organisation, Some(ids))?))
}

fn records(rows: Vec<KeyRow>, known: &mut Known) -> Vec<KeyRecord> {
    let record = |row: KeyRow| {
        let (only_refused, successor) = (known.only_refused.remove(&row.id), known.successors.remove(&row.id));
        KeyRecord { successor, only_refused, ..KeyRecord::from(row) }
    };
    rows.into_iter().map(record).collect()
}

/// The page of an organisation's keys that is looked for.
fn page(
    connection: &mut PgConnection,
    organisation: Uuid,
    search: &KeySearch,
    now: OffsetDateTime,
) -> QueryResult<KeyPage> {
    let mut known = Known::read(connection, organisation, None)?;
    let scopes = Scopes::read(connection, organisation, &known, search, now)?;
    let Counts { found, in_scope, total, used } = scopes.count(connection, organisation, search)?;
    let mut page = KeyPage { keys: Vec::new(), page: search.page, found, in_scope, total, is_any_used: used > 0 };
    page.page = page.page.clamp(1, page.pages());
    let rows = with_uses()
        .filter(api_keys::organisation_id.eq(organisation).and(scopes.found(search)))
        .select(KeyRow::as_select())
        .limit(KEYS_PER_PAGE.into())
        .offset((KEYS_PER_PAGE * (page.page - 1)).into())
        .into_boxed();
    let rows = match search.order {
        KeyOrder::Newest => rows.order((api_keys::created_at.desc(), api_keys::id.desc())),
        KeyOrder::Name => rows.order((lower(api_keys::name), api_keys::id)),
        KeyOrder::Used => rows.order((key_uses::last_used_at.nullable().desc().nulls_last(), api_keys::id.desc())),
        KeyOrder::Expires => rows.order((api_keys::expires_at.asc().nulls_last(), api_keys::id.desc())),
    };
    page.keys = records(rows.load(connection)?, &mut known);
    Ok(page)
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
    contact: Option<String>,
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
            contact: row.contact.unwrap_or_default(),
            allowed_networks: read(row.allowed_networks),
            sent_in_clear_at: row.sent_in_clear_at,
            silence_announced_at: row.silence_announced_at,
            refusals_announced_at: row.refusals_announced_at,
            only_refused: None,
            successor: None,
        }
    }
}
