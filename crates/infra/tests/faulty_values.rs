//! A value that PostgreSQL cannot take costs two statements and no connection, although Diesel does not say that the
//! value is at fault.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::{Environment, KeyList, KeyOrder, KeyScope, KeySearch, StoreError};
use intake_infra::{Database, PostgresKeyStore, write_metrics};
use intake_metrics::MetricsText;
use intake_test_support::{Clinic, TestDatabase};
use time::macros::datetime;

/// Failed statements and lost connections so far.
fn failures() -> (u64, u64) {
    let mut text = MetricsText::default();
    write_metrics(&mut text);
    let text = text.into_text();
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap();
    (value("intake_database_errors_total{class=\"other\"}"), value("intake_database_reconnects_total"))
}

#[test]
fn a_value_that_cannot_be_taken_is_sent_twice_and_other_failures_are_retried() {
    let database = TestDatabase::on_one_server();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let _ = clinic.key();
    let keys = PostgresKeyStore::new(Database::new(&database.service, Duration::from_secs(60)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let search = |text: &str| {
        let (text, scope, order) = (text.to_owned(), KeyScope::All, KeyOrder::Newest);
        let search = KeySearch { text, scope, unused_since: None, made_by: None, order, page: 1 };
        let now = datetime!(2026-03-02 10:30 UTC);
        runtime.block_on(keys.search(clinic.organisation, &search, now)).map(|page| page.found)
    };
    let before = failures();
    let refused = search("a\0b");
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(failures(), (before.0 + 2, before.1));
    assert_eq!(search("Test").unwrap(), 1);

    let before = failures();
    let mut owner = database.connect();
    // Each try fails in another way, as if other transactions were in it.
    owner
        .batch_execute(
            "CREATE SEQUENCE tries; GRANT USAGE ON SEQUENCE tries TO PUBLIC; ALTER TABLE api_keys RENAME TO keys_kept;
             CREATE FUNCTION fails() RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE n bigint := nextval('tries'); BEGIN
                 IF n < 6 THEN RAISE EXCEPTION 'deadlock' USING DETAIL = n; END IF; RETURN true; END $$;
             CREATE VIEW api_keys AS SELECT * FROM keys_kept, fails();
             GRANT ALL ON api_keys TO PUBLIC",
        )
        .unwrap();
    assert_eq!(search("Test").unwrap(), 1);
    assert_eq!(failures().0, before.0 + 5);
}
