//! What a key may learn about itself, over PostgreSQL.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Uuid as SqlUuid};
use intake_domain::{CreatedInPart, DayPart, KeyHolder, OwnKey, OwnKeyStore, StoreError};
use time::OffsetDateTime;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::keys::ids;
use crate::keys::network_sql::{Stored, read};
use crate::organisations::zone_of;
use crate::schema::{api_keys, organisations};

/// The port [`OwnKeyStore`] over PostgreSQL.
pub struct PostgresOwnKeyStore(Database);

impl PostgresOwnKeyStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl OwnKeyStore for PostgresOwnKeyStore {
    async fn own_key(&self, holder: KeyHolder) -> Result<Option<OwnKey>, StoreError> {
        let found = self.0.run(Share::Of(*holder.organisation_id.as_uuid()), move |connection| {
            let row = api_keys::table.find(ids(&holder)).select(Row::as_select()).first(connection).optional()?;
            let organisation = organisations::table.find(holder.organisation_id.as_uuid());
            let organisation = organisation.select((organisations::name, organisations::time_zone));
            Ok(row.zip(organisation.first::<(String, String)>(connection).optional()?))
        });
        Ok(found.await?.map(|(row, (organisation_name, zone))| OwnKey {
            id: holder.key_id,
            name: row.name,
            hint: row.hint,
            organisation_id: holder.organisation_id,
            organisation_name,
            zone: zone_of(&zone),
            created_at: row.created_at,
            expires_at: row.expires_at,
            allowed_networks: read(row.allowed_networks),
        }))
    }

    async fn created(&self, holder: KeyHolder, part: DayPart) -> Result<CreatedInPart, StoreError> {
        let (organisation, key) = ids(&holder);
        let found = self.0.run(Share::Of(organisation), move |connection| {
            diesel::sql_query("SELECT existing, erased, digest FROM created_by_key($1, $2, $3, $4)")
                .bind::<SqlUuid, _>(organisation)
                .bind::<SqlUuid, _>(key)
                .bind::<SqlUuid, _>(part.after().as_uuid())
                .bind::<SqlUuid, _>(part.until().as_uuid())
                .get_result::<Created>(connection)
        });
        let Created { existing, erased, digest } = found.await?;
        let digest = digest.try_into().map_err(|_| StoreError::Unexpected("a digest of another length".into()))?;
        let number = |count: i64| u64::try_from(count).unwrap_or_default();
        Ok(CreatedInPart { existing: number(existing), erased: number(erased), digest })
    }
}

#[derive(QueryableByName)]
struct Created {
    #[diesel(sql_type = BigInt)]
    existing: i64,
    #[diesel(sql_type = BigInt)]
    erased: i64,
    #[diesel(sql_type = Binary)]
    digest: Vec<u8>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct Row {
    name: String,
    hint: String,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    allowed_networks: Stored,
}
