//! The one statement: authenticates every request of a batch and stores the patients of those whose key is active.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Date, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::Registration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A batch as PostgreSQL takes it: one array for each column.
#[derive(Default)]
pub(super) struct InsertBatch<'a> {
    key_digests: Vec<&'a [u8]>,
    ids: Vec<Uuid>,
    first_names: Vec<&'a str>,
    last_names: Vec<&'a str>,
    phone_numbers: Vec<&'a str>,
    dates_of_birth: Vec<time::Date>,
    emails: Vec<Option<&'a str>>,
    address_lines1: Vec<Option<&'a str>>,
    address_lines2: Vec<Option<&'a str>>,
    suburbs: Vec<Option<&'a str>>,
    states: Vec<Option<&'a str>>,
    postcodes: Vec<Option<&'a str>>,
    countries: Vec<Option<&'a str>>,
    created_at: Vec<OffsetDateTime>,
    idempotency_keys: Vec<Option<&'a str>>,
    request_digests: Vec<Option<&'a [u8]>>,
}

/// What became of one row of a batch.
#[derive(Queryable)]
pub(super) struct Outcome {
    /// The row's place in the batch, from 1.
    pub(super) ordinal: i64,
    /// The key's id; none: no such key.
    pub(super) key_id: Option<Uuid>,
    pub(super) organisation_id: Option<Uuid>,
    pub(super) is_revoked: bool,
    pub(super) has_expired: bool,
    /// Whether the row was stored by this run of the statement.
    pub(super) is_created: bool,
}

impl<'a> FromIterator<&'a Registration> for InsertBatch<'a> {
    fn from_iter<T: IntoIterator<Item = &'a Registration>>(registrations: T) -> Self {
        let mut batch = Self::default();
        for registration in registrations {
            let patient = &registration.patient;
            let retry = registration.retry.as_ref();
            batch.key_digests.push(registration.key.as_bytes());
            batch.ids.push(*registration.id.as_uuid());
            batch.first_names.push(patient.first_name());
            batch.last_names.push(patient.last_name());
            batch.phone_numbers.push(patient.phone_number());
            batch.dates_of_birth.push(patient.date_of_birth());
            batch.emails.push(patient.email());
            batch.address_lines1.push(patient.address_line1());
            batch.address_lines2.push(patient.address_line2());
            batch.suburbs.push(patient.suburb());
            batch.states.push(patient.state());
            batch.postcodes.push(patient.postcode());
            batch.countries.push(patient.country());
            batch.created_at.push(registration.created_at);
            batch.idempotency_keys.push(retry.map(|retry| retry.key.as_str()));
            batch.request_digests.push(retry.map(|retry| retry.digest.as_bytes().as_slice()));
        }
        batch
    }
}

impl QueryFragment<Pg> for InsertBatch<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH input AS (SELECT * FROM unnest(");
        out.push_bind_param::<Array<Binary>, _>(&self.key_digests)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.ids)?;
        for texts in [&self.first_names, &self.last_names, &self.phone_numbers] {
            out.push_sql(", ");
            out.push_bind_param::<Array<Text>, _>(texts)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Date>, _>(&self.dates_of_birth)?;
        let optional = [
            &self.emails,
            &self.address_lines1,
            &self.address_lines2,
            &self.suburbs,
            &self.states,
            &self.postcodes,
            &self.countries,
            &self.idempotency_keys,
        ];
        for texts in optional {
            out.push_sql(", ");
            out.push_bind_param::<Array<Nullable<Text>>, _>(texts)?;
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Binary>>, _>(&self.request_digests)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.created_at)?;
        out.push_sql(
            ") WITH ORDINALITY AS row (key_digest, id, first_name, last_name, phone_number, date_of_birth, email,
                address_line1, address_line2, suburb, state, postcode, country, idempotency_key, request_digest,
                created_at, ordinal)
            ), judged AS (
                SELECT input.*, api_keys.id AS key_id, api_keys.organisation_id,
                    api_keys.revoked_at IS NOT NULL AS is_revoked,
                    coalesce(api_keys.expires_at <= now(), false) AS has_expired
                FROM input LEFT JOIN api_keys ON api_keys.digest = input.key_digest
            ), created AS (
                INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, email,
                    address_line1, address_line2, suburb, state, postcode, country, idempotency_key, request_digest,
                    created_at, updated_at)
                SELECT organisation_id, id, first_name, last_name, phone_number, date_of_birth, email,
                    address_line1, address_line2, suburb, state, postcode, country, idempotency_key, request_digest,
                    created_at, created_at
                FROM judged
                WHERE key_id IS NOT NULL AND NOT is_revoked AND NOT has_expired
                ORDER BY organisation_id, idempotency_key, id
                ON CONFLICT DO NOTHING
                RETURNING organisation_id, id
            )
            SELECT judged.ordinal, judged.key_id, judged.organisation_id, judged.is_revoked, judged.has_expired,
                created.id IS NOT NULL
            FROM judged LEFT JOIN created USING (organisation_id, id)",
        );
        Ok(())
    }
}

impl QueryId for InsertBatch<'_> {
    type QueryId = InsertBatch<'static>;

    // The text is the same for every batch: parsed and planned once for each connection.
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for InsertBatch<'_> {
    type SqlType = (BigInt, Nullable<SqlUuid>, Nullable<SqlUuid>, Bool, Bool, Bool);
}

impl RunQueryDsl<PgConnection> for InsertBatch<'_> {}
