//! How much of the feed a reader has not had yet.

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Timestamptz, Uuid as SqlUuid};
use intake_domain::{FeedError, FeedScope, Mark, PatientId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::feed::patient_feed::PostgresPatientFeed;

/// No more are counted, so that it takes milliseconds.
const COUNTED_MAX: usize = 100_000;

/// Changes that a reader has not had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, QueryableByName)]
pub struct Backlog {
    /// Number of patients and erasures, counted up to 100,000.
    #[diesel(sql_type = BigInt)]
    pub count: i64,
    /// Time of the oldest that was counted.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub oldest_at: Option<OffsetDateTime>,
}

impl PostgresPatientFeed {
    /// Counts what was committed after the mark, without the patients up to the one after whom the reader is.
    pub fn backlog(&mut self, scope: &FeedScope, since: &Mark, after: Option<PatientId>) -> Result<Backlog, FeedError> {
        let query = format!(
            "SELECT count(*) AS count, min(at) AS oldest_at FROM (
                SELECT created_at AS at FROM patients_v1 WHERE organisation_id = $1 AND ($2 IS NULL OR key_id = $2)
                    AND id > $3 AND (created_in >= $4 OR created_in = ANY ($5))
                UNION ALL SELECT erased_at FROM erasures_v1 WHERE organisation_id = $1
                    AND ($2 IS NULL OR key_id = $2) AND (erased_in >= $4 OR erased_in = ANY ($5))
                LIMIT {COUNTED_MAX}) AS waiting"
        );
        self.read(scope, |connection| {
            diesel::sql_query(&query)
                .bind::<SqlUuid, _>(*scope.organisation_id.as_uuid())
                .bind::<Nullable<SqlUuid>, _>(scope.key_id.map(|key| *key.as_uuid()))
                .bind::<SqlUuid, _>(after.map_or(Uuid::nil(), |id| *id.as_uuid()))
                .bind::<BigInt, _>(since.next)
                .bind::<Array<BigInt>, _>(&since.running)
                .get_result(connection)
        })
    }
}
