//! A register that is spread over a Citus cluster. `INTAKE_TEST_CITUS_URL` names one (docs/scale.md); without it only what needs
//! none is tested, and the rest counts as ignored.

use diesel::connection::SimpleConnection;
use intake_test_support::{TestDatabase, patient};

use crate::complaint;
use crate::fixtures::{TestApp, service};

#[test]
fn a_database_without_citus_is_not_spread() {
    // Which is never on a cluster.
    let database = TestDatabase::durable();
    let line = complaint(service(&database).argument("spread"));
    assert!(line.contains("has no extension citus: nothing was changed"), "{line}");
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_register_that_is_spread_serves() {
    assert!(std::env::var_os("INTAKE_TEST_CITUS_URL").is_some(), "INTAKE_TEST_CITUS_URL must name a cluster");
    let app = TestApp::start();
    let divided = "pg_dist_partition WHERE partmethod = 'h' AND logicalrelid = 'patients'::regclass";
    assert_eq!(app.database.count(divided), 1);
    let body = patient().to_string();
    let keyed = |key: &str| app.service.create_with(app.key(), &[("Idempotency-Key", key)], body.as_bytes());
    let (first, again, other) = (keyed("first-key"), keyed("first-key"), keyed("other-key"));
    assert_eq!((first.status, again.status, other.status), (201, 201, 201));
    assert_eq!(first.body, again.body, "a repetition is answered as before");
    assert_eq!(app.patients(), 2);

    let (revoked, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    let revoke = service(&app.database).argument("key").argument("revoke").argument(&revoked.to_string()).run();
    assert!(revoke.status.success(), "{}", String::from_utf8_lossy(&revoke.stderr));
    assert_eq!(app.service.create(&key, &patient()).status, 401);

    let organisation = app.clinic.organisation.to_string();
    let export = service(&app.database).argument("export").argument("--format").argument("jsonl");
    let refused = complaint(export.argument("--organisation").argument(&organisation));
    assert!(refused.contains("use logical replication"), "{refused}");

    let again = service(&app.database).argument("spread").run();
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(said.starts_with("Every table was spread already."), "{said}");
    // What a later version adds is divided by its migration.
    let later = "CREATE TABLE notes (organisation_id uuid, id uuid, text text, PRIMARY KEY (organisation_id, id))";
    app.database.connect().batch_execute(later).unwrap();
    assert!(service(&app.database).argument("migrate").run().status.success());
    let divided = "pg_dist_partition WHERE partmethod = 'h' AND logicalrelid = 'notes'::regclass";
    assert_eq!(app.database.count(divided), 1);
    assert!(!app.service.output().contains("ERROR"), "{}", app.service.output());
}
