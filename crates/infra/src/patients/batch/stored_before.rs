//! Looks up patients that the insert did not store: an earlier statement may have, and they may have been erased since.
//! They are found by their own ids and by their idempotency keys. One statement for all of them, separate from the
//! insert because it must see what was committed while the insert ran.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{OrganisationId, Registered, Registration};
use time::OffsetDateTime;
use uuid::Uuid;

/// Ids and keys to look for.
#[derive(Default)]
pub(crate) struct StoredBefore<'a> {
    organisation_ids: Vec<Uuid>,
    ids: Vec<Uuid>,
    idempotency_keys: Vec<Option<&'a str>>,
}

impl<'a> StoredBefore<'a> {
    /// Adds one to look up; by its idempotency key only if the caller may see what is stored under it.
    pub(crate) fn ask(
        &mut self,
        organisation: OrganisationId,
        registration: &'a Registration,
        by_idempotency_key: bool,
    ) {
        self.organisation_ids.push(*organisation.as_uuid());
        self.ids.push(*registration.id.as_uuid());
        let retry = registration.retry.as_ref().filter(|_| by_idempotency_key);
        self.idempotency_keys.push(retry.map(|retry| retry.key.as_str()));
    }

    /// Returns what is stored for each, in the order in which they were added.
    pub(crate) fn find(self, connection: &mut PgConnection, is_spread: bool) -> QueryResult<Vec<Option<Registered>>> {
        if self.ids.is_empty() {
            return Ok(Vec::new());
        }
        let organisations = self.organisation_ids.clone();
        let mut found = vec![None; organisations.len()];
        let rows: Vec<Row> = Find { asked: self, is_spread }.load(connection)?;
        for row in rows {
            // PostgreSQL counts from 1.
            let index = usize::try_from(row.number - 1).unwrap_or(usize::MAX);
            let (Some(entry), Some(organisation)) = (found.get_mut(index), organisations.get(index)) else { continue };
            // A match by the patient's own id takes precedence.
            if row.is_same_id || entry.is_none() {
                *entry = Some(row.into_registered((*organisation).into()));
            }
        }
        Ok(found)
    }
}

#[derive(Queryable)]
struct Row {
    number: i64,
    is_same_id: bool,
    /// None: it was erased.
    id: Option<Uuid>,
    created_at: Option<OffsetDateTime>,
    digest: Option<Vec<u8>>,
}

impl Row {
    fn into_registered(self, organisation_id: OrganisationId) -> Registered {
        // It was stored, even if it was erased since.
        if self.is_same_id {
            return Registered::Created(organisation_id);
        }
        let (Some(id), Some(created_at)) = (self.id, self.created_at) else { return Registered::Erased };
        let digest = self.digest.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        Registered::Before { organisation_id, id: id.into(), created_at, digest }
    }
}

/// The statement. On a register that is spread it names the organisations for each table, by which Citus knows which
/// nodes it concerns; PostgreSQL would be tempted to read all of their patients.
struct Find<'a> {
    asked: StoredBefore<'a>,
    is_spread: bool,
}

impl QueryFragment<Pg> for Find<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH asked AS (SELECT * FROM unnest(");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.asked.organisation_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<SqlUuid>, _>(&self.asked.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Nullable<Text>>, _>(&self.asked.idempotency_keys)?;
        out.push_sql(") WITH ORDINALITY AS asked (organisation_id, asked_id, asked_key, number))");
        let stored = "id, created_at, request_digest";
        let erased = "NULL::uuid, NULL::timestamptz, NULL::bytea";
        for (index, (is_same_id, found, table, by)) in [
            (true, stored, "patients", "id = asked_id"),
            (true, erased, "erasures", "patient_id = asked_id"),
            (false, stored, "patients", "idempotency_key = asked_key"),
            (false, erased, "erasures", "idempotency_digest = sha256(convert_to(asked_key, 'UTF8'))"),
        ]
        .into_iter()
        .enumerate()
        {
            // $1 is the organisations.
            let named = if self.is_spread { format!(" AND {table}.organisation_id = ANY ($1)") } else { String::new() };
            let union = if index == 0 { "" } else { " UNION ALL" };
            out.push_sql(&format!(
                "{union} SELECT number, {is_same_id}, {found}
                FROM asked JOIN {table} ON {table}.organisation_id = asked.organisation_id AND {by}{named}"
            ));
        }
        Ok(())
    }
}

impl QueryId for Find<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Find<'_> {
    type SqlType = (BigInt, Bool, Nullable<SqlUuid>, Nullable<Timestamptz>, Nullable<Binary>);
}

impl RunQueryDsl<PgConnection> for Find<'_> {}
