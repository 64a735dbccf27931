//! Which keys send most, and which are refused, over all organisations: counted from the answers that are kept for each
//! day.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{OrganisationId, StoreError};
use time::OffsetDateTime;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::keys::activity::owned_key::OwnedKey;

/// The answers of each key by kind, its newest refusal, and its most refused field.
const USAGE: &str = "SELECT a.organisation_id AS organisation, o.name AS organisation_name, k.id AS key, k.name, k.hint,
        coalesce(sum(a.count) FILTER (WHERE a.field = '' AND a.status BETWEEN 200 AND 299), 0)::bigint AS accepted,
        coalesce(sum(a.count) FILTER (WHERE a.field = '' AND a.status BETWEEN 400 AND 499 AND a.status <> 429), 0)::bigint AS refused,
        coalesce(sum(a.count) FILTER (WHERE a.field = '' AND a.status = 429), 0)::bigint AS limited,
        coalesce(sum(a.count) FILTER (WHERE a.field = '' AND a.status >= 500), 0)::bigint AS failed,
        (SELECT f.field FROM key_answers AS f
            WHERE f.organisation_id = a.organisation_id AND f.key_id = k.id AND f.day >= $1 AND f.field <> '' AND f.status >= 400
            GROUP BY f.field ORDER BY sum(f.count) DESC, f.field LIMIT 1) AS field,
        (SELECT max(r.at) FROM key_refusals AS r WHERE r.organisation_id = a.organisation_id AND r.key_id = k.id) AS refused_at,
        (SELECT r.reason FROM key_refusals AS r WHERE r.organisation_id = a.organisation_id AND r.key_id = k.id
            ORDER BY r.at DESC LIMIT 1) AS reason
    FROM key_answers AS a
    JOIN api_keys AS k ON k.organisation_id = a.organisation_id AND k.id = a.key_id
    JOIN organisations AS o ON o.id = a.organisation_id
    WHERE a.day >= $1 AND ($2 IS NULL OR a.organisation_id = $2)
    GROUP BY a.organisation_id, o.name, k.id, k.name, k.hint
    ORDER BY sum(a.count) FILTER (WHERE a.field = '') DESC NULLS LAST, k.id LIMIT $3";

/// Outcome of a key's requests.
#[derive(Clone, Debug, QueryableByName)]
pub struct KeyUsage {
    /// The key.
    #[diesel(embed)]
    pub key: OwnedKey,
    /// Requests that were answered with 200 or 201.
    #[diesel(sql_type = BigInt)]
    pub accepted: i64,
    /// Requests that were refused for what was sent, or for the key.
    #[diesel(sql_type = BigInt)]
    pub refused: i64,
    /// Requests beyond the key's rate.
    #[diesel(sql_type = BigInt)]
    pub limited: i64,
    /// Requests that the service failed to serve.
    #[diesel(sql_type = BigInt)]
    pub failed: i64,
    /// The field that was refused most.
    #[diesel(sql_type = Nullable<Text>)]
    pub field: Option<String>,
    /// Time at which a request was last refused.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub refused_at: Option<OffsetDateTime>,
    /// Reason, in a word.
    #[diesel(sql_type = Nullable<Text>)]
    pub reason: Option<String>,
}

/// The keys with most requests since a day, of one organisation or of all.
pub async fn key_usage(
    database: &Database,
    since: time::Date,
    organisation: Option<OrganisationId>,
    limit: u32,
) -> Result<Vec<KeyUsage>, StoreError> {
    let found = database.run(Share::Common, move |connection| {
        let query = diesel::sql_query(USAGE).bind::<Date, _>(since);
        let query = query.bind::<Nullable<SqlUuid>, _>(organisation.map(|id| *id.as_uuid()));
        query.bind::<BigInt, _>(i64::from(limit)).load(connection)
    });
    found.await
}
