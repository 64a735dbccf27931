//! The status of a key in SQL: what `key_refusal` of the migrations says of a row of `api_keys`.

use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz};
use intake_domain::KeyRefusal;
use time::OffsetDateTime;

use crate::keys::habit::is_in_part;
use crate::schema::api_keys as key;

diesel::define_sql_function! {
    /// Reason why a key is refused at some time. NULL: it is accepted.
    fn key_refusal(
        revoked_at: Nullable<Timestamptz>,
        expires_at: Nullable<Timestamptz>,
        suspended_at: Nullable<Timestamptz>,
        paused_at: Nullable<Timestamptz>,
        at: Timestamptz,
    ) -> Nullable<Text>;
}

/// Reason why the key is refused at this moment, as an expression over `api_keys`.
pub(crate) fn refusal<At: AsExpression<Timestamptz>>(
    at: At,
) -> key_refusal<key::revoked_at, key::expires_at, key::suspended_at, key::paused_at, At> {
    key_refusal(key::revoked_at, key::expires_at, key::suspended_at, key::paused_at, at)
}

/// Condition that a key can be replaced at this moment, as [`intake_domain::KeyStatus::can_be_replaced`] says.
pub(super) fn can_be_replaced(at: OffsetDateTime) -> Box<dyn BoxableExpression<key::table, Pg, SqlType = Bool>> {
    let is_refused = |word: &'static str| refusal(at).is_not_distinct_from(word);
    Box::new(refusal(at).is_null().or(is_refused("paused")).or(is_refused("expired")))
}

/// Condition that a key was not revoked and has not expired, by the database's clock.
pub(crate) fn is_open() -> Box<dyn BoxableExpression<key::table, Pg, SqlType = Bool>> {
    let refusal = || refusal(diesel::dsl::now.into_sql::<Timestamptz>());
    Box::new(refusal().is_distinct_from("revoked").and(refusal().is_distinct_from("expired")))
}

/// Reason why the row `key` of `api_keys` is refused at the moment that this SQL gives.
pub(crate) fn refusal_at(moment: &str) -> String {
    refusal_of("key", moment)
}

/// Reason why the row with this alias is refused.
fn refusal_of(row: &str, moment: &str) -> String {
    format!("key_refusal({row}.revoked_at, {row}.expires_at, {row}.suspended_at, {row}.paused_at, {moment})")
}

/// Condition that the row `key` of `api_keys` has no replacement that is accepted at this moment, among the
/// organisations of `$3`.
pub(super) fn has_no_replacement_at(moment: &str) -> String {
    format!(
        "NOT EXISTS (SELECT FROM api_keys AS new WHERE new.organisation_id = key.organisation_id
            AND new.replaces = key.id AND {} IS NULL AND {})",
        refusal_of("new", moment),
        is_in_part("new")
    )
}

/// Condition that this row is accepted, for queries whose plan depends on how many are. PostgreSQL expects a CASE to
/// hold for half of the rows and a bare IS NULL for one in 200: it might compare each of so few keys with each patient.
pub(crate) fn is_active_at(moment: &str) -> String {
    format!("CASE WHEN {} IS NULL THEN true ELSE false END", refusal_at(moment))
}

/// The refusal that the database names with this word.
pub(crate) fn named(word: &str) -> KeyRefusal {
    match word {
        "expired" => KeyRefusal::Expired,
        "suspended" => KeyRefusal::Suspended,
        "paused" => KeyRefusal::Paused,
        _ => KeyRefusal::Revoked,
    }
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use diesel::prelude::*;
    use diesel::sql_types::Text;
    use intake_domain::KeyStatus;
    use intake_test_support::TestDatabase;
    use time::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::keys::list::some;

    const KEY: &str = "
        INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Clinic');
        INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
            SELECT gen_random_uuid(), id, 'Front desk', sha256('key'), 'aaaa', now() FROM organisations";

    #[derive(QueryableByName)]
    struct InText {
        #[diesel(sql_type = Nullable<Text>)]
        refusal: Option<String>,
    }

    fn in_the_domain(status: KeyStatus) -> Option<KeyRefusal> {
        match status {
            KeyStatus::Active | KeyStatus::ActiveUntil(_) => None,
            KeyStatus::Suspended(_) => Some(KeyRefusal::Suspended),
            KeyStatus::Paused(_) => Some(KeyRefusal::Paused),
            KeyStatus::Expired(_) => Some(KeyRefusal::Expired),
            KeyStatus::Revoked(_) => Some(KeyRefusal::Revoked),
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
            let in_diesel: Option<String> = row::table.select(refusal(now)).first(&mut connection).unwrap();
            let query = diesel::sql_query(format!("SELECT {} AS refusal FROM api_keys AS key", refusal_at("$1")));
            let in_text: InText = query.bind::<Timestamptz, _>(now).get_result(&mut connection).unwrap();
            let record = some(&mut connection, organisation, &[key]).unwrap().pop().unwrap();
            assert_eq!(in_diesel.as_deref().map(named), in_the_domain(record.status(now)), "{record:?}");
            assert_eq!(in_text.refusal, in_diesel, "{record:?}");
            let replaceable =
                row::table.filter(can_be_replaced(now)).count().get_result::<i64>(&mut connection).unwrap();
            assert_eq!(replaceable == 1, record.status(now).can_be_replaced(), "{record:?}");
            seen.insert(in_diesel);
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
    }
}
