//! Where the database's password may stand: in a file or a variable, and not where every user of the machine can read
//! it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use intake_domain::Environment;
use intake_infra::{DatabaseUrl, SERVICE_ROLE};
use intake_test_support::{Clinic, Service, ServiceBuilder, TestDatabase, patient};

use crate::complaint;
use crate::fixtures::{program, service};

fn write(folder: &Path, name: &str, url: &DatabaseUrl) -> String {
    let file = folder.join(name);
    fs::write(&file, format!("{}\n", url.expose())).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

fn with_files(database: &TestDatabase, folder: &Path) -> ServiceBuilder {
    program()
        .setting("INTAKE_DURABILITY", "none")
        .setting("DATABASE_URL_FILE", write(folder, "service", &database.service))
        .setting("INTAKE_MIGRATION_DATABASE_URL_FILE", write(folder, "owner", &database.owner))
}

fn create(service: &Service, database: &TestDatabase) -> u16 {
    let (_, key) = Clinic::open(&database.service, Environment::Development).key();
    service.create(&key, &patient()).status
}

/// Returns what PostgreSQL calls the connections of the service's role.
fn names(database: &TestDatabase) -> Vec<String> {
    database.texts(&format!(
        "SELECT DISTINCT application_name::text FROM pg_stat_activity
         WHERE usename = '{SERVICE_ROLE}' AND datname = '{}'",
        database.name()
    ))
}

#[test]
fn addresses_can_be_kept_in_files() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let running = with_files(&database, folder.path()).start();
    assert_eq!(create(&running, &database), 201);
    assert!(!running.output().contains("every user"), "{}", running.output());
    // Commands read them in the same way.
    let listed = with_files(&database, folder.path()).argument("organisation").argument("list").run();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

#[test]
fn advice_names_the_setting_for_a_file_where_a_file_was_given() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let service = || write(folder.path(), "service", &database.service);
    let said = complaint(program().setting("DATABASE_URL_FILE", service()).argument("migrate"));
    let advice = "set INTAKE_MIGRATION_DATABASE_URL_FILE to a file with the address of the role that migrated";
    assert!(said.contains("DATABASE_URL_FILE: its role does not own the register") && said.contains(advice), "{said}");
    let said = complaint(program().setting("INTAKE_MIGRATION_DATABASE_URL_FILE", service()).argument("migrate"));
    assert!(said.contains("DATABASE_URL_FILE must be set where INTAKE_MIGRATION_DATABASE_URL_FILE is"), "{said}");
    let said = complaint(program().setting("INTAKE_ENVIRONMENT", "production"));
    assert!(said.contains("DATABASE_URL or DATABASE_URL_FILE must be set in production"), "{said}");
    let other = TestDatabase::new();
    let said = complaint(
        program()
            .setting("DATABASE_URL_FILE", service())
            .setting("INTAKE_MIGRATION_DATABASE_URL_FILE", write(folder.path(), "other", &other.owner))
            .argument("migrate"),
    );
    assert!(
        !said.contains("DATABASE_URL to another") && said.contains("the service's address to another one"),
        "{said}"
    );
}

#[test]
fn a_world_readable_file_is_named_in_the_log() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let builder = with_files(&database, folder.path());
    fs::set_permissions(folder.path().join("service"), Permissions::from_mode(0o644)).unwrap();
    let running = builder.start();
    assert!(running.output().contains("every user of this machine can read"), "{}", running.output());
    assert!(!running.output().contains("/owner"), "{}", running.output());
}

#[test]
fn a_password_in_a_flag_is_refused_in_one_line_that_says_what_to_do() {
    for (flag, variable) in
        [("--database-url", "DATABASE_URL_FILE"), ("--migration-database-url", "INTAKE_MIGRATION_DATABASE_URL_FILE")]
    {
        let with_flag = program().argument(flag).argument("postgres://intake:Canary-Bird@localhost/intake");
        let complaint = complaint(with_flag);
        assert!(complaint.starts_with(&format!("intake: {flag}: a password in a flag")), "{complaint}");
        assert!(complaint.contains(variable) && !complaint.contains("Canary"), "{complaint}");
    }
}

#[test]
fn postgresql_knows_the_service_by_its_name() {
    let database = TestDatabase::new();
    for (variable, expected) in [(None, "intake"), (Some("harbour"), "harbour")] {
        let builder = service(&database);
        let running = match variable {
            Some(name) => builder.setting("PGAPPNAME", name),
            None => builder,
        }
        .start();
        assert_eq!(create(&running, &database), 201);
        let all = names(&database);
        assert!(all.contains(&expected.to_owned()), "{all:?}");
        assert!(all.iter().all(|name| !name.is_empty()), "{all:?}");
    }
}
