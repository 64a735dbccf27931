//! Development and production: each with its own kind of key and its own databases.

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_infra::DatabaseUrl;
use intake_test_support::{Client, Clinic, ServiceBuilder, TestDatabase, create_request, patient, request};

use crate::commands::doctor::examine;
use crate::commands::readers::ReaderRole;
use crate::fixtures::{in_production, program, service};
use crate::{assert_unauthorised, complaint};

/// A service in production, behind a proxy on this machine.
fn production(database: &TestDatabase) -> ServiceBuilder {
    program_in_production(&database.service, &database.owner)
}

fn program_in_production(service: &DatabaseUrl, owner: &DatabaseUrl) -> ServiceBuilder {
    in_production(program().database_urls(service, owner))
}

#[test]
fn production_takes_live_keys_and_no_demo_keys() {
    let database = TestDatabase::durable();
    let service = production(&database).start();
    assert!(service.https.is_none(), "no certificate was given");
    let clinic = Clinic::open(&database.service, Environment::Production);
    let (_, live) = clinic.key();
    assert!(live.expose().starts_with("intake_live_"));
    let (_, demo) = Clinic::open(&database.service, Environment::Development).key();
    let send = |key| {
        let headers = [("X-Forwarded-Proto", "https")];
        service.plain_client().send(&create_request(key, &headers, patient().to_string().as_bytes()))
    };
    assert_eq!(send(&live).status, 201);
    assert_unauthorised(&send(&demo));
}

#[test]
fn the_page_of_components_exists_in_development_alone() {
    let (demo, live) = (TestDatabase::new(), TestDatabase::durable());
    let headers = [("Accept", "text/html"), ("X-Forwarded-Proto", "https")];
    let status = |client: Client| client.send(&request("GET", "/components", &headers, b"")).status;
    assert_eq!(status(service(&demo).start().client()), 200);
    assert_eq!(status(production(&live).start().plain_client()), 404);
}

#[test]
fn a_database_belongs_to_one_environment() {
    let database = TestDatabase::new();
    drop(service(&database).start());
    let complaint = complaint(production(&database));
    assert!(complaint.contains("development environment"), "{complaint}");
    drop(service(&database).start());
}

#[test]
fn only_a_service_decides_which_environment_a_database_belongs_to() {
    let database = TestDatabase::durable();
    let list = service(&database).argument("organisation").argument("list").run();
    assert!(list.status.success());
    drop(production(&database).start());
    let complaint = complaint(service(&database).argument("organisation").argument("list"));
    assert!(complaint.contains("production environment"), "{complaint}");
}

#[test]
fn production_refuses_an_unmigrated_database() {
    let database = TestDatabase::empty();
    assert!(complaint(production(&database)).contains("intake migrate"));
}

#[test]
fn production_refuses_to_start_without_what_it_needs() {
    let bare = || program().setting("INTAKE_ENVIRONMENT", "production");
    assert!(complaint(bare()).starts_with("intake: DATABASE_URL "));
    let database = TestDatabase::new();
    let without_way_in = service(&database).setting("INTAKE_ENVIRONMENT", "production");
    assert!(
        complaint(without_way_in).starts_with("intake: INTAKE_TLS_CERT and INTAKE_TLS_KEY, or INTAKE_TRUSTED_PROXIES")
    );
}

#[test]
fn production_refuses_a_database_that_forgets() {
    let complaint_of = |database: &TestDatabase| complaint(production(database));
    let all = complaint_of(&TestDatabase::new());
    assert!(all.starts_with("intake: DATABASE_URL: a crash of the database could lose acknowledged patients"), "{all}");
    assert!(all.contains("turn on fsync, full_page_writes"), "{all}");
}

#[test]
fn a_service_starts_wherever_a_running_one_goes_on() {
    let database = TestDatabase::durable();
    drop(production(&database).start());
    let set = |what: &str| database.administer(&format!("ALTER DATABASE {} {what}", database.name()));
    for drifted in ["off", "local", "remote_write"] {
        set(&format!("SET synchronous_commit = {drifted}"));
        production(&database).start().wait_until_ready();
    }
    // An operator who forbids writing is obeyed, by a service that starts as well.
    set("SET default_transaction_read_only = on");
    let service = production(&database).start();
    assert_eq!(service.probe("/readyz").json()["reason"], "read-only");
    set("RESET default_transaction_read_only");
    service.wait_until_ready();
}

#[test]
fn production_refuses_a_role_that_can_read_patients() {
    let refusal = |url: &DatabaseUrl| {
        let line = complaint(program_in_production(url, url));
        assert!(line.starts_with("intake: DATABASE_URL: the service's role "), "{line}");
        assert!(line.contains("so a flaw in the service could expose patients: "), "{line}");
        line
    };
    let superuser = refusal(&TestDatabase::durable().owner);
    assert!(superuser.contains("role is a superuser"), "{superuser}");
    assert!(superuser.contains("use a role of its own, to which `intake migrate --service-role NAME`"), "{superuser}");
    for (change, said) in [
        ("ALTER TABLE patients OWNER TO intake_service", "owns the register"),
        ("GRANT SELECT ON patients TO intake_service", "may read the whole table of patients"),
        ("GRANT SELECT (suburb) ON patients TO PUBLIC", "REVOKE ALL ON patients FROM PUBLIC"),
    ] {
        let database = TestDatabase::durable();
        database.connect().batch_execute(change).unwrap();
        let line = refusal(&database.service);
        assert!(line.contains(said), "{line}");
    }

    let database = TestDatabase::durable();
    let role = ReaderRole::make_powerless(&database, "service");
    let migrate =
        ["migrate", "--service-role", role.name()].iter().fold(production(&database), |all, one| all.argument(one));
    assert!(migrate.run().status.success());
    let start = || program_in_production(&role.url, &database.owner);
    drop(start().start());
    database.administer(&format!("GRANT pg_read_all_data TO \"{}\"", role.name()));
    let line = refusal(&role.url);
    assert!(line.contains("is a member of pg_read_all_data") && line.contains("REVOKE the membership"), "{line}");
    database.administer(&format!("REVOKE pg_read_all_data FROM \"{}\"", role.name()));
    for (attribute, said) in [("REPLICATION", "may copy the whole database"), ("CREATEROLE", "may join other roles")] {
        database.administer(&format!("ALTER ROLE \"{}\" {attribute}", role.name()));
        let line = refusal(&role.url);
        assert!(line.contains(said) && line.contains("NOREPLICATION"), "{line}");
        database.administer(&format!("ALTER ROLE \"{}\" NO{attribute}", role.name()));
    }
    drop(start().start());
}

#[test]
fn a_service_refuses_a_database_that_would_store_twice_or_be_emptied_by_a_crash() {
    let database = TestDatabase::new();
    let refusal = |change: &str| {
        database.connect().batch_execute(change).unwrap();
        let (_, found, _) = examine(service(&database));
        let part = found.into_iter().find(|(part, ..)| part == "database").unwrap();
        assert_eq!(part.1, Some(false), "{part:?}");
        let line = complaint(service(&database));
        assert!(line.contains(&part.2), "{line}");
        line
    };
    let twice = refusal("ALTER INDEX patients_by_idempotency_key RENAME TO lost");
    assert!(twice.contains("the unique index patients_by_idempotency_key is missing or invalid"), "{twice}");
    let emptied = refusal("ALTER INDEX lost RENAME TO patients_by_idempotency_key; ALTER TABLE patients SET UNLOGGED");
    assert!(emptied.contains("a crash of the database would empty patients"), "{emptied}");
    database.connect().batch_execute("ALTER TABLE patients SET LOGGED").unwrap();
    drop(service(&database).start());
}

#[test]
fn production_warns_of_columns_that_its_role_does_not_need() {
    let database = TestDatabase::durable();
    assert!(!production(&database).start().output().contains("could expose patients"));
    // As a newer program might, beside which this one goes on.
    database.connect().batch_execute("GRANT SELECT (suburb) ON patients TO intake_service").unwrap();
    let warning = production(&database).start().output();
    assert!(warning.contains("may read columns that it does not need"), "{warning}");
}

#[test]
fn production_warns_of_links_that_lead_to_its_own_machine() {
    let database = TestDatabase::durable();
    assert!(production(&database).start().output().contains("INTAKE_PUBLIC_URL is not set"));
    let with_address = production(&database).setting("INTAKE_PUBLIC_URL", "https://intake.test");
    assert!(!with_address.start().output().contains("INTAKE_PUBLIC_URL"));
    assert!(!service(&TestDatabase::new()).start().output().contains("INTAKE_PUBLIC_URL"));
}

#[test]
fn development_leaves_a_production_database_as_it_is() {
    let database = TestDatabase::durable();
    drop(production(&database).start());
    // As if the program were newer than the database.
    database.connect().batch_execute("DELETE FROM __diesel_schema_migrations").unwrap();
    assert!(complaint(service(&database)).contains("production environment"));
    assert_eq!(database.count("__diesel_schema_migrations"), 0, "nothing was migrated");
}

#[test]
fn development_migrates_an_empty_database_first() {
    let database = TestDatabase::empty();
    let service = program().database_urls(&database.owner, &database.owner).start();
    let clinic = Clinic::open(&database.owner, Environment::Development);
    assert_eq!(service.create(&clinic.key().1, &patient()).status, 201);
}

#[test]
fn keys_begin_with_the_prefix_that_is_set() {
    let database = TestDatabase::new();
    let service = service(&database).setting("INTAKE_KEY_PREFIX", "clinic").start();
    let (_, key) = Clinic::open(&database.service, Environment::Development).key();
    assert_unauthorised(&service.create(&key, &patient()));
}
