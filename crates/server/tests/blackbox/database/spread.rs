//! A register that is spread over a Citus cluster. `INTAKE_TEST_CITUS_URL` names one (docs/scale.md); without it only
//! what needs none is tested, and the rest counts as ignored.

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_infra::DatabaseUrl;
use intake_test_support::{Clinic, ServiceBuilder, StrictServers, TestDatabase, patient};

use crate::complaint;
use crate::fixtures::{TestApp, program, service};

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

    let usage = service(&app.database).argument("key").argument("usage").run();
    assert!(usage.status.success(), "{}", String::from_utf8_lossy(&usage.stderr));
    for what in ["suspend", "resume", "close", "erase"] {
        let clinic = app.clinic.organisation.to_string();
        let done = service(&app.database).argument("organisation").argument(what).argument(&clinic).run();
        assert!(done.status.success(), "{what}: {}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(app.patients(), 0);

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

/// The blocks of the part of docs/scale.md that says how to set a cluster up, with the addresses of these servers.
fn blocks_of_the_document() -> Vec<String> {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scale.md")).unwrap();
    let (_, part) = document.split_once("## Setting it up").unwrap();
    let (part, _) = part.split_once("\n## ").unwrap();
    let [coordinator, one, two] = StrictServers::HOSTS;
    let fitted = [
        ("coordinator.example", coordinator),
        ("one.example", one),
        ("two.example", two),
        ("5432", StrictServers::PORT),
    ];
    let fit = |block: &str| {
        let (_, block) = block.split_once('\n').unwrap();
        fitted.iter().fold(block.to_owned(), |block, (from, to)| block.replace(from, to))
    };
    part.split("```").skip(1).step_by(2).map(fit).collect()
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn the_document_can_be_followed_where_every_node_requires_passwords() {
    let database = TestDatabase::new();
    let blocks = blocks_of_the_document();
    let [settings, on_every_node, on_the_coordinator, commands] = blocks.as_slice() else { panic!("{blocks:?}") };
    let servers = database.citus().strict_servers(settings, "superuser-password");
    let run = |host: &str, database: &str, sql: &str| {
        let mut connection = servers.connect(host, "superuser-password", database);
        let statements = sql.split_inclusive(';').filter(|statement| !statement.trim().is_empty());
        statements.for_each(|statement| connection.batch_execute(statement).unwrap());
    };
    for host in StrictServers::HOSTS {
        let (before, after) = on_every_node.split_once("\\connect intake").unwrap();
        run(host, "postgres", before);
        run(host, "intake", after);
    }
    let [coordinator, ..] = StrictServers::HOSTS;
    run(coordinator, "intake", on_the_coordinator);
    let url = |user: &str| -> DatabaseUrl {
        let at = format!("@{coordinator}:{}/intake", StrictServers::PORT);
        format!("postgres://{user}{at}").parse().unwrap()
    };
    let (owner, role) = (url("clinic:owner-password"), url("intake_service:service-password"));
    let there = || program().database_urls(&role, &owner);
    for command in commands.lines() {
        let arguments = command.strip_prefix("intake ").unwrap().split(' ');
        let done = arguments.fold(there(), ServiceBuilder::argument).run();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let clinic = Clinic::open(&role, Environment::Development);
    let (_, key) = clinic.key();
    assert_eq!(there().start().create(&key, &patient()).status, 201);

    // What would lose patients is refused, even to the owner.
    let mut owner = servers.connect(coordinator, "superuser-password", "intake");
    owner.batch_execute("SET ROLE clinic").unwrap();
    for call in ["undistribute_table('patients')", "alter_distributed_table('patients', shard_count => 8)"] {
        let refused = owner.batch_execute(&format!("SELECT {call}")).unwrap_err().to_string();
        assert!(refused.contains("permission denied for function"), "{call}: {refused}");
    }

    // What is missing is named.
    for host in StrictServers::HOSTS {
        run(host, "intake", "DELETE FROM pg_dist_authinfo WHERE rolename = 'intake_service'");
    }
    let line = complaint(there().argument("organisation").argument("create").argument("--name").argument("Second"));
    assert!(line.contains("no password supplied") && line.contains("pg_dist_authinfo"), "{line}");
}
