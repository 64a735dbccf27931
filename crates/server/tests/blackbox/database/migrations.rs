//! Upgrades: what a migration would do can be asked first, it never makes the service wait for long, and the programs
//! before and after it serve together.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;
use intake_domain::{ApiKey, Environment, KeyFormat};
use intake_infra::SERVICE_ROLE;
use intake_test_support::{Response, Service, ServiceBuilder, TestDatabase, create_request, patient};
use serde_json::{Value, json};

use crate::commands::readers::ReaderRole;
use crate::complaint;
use crate::fixtures::{in_production, program, service};

/// A migration waits longer than that for a table.
const SOME_TIME: Duration = Duration::from_millis(500);
/// And far less than that, even on a busy machine.
const ENDLESS: Duration = Duration::from_secs(60);

/// The names of all migrations, the oldest first.
fn migrations() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let folders = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// As it is stored: the digits of the name.
fn version(name: &str) -> String {
    name.split('_').next().unwrap().replace('-', "")
}

fn migrate(database: &TestDatabase, arguments: &[&str]) -> ServiceBuilder {
    let builder = service(database).argument("migrate");
    arguments.iter().fold(builder, |builder, argument| builder.argument(argument))
}

fn json_of(builder: ServiceBuilder) -> Value {
    let output = builder.run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text_of(builder: ServiceBuilder) -> String {
    String::from_utf8(builder.run().stdout).unwrap()
}

#[test]
fn a_check_says_what_would_be_done_and_does_nothing() {
    let database = TestDatabase::empty();
    let versions: Vec<_> = migrations().iter().map(|name| version(name)).collect();
    assert_eq!(json_of(migrate(&database, &["--check", "--json"])), json!({ "pending": versions }));
    let text = text_of(migrate(&database, &["--check", "--service-role", "intake_service"]));
    let count = versions.len();
    assert!(text.starts_with(&format!("Would apply {count} migrations: {}, ", versions[0])), "{text}");
    assert!(text.contains("Would let the role intake_service do"), "{text}");
    assert_eq!(database.count("pg_tables WHERE schemaname = 'public'"), 0);

    assert_eq!(json_of(migrate(&database, &["--json"])), json!({ "applied": versions }));
    assert_eq!(json_of(migrate(&database, &["--check", "--json"])), json!({ "pending": [] }));
    assert_eq!(text_of(migrate(&database, &["--check"])), "The schema is up to date.\n");

    // Of a role that can do nothing yet, and of one that lacks one thing.
    let check = &["--check", "--service-role", "intake_service"];
    let missing = |json: Value| json["missingGrants"].as_array().unwrap().clone();
    let all = missing(json_of(migrate(&database, &[&check[..], &["--json"]].concat())));
    assert!(all.contains(&json!("INSERT on patients")), "{all:?}");
    assert!(text_of(migrate(&database, check)).contains(" Would grant the role intake_service what is missing: "));
    json_of(migrate(&database, &["--service-role", "intake_service", "--json"]));
    assert!(text_of(migrate(&database, check)).ends_with(" The role intake_service has what the service needs.\n"));
    database.connect().batch_execute("REVOKE SELECT (request_digest) ON patients FROM intake_service").unwrap();
    let one = missing(json_of(migrate(&database, &[&check[..], &["--json"]].concat())));
    assert_eq!(one, ["SELECT (request_digest) on patients"]);

    // It makes no embedded database, either.
    let missing = complaint(program().argument("migrate").argument("--check"));
    assert!(missing.contains("no database in"), "{missing}");
}

#[test]
fn a_check_fails_where_migrating_would() {
    let database = TestDatabase::new();
    let no_role = complaint(migrate(&database, &["--check", "--service-role", "nobody"]));
    assert!(no_role.contains("has no role nobody"), "{no_role}");
    // The tables that the role could read are not there yet, and are not made for it.
    let empty = TestDatabase::empty();
    let role = ReaderRole::make_powerless(&empty, "service");
    empty.administer(&format!("GRANT pg_read_all_data TO \"{}\"", role.name()));
    for more in [&["--check"][..], &[]] {
        let line = complaint(migrate(&empty, &[&["--service-role", role.name()], more].concat()));
        assert!(line.contains("(it is a member of pg_read_all_data)"), "{line}");
    }
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0);
    let newer = "INSERT INTO __diesel_schema_migrations VALUES ('29990101000000')";
    database.connect().batch_execute(newer).unwrap();
    let older = complaint(migrate(&database, &["--check"]));
    assert!(older.contains("migrated by a newer intake"), "{older}");
}

#[test]
fn eight_that_migrate_and_grant_at_once_all_succeed() {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let database = TestDatabase::empty();
        let reader = ReaderRole::make_powerless(&database, "reader");
        let arguments = ["--service-role", SERVICE_ROLE, "--reader-role", reader.name()];
        // Twice: on an empty database, and on one where all is done.
        for _ in 0..2 {
            std::thread::scope(|scope| {
                let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| migrate(&database, &arguments).run())).collect();
                for run in runs {
                    let output = run.join().unwrap();
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                }
            });
        }
    }
}

/// A database that has only the first migration, and a connection that keeps a table locked: the second migration makes
/// tables that refer to organisations, for which it locks that table.
fn locked_before_the_second_migration() -> (TestDatabase, PgConnection) {
    let database = TestDatabase::empty();
    let first = &migrations()[0];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations").join(first);
    let mut owner = database.connect();
    owner.batch_execute(&fs::read_to_string(folder.join("up.sql")).unwrap()).unwrap();
    let applied = format!(
        "CREATE TABLE __diesel_schema_migrations (
            version varchar(50) PRIMARY KEY, run_on timestamp NOT NULL DEFAULT now());
        INSERT INTO __diesel_schema_migrations VALUES ('{}')",
        version(first)
    );
    owner.batch_execute(&applied).unwrap();
    owner.batch_execute(&format!("SET application_name = 'a repair'; BEGIN; {WRITE}")).unwrap();
    (database, owner)
}

const WRITE: &str = "UPDATE organisations SET name = name";

#[test]
fn a_migration_that_waits_for_a_table_lets_others_pass_and_tries_again() {
    let (database, mut writer) = locked_before_the_second_migration();
    let mut owner = database.connect();
    // Fails instead of waiting as long as the first writer.
    owner.batch_execute("SET lock_timeout = '60s'").unwrap();
    let (applied, longest) = std::thread::scope(|scope| {
        let migrating = scope.spawn(|| json_of(migrate(&database, &["--json"])));
        let (started, mut longest) = (Instant::now(), Duration::ZERO);
        // Past the first try, whenever that begins.
        while started.elapsed() < Duration::from_secs(4) || longest < SOME_TIME && started.elapsed() < ENDLESS {
            let asked = Instant::now();
            owner.batch_execute(WRITE).unwrap();
            longest = longest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!migrating.is_finished(), "the table is locked");
        writer.batch_execute("COMMIT").unwrap();
        (migrating.join().unwrap(), longest)
    });
    let expected: Vec<_> = migrations()[1..].iter().map(|name| version(name)).collect();
    assert_eq!(applied, json!({ "applied": expected }));
    assert!(longest >= SOME_TIME, "the migration asked for no lock: {longest:?}");
    assert!(longest < ENDLESS / 2, "{longest:?}");
}

#[test]
fn a_migration_that_never_gets_a_table_names_the_process_that_holds_it() {
    let (database, mut writer) = locked_before_the_second_migration();
    let refusal = complaint(migrate(&database, &[]));
    let pid = diesel::dsl::sql::<Integer>("SELECT pg_backend_pid()").get_result::<i32>(&mut writer).unwrap();
    let holder = format!("a lock is held by the process {pid} of PostgreSQL (application \"a repair\"");
    assert!(refusal.contains(&holder), "{refusal}");
    assert!(refusal.contains(&format!("end it with SELECT pg_terminate_backend({pid})")), "{refusal}");
    // Nothing was half done, and the command can be run again.
    writer.batch_execute("COMMIT").unwrap();
    assert_eq!(json_of(migrate(&database, &["--json"]))["applied"].as_array().unwrap().len(), migrations().len() - 1);
}

/// The earlier of two releases that are to serve together: a program that this variable names (`just upgrade-check`),
/// else this one, over a schema of which it knows nothing.
const OLDER_PROGRAM: &str = "INTAKE_OLDER_PROGRAM";

/// A program in production, behind a proxy on this machine.
fn production(program: &str, database: &TestDatabase) -> ServiceBuilder {
    in_production(ServiceBuilder::new(program).database(database))
}

fn json_of_command(builder: ServiceBuilder, arguments: &[&str]) -> Value {
    json_of(arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).argument("--json"))
}

/// Creates a patient, as the proxy passes it on.
fn create(running: &Service, key: &ApiKey, once: &str) -> Response {
    let headers = [("X-Forwarded-Proto", "https"), ("Idempotency-Key", once)];
    running.plain_client().send(&create_request(key, &headers, patient().to_string().as_bytes()))
}

/// Migrates as a later release might.
fn migrate_into_the_future(database: &TestDatabase) {
    let later = "ALTER TABLE patients ADD COLUMN nickname text;
        ALTER TABLE api_keys ADD COLUMN is_watched boolean NOT NULL DEFAULT false;
        CREATE INDEX patients_by_nickname ON patients (organisation_id, nickname);
        INSERT INTO __diesel_schema_migrations VALUES ('29990101000000')";
    database.connect().batch_execute(later).unwrap();
}

#[test]
fn the_programs_before_and_after_an_upgrade_serve_together() {
    let newer = env!("CARGO_BIN_EXE_intake");
    let earlier_release = std::env::var(OLDER_PROGRAM).ok();
    let older = earlier_release.as_deref().unwrap_or(newer);
    let database = TestDatabase::empty_and_durable();
    json_of_command(production(older, &database), &["migrate", "--service-role", SERVICE_ROLE]);
    let organisation = json_of_command(production(older, &database), &["organisation", "create", "--name", "Clinic"]);
    let make_key = |program: &str| {
        let id = organisation["id"].as_str().unwrap();
        let made =
            json_of_command(production(program, &database), &["key", "create", "--organisation", id, "--name", "k"]);
        let format = KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
        (made["id"].as_str().unwrap().to_owned(), format.parse(made["key"].as_str().unwrap()).unwrap())
    };
    let mut before = production(older, &database).start();
    let (id, key) = make_key(older);
    let first = create(&before, &key, "first");
    assert_eq!(first.status, 201, "{}", first.text());

    json_of_command(production(newer, &database), &["migrate", "--service-role", SERVICE_ROLE]);
    if earlier_release.is_none() {
        migrate_into_the_future(&database);
    }
    assert_eq!(create(&before, &key, "over-the-same-connection").status, 201);
    let after = production(newer, &database).start();
    for running in [&before, &after] {
        running.wait_until_ready();
        let again = create(running, &key, "first");
        assert_eq!((again.status, again.text()), (201, first.text()), "the first answer again");
    }
    let (_, other_key) = make_key(newer);
    let second = create(&after, &other_key, "second");
    assert_eq!(create(&before, &other_key, "second").text(), second.text());
    json_of_command(production(newer, &database), &["key", "revoke", &id]);
    assert_eq!([&before, &after].map(|running| create(running, &key, "third").status), [401, 401]);

    // And so an upgrade is taken back.
    assert!(before.stop().success());
    let again = production(older, &database).start();
    assert_eq!(create(&again, &other_key, "fourth").status, 201);
    again.wait_until_ready();
    assert_eq!(database.count("patients"), 4);
}
