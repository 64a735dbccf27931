//! The insert of a batch. It stores the patients whose key is active and accepted from where the request came, unless
//! the patients were erased. The key's organisation is known beforehand, so Citus, which keeps the keys of an
//! organisation beside its patients, sends the insert to the node that holds both.

use std::sync::LazyLock;

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{Array, Binary, Date, Inet, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{ByField, Field, KeyHolder, OrganisationId, Registration};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::keys::ids;
use crate::keys::network_sql::SqlAddress;
use crate::keys::status::is_active_at;

/// The columns of the fields, in the order in which both forms bind their values.
static FIELDS: LazyLock<String> =
    LazyLock::new(|| Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", "));

/// Condition that a key is active. The address follows.
static IS_ACTIVE: LazyLock<String> = LazyLock::new(|| is_active_at("now()") + " AND (allowed_networks IS NULL OR ");
const IS_WITHIN: &str = " <<= ANY (allowed_networks))";

/// Condition of the insert on the erasure of a patient: as a scalar, because PostgreSQL would turn `NOT EXISTS` into a
/// join, and plan it while the table is small to read all of it.
const ERASURE: [&str; 2] = [" AND (SELECT true FROM ", " AS erasures WHERE erasures.organisation_id = "];

/// The names of the tables that the insert uses: those of one shard where it goes past Citus.
pub(super) struct Tables<'a> {
    pub(super) patients: &'a str,
    pub(super) api_keys: &'a str,
    pub(super) erasures: &'a str,
}

const TABLES: Tables<'_> = Tables { patients: "patients", api_keys: "api_keys", erasures: "erasures" };

/// A batch as PostgreSQL takes it: one array for each column of the rows.
#[derive(Default)]
pub(crate) struct InsertBatch<'a> {
    organisation_ids: Vec<Uuid>,
    key_ids: Vec<Uuid>,
    addresses: Vec<Option<SqlAddress>>,
    ids: Vec<Uuid>,
    /// The values of each field; empty for the date of birth, which is sent as a date.
    texts: ByField<Vec<Option<&'a str>>>,
    dates_of_birth: Vec<time::Date>,
    created_at: Vec<OffsetDateTime>,
    idempotency_keys: Vec<Option<&'a str>>,
    request_digests: Vec<Option<&'a [u8]>>,
}

impl<'a> InsertBatch<'a> {
    /// Returns how many patients the batch would create.
    pub(crate) fn rows(&self) -> usize {
        self.ids.len()
    }

    /// Stores the patients and returns how many of them this run of the statement has stored. To return which ones
    /// would cost more than to look them up in the rare case that one is missing. A probe is carried out even if there
    /// are none to store.
    pub(crate) fn store(&self, connection: &mut PgConnection, is_probed: bool, is_spread: bool) -> QueryResult<usize> {
        if self.rows() == 0 && !is_probed {
            return Ok(0);
        }
        // Of a column, so that the node which holds the shard gives it.
        let number = is_spread.then_some("feed_number(key.organisation_id)");
        Insert { rows: self, tables: TABLES, is_spread, number, is_explain: false }.execute(connection)
    }

    /// The text of the insert into these tables, with the arrays as parameters, and this as the patients' number.
    pub(super) fn text(tables: Tables<'_>, number: &str) -> String {
        let insert =
            Insert { rows: &Self::default(), tables, is_spread: false, number: Some(number), is_explain: false };
        let text = diesel::debug_query::<Pg, _>(&insert).to_string();
        text.split(" -- binds").next().unwrap_or_default().to_owned()
    }

    /// The parameters of that text.
    pub(super) fn walk_parameters<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_bind_param::<Array<SqlUuid>, _>(&self.organisation_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.key_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Inet>>, _>(&self.addresses)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.ids)?;
        for &field in Field::ALL {
            out.push_sql(", ");
            match field {
                Field::DateOfBirth => out.push_bind_param::<Array<Date>, _>(&self.dates_of_birth)?,
                field => out.push_bind_param::<Array<Nullable<Text>>, _>(&self.texts[field])?,
            }
        }
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.idempotency_keys)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Binary>>, _>(&self.request_digests)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Timestamptz>, _>(&self.created_at)
    }

    /// The organisations of the patients.
    pub(crate) fn organisations(&self) -> impl Iterator<Item = OrganisationId> {
        self.organisation_ids.iter().map(|id| OrganisationId::from(*id))
    }

    /// Lets the database plan the insert without making it. Fails if one of the values is at fault.
    pub(crate) fn explain(self, connection: &mut PgConnection) -> QueryResult<usize> {
        Insert { rows: &self, tables: TABLES, is_spread: true, number: None, is_explain: true }.execute(connection)
    }
}

impl<'a> FromIterator<(&'a Registration, KeyHolder)> for InsertBatch<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a Registration, KeyHolder)>>(rows: T) -> Self {
        let rows = rows.into_iter();
        let most = rows.size_hint().1.unwrap_or_default();
        let mut batch = Self {
            organisation_ids: Vec::with_capacity(most),
            key_ids: Vec::with_capacity(most),
            addresses: Vec::with_capacity(most),
            ids: Vec::with_capacity(most),
            texts: ByField::from_fn(|field| Vec::with_capacity(if field == Field::DateOfBirth { 0 } else { most })),
            dates_of_birth: Vec::with_capacity(most),
            created_at: Vec::with_capacity(most),
            idempotency_keys: Vec::with_capacity(most),
            request_digests: Vec::with_capacity(most),
        };
        for (registration, holder) in rows {
            let (organisation, key) = ids(&holder);
            let patient = &registration.patient;
            let retry = registration.retry.as_ref();
            batch.organisation_ids.push(organisation);
            batch.key_ids.push(key);
            batch.addresses.push(registration.caller.address.map(SqlAddress));
            batch.ids.push(*registration.id.as_uuid());
            for &field in Field::ALL {
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

/// The insert. Erasures are looked up for every patient, because the statement may be carried out long after it was
/// sent, and after its patient was stored by another one and erased (`rights.rs` has the other half of this).
struct Insert<'a> {
    rows: &'a InsertBatch<'a>,
    tables: Tables<'a>,
    /// Citus knows by their names which nodes the organisations concern. PostgreSQL alone would begin with the names,
    /// and compare each key with each patient.
    is_spread: bool,
    /// Expression that numbers the patients. None: the database does.
    number: Option<&'a str>,
    /// True if the statement is planned with all its values, and not run.
    is_explain: bool,
}

impl Insert<'_> {
    /// A single patient, without arrays, which would take a quarter longer.
    fn walk_one<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let rows = &self.rows;
        out.push_bind_param::<SqlUuid, _>(first(&rows.ids)?)?;
        for &field in Field::ALL {
            out.push_sql(", ");
            match field {
                Field::DateOfBirth => out.push_bind_param::<Date, _>(first(&rows.dates_of_birth)?)?,
                field => out.push_bind_param::<Nullable<Text>, _>(first(&rows.texts[field])?)?,
            }
        }
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Text>, _>(first(&rows.idempotency_keys)?)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Binary>, _>(first(&rows.request_digests)?)?;
        for _ in ["created_at", "updated_at"] {
            out.push_sql(", ");
            out.push_bind_param::<Timestamptz, _>(first(&rows.created_at)?)?;
        }
        out.push_sql(" FROM ");
        out.push_sql(self.tables.api_keys);
        out.push_sql(" AS key WHERE organisation_id = ");
        out.push_bind_param::<SqlUuid, _>(first(&rows.organisation_ids)?)?;
        out.push_sql(" AND id = ");
        out.push_bind_param::<SqlUuid, _>(first(&rows.key_ids)?)?;
        out.push_sql(" AND ");
        out.push_sql(&IS_ACTIVE);
        out.push_bind_param::<Nullable<Inet>, _>(first(&rows.addresses)?)?;
        out.push_sql(IS_WITHIN);
        // Citus wants the organisation itself beside each table.
        self.walk_erasure(out.reborrow());
        out.push_bind_param::<SqlUuid, _>(first(&rows.organisation_ids)?)?;
        out.push_sql(" AND patient_id = ");
        out.push_bind_param::<SqlUuid, _>(first(&rows.ids)?)?;
        out.push_sql(") IS NULL");
        self.walk_erasure(out.reborrow());
        out.push_bind_param::<SqlUuid, _>(first(&rows.organisation_ids)?)?;
        out.push_sql(" AND idempotency_digest = sha256(convert_to(");
        out.push_bind_param::<Nullable<Text>, _>(first(&rows.idempotency_keys)?)?;
        out.push_sql(", 'UTF8'))) IS NULL");
        Ok(())
    }

    fn walk_many<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let rows = &self.rows;
        out.push_sql("row.id, ");
        out.push_sql(&FIELDS);
        out.push_sql(", idempotency_key, request_digest, row.created_at, row.created_at FROM unnest(");
        rows.walk_parameters(out.reborrow())?;
        out.push_sql(") AS row (organisation_id, key_id, address, id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at)
                JOIN ",
        );
        out.push_sql(self.tables.api_keys);
        out.push_sql(
            " AS key ON key.organisation_id = row.organisation_id AND key.id = row.key_id
            WHERE ",
        );
        out.push_sql(&IS_ACTIVE);
        out.push_sql("row.address");
        out.push_sql(IS_WITHIN);
        // $1 is the organisations.
        let of_named = if self.is_spread { " AND erasures.organisation_id = ANY ($1)" } else { "" };
        if self.is_spread {
            out.push_sql(" AND key.organisation_id = ANY ($1)");
        }
        for erased in ["patient_id = row.id", "idempotency_digest = sha256(convert_to(idempotency_key, 'UTF8'))"] {
            self.walk_erasure(out.reborrow());
            out.push_sql("key.organisation_id AND ");
            out.push_sql(erased);
            out.push_sql(of_named);
            out.push_sql(") IS NULL");
        }
        Ok(())
    }

    fn walk_erasure(&self, mut out: AstPass<'_, '_, Pg>) {
        let [before, after] = ERASURE;
        out.push_sql(before);
        out.push_sql(self.tables.erasures);
        out.push_sql(after);
    }
}

impl QueryFragment<Pg> for Insert<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if self.is_explain {
            out.push_sql("EXPLAIN ");
        }
        out.push_sql("INSERT INTO ");
        out.push_sql(self.tables.patients);
        out.push_sql(" (organisation_id, key_id, ");
        if self.number.is_some() {
            out.push_sql("created_in, ");
        }
        out.push_sql("id, ");
        out.push_sql(&FIELDS);
        out.push_sql(
            ", idempotency_key, request_digest, created_at, updated_at)
            SELECT key.organisation_id, key.id, ",
        );
        if let Some(number) = self.number {
            out.push_sql(number);
            out.push_sql(", ");
        }
        if self.rows.rows() == 1 {
            self.walk_one(out.reborrow())?;
        } else {
            self.walk_many(out.reborrow())?;
        }
        out.push_sql(" ON CONFLICT DO NOTHING");
        Ok(())
    }
}

impl QueryId for Insert<'_> {
    type QueryId = ();

    // There are few texts. Each is parsed and planned once per connection, which Diesel knows by the text itself.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl RunQueryDsl<PgConnection> for Insert<'_> {}

fn first<T>(values: &[T]) -> QueryResult<&T> {
    values.first().ok_or(diesel::result::Error::NotFound)
}
