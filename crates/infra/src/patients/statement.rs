//! The statements of a batch: one stores the patients of those whose key is active, unless the patient of their idempotency key was
//! erased; the other tells the standing of keys, which is asked only if not every patient was stored. Whose a key is, is known
//! beforehand: so Citus, which keeps the keys of an organisation beside its patients, sends the statement to the node that holds them
//! as it is. A single patient has a form without arrays, which would take a quarter longer.

use std::collections::HashMap;
use std::sync::LazyLock;

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, Binary, Bool, Date, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{ByField, Field, KeyHolder, KeyRefusal, KeyStanding, Registration};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::keys::uses::ids;

/// The columns of the fields, in the order in which both forms bind their values.
static FIELDS: LazyLock<String> = LazyLock::new(|| Field::ALL.map(|field| field.definition().column).join(", "));

/// What makes a key active.
const IS_ACTIVE: &str = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())";

/// A batch as PostgreSQL takes it: one array for each column of the rows.
#[derive(Default)]
pub(crate) struct InsertBatch<'a> {
    organisation_ids: Vec<Uuid>,
    key_ids: Vec<Uuid>,
    ids: Vec<Uuid>,
    /// The values of each field; empty for the date of birth, which is sent as a date.
    texts: ByField<Vec<Option<&'a str>>>,
    dates_of_birth: Vec<time::Date>,
    created_at: Vec<OffsetDateTime>,
    idempotency_keys: Vec<Option<&'a str>>,
    request_digests: Vec<Option<&'a [u8]>>,
}

impl<'a> InsertBatch<'a> {
    /// How many patients the batch would create.
    pub(crate) fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Stores the patients and returns how many of them this run of the statement has stored: which, costs more to tell than to look
    /// up if there is one that it has not. A probe is carried out even if there are none to store.
    pub(crate) fn store(self, connection: &mut PgConnection, is_probed: bool, is_spread: bool) -> QueryResult<usize> {
        // To look up erased patients costs a statement of one a tenth more, so it is done only where there may be some: they are known
        // by their idempotency keys.
        let has_idempotency_keys = self.idempotency_keys.iter().any(Option::is_some);
        match (self.rows(), has_idempotency_keys, is_spread) {
            (0, ..) if !is_probed => Ok(0),
            (1, false, _) => InsertOne::<false>(self).execute(connection),
            (1, true, _) => InsertOne::<true>(self).execute(connection),
            (_, false, false) => InsertMany::<false, false>(self).execute(connection),
            (_, true, false) => InsertMany::<true, false>(self).execute(connection),
            (_, false, true) => InsertMany::<false, true>(self).execute(connection),
            (_, true, true) => InsertMany::<true, true>(self).execute(connection),
        }
    }
}

impl<'a> FromIterator<(&'a Registration, KeyHolder)> for InsertBatch<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a Registration, KeyHolder)>>(rows: T) -> Self {
        let mut batch = Self::default();
        for (registration, holder) in rows {
            let (organisation, key) = ids(&holder);
            let patient = &registration.patient;
            let retry = registration.retry.as_ref();
            batch.organisation_ids.push(organisation);
            batch.key_ids.push(key);
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

/// The statement for a batch; it looks for erased patients or does not, and names the organisations of a register that is spread or
/// does not. By their names Citus knows which nodes it concerns; PostgreSQL would be tempted to begin with them, and to compare each
/// key with each patient.
struct InsertMany<'a, const ERASED: bool, const SPREAD: bool>(InsertBatch<'a>);

impl<const ERASED: bool, const SPREAD: bool> QueryFragment<Pg> for InsertMany<'_, ERASED, SPREAD> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let batch = &self.0;
        out.push_sql("INSERT INTO patients (organisation_id, key_id, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, updated_at)
            SELECT key.organisation_id, key.id, row.id, ",
        );
        out.push_sql(&FIELDS);
        out.push_sql(", idempotency_key, request_digest, row.created_at, row.created_at FROM unnest(");
        out.push_bind_param::<Array<SqlUuid>, _>(&batch.organisation_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&batch.key_ids)?;
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
        out.push_sql(") AS row (organisation_id, key_id, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at)
                JOIN api_keys AS key ON key.organisation_id = row.organisation_id AND key.id = row.key_id
            WHERE ",
        );
        out.push_sql(IS_ACTIVE);
        if SPREAD {
            // The first value.
            out.push_sql(" AND key.organisation_id = ANY ($1)");
        }
        if ERASED {
            out.push_sql(
                " AND (idempotency_key IS NULL OR NOT EXISTS (
                    SELECT FROM erasures WHERE erasures.organisation_id = key.organisation_id
                        AND idempotency_digest = sha256(convert_to(idempotency_key, 'UTF8'))",
            );
            if SPREAD {
                out.push_sql(" AND erasures.organisation_id = ANY ($1)");
            }
            out.push_sql("))");
        }
        out.push_sql(" ON CONFLICT DO NOTHING");
        Ok(())
    }
}

impl<const ERASED: bool, const SPREAD: bool> QueryId for InsertMany<'_, ERASED, SPREAD> {
    type QueryId = InsertMany<'static, ERASED, SPREAD>;

    // The text is the same for every batch of its kind, so that it is parsed and planned once per connection.
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<const ERASED: bool, const SPREAD: bool> RunQueryDsl<PgConnection> for InsertMany<'_, ERASED, SPREAD> {}

/// The statement with all its values, planned but not run: it fails if one of the values is at fault.
pub(crate) struct Rehearsal<'a>(InsertMany<'a, true, true>);

impl<'a> Rehearsal<'a> {
    pub(crate) fn of(batch: InsertBatch<'a>) -> Self {
        Self(InsertMany(batch))
    }
}

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
struct InsertOne<'a, const ERASED: bool>(InsertBatch<'a>);

impl<const ERASED: bool> QueryFragment<Pg> for InsertOne<'_, ERASED> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let batch = &self.0;
        out.push_sql("INSERT INTO patients (organisation_id, key_id, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, updated_at)
            SELECT organisation_id, id, ",
        );
        out.push_bind_param::<SqlUuid, _>(first(&batch.ids)?)?;
        for field in Field::ALL {
            out.push_sql(", ");
            match field {
                Field::DateOfBirth => out.push_bind_param::<Date, _>(first(&batch.dates_of_birth)?)?,
                field => out.push_bind_param::<Nullable<Text>, _>(first(&batch.texts[field])?)?,
            }
        }
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Text>, _>(first(&batch.idempotency_keys)?)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Binary>, _>(first(&batch.request_digests)?)?;
        for _ in ["created_at", "updated_at"] {
            out.push_sql(", ");
            out.push_bind_param::<Timestamptz, _>(first(&batch.created_at)?)?;
        }
        out.push_sql(" FROM api_keys AS key WHERE organisation_id = ");
        out.push_bind_param::<SqlUuid, _>(first(&batch.organisation_ids)?)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(first(&batch.key_ids)?)?;
        out.push_sql(" AND ");
        out.push_sql(IS_ACTIVE);
        if ERASED {
            out.push_sql(
                " AND NOT EXISTS (SELECT FROM erasures WHERE erasures.organisation_id = key.organisation_id
                    AND idempotency_digest = sha256(convert_to(",
            );
            out.push_bind_param::<Nullable<Text>, _>(first(&batch.idempotency_keys)?)?;
            out.push_sql(", 'UTF8')))");
        }
        out.push_sql(" ON CONFLICT DO NOTHING");
        Ok(())
    }
}

impl<const ERASED: bool> QueryId for InsertOne<'_, ERASED> {
    type QueryId = InsertOne<'static, ERASED>;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<const ERASED: bool> RunQueryDsl<PgConnection> for InsertOne<'_, ERASED> {}

fn first<T>(values: &[T]) -> QueryResult<&T> {
    values.first().ok_or(diesel::result::Error::NotFound)
}

/// Asks for the standing of keys.
#[derive(Default)]
pub(crate) struct Standings {
    organisation_ids: Vec<Uuid>,
    key_ids: Vec<Uuid>,
}

impl Standings {
    /// Adds a key to ask for.
    pub(crate) fn ask(&mut self, holder: KeyHolder) {
        let (organisation, key) = ids(&holder);
        self.organisation_ids.push(organisation);
        self.key_ids.push(key);
    }

    /// The standing of each of the keys that exist.
    pub(crate) fn find(self, connection: &mut PgConnection) -> QueryResult<HashMap<KeyHolder, KeyStanding>> {
        if self.key_ids.is_empty() {
            return Ok(HashMap::new());
        }
        let standing = |(organisation, key, is_revoked, has_expired): (Uuid, Uuid, bool, bool)| {
            let holder = KeyHolder { key_id: key.into(), organisation_id: organisation.into() };
            let standing = match (is_revoked, has_expired) {
                (true, _) => KeyStanding::Refused(KeyRefusal::Revoked),
                (false, true) => KeyStanding::Refused(KeyRefusal::Expired),
                (false, false) => KeyStanding::Active(holder),
            };
            (holder, standing)
        };
        Ok(self.load(connection)?.into_iter().map(standing).collect())
    }
}

impl QueryFragment<Pg> for Standings {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "SELECT organisation_id, id, revoked_at IS NOT NULL, coalesce(expires_at <= now(), false) FROM api_keys
            WHERE organisation_id = ANY (",
        );
        out.push_bind_param::<Array<SqlUuid>, _>(&self.organisation_ids)?;
        out.push_sql(") AND id = ANY (");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.key_ids)?;
        out.push_sql(")");
        Ok(())
    }
}

impl QueryId for Standings {
    type QueryId = Self;

    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Query for Standings {
    type SqlType = (SqlUuid, SqlUuid, Bool, Bool);
}

impl RunQueryDsl<PgConnection> for Standings {}
