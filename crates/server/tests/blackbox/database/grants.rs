//! What the service's role may do: no less than it must, which is said at the start and while serving, and nothing by
//! which a flaw of the service could undo a revocation or forge the record.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_infra::SERVICE_ROLE;
use intake_test_support::{ServiceBuilder, TestDatabase, patient, request, wait_for};

use crate::complaint;
use crate::fixtures::{TestApp, program, service};

#[test]
fn a_start_without_a_needed_grant_names_it() {
    for (revoke, named) in [
        ("INSERT ON patients", "INSERT on patients"),
        ("SELECT (request_digest) ON patients", "SELECT (request_digest) on patients"),
        ("UPDATE ON key_answers", "UPDATE on key_answers"),
    ] {
        let database = TestDatabase::new();
        database.connect().batch_execute(&format!("REVOKE {revoke} FROM {SERVICE_ROLE}")).unwrap();
        let line = complaint(service(&database));
        assert!(line.contains(named) && line.contains("intake migrate --service-role"), "{line}");
    }
}

#[test]
fn a_role_may_connect_where_the_public_may_not() {
    let database = TestDatabase::new();
    database.administer(&format!("REVOKE CONNECT ON DATABASE {} FROM PUBLIC", database.name()));
    database.administer(&format!("REVOKE CONNECT ON DATABASE {} FROM {SERVICE_ROLE}", database.name()));
    let run = |more: &[&str]| {
        let migrate = service(&database).argument("migrate").argument("--service-role").argument(SERVICE_ROLE);
        more.iter().fold(migrate, |all, one| all.argument(one)).run()
    };
    let missing = String::from_utf8(run(&["--check"]).stdout).unwrap();
    assert!(missing.contains("CONNECT on the database"), "{missing}");
    assert!(run(&[]).status.success());
    drop(service(&database).start());
}

#[test]
fn a_grant_that_is_taken_away_while_serving_is_an_error_and_not_an_absence() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    app.database.connect().batch_execute(&format!("REVOKE INSERT ON patients FROM {SERVICE_ROLE}")).unwrap();
    // A request that waited for the database would get 503.
    assert_eq!(app.create(&patient()).status, 500);
    wait_for("the log", || app.service.output().contains("lacks INSERT on patients"));
    assert!(!app.service.output().contains("the database is away"));
    app.database.connect().batch_execute(&format!("GRANT INSERT ON patients TO {SERVICE_ROLE}")).unwrap();
    assert_eq!(app.create(&patient()).status, 201);

    // The same for a page.
    app.database.connect().batch_execute(&format!("REVOKE SELECT ON sessions FROM {SERVICE_ROLE}")).unwrap();
    let cookie = format!("__Host-intake-session={}", "a".repeat(64));
    let page = app.service.client().send(&request("GET", "/settings/api-keys", &[("Cookie", &cookie)], b""));
    let id = page.header("x-request-id").unwrap();
    assert!(page.status == 500 && page.text().contains(&format!("<code>{id}</code>")), "{}", page.text());
    wait_for("the log", || app.service.output().contains("lacks SELECT on sessions"));
}

#[test]
fn a_command_of_the_owner_changes_the_services_database_and_no_other() {
    let (database, other) = (TestDatabase::new(), TestDatabase::new());
    let id = uuid::Uuid::from_u128(7).to_string();
    let commands: [&[&str]; 4] = [
        &["migrate"],
        &["migrate", "--check"],
        &["restored", "--revoke-keys"],
        &["patient", "erase", "--organisation", &id, "--patient", &id],
    ];
    let refusal = |builder: ServiceBuilder, command: &[&str]| {
        complaint(command.iter().fold(builder, |all, one| all.argument(one)))
    };
    for command in commands {
        let line = refusal(program().database_urls(&database.service, &other.owner), command);
        let names = format!(
            "leads to the database {}, and the service's address to another one, {}",
            other.name(),
            database.name()
        );
        assert!(line.contains(&names), "{line}");
        let line = refusal(program().database_urls(&database.service, &database.service), command);
        assert!(line.contains("INTAKE_MIGRATION_DATABASE_URL: its role does not own the register"), "{line}");
    }
    let embedded = tempfile::tempdir().unwrap();
    let line = refusal(program().setting("INTAKE_DATA_DIR", embedded.path().to_str().unwrap()), &["restored"]);
    assert!(line.contains("no database in"), "{line}");
}

#[test]
fn an_older_program_takes_nothing_from_a_newer_schema() {
    let database = TestDatabase::new();
    database
        .connect()
        .batch_execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29990101000000')")
        .unwrap();
    let migrate = |builder: ServiceBuilder| {
        ["migrate", "--service-role", SERVICE_ROLE].iter().fold(builder, |all, one| all.argument(one))
    };
    let line = complaint(migrate(service(&database)));
    assert!(line.contains("migrated by a newer intake (29990101000000)"), "{line}");
    // It still serves.
    let service = program().database(&database).start();
    service.wait_until_ready();
}

#[test]
fn the_services_role_cannot_bring_back_a_revoked_key() {
    let app = TestApp::start();
    let (id, _) = app.clinic.key();
    app.clinic.revoke(id);
    let mut service = PgConnection::establish(app.database.service.expose()).unwrap();
    let changed =
        diesel::sql_query(format!("UPDATE api_keys SET revoked_at = NULL WHERE id = '{id}'")).execute(&mut service);
    assert_eq!(changed, Ok(0));
    let changed = diesel::sql_query(format!("UPDATE api_keys SET revoked_at = now() + '1 day' WHERE id = '{id}'"));
    assert_eq!(changed.execute(&mut service), Ok(0));
    assert_eq!(app.database.count(&format!("api_keys WHERE id = '{id}' AND revoked_at IS NOT NULL")), 1);
}

#[test]
fn the_services_role_cannot_bring_back_an_expired_key() {
    let app = TestApp::start();
    let (ended, _) = app.clinic.key_until(Some(time::OffsetDateTime::UNIX_EPOCH));
    let mut service = PgConnection::establish(app.database.service.expose()).unwrap();
    for expiry in ["NULL", "now() + interval '1 day'"] {
        let changed = diesel::sql_query(format!("UPDATE api_keys SET expires_at = {expiry}")).execute(&mut service);
        assert!(changed.unwrap_err().to_string().contains("permission denied"));
    }
    // What ends a replaced key only brings its end forward.
    let replacement = format!(
        "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, replaces, replaced_ends_after)
         SELECT gen_random_uuid(), organisation_id, 'Replacement', 'forged', 'hint', now(), id, interval '1 year'
         FROM api_keys WHERE id = '{ended}'"
    );
    assert_eq!(diesel::sql_query(replacement).execute(&mut service), Ok(1));
    let end = "SELECT end_replaced_keys(array_agg(organisation_id), array_agg(id), array_agg(0::float8)) FROM api_keys";
    service.batch_execute(end).unwrap();
    let by = "SELECT end_replaced_key_by(organisation_id, id, now() + interval '1 year') FROM api_keys";
    service.batch_execute(by).unwrap();
    assert_eq!(app.database.count(&format!("api_keys WHERE id = '{ended}' AND expires_at = 'epoch'")), 1);
}

#[test]
fn an_audit_entry_has_the_time_and_the_number_of_the_database() {
    let app = TestApp::start();
    let mut service = PgConnection::establish(app.database.service.expose()).unwrap();
    let entry = |columns: &str, values: &str| {
        format!(
            "INSERT INTO audit_entries (organisation_id, id, action, subject{columns})
             VALUES ('{}', gen_random_uuid(), 'key_created', 'forged'{values})",
            app.clinic.organisation
        )
    };
    let forged = diesel::sql_query(entry(", at", ", now() - interval '1 year'")).execute(&mut service);
    assert!(forged.unwrap_err().to_string().contains("permission denied"));
    let forged = diesel::sql_query(entry(", recorded_in", ", 9000000000000000000")).execute(&mut service);
    assert!(forged.unwrap_err().to_string().contains("permission denied"));
    assert_eq!(diesel::sql_query(entry("", "")).execute(&mut service), Ok(1));
    assert_eq!(app.database.count("audit_entries WHERE subject = 'forged' AND at > now() - interval '1 minute'"), 1);
    let changed = diesel::sql_query("UPDATE audit_entries SET subject = 'another'").execute(&mut service);
    assert!(changed.unwrap_err().to_string().contains("permission denied"));
}

#[test]
fn uses_that_cannot_be_written_are_logged_once_and_so_is_their_end() {
    let app = TestApp::start();
    app.database.connect().batch_execute(&format!("REVOKE UPDATE ON key_uses FROM {SERVICE_ROLE}")).unwrap();
    assert_eq!(app.create(&patient()).status, 201);
    let warned = || app.service.output().matches("the use of keys cannot be saved").count();
    wait_for("the warning", || warned() == 1);
    // A replaced key would never end: nobody must have to ask for more detail to hear of it.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(warned(), 1, "{}", app.service.output());
    app.database.connect().batch_execute(&format!("GRANT UPDATE ON key_uses TO {SERVICE_ROLE}")).unwrap();
    wait_for("the end of it", || app.service.output().contains("the use of keys is saved again"));
    assert_eq!(app.database.count("key_uses"), 1);
}

#[test]
fn an_open_transaction_does_not_date_an_entry_back() {
    let database = TestDatabase::new();
    let late = "BEGIN; SELECT pg_sleep(0.2);
         INSERT INTO audit_entries (organisation_id, id, action, subject)
             VALUES (gen_random_uuid(), gen_random_uuid(), 'held', now()::text);
         COMMIT;";
    let mut connection = PgConnection::establish(database.service.expose()).unwrap();
    connection.batch_execute(late).unwrap();
    assert_eq!(database.count("audit_entries WHERE at >= subject::timestamptz + interval '0.2 s'"), 1);
}
