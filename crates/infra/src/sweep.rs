//! Removes rows that have expired and will never be read again: in small batches, once an hour, on a thread that has a
//! connection anyway; on Citus one shard after the other. It never removes audit entries, nor the last use of a key,
//! which is one row for as long as the key is listed, but it forgets the client of a use that is long ago.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Nullable, Uuid as SqlUuid};
use intake_domain::{ANSWERS_KEPT, CODE_LIMIT, SESSION_IDLE_LIMIT, SESSION_LIMIT};

use crate::database::cluster::parts::Part;

/// Between two sweeps. It is not urgent: expired rows are ignored wherever they are read.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The first sweep leaves a service that has just started time for its first requests.
const FIRST_AFTER: Duration = Duration::from_secs(10);
/// Rows in one statement, which takes a few milliseconds: its locks keep no one waiting.
const BATCH: usize = 1_000;
/// Time for which a network stays familiar when the member no longer signs in from there.
const FAMILIAR_LIFE: time::Duration = time::Duration::days(180);

/// Time for which the client of the last use of a key is known: as long as the networks of members.
const CLIENT_LIFE: time::Duration = FAMILIAR_LIFE;
/// Time for which the token of a feed is valid after its run. A later run has to export everything once.
const TOKEN_LIFE: time::Duration = time::Duration::days(400);
/// Time for which a token is good after the same run has handed out a later one: time enough for a reader that stores
/// the latest one only now and then.
const SUPERSEDED_TOKEN_LIFE: time::Duration = time::Duration::days(1);

/// Work that a sweep still has to do, and the time at which the next one begins.
pub(crate) struct Sweep {
    left: VecDeque<Removal>,
    due_at: Instant,
}

/// A statement that removes one batch.
#[derive(Clone)]
pub(crate) struct Removal {
    statement: String,
    /// The part of the register. None: a table that is not divided by organisation.
    part: Option<Part>,
}

impl Removal {
    /// Returns how many rows were removed.
    pub(crate) fn run(&self, connection: &mut PgConnection) -> QueryResult<usize> {
        let statement = diesel::sql_query(&self.statement);
        match &self.part {
            Some(part) => {
                statement.bind::<Nullable<Array<SqlUuid>>, _>(part.organisations.as_ref()).execute(connection)
            }
            None => statement.execute(connection),
        }
    }

    /// Returns where its rows lie, on Citus: one number for each shard, and none for the coordinator.
    fn place(&self) -> Option<i32> {
        self.part.as_ref().filter(|part| part.organisations.is_some()).map(|part| part.number)
    }
}

impl Sweep {
    pub(crate) fn new() -> Self {
        Self { left: VecDeque::new(), due_at: Instant::now() + FIRST_AFTER }
    }

    /// Returns whether a sweep is due that has not begun.
    pub(crate) fn is_due(&self) -> bool {
        self.left.is_empty() && Instant::now() >= self.due_at
    }

    /// Begins a sweep of these parts.
    pub(crate) fn begin(&mut self, parts: &[Part]) {
        self.left = kept().chain(parts.iter().flat_map(divided)).collect();
        self.due_at = Instant::now() + INTERVAL;
    }

    /// Leaves everything to the next sweep.
    pub(crate) fn put_off(&mut self) {
        self.due_at = Instant::now() + INTERVAL;
    }

    /// The next batch to remove, until everything is removed.
    pub(crate) fn next(&self) -> Option<Removal> {
        self.left.front().cloned()
    }

    /// Notes what became of a batch. What lies in the same place as one that failed is left to the next sweep.
    pub(crate) fn note(&mut self, removal: &Removal, removed: Option<usize>) {
        match removed {
            Some(BATCH..) => {}
            Some(_) => drop(self.left.pop_front()),
            None => self.left.retain(|other| other.place() != removal.place()),
        }
    }
}

fn over(column: &str, life: time::Duration) -> String {
    format!("{column} < now() - interval '{} seconds'", life.whole_seconds())
}

/// The statements use the database's clock: here a minute more or less does not matter.
fn kept() -> impl Iterator<Item = Removal> {
    let session_over = format!("{} OR {}", over("started_at", SESSION_LIMIT), over("last_used_at", SESSION_IDLE_LIMIT));
    let batches = [
        ("sessions", "token_digest", session_over),
        ("waiting_sign_ins", "token_digest", over("started_at", CODE_LIMIT)),
        ("passkey_challenges", "token_digest", over("started_at", CODE_LIMIT)),
        // Whether accepted or not.
        ("invitations", "token_digest", over("expires_at", time::Duration::ZERO)),
        ("password_resets", "member_id", over("expires_at", time::Duration::ZERO)),
        ("email_changes", "member_id", over("expires_at", time::Duration::ZERO)),
        ("familiar_networks", "member_id, network", over("last_used_at", FAMILIAR_LIFE)),
        ("known_browsers", "member_id, browser, network", over("last_used_at", FAMILIAR_LIFE)),
    ];
    batches.into_iter().map(|(table, key, is_over)| {
        let some = format!("SELECT {key} FROM {table} WHERE {is_over} LIMIT {BATCH}");
        Removal { statement: format!("DELETE FROM {table} WHERE ({key}) IN ({some})"), part: None }
    })
}

fn divided(part: &Part) -> impl Iterator<Item = Removal> {
    // A day more than is shown, because a day does not end everywhere at once.
    let answers_over = format!("day < (now() AT TIME ZONE 'UTC')::date - {}", ANSWERS_KEPT.whole_days() + 1);
    let marks_over = format!("{} OR {}", over("made_at", TOKEN_LIFE), over("superseded_at", SUPERSEDED_TOKEN_LIFE));
    let clients_over = format!(
        "(last_address IS NOT NULL OR last_program IS NOT NULL) AND coalesce({}, true)",
        over("last_used_at", CLIENT_LIFE)
    );
    let batches = [
        ("DELETE FROM", "key_answers", "", "organisation_id, key_id, day, local_day, status, field", answers_over),
        ("DELETE FROM", "key_refusals", "", "organisation_id, key_id, at, request_id", over("at", ANSWERS_KEPT)),
        ("DELETE FROM", "feed_marks", "", "organisation_id, id", marks_over),
        ("UPDATE", "key_uses", "SET last_address = NULL, last_program = NULL", "organisation_id, key_id", clients_over),
    ];
    // On Citus both conditions are needed to find the shard.
    let is_in_part = "($1 IS NULL OR organisation_id = ANY ($1))";
    let part = Some(part.clone());
    batches.into_iter().map(move |(verb, table, change, key, is_over)| {
        let some = format!("SELECT {key} FROM {table} WHERE {is_in_part} AND ({is_over}) LIMIT {BATCH}");
        let statement = format!("{verb} {table} {change} WHERE {is_in_part} AND ({key}) IN ({some})");
        Removal { statement, part: part.clone() }
    })
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use intake_test_support::TestDatabase;

    use super::*;
    use crate::database::cluster::parts::parts;

    const ROWS: &str = "
        INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Clinic');
        INSERT INTO members (id, email, email_folded, name, password_hash)
            VALUES (gen_random_uuid(), 'a@b.co', 'a@b.co', 'Ada', '');
        INSERT INTO sessions SELECT sha256(n::text::bytea), id, now() - n * interval '1 hour', now() - n * interval '1 hour'
            FROM members, generate_series(0, 2499) AS n;
        INSERT INTO sessions SELECT 'old but busy', id, now() - interval '8 days', now() FROM members;
        INSERT INTO waiting_sign_ins SELECT sha256(n::text::bytea), id, now() - n * interval '4 minutes'
            FROM members, generate_series(0, 5) AS n;
        INSERT INTO passkey_challenges SELECT sha256(n::text::bytea), now() - n * interval '4 minutes'
            FROM generate_series(0, 5) AS n;
        INSERT INTO invitations (token_digest, organisation_id, email, expires_at, is_mailed)
            SELECT sha256(n::text::bytea), id, 'a@b.co', now() + n * interval '1 hour', false
            FROM organisations, generate_series(-4, 5) AS n WHERE n <> 0;
        INSERT INTO password_resets (member_id, token_digest, expires_at, is_asked_by_stranger, is_mailed)
            SELECT id, 'over', now() - interval '1 minute', false, true FROM members;
        INSERT INTO familiar_networks SELECT id, n::text, now() - n * interval '50 days'
            FROM members, generate_series(0, 9) AS n;
        INSERT INTO key_answers SELECT gen_random_uuid(), gen_random_uuid(), now()::date - n, now()::date - n, 201, '', 1
            FROM generate_series(0, 99) AS n;
        INSERT INTO key_uses SELECT gen_random_uuid(), gen_random_uuid(), now() - n * interval '50 days', NULL, '::1', 'curl'
            FROM generate_series(0, 9) AS n;
        INSERT INTO key_refusals SELECT gen_random_uuid(), gen_random_uuid(), now() - n * interval '1 day', 'r', 401, 'revoked'
            FROM generate_series(0, 99) AS n;
        INSERT INTO feed_marks (organisation_id, system_identifier, next, running, made_at, superseded_at)
            SELECT gen_random_uuid(), 7, 7, '{}'::bigint[], now() - n * interval '13 hours', NULL FROM generate_series(0, 799) AS n
            UNION ALL SELECT gen_random_uuid(), 7, 7, '{}'::bigint[], now() - interval '30 days', now() - n * interval '13 hours'
            FROM generate_series(0, 799) AS n;
    ";

    #[test]
    fn expired_rows_are_removed_in_batches_and_all_others_stay() {
        let database = TestDatabase::new();
        database.connect().batch_execute(ROWS).unwrap();
        // With the grants of the service.
        let mut connection = PgConnection::establish(database.service.expose()).unwrap();
        let mut sweep = Sweep { due_at: Instant::now(), ..Sweep::new() };
        assert!(sweep.is_due());
        sweep.begin(&parts(&mut connection).unwrap());
        let mut steps = 0;
        while let Some(removal) = sweep.next() {
            let before = database.count("sessions");
            sweep.note(&removal, Some(removal.run(&mut connection).unwrap()));
            assert!(before - database.count("sessions") <= 1_000, "in batches");
            steps += 1;
        }
        assert_eq!(steps, 3 + 11, "three for the sessions, one for each of the others");
        let left = [
            "sessions",
            "waiting_sign_ins",
            "passkey_challenges",
            "invitations",
            "password_resets",
            "familiar_networks",
            "key_answers",
            "key_refusals",
            "feed_marks",
        ];
        assert_eq!(left.map(|table| database.count(table)), [12, 3, 3, 5, 0, 4, 32, 30, 739 + 2]);
        assert_eq!(database.count("key_uses"), 10);
        assert_eq!(database.count("key_uses WHERE last_address IS NOT NULL AND last_program IS NOT NULL"), 4);
        assert!(!sweep.is_due(), "nothing is due for an hour");
    }

    #[test]
    fn what_cannot_be_removed_waits_for_the_next_sweep_and_other_places_do_not() {
        let part = |number, organisations| Part { number, organisations };
        let mut sweep = Sweep { due_at: Instant::now(), ..Sweep::new() };
        sweep.put_off();
        assert!(!sweep.is_due() && sweep.next().is_none());
        sweep.begin(&[part(0, None)]);
        sweep.note(&sweep.next().unwrap(), None);
        assert!(sweep.next().is_none(), "one PostgreSQL is away");
        sweep.begin(&[part(0, Some(vec![])), part(1, Some(vec![]))]);
        let mut places = vec![];
        while let Some(removal) = sweep.next() {
            places.push(removal.place());
            sweep.note(&removal, (removal.place() == Some(1)).then_some(0));
        }
        assert_eq!(places, [None, Some(0), Some(1), Some(1), Some(1), Some(1)]);
    }
}
