//! Keys of which every request was refused, and the fields that the refusals named.

use std::collections::HashMap;

use diesel::dsl::{count_star, max};
use diesel::prelude::*;
use diesel::sql_types::{Array, Nullable, Text, Uuid as SqlUuid};
use intake_domain::{OnlyRefused, RefusalReason};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::schema::key_refusals;

/// A channel that accepted something within this time before a mail about refusals is not refused altogether.
pub(super) const NIGHT: Duration = Duration::hours(12);

#[derive(QueryableByName)]
struct RefusedField {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Text)]
    field: String,
}

/// Finds those of an organisation's keys that are not revoked, had refused requests, and with which none was accepted:
/// ever, or for a night before the mail about the refusals and since. Failures of the service do not count. Without
/// ids, all keys are searched.
pub(super) fn with_fields(
    connection: &mut PgConnection,
    organisation: Uuid,
    ids: Option<&[Uuid]>,
) -> QueryResult<HashMap<Uuid, OnlyRefused>> {
    // Counts are by day: those of the day of the last use may be earlier than it.
    let refused = format!(
        "SELECT key.id, answer.field FROM api_keys AS key
            LEFT JOIN key_uses AS used ON used.organisation_id = key.organisation_id AND used.key_id = key.id
            JOIN key_answers AS answer ON answer.organisation_id = key.organisation_id AND answer.key_id = key.id
        WHERE key.organisation_id = $1 AND ($2 IS NULL OR key.id = ANY ($2)) AND key.revoked_at IS NULL
            AND answer.status BETWEEN 400 AND 499
            AND (used.last_used_at IS NULL OR used.refusals_announced_at - used.last_used_at >= interval '{} hours'
                AND answer.day >= (used.last_used_at AT TIME ZONE 'UTC')::date)
        GROUP BY key.id, answer.field ORDER BY sum(answer.count) DESC, answer.field",
        NIGHT.whole_hours()
    );
    let query = diesel::sql_query(refused).bind::<SqlUuid, _>(organisation).bind::<Nullable<Array<SqlUuid>>, _>(ids);
    let mut found: HashMap<Uuid, OnlyRefused> = HashMap::new();
    for RefusedField { id, field } in query.load(connection)? {
        let refused = found.entry(id).or_default();
        refused.fields.extend(Some(field).filter(|field| !field.is_empty()));
    }
    add_reasons(connection, organisation, &mut found)?;
    Ok(found)
}

/// Adds the most frequent reason and the time of the last refusal, as far as refusals are kept one by one.
fn add_reasons(
    connection: &mut PgConnection,
    organisation: Uuid,
    found: &mut HashMap<Uuid, OnlyRefused>,
) -> QueryResult<()> {
    if found.is_empty() {
        return Ok(());
    }
    let by_reason = key_refusals::table
        .filter(key_refusals::organisation_id.eq(organisation).and(key_refusals::key_id.eq_any(found.keys())))
        .group_by((key_refusals::key_id, key_refusals::reason))
        .select((key_refusals::key_id, key_refusals::reason, max(key_refusals::at)))
        .order((count_star().asc(), max(key_refusals::at).asc()));
    for (key, reason, at) in by_reason.load::<(Uuid, String, Option<OffsetDateTime>)>(connection)? {
        if let Some(refused) = found.get_mut(&key) {
            // The most frequent comes last.
            refused.reason = RefusalReason::named(&reason);
            refused.last_at = refused.last_at.max(at);
        }
    }
    Ok(())
}
