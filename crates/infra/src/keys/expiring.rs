//! Finds keys that will expire soon, each once, however many instances look for them.

use diesel::prelude::*;
use diesel::sql_types::{Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{EXPIRY_TOLD_BEFORE, ExpiringKey};
use time::OffsetDateTime;
use uuid::Uuid;

/// Keys at once. Whoever has more gets the rest at the next look.
const CLAIMED_MAX: u32 = 100;

/// Marks the keys as told, and gives them. Rows that another instance marks at the same moment are left to it.
pub(super) fn claim(connection: &mut PgConnection, now: OffsetDateTime) -> QueryResult<Vec<ExpiringKey>> {
    let statement = format!(
        "UPDATE api_keys AS key SET expiry_told_at = $1 FROM organisations AS organisation \
         WHERE organisation.id = key.organisation_id AND key.id IN ( \
             SELECT id FROM api_keys \
             WHERE expiry_told_at IS NULL AND revoked_at IS NULL AND expires_at > $1 AND expires_at <= $2 \
                 AND expires_at - created_at > interval '{} days' \
             ORDER BY expires_at LIMIT {CLAIMED_MAX} FOR UPDATE SKIP LOCKED) \
         RETURNING key.organisation_id, organisation.name AS organisation_name, key.name, key.hint, key.expires_at",
        EXPIRY_TOLD_BEFORE.whole_days()
    );
    let claimed = diesel::sql_query(statement)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + EXPIRY_TOLD_BEFORE)
        .load::<Claimed>(connection)?;
    Ok(claimed.into_iter().map(ExpiringKey::from).collect())
}

#[derive(QueryableByName)]
struct Claimed {
    #[diesel(sql_type = SqlUuid)]
    organisation_id: Uuid,
    #[diesel(sql_type = Text)]
    organisation_name: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    hint: String,
    #[diesel(sql_type = Timestamptz)]
    expires_at: OffsetDateTime,
}

impl From<Claimed> for ExpiringKey {
    fn from(claimed: Claimed) -> Self {
        let Claimed { organisation_id, organisation_name, name, hint, expires_at } = claimed;
        Self { organisation_id: organisation_id.into(), organisation_name, name, hint, expires_at }
    }
}
