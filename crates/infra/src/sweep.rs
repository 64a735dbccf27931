//! Removes rows that have expired and will never be read again: in small batches, once an hour, on a thread that has a
//! connection anyway. It never removes audit entries, nor the last use of a key, which is one row for as long as the
//! key is listed, but it forgets the client of a use that is long ago.

use std::time::{Duration, Instant};

use intake_domain::{ANSWERS_KEPT, CODE_LIMIT, SESSION_IDLE_LIMIT, SESSION_LIMIT};

/// Between two sweeps. It is not urgent: expired rows are ignored wherever they are read.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The first sweep leaves a service that has just started time for its first requests.
const FIRST_AFTER: Duration = Duration::from_secs(10);
/// Rows in one statement, which takes a few milliseconds: its locks keep no one waiting.
const BATCH: usize = 1_000;
/// How long a network stays familiar when the member no longer signs in from there.
const FAMILIAR_LIFE: time::Duration = time::Duration::days(180);

/// How long the client of the last use of a key is known: as long as the networks of members.
const CLIENT_LIFE: time::Duration = FAMILIAR_LIFE;
/// How long the token of a feed is valid after its run. A later run has to export everything once.
const TOKEN_LIFE: time::Duration = time::Duration::days(400);
/// How long a token is good after the same run has handed out a later one: time enough for a reader that stores the
/// latest one only now and then.
const SUPERSEDED_TOKEN_LIFE: time::Duration = time::Duration::days(1);

/// The statements of a sweep, and where it has got to.
pub(crate) struct Sweep {
    statements: Vec<String>,
    next: usize,
    due_at: Instant,
}

impl Sweep {
    pub(crate) fn new() -> Self {
        Self { statements: statements(), next: 0, due_at: Instant::now() + FIRST_AFTER }
    }

    /// Removes one batch if a sweep is due. `run` executes a statement and returns how many rows it removed. After a
    /// failure the rest is left to the next sweep.
    pub(crate) fn step(
        &mut self,
        run: impl FnOnce(String) -> Result<usize, anyhow::Error>,
    ) -> Result<(), anyhow::Error> {
        if Instant::now() < self.due_at {
            return Ok(());
        }
        let removed = self.statements.get(self.next).cloned().map_or(Ok(0), run);
        match removed {
            Ok(BATCH..) => {}
            Ok(_) => self.next += 1,
            Err(_) => self.next = self.statements.len(),
        }
        if self.next >= self.statements.len() {
            self.next = 0;
            self.due_at = Instant::now() + INTERVAL;
        }
        removed.map(drop)
    }
}

/// These statements use the database's clock: here a minute more or less does not matter.
fn statements() -> Vec<String> {
    let over =
        |column: &str, life: time::Duration| format!("{column} < now() - interval '{} seconds'", life.whole_seconds());
    let session_over = format!("{} OR {}", over("started_at", SESSION_LIMIT), over("last_used_at", SESSION_IDLE_LIMIT));
    // A day more than is shown, because a day does not end everywhere at once.
    let answers_over = format!("day < (now() AT TIME ZONE 'UTC')::date - {}", ANSWERS_KEPT.whole_days() + 1);
    let marks_over = format!("{} OR {}", over("made_at", TOKEN_LIFE), over("superseded_at", SUPERSEDED_TOKEN_LIFE));
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
        ("key_answers", "organisation_id, key_id, day, status, field", answers_over),
        ("key_refusals", "organisation_id, key_id, at, request_id", over("at", ANSWERS_KEPT)),
        ("feed_marks", "organisation_id, id", marks_over),
    ];
    let statement = |(table, key, is_over)| {
        format!("DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {is_over} LIMIT {BATCH})")
    };
    let clients_over = format!(
        "(last_address IS NOT NULL OR last_program IS NOT NULL) AND coalesce({}, true)",
        over("last_used_at", CLIENT_LIFE)
    );
    let forget = format!(
        "UPDATE key_uses SET last_address = NULL, last_program = NULL WHERE (organisation_id, key_id) IN
            (SELECT organisation_id, key_id FROM key_uses WHERE {clients_over} LIMIT {BATCH})"
    );
    batches.map(statement).into_iter().chain([forget]).collect()
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use diesel::pg::PgConnection;
    use diesel::prelude::*;
    use intake_test_support::TestDatabase;

    use super::*;

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
        INSERT INTO invitations (token_digest, organisation_id, email, expires_at)
            SELECT sha256(n::text::bytea), id, 'a@b.co', now() + n * interval '1 hour'
            FROM organisations, generate_series(-4, 5) AS n WHERE n <> 0;
        INSERT INTO password_resets (member_id, token_digest, expires_at, is_asked_by_stranger, is_mailed)
            SELECT id, 'over', now() - interval '1 minute', false, true FROM members;
        INSERT INTO familiar_networks SELECT id, n::text, now() - n * interval '50 days'
            FROM members, generate_series(0, 9) AS n;
        INSERT INTO key_answers SELECT gen_random_uuid(), gen_random_uuid(), now()::date - n, 201, '', 1
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
        let mut steps = 0;
        while sweep.due_at <= Instant::now() {
            let before = database.count("sessions");
            sweep.step(|statement| Ok(diesel::sql_query(statement).execute(&mut connection)?)).unwrap();
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
        sweep.step(|_| panic!("nothing is due for an hour")).unwrap();
    }

    #[test]
    fn a_sweep_that_fails_waits_for_the_next() {
        let mut sweep = Sweep { due_at: Instant::now(), ..Sweep::new() };
        assert!(sweep.step(|_| Err(anyhow::anyhow!("the database is away"))).is_err());
        assert!(sweep.step(|_| panic!("not before an hour")).is_ok());
    }
}
