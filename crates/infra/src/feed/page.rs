//! The statements that read the feed, through the views that readers may see. Whether a mark saw a row is plain
//! arithmetic on the number of its transaction, which gets below the views' barrier and needs no snapshot to be kept.

use std::sync::LazyLock;

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{
    ByField, Erasure, FeedScope, Field, OrganisationId, Page, PatientId, Selection, Span, StoredPatient,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::rows::Id;

/// Patients in one page: a few hundred kilobytes.
const PAGE: usize = 1_000;
/// Up to this many, the ids of all patients in a span are kept: 1.6 MB.
const SELECTED_MAX: usize = 100_000;
/// Number of patients that a page never exceeds, however patients fall into ranges: some 20 MB. As many erasures are in
/// one.
pub(crate) const PAGE_MAX: usize = 20_000;

/// Finds a row if anything was committed after a moment.
pub(crate) const LOOK: &str = "SELECT 1 FROM patients_v1 WHERE organisation_id = $1 AND ($2 IS NULL OR key_id = $2)
            AND (created_in >= $3 OR created_in = ANY ($4))
    UNION ALL SELECT 1 FROM erasures_v1 WHERE organisation_id = $1 AND ($2 IS NULL OR key_id = $2)
            AND (erased_in >= $3 OR erased_in = ANY ($4))
    LIMIT 1";

/// A patient, its fields as texts in the order of [`Field::ALL`].
pub(crate) static PATIENT: LazyLock<String> = LazyLock::new(|| {
    let value = |field: Field| match field {
        Field::DateOfBirth => "to_char(date_of_birth, 'YYYY-MM-DD')",
        field => field.column(),
    };
    let values = Field::ALL.iter().copied().map(value).collect::<Vec<_>>().join(", ");
    format!("SELECT id, organisation_id, ARRAY[{values}] AS values, created_at, updated_at, key_id FROM patients_v1")
});

/// The conditions of a span, for the transactions in this column.
pub(crate) fn within_span(column: &str) -> String {
    format!(
        "organisation_id = $1 AND ($2 IS NULL OR key_id = $2) AND id > $3
            AND ({column} >= $4 OR {column} = ANY ($5)) AND {column} < $6 AND {column} <> ALL ($7)"
    )
}

#[derive(QueryableByName)]
pub(crate) struct PatientRow {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    organisation_id: Uuid,
    #[diesel(sql_type = Array<Nullable<Text>>)]
    values: Vec<Option<String>>,
    #[diesel(sql_type = Timestamptz)]
    created_at: OffsetDateTime,
    #[diesel(sql_type = Timestamptz)]
    updated_at: OffsetDateTime,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    key_id: Option<Uuid>,
}

impl From<PatientRow> for StoredPatient {
    fn from(mut row: PatientRow) -> Self {
        Self {
            id: row.id.into(),
            organisation_id: row.organisation_id.into(),
            values: ByField::from_fn(|field| row.values.get_mut(field as usize).and_then(Option::take)),
            created_at: row.created_at,
            updated_at: row.updated_at,
            key_id: row.key_id.map(Into::into),
        }
    }
}

/// Binds what [`within_span`] names. A macro, because each binding makes another type.
macro_rules! in_span {
    ($query:expr, $scope:expr, $span:expr, $after:expr) => {
        diesel::sql_query($query)
            .bind::<SqlUuid, _>(*$scope.organisation_id.as_uuid())
            .bind::<Nullable<SqlUuid>, _>($scope.key_id.map(|key| *key.as_uuid()))
            .bind::<SqlUuid, _>($after.map_or(Uuid::nil(), |id| *id.as_uuid()))
            .bind::<BigInt, _>($span.since.next)
            .bind::<Array<BigInt>, _>(&$span.since.running)
            .bind::<BigInt, _>($span.until.next)
            .bind::<Array<BigInt>, _>(&$span.until.running)
    };
}

pub(crate) use in_span;

pub(crate) fn select(connection: &mut PgConnection, scope: &FeedScope, span: &Span) -> QueryResult<Selection> {
    let query = format!("SELECT id FROM patients_v1 WHERE {} LIMIT {}", within_span("created_in"), SELECTED_MAX + 1);
    let found: Vec<Id> = in_span!(query, scope, span, None::<PatientId>).load(connection)?;
    if found.len() > SELECTED_MAX {
        return divide(connection, scope, span);
    }
    let mut ids: Vec<_> = found.into_iter().map(|row| PatientId::from(row.id)).collect();
    ids.sort_unstable();
    Ok(Selection::These(ids))
}

/// Divides the span by some of its ids, picked by chance: one reading, and nothing to sort. Behind the barrier of the
/// view PostgreSQL does not know that the primary key is in order, so without an end each page would read all that are
/// left.
fn divide(connection: &mut PgConnection, scope: &FeedScope, span: &Span) -> QueryResult<Selection> {
    #[derive(QueryableByName)]
    struct Divided {
        #[diesel(sql_type = BigInt)]
        count: i64,
        #[diesel(sql_type = Array<SqlUuid>)]
        ends: Vec<Uuid>,
    }

    let query = format!(
        "SELECT count(*) AS count, coalesce(array_agg(id) FILTER (WHERE random() * {PAGE} < 1), '{{}}') AS ends
            FROM patients_v1 WHERE {}",
        within_span("created_in")
    );
    let divided: Divided = in_span!(query, scope, span, None::<PatientId>).get_result(connection)?;
    let mut ends: Vec<_> = divided.ends.into_iter().map(PatientId::from).collect();
    ends.sort_unstable();
    Ok(Selection::Many { count: u64::try_from(divided.count).unwrap_or_default(), ends })
}

/// The patients of a span that follow the given one, up to the next of these ends, of which the smallest is the first.
pub(crate) fn range(
    connection: &mut PgConnection,
    scope: &FeedScope,
    span: &Span,
    ends: &[PatientId],
    after: Option<PatientId>,
) -> QueryResult<Page<StoredPatient>> {
    let end = ends.get(after.map_or(0, |after| ends.partition_point(|end| *end <= after))).copied();
    // Not `created_in` as it is: by its index, which is estimated wrongly beyond the statistics, each range would read
    // the whole span. So the ranges together are read once, by the primary key.
    let query =
        format!("{} WHERE {} AND id <= $8 ORDER BY id LIMIT {PAGE_MAX}", *PATIENT, within_span("(created_in + 0)"));
    let query = in_span!(query, scope, span, after).bind::<SqlUuid, _>(end.map_or(Uuid::max(), |id| *id.as_uuid()));
    let rows: Vec<PatientRow> = query.load(connection)?;
    let items: Vec<StoredPatient> = rows.into_iter().map(Into::into).collect();
    let continued_after = if items.len() < PAGE_MAX { end } else { items.last().map(|last| last.id) };
    Ok(Page { items, continued_after })
}

/// Those of the patients with these ids, of which the smallest is the first, that follow the given one.
pub(crate) fn these(
    connection: &mut PgConnection,
    scope: &FeedScope,
    ids: &[PatientId],
    after: Option<PatientId>,
) -> QueryResult<Page<StoredPatient>> {
    let rest = ids.iter().skip(after.map_or(0, |after| ids.partition_point(|id| *id <= after)));
    let wanted: Vec<Uuid> = rest.take(PAGE).map(|id| *id.as_uuid()).collect();
    let query = format!("{} WHERE organisation_id = $1 AND id = ANY ($2) ORDER BY id", *PATIENT);
    let query = diesel::sql_query(query).bind::<SqlUuid, _>(*scope.organisation_id.as_uuid());
    let rows: Vec<PatientRow> = query.bind::<Array<SqlUuid>, _>(&wanted).load(connection)?;
    let last = wanted.last().copied().map(PatientId::from).filter(|last| ids.last() != Some(last));
    Ok(Page { items: rows.into_iter().map(Into::into).collect(), continued_after: last })
}

/// One patient of any key.
pub(crate) fn patient(
    connection: &mut PgConnection,
    organisation: OrganisationId,
    id: PatientId,
) -> QueryResult<Option<StoredPatient>> {
    let query = diesel::sql_query(format!("{} WHERE organisation_id = $1 AND id = $2", *PATIENT));
    let query = query.bind::<SqlUuid, _>(*organisation.as_uuid()).bind::<SqlUuid, _>(*id.as_uuid());
    Ok(query.get_result::<PatientRow>(connection).optional()?.map(Into::into))
}

pub(crate) fn erasures(
    connection: &mut PgConnection,
    scope: &FeedScope,
    span: &Span,
    after: Option<PatientId>,
) -> QueryResult<Page<Erasure>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        erased_at: OffsetDateTime,
    }

    let query = format!(
        "SELECT id, erased_at FROM erasures_v1 WHERE {} ORDER BY id LIMIT {PAGE_MAX}",
        within_span("erased_in")
    );
    let rows: Vec<Row> = in_span!(query, scope, span, after).load(connection)?;
    let items: Vec<_> = rows.into_iter().map(|row| Erasure { id: row.id.into(), erased_at: row.erased_at }).collect();
    let continued_after = if items.len() < PAGE_MAX { None } else { items.last().map(|last| last.id) };
    Ok(Page { items, continued_after })
}
