//! A register on a Citus cluster, below the service. `INTAKE_TEST_CITUS_URL` names a cluster (docs/scale.md).
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::{Actor, AuditContext, Environment, ExpiringKeyStore, Operator, OrganisationId, UnusualKeyStore};
use intake_infra::origin::Look;
use intake_infra::production::{assert_durable, database_time};
use intake_infra::{CheckConnection, Database, Durability, PostgresKeyStore, PostgresOrganisations};
use intake_test_support::{Clinic, TestDatabase, random, wait_for};
use time::OffsetDateTime;
use uuid::Uuid;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

fn now(database: &TestDatabase) -> OffsetDateTime {
    database_time(&mut CheckConnection::open(&database.owner).unwrap()).unwrap()
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn nothing_is_asked_of_nodes_that_could_lose_what_they_commit() {
    let database = TestDatabase::new();
    let nodes = database.citus().nodes();
    let url = database.service.clone().with_durability(Durability::Full);
    let look = || {
        let keys = PostgresKeyStore::new(Database::new(&url, Duration::from_secs(2)));
        block_on(keys.claim_expiring(now(&database))).map(drop)
    };
    assert_durable(&url).unwrap();
    look().unwrap();
    database.administer(&format!("ALTER DATABASE {} SET synchronous_commit = off", database.name()));
    let refused = assert_durable(&url).unwrap_err().to_string();
    assert_eq!(refused.matches("synchronous_commit on ").count(), nodes, "{refused}");
    let refused = look().unwrap_err();
    let cause = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("turn on synchronous_commit on "), "{refused}: {cause}");
    database.administer(&format!("ALTER DATABASE {} RESET synchronous_commit", database.name()));
    look().unwrap();
}

/// An organisation with a key, whose rows this node holds.
fn clinic_on(database: &TestDatabase, node: usize) -> OrganisationId {
    let clinic = Clinic::open_on(database, node, Environment::Development);
    let _ = clinic.key();
    clinic.organisation
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_node_that_is_away_delays_only_the_expiry_mails_of_its_own_keys() {
    let database = TestDatabase::new();
    let citus = database.citus();
    citus.use_alone();
    let (alive, away) = (clinic_on(&database, 1), clinic_on(&database, 2));
    let soon = "UPDATE api_keys SET created_at = now() - interval '90 days', expires_at = now() + interval '6 days'";
    database.connect().batch_execute(soon).unwrap();
    let keys = PostgresKeyStore::new(Database::new(&database.service, Duration::from_secs(5)));
    let claimed = || -> Vec<_> {
        let claimed = block_on(keys.claim_expiring(now(&database))).unwrap();
        claimed.into_iter().map(|key| key.organisation_id).collect()
    };
    let stopped = citus.stop_node(2);
    assert_eq!(claimed(), [alive]);
    drop(stopped);
    assert_eq!(claimed(), [away]);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_node_that_is_away_delays_only_the_mails_about_unusual_keys_of_its_own() {
    let database = TestDatabase::new();
    let citus = database.citus();
    citus.use_alone();
    let (alive, away) = (clinic_on(&database, 1), clinic_on(&database, 2));
    // Refused far more often today than before.
    let day = "(now() AT TIME ZONE 'UTC')::date - n";
    let refused = format!(
        "UPDATE api_keys SET created_at = now() - interval '1 year';
        INSERT INTO key_uses (organisation_id, key_id, last_used_at) SELECT organisation_id, id, now() FROM api_keys;
        INSERT INTO key_answers SELECT organisation_id, id, {day}, {day}, status, '',
            CASE WHEN status = 201 OR n > 0 THEN 20 ELSE 1000 END
        FROM api_keys CROSS JOIN generate_series(0, 27) AS n CROSS JOIN unnest(ARRAY[201, 422]) AS status"
    );
    database.connect().batch_execute(&refused).unwrap();
    let keys = PostgresKeyStore::new(Database::new(&database.service, Duration::from_secs(5)));
    let claimed =
        || -> Vec<_> { block_on(keys.claim_unusual()).unwrap().into_iter().map(|key| key.organisation_id).collect() };
    let stopped = citus.stop_node(2);
    assert_eq!(claimed(), [alive]);
    drop(stopped);
    assert_eq!(claimed(), [away]);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn every_worker_is_looked_at_also_one_that_holds_a_single_shard() {
    let database = TestDatabase::new();
    let citus = database.citus();
    let moved = clinic_on(&database, 2);
    citus.move_shard(database.name(), moved, 1, "block_writes").unwrap();
    let looking = Database::new(&database.service, Duration::from_secs(5));
    let mut seen = None;
    for turn in 0..4 {
        let look = block_on(looking.look_at_origin(seen, turn)).unwrap();
        let Look::Known(found) = look else { panic!("{look:?}") };
        seen = Some(found);
    }
    // Of each worker the entry that is seen is the newest of all its shards.
    let newest = "SELECT concat(id) AS text FROM audit_entries ORDER BY at DESC LIMIT 1";
    let newest = database.texts(newest).remove(0);
    assert!(format!("{seen:?}").contains(&newest), "{seen:?}: {newest}");
}

/// The database of an organisation, whether a statement waits there for a lock, and a suspension of the organisation.
struct Suspending {
    database: TestDatabase,
    clinic: Clinic,
    audit: AuditContext,
}

impl Suspending {
    fn new() -> Self {
        let database = TestDatabase::new();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let audit = AuditContext {
            entry_id: Uuid::from_bytes(random()).into(),
            actor: Actor::Operator(Operator::default()),
            address: None,
            at: now(&database),
            confirmed_in: None,
        };
        Self { database, clinic, audit }
    }

    fn suspend(&self) {
        let organisations = PostgresOrganisations::new(Database::new(&self.database.service, Duration::from_secs(60)));
        block_on(organisations.suspend(self.clinic.organisation, &self.audit)).unwrap();
    }

    /// Waits until this number of statements that name the table, on all nodes together, wait for locks.
    fn wait_for_locks(&self, statements: i64, table: &str) {
        let waiting = format!(
            "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%{table}%'"
        );
        let waiting = format!(
            "(SELECT sum(result::bigint) AS waiting FROM run_command_on_all_nodes($${waiting}$$)) AS all_nodes
             WHERE waiting >= {statements}"
        );
        wait_for("statements that wait", || self.database.count(&waiting) > 0);
    }

    fn accepted_keys(&self) -> i64 {
        self.database.count("api_keys WHERE suspended_at IS NULL AND revoked_at IS NULL")
    }
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_suspension_waits_for_a_key_that_is_being_made_and_refuses_it() {
    let suspending = Suspending::new();
    let mut held = suspending.database.connect();
    held.batch_execute("BEGIN; LOCK TABLE key_homes IN SHARE MODE").unwrap();
    std::thread::scope(|scope| {
        let made = scope.spawn(|| suspending.clinic.try_key(None, None));
        suspending.wait_for_locks(1, "");
        let suspended = scope.spawn(|| suspending.suspend());
        suspending.wait_for_locks(2, "");
        held.batch_execute("ROLLBACK").unwrap();
        assert!(made.join().unwrap().is_ok());
        suspended.join().unwrap();
    });
    assert_eq!((suspending.database.count("api_keys"), suspending.accepted_keys()), (1, 0));
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_key_waits_for_the_suspension_of_its_organisation_and_is_not_made() {
    let suspending = Suspending::new();
    let (organisation, entry) = (suspending.clinic.organisation, suspending.audit.entry_id);
    // The entry of the suspension waits for this one.
    let same = format!(
        "BEGIN; INSERT INTO audit_entries (organisation_id, id, at, action, subject, recorded_in)
             VALUES ('{organisation}', '{entry}', now(), 'organisation_suspended', '', 0)"
    );
    let mut held = suspending.database.connect();
    held.batch_execute(&same).unwrap();
    std::thread::scope(|scope| {
        let suspended = scope.spawn(|| suspending.suspend());
        // Its last statement: everything else is done by then.
        suspending.wait_for_locks(1, "audit_entries");
        let made = scope.spawn(|| suspending.clinic.try_key(None, None));
        suspending.wait_for_locks(2, "");
        held.batch_execute("ROLLBACK").unwrap();
        suspended.join().unwrap();
        assert!(made.join().unwrap().is_err());
    });
    assert_eq!(suspending.database.count("api_keys"), 0);
}
