//! The usual days of a key, as part of the query for keys whose use has changed.

use intake_domain::USUAL_DAYS;

/// Condition that a row is of the part. Citus asks one node only if that is said of every table.
pub(super) fn is_in_part(table: &str) -> String {
    format!("($3 IS NULL OR {table}.organisation_id = ANY ($3))")
}

/// Returns what is usual for a key. `$2` is today, which like yesterday is no usual day of refusals. Answers with a
/// status of 500 and more are failures of the service, of which its operator hears. `only_refused` are the refusals of
/// today and yesterday where neither day created a patient, or of today where they are at least half as many as the
/// patients of a usual day: a day that has just begun says little.
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
                SELECT answer.organisation_id, answer.day,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status = 201), 0) AS created,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status BETWEEN 200 AND 299), 0) AS accepted,
                    coalesce(sum(answer.count) FILTER (WHERE answer.status BETWEEN 400 AND 499), 0) AS refused
                FROM key_answers AS answer
                WHERE answer.organisation_id = key.organisation_id AND answer.key_id = key.id AND answer.field = ''
                    AND answer.day > $2 - 2 - {USUAL_DAYS} AND {}
                GROUP BY answer.organisation_id, answer.day
            ) AS counts
        ) AS days",
        is_in_part("answer")
    )
}
