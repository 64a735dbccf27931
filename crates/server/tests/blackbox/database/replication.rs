//! Reading by logical replication, as docs/reading.md says: the statements are those of the document.

use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;
use intake_infra::embedded::{EmbeddedPostgres, Settings};
use intake_infra::{Durability, PostgresPatientRights, prepare};
use intake_test_support::processes::send as signal;
use intake_test_support::{Clinic, HeldRow, WithCount, patient, wait_for};
use uuid::Uuid;

use crate::fixtures::program;

/// A PostgreSQL of its own, for what concerns a whole server.
pub(crate) fn server(folder: &Path) -> EmbeddedPostgres {
    server_of(folder, None)
}

/// The same with the programs of this folder.
pub(crate) fn server_of(folder: &Path, programs: Option<PathBuf>) -> EmbeddedPostgres {
    use std::os::unix::fs::PermissionsExt;

    // PostgreSQL, which does not run as root, must be able to enter it.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).unwrap();
    let (folder, user) = (folder.join("postgres"), std::process::id());
    EmbeddedPostgres::start(&Settings { folder, durability: Durability::Full, programs, user }).unwrap()
}

pub(crate) fn administer(server: &EmbeddedPostgres, sql: &str) {
    PgConnection::establish(server.owner_url("postgres").expose()).unwrap().batch_execute(sql).unwrap();
}

/// Starts it again, with the settings that need that.
pub(crate) fn restart(server: &EmbeddedPostgres, folder: &Path) {
    let pid_file = folder.join("postgres/data/postmaster.pid");
    signal("INT", std::fs::read_to_string(&pid_file).unwrap().lines().next().unwrap());
    wait_for("PostgreSQL to stop", || !pid_file.exists());
    server.ensure_running().unwrap();
}

/// The block of SQL in the document that begins so.
fn documented(start: &str) -> String {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reading.md")).unwrap();
    let block = document.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    block.map(|(block, _)| block).find(|block| block.starts_with(start)).unwrap().to_owned()
}

#[test]
fn a_subscriber_gets_its_organisation_and_the_late_row_too_and_loses_what_is_erased() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let register = server(here.path());
    administer(&register, "ALTER SYSTEM SET wal_level = 'logical'");
    restart(&register, here.path());
    let urls = prepare(&register, "intake").unwrap();
    let service = program().database_urls(&urls.service, &urls.owner).start();
    let clinic = Clinic::open(&urls.service, Environment::Development);
    let other = Clinic::open(&urls.service, Environment::Development);
    let key = clinic.key().1;
    let create =
        || -> Uuid { service.create(&key, &patient()).json()["data"]["id"].as_str().unwrap().parse().unwrap() };
    let before = create();

    let mut owner = PgConnection::establish(urls.owner.expose()).unwrap();
    let publish = documented("CREATE ROLE harbour_subscriber").replace(" PASSWORD '…'", "");
    owner.batch_execute(&publish.replace("'ID'", &format!("'{}'", clinic.organisation))).unwrap();
    let copy = server(there.path());
    administer(&copy, "CREATE DATABASE copy");
    let mut subscriber = PgConnection::establish(copy.owner_url("copy").expose()).unwrap();
    let socket = here.path().join("postgres/socket");
    let subscribe = documented("CREATE TABLE patients").replace("host=…", &format!("host={}", socket.display()));
    let (table, subscription) = subscribe.split_once("CREATE SUBSCRIPTION").unwrap();
    subscriber.batch_execute(table).unwrap();
    // Not in a transaction, as several statements at once would be.
    subscriber.batch_execute(&format!("CREATE SUBSCRIPTION{}", subscription.replace(" password=…", ""))).unwrap();

    let mut has = |id: Uuid| {
        let query = format!("SELECT count(*) AS count FROM patients WHERE id = '{id}' AND last_name = 'Lovelace'");
        diesel::sql_query(query).get_result::<WithCount>(&mut subscriber).unwrap().count == 1
    };
    wait_for("the first copy", || has(before));
    let held = HeldRow::insert(&urls.owner, clinic.organisation, "late", &patient()).unwrap();
    assert_eq!(service.create(&other.key().1, &patient()).status, 201);
    let early = create();
    wait_for("the row that was committed first", || has(early));
    held.commit().unwrap();
    let rows = |from: &str| {
        let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {from}"));
        query
            .get_result::<WithCount>(&mut PgConnection::establish(copy.owner_url("copy").expose()).unwrap())
            .unwrap()
            .count
    };
    wait_for("the late row", || rows("patients") == 3);
    assert_eq!(rows(&format!("patients WHERE organisation_id = '{}'", clinic.organisation)), 3, "and no other's");

    let audit = intake_domain::AuditContext {
        entry_id: Uuid::from_u128(7).into(),
        actor: intake_domain::Actor::Operator(intake_domain::Operator::default()),
        address: None,
        at: intake_edge::now(),
        confirmed_in: None,
    };
    let mut rights = PostgresPatientRights::new(&urls.owner);
    intake_domain::PatientRights::erase(
        &mut rights,
        clinic.organisation,
        intake_domain::Erasable::Stored(before.into()),
        &audit,
    )
    .unwrap();
    wait_for("the erasure", || rows("patients") == 2);
    let drop = "ALTER SUBSCRIPTION harbour DISABLE; ALTER SUBSCRIPTION harbour SET (slot_name = NONE); DROP SUBSCRIPTION harbour";
    drop.split(';').for_each(|statement| subscriber.batch_execute(statement).unwrap());
}
