//! Finds keys that will expire soon, work until then and have no replacement that works: each once, however many
//! instances look for them, and those of an organisation once a day.

use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_types::{Array, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{EXPIRY_ANNOUNCED_BEFORE, ExpiringKey, ExpiringKeyStore, StoreError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::cluster::parts::of_each_part;
use crate::keys::PostgresKeyStore;
use crate::keys::status::{has_no_replacement_at, refusal_at};
use crate::organisations::zone_of;

/// Keys of a part at once. The rest follow at the next look.
const CLAIMED_MAX: u32 = 100;

#[async_trait]
impl ExpiringKeyStore for PostgresKeyStore {
    async fn claim_expiring(&self, now: OffsetDateTime) -> Result<Vec<ExpiringKey>, StoreError> {
        of_each_part(&self.0, move |connection, part| claim_part(connection, &part.organisations, now)).await
    }
}

/// A key that another instance marks at the same time is given by that one alone. One that this look has marked is
/// given again, because a statement without an answer is sent again. Found and marked apart, because Citus cannot
/// limit a change of rows on several nodes.
fn claim_part(
    connection: &mut PgConnection,
    part: &Option<Vec<Uuid>>,
    now: OffsetDateTime,
) -> QueryResult<Vec<ExpiringKey>> {
    let ends_soon = format!(
        "(key.expiry_announced_at IS NULL OR key.expiry_announced_at = $1) AND {} IS NULL AND expires_at <= $2
            AND expires_at - key.created_at > interval '{} days'
            AND NOT EXISTS (SELECT FROM api_keys AS told WHERE told.organisation_id = key.organisation_id
                AND told.expiry_announced_at > $1 - interval '1 day' AND told.expiry_announced_at <> $1)",
        refusal_at("$1"),
        EXPIRY_ANNOUNCED_BEFORE.whole_days()
    );
    let find = format!(
        "SELECT organisation_id, id FROM api_keys AS key WHERE {ends_soon} AND ($3 IS NULL OR organisation_id = ANY ($3))
            AND {} ORDER BY expires_at LIMIT {CLAIMED_MAX}",
        has_no_replacement_at("$1")
    );
    let found = diesel::sql_query(find)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + EXPIRY_ANNOUNCED_BEFORE)
        .bind::<Nullable<Array<SqlUuid>>, _>(part)
        .load::<Found>(connection)?;
    if found.is_empty() {
        return Ok(vec![]);
    }
    let (organisations, keys): (Vec<_>, Vec<_>) = found.into_iter().map(|key| (key.organisation_id, key.id)).unzip();
    let mark = format!(
        "UPDATE api_keys AS key SET expiry_announced_at = $1 FROM organisations AS organisation
         WHERE organisation.id = key.organisation_id AND key.organisation_id = ANY ($3) AND key.id = ANY ($4) AND {ends_soon}
         RETURNING key.organisation_id, key.id, organisation.name AS organisation_name,
            organisation.time_zone, key.name, key.hint, coalesce(key.contact, '') AS contact, key.expires_at"
    );
    let claimed = diesel::sql_query(mark)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + EXPIRY_ANNOUNCED_BEFORE)
        .bind::<Array<SqlUuid>, _>(organisations)
        .bind::<Array<SqlUuid>, _>(keys)
        .load::<Claimed>(connection)?;
    let mut claimed: Vec<_> = claimed.into_iter().map(ExpiringKey::from).collect();
    claimed.sort_by_key(|key| (key.organisation_id, key.expires_at));
    Ok(claimed)
}

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = SqlUuid)]
    organisation_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

#[derive(QueryableByName)]
struct Claimed {
    #[diesel(sql_type = SqlUuid)]
    organisation_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    organisation_name: String,
    #[diesel(sql_type = Text)]
    time_zone: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    hint: String,
    #[diesel(sql_type = Text)]
    contact: String,
    #[diesel(sql_type = Timestamptz)]
    expires_at: OffsetDateTime,
}

impl From<Claimed> for ExpiringKey {
    fn from(claimed: Claimed) -> Self {
        let Claimed { organisation_id, id, organisation_name, time_zone, name, hint, contact, expires_at } = claimed;
        let (organisation_id, id, zone) = (organisation_id.into(), id.into(), zone_of(&time_zone));
        Self { organisation_id, id, organisation_name, zone, name, hint, contact, expires_at }
    }
}
