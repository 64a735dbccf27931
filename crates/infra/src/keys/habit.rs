//! The usual days of a key, as part of the query for keys whose use has changed.

use std::collections::BTreeMap;

use diesel::prelude::*;
use intake_domain::USUAL_DAYS;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::database::cluster::parts::Part;
use crate::organisations::zone_of;
use crate::schema::organisations;

/// Condition that a row is of the part. Citus asks one node only if that is said of every table.
pub(super) fn is_in_part(table: &str) -> String {
    format!("($3 IS NULL OR {table}.organisation_id = ANY ($3))")
}

/// Organisations of a part in which it is the same day.
pub(super) struct SameDay {
    pub(super) today: Date,
    /// None: all of the part, which has no list of them.
    pub(super) organisations: Option<Vec<Uuid>>,
}

/// The organisations of the part by the day that it is in their time zones. Each day is asked for in a query of its
/// own, because Citus joins no organisation with the days of its keys.
pub(super) fn by_day(connection: &mut PgConnection, part: &Part, now: OffsetDateTime) -> QueryResult<Vec<SameDay>> {
    let all = organisations::table.select((organisations::id, organisations::time_zone)).into_boxed();
    let of_part = match &part.organisations {
        Some(ids) => all.filter(organisations::id.eq_any(ids)),
        None => all,
    };
    let mut days: BTreeMap<Date, Vec<Uuid>> = BTreeMap::new();
    for (id, zone) in of_part.load::<(Uuid, String)>(connection)? {
        days.entry(zone_of(&zone).day(now)).or_default().push(id);
    }
    let is_one = days.len() == 1;
    let same_day = |(today, ids): (Date, Vec<Uuid>)| {
        let organisations = if is_one { part.organisations.clone() } else { Some(ids) };
        SameDay { today, organisations }
    };
    Ok(days.into_iter().map(same_day).collect())
}

/// Returns what is usual for a key. `$2` is today in the organisation's time zone, which like yesterday is no usual day
/// of refusals. Answers with a status of 500 and more are failures of the service, of which its operator hears.
/// `only_refused` are the refusals of today and yesterday where neither day created a patient, or of today where they
/// are at least half as many as the patients of a usual day: a day that has just begun says little.
pub(super) fn habit() -> String {
    format!(
        "SELECT count(*) FILTER (WHERE accepted > 0 AND day BETWEEN $2 - {USUAL_DAYS} AND $2 - 1) AS used_days,
            coalesce(sum(accepted), 0) AS accepted,
            coalesce(max(days_apart), 1)::bigint AS days_apart,
            coalesce(max(refused) FILTER (WHERE day >= $2 - 1), 0)::bigint AS refused_lately,
            coalesce(max(refused) FILTER (WHERE day < $2 - 1), 0)::bigint AS refused_before,
            count(*) FILTER (WHERE created > 0) AS created_days,
            CASE WHEN coalesce(sum(created) FILTER (WHERE day >= $2 - 1), 0) = 0
                    THEN coalesce(sum(refused) FILTER (WHERE day >= $2 - 1), 0)
                WHEN coalesce(sum(created) FILTER (WHERE day >= $2), 0) = 0
                    AND 2 * sum(refused) FILTER (WHERE day >= $2) >= avg(created) FILTER (WHERE created > 0)
                    THEN sum(refused) FILTER (WHERE day >= $2)
                ELSE 0 END::bigint AS only_refused
        FROM (
            SELECT day, created, accepted, refused, CASE WHEN accepted > 0 THEN
                day - lag(day) OVER (PARTITION BY organisation_id, accepted > 0 ORDER BY day) END AS days_apart
            FROM (
                SELECT answer.organisation_id, answer.local_day AS day,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status = 201), 0) AS created,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status BETWEEN 200 AND 299), 0) AS accepted,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status BETWEEN 400 AND 499), 0) AS refused
                FROM key_answers AS answer
                WHERE answer.organisation_id = key.organisation_id AND answer.key_id = key.id AND answer.field = ''
                    AND answer.local_day > $2 - 2 - {USUAL_DAYS} AND {}
                GROUP BY answer.organisation_id, answer.local_day
            ) AS counts
        ) AS days",
        is_in_part("answer")
    )
}
