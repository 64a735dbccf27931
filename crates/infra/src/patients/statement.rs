//! The one statement: authenticates every request of a batch and stores the patients of those whose key is active, unless
//! the patient of their idempotency key was erased. A single patient has a form without arrays, which would take a quarter
//! longer.

use std::collections::HashMap;
use std::sync::LazyLock;

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, Binary, Bool, Date, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{ByField, Field, KeyDigest};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::patients::job::Task;

/// The columns of the fields, in the order in which both forms bind their values.
static FIELDS: LazyLock<String> = LazyLock::new(|| Field::ALL.map(|field| field.definition().column).join(", "));

/// A batch as PostgreSQL takes it: the keys, each once, and one array for each column of the rows.
#[derive(Default)]
pub(crate) struct InsertBatch<'a> {
    key_digests: Vec<&'a [u8]>,
    /// For each task the index of its key.
    key_indexes: Vec<usize>,
    /// For each row the number of its key, counted from 1 as PostgreSQL does.
    key_numbers: Vec<i32>,
    ids: Vec<Uuid>,
    /// The values of each field; empty for the date of birth, which is sent as a date.
    texts: ByField<Vec<Option<&'a str>>>,
    dates_of_birth: Vec<time::Date>,
    created_at: Vec<OffsetDateTime>,
    idempotency_keys: Vec<Option<&'a str>>,
    request_digests: Vec<Option<&'a [u8]>>,
}

/// The outcome of a batch: a single row, so that nothing depends on the order of rows.
#[derive(Queryable)]
pub(crate) struct Outcome {
    /// For each key its id; none: the key is unknown.
    pub(crate) key_ids: Vec<Option<Uuid>>,
    pub(crate) organisation_ids: Vec<Option<Uuid>>,
    pub(crate) are_revoked: Vec<bool>,
    pub(crate) have_expired: Vec<bool>,
    /// The ids of the rows that this run of the statement has stored.
    pub(crate) created: Option<Vec<Uuid>>,
}

impl<'a> InsertBatch<'a> {
    /// For each task the index of its key in the arrays of the outcome.
    pub(crate) fn key_indexes(&self) -> Vec<usize> {
        self.key_indexes.clone()
    }

    /// Whether some of the patients may have been erased: known by their idempotency keys. To look that up costs a statement of one a
    /// tenth more, so those without such keys do not.
    pub(crate) fn has_idempotency_keys(&self) -> bool {
        self.idempotency_keys.iter().any(Option::is_some)
    }

    /// How many patients the batch would create.
    pub(crate) fn rows(&self) -> usize {
        self.ids.len()
    }
}

impl<'a> FromIterator<&'a Task> for InsertBatch<'a> {
    fn from_iter<T: IntoIterator<Item = &'a Task>>(tasks: T) -> Self {
        let mut batch = Self::default();
        let mut indexes: HashMap<&KeyDigest, usize> = HashMap::new();
        for task in tasks {
            let next = indexes.len();
            let index = *indexes.entry(task.key()).or_insert_with(|| {
                batch.key_digests.push(task.key().as_bytes());
                next
            });
            batch.key_indexes.push(index);
            let Some(registration) = task.registration() else { continue };
            let patient = &registration.patient;
            let retry = registration.retry.as_ref();
            // A batch is far smaller than the largest number.
            batch.key_numbers.push(i32::try_from(index + 1).unwrap_or(i32::MAX));
            batch.ids.push(*registration.id.as_uuid());
            for field in Field::ALL {
                match field {
                    Field::DateOfBirth => batch.dates_of_birth.push(patient.date_of_birth()),
                    field => batch.texts[field].push(patient.get(field)),
                }
            }
            batch.created_at.push(registration.created_at);
            batch.idempotency_keys.push(retry.map(|retry| retry.key.as_str()));
            batch.request_digests.push(retry.map(|retry| retry.digest.as_bytes().as_slice()));
        }
        batch
    }
}

/// The statement for a batch; it looks for erased patients or does not.
pub(crate) struct InsertMany<'a, const ERASED: bool>(pub(crate) InsertBatch<'a>);

impl<const ERASED: bool> QueryFragment<Pg> for InsertMany<'_, ERASED> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let batch = &self.0;
        // Each key is looked up once, however many rows use it. The keys become one row of arrays, in which each
        // patient finds its organisation by the number of its key.
        out.push_sql(
            "WITH keys AS (
                SELECT array_agg(api_keys.id ORDER BY number) AS ids,
                    array_agg(organisation_id ORDER BY number) AS organisation_ids,
                    array_agg(revoked_at IS NOT NULL ORDER BY number) AS are_revoked,
                    array_agg(coalesce(expires_at <= now(), false) ORDER BY number) AS have_expired,
                    array_agg(CASE WHEN revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
                        THEN organisation_id END ORDER BY number) AS open_organisation_ids
                FROM unnest(",
        );
        out.push_bind_param::<Array<Binary>, _>(&batch.key_digests)?;
        out.push_sql(
            ") WITH ORDINALITY AS asked (digest, number) LEFT JOIN api_keys USING (digest)
            ), created AS (
                INSERT INTO patients (organisation_id, key_id, id, ",
        );
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, updated_at)
                SELECT open_organisation_ids[key_number], ids[key_number], id, ",
        );
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, created_at
                FROM keys, unnest(",
        );
        out.push_bind_param::<Array<Integer>, _>(&batch.key_numbers)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&batch.ids)?;
        for field in Field::ALL {
            out.push_sql(", ");
            match field {
                Field::DateOfBirth => out.push_bind_param::<Array<Date>, _>(&batch.dates_of_birth)?,
                field => out.push_bind_param::<Array<Nullable<Text>>, _>(&batch.texts[field])?,
            }
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&batch.idempotency_keys)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Binary>>, _>(&batch.request_digests)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&batch.created_at)?;
        out.push_sql(") AS row (key_number, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at)
                WHERE open_organisation_ids[key_number] IS NOT NULL",
        );
        if ERASED {
            out.push_sql(
                " AND (idempotency_key IS NULL OR NOT EXISTS (
                    SELECT FROM erasures WHERE organisation_id = open_organisation_ids[key_number]
                        AND idempotency_digest = sha256(convert_to(idempotency_key, 'UTF8'))))",
            );
        }
        out.push_sql(
            " ON CONFLICT DO NOTHING
                RETURNING id
            )
            SELECT ids, organisation_ids, are_revoked, have_expired, (SELECT array_agg(id) FROM created) FROM keys",
        );
        Ok(())
    }
}

impl<const ERASED: bool> QueryId for InsertMany<'_, ERASED> {
    type QueryId = InsertMany<'static, ERASED>;

    // The text is the same for every batch of its kind, so that it is parsed and planned once per connection.
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<const ERASED: bool> Query for InsertMany<'_, ERASED> {
    type SqlType =
        (Array<Nullable<SqlUuid>>, Array<Nullable<SqlUuid>>, Array<Bool>, Array<Bool>, Nullable<Array<SqlUuid>>);
}

impl<const ERASED: bool> RunQueryDsl<PgConnection> for InsertMany<'_, ERASED> {}

/// The statement with all its values, planned but not run: it fails if one of the values is at fault.
pub(crate) struct Rehearsal<'a>(pub(crate) InsertMany<'a, true>);

impl QueryFragment<Pg> for Rehearsal<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("EXPLAIN ");
        self.0.walk_ast(out.reborrow())
    }
}

impl QueryId for Rehearsal<'_> {
    type QueryId = Rehearsal<'static>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl RunQueryDsl<PgConnection> for Rehearsal<'_> {}

/// The same for a batch of one patient.
pub(crate) struct InsertOne<'a, const ERASED: bool>(pub(crate) InsertBatch<'a>);

/// The outcome of a single patient.
#[derive(Queryable)]
pub(crate) struct OutcomeOfOne {
    key_id: Uuid,
    organisation_id: Uuid,
    is_revoked: bool,
    has_expired: bool,
    created: Option<Uuid>,
}

impl From<Option<OutcomeOfOne>> for Outcome {
    fn from(one: Option<OutcomeOfOne>) -> Self {
        let one = one.as_ref();
        Self {
            key_ids: vec![one.map(|one| one.key_id)],
            organisation_ids: vec![one.map(|one| one.organisation_id)],
            are_revoked: vec![one.is_some_and(|one| one.is_revoked)],
            have_expired: vec![one.is_some_and(|one| one.has_expired)],
            created: one.and_then(|one| one.created).map(|id| vec![id]),
        }
    }
}

impl<const ERASED: bool> QueryFragment<Pg> for InsertOne<'_, ERASED> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let batch = &self.0;
        out.push_sql(
            "WITH key AS (
                SELECT id AS key_id, organisation_id, revoked_at IS NOT NULL AS is_revoked,
                    coalesce(expires_at <= now(), false) AS has_expired, ",
        );
        out.push_bind_param::<Nullable<Text>, _>(first(&batch.idempotency_keys)?)?;
        out.push_sql(" AS idempotency_key FROM api_keys WHERE digest = ");
        out.push_bind_param::<Binary, _>(first(&batch.key_digests)?)?;
        out.push_sql("), created AS (INSERT INTO patients (organisation_id, key_id, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, updated_at)
                SELECT organisation_id, key_id, ",
        );
        out.push_bind_param::<SqlUuid, _>(first(&batch.ids)?)?;
        for field in Field::ALL {
            out.push_sql(", ");
            match field {
                Field::DateOfBirth => out.push_bind_param::<Date, _>(first(&batch.dates_of_birth)?)?,
                field => out.push_bind_param::<Nullable<Text>, _>(first(&batch.texts[field])?)?,
            }
        }
        out.push_sql(", idempotency_key, ");
        out.push_bind_param::<Nullable<Binary>, _>(first(&batch.request_digests)?)?;
        for _ in ["created_at", "updated_at"] {
            out.push_sql(", ");
            out.push_bind_param::<Timestamptz, _>(first(&batch.created_at)?)?;
        }
        out.push_sql(" FROM key WHERE NOT is_revoked AND NOT has_expired");
        if ERASED {
            out.push_sql(
                " AND NOT EXISTS (SELECT FROM erasures WHERE organisation_id = key.organisation_id
                    AND idempotency_digest = sha256(convert_to(idempotency_key, 'UTF8')))",
            );
        }
        out.push_sql(
            " ON CONFLICT DO NOTHING RETURNING id)
            SELECT key_id, organisation_id, is_revoked, has_expired, (SELECT id FROM created) FROM key",
        );
        Ok(())
    }
}

impl<const ERASED: bool> QueryId for InsertOne<'_, ERASED> {
    type QueryId = InsertOne<'static, ERASED>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<const ERASED: bool> Query for InsertOne<'_, ERASED> {
    type SqlType = (SqlUuid, SqlUuid, Bool, Bool, Nullable<SqlUuid>);
}

impl<const ERASED: bool> RunQueryDsl<PgConnection> for InsertOne<'_, ERASED> {}

fn first<T>(values: &[T]) -> QueryResult<&T> {
    values.first().ok_or(diesel::result::Error::NotFound)
}
