//! The status of a key in SQL: the one text by which lists are filtered and mails are held back.

/// The status of the row `key` of `api_keys` at the moment that this SQL gives: `active`, `suspended`, `paused`,
/// `expired` or `revoked`, as [`intake_domain::KeyRecord::status`] has it.
pub(super) fn status_at(now: &str) -> String {
    format!(
        "CASE WHEN key.revoked_at IS NOT NULL THEN 'revoked' WHEN key.expires_at <= {now} THEN 'expired'
            WHEN key.suspended_at IS NOT NULL THEN 'suspended' WHEN key.paused_at IS NOT NULL THEN 'paused'
            ELSE 'active' END"
    )
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use diesel::prelude::*;
    use diesel::sql_types::{Text, Timestamptz};
    use intake_domain::KeyStatus;
    use intake_test_support::TestDatabase;
    use time::{Duration, OffsetDateTime};
    use uuid::Uuid;

    use super::*;
    use crate::keys::list::some;

    const KEY: &str = "
        INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Clinic');
        INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
            SELECT gen_random_uuid(), id, 'Front desk', sha256('key'), 'aaaa', now() FROM organisations";

    #[derive(QueryableByName)]
    struct InSql {
        #[diesel(sql_type = Text)]
        status: String,
    }

    fn in_the_domain(status: KeyStatus) -> &'static str {
        match status {
            KeyStatus::Active | KeyStatus::ActiveUntil(_) => "active",
            KeyStatus::Suspended(_) => "suspended",
            KeyStatus::Paused(_) => "paused",
            KeyStatus::Expired(_) => "expired",
            KeyStatus::Revoked(_) => "revoked",
        }
    }

    #[test]
    fn sql_and_the_domain_agree_about_every_key() {
        let database = TestDatabase::new();
        let mut connection = database.connect();
        connection.batch_execute(KEY).unwrap();
        let ids = crate::schema::api_keys::table;
        let ids = ids.select((crate::schema::api_keys::organisation_id, crate::schema::api_keys::id));
        let (organisation, key): (Uuid, Uuid) = ids.first(&mut connection).unwrap();
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let moments = [None, Some(now - Duration::SECOND), Some(now), Some(now + Duration::SECOND)];
        let pairs = moments.iter().flat_map(|one| moments.map(|other| (*one, other)));
        let mut seen = std::collections::BTreeSet::new();
        for ((revoked, expires), (suspended, paused)) in
            pairs.clone().flat_map(|one| pairs.clone().map(move |other| (one, other)))
        {
            use crate::schema::api_keys as row;
            let times = (
                row::revoked_at.eq(revoked),
                row::expires_at.eq(expires),
                row::suspended_at.eq(suspended),
                row::paused_at.eq(paused),
            );
            diesel::update(row::table).set(times).execute(&mut connection).unwrap();
            let query = diesel::sql_query(format!("SELECT {} AS status FROM api_keys AS key", status_at("$1")));
            let in_sql: InSql = query.bind::<Timestamptz, _>(now).get_result(&mut connection).unwrap();
            let record = some(&mut connection, organisation, &[key]).unwrap().pop().unwrap();
            assert_eq!(in_sql.status, in_the_domain(record.status(now)), "{record:?}");
            seen.insert(in_sql.status);
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
    }
}
