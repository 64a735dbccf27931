//! No command waits without a word: it names who holds the lock that it needs, and how to end that, and what it did not
//! do is not done later. On a cluster the holder may come in through another node than the command.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;
use intake_test_support::processes::send as signal;
use intake_test_support::{Clinic, HeldRow, ServiceBuilder, TestDatabase, patient, wait_for_end};

use crate::fixtures::{TestApp, between, service, wait_until_idle};

/// Capacity of a pipe of Linux.
const PIPE_SIZE: usize = 65_536;

/// Runs the command while another program holds the lock, and gives what it complains of. It must change nothing, also
/// not once the lock is free.
fn complaint_while_held(database: &TestDatabase, mut holder: PgConnection, lock: &str, command: &str) -> String {
    let clinic = Clinic::open(&database.service, Environment::Development);
    let organisation = clinic.organisation.to_string();
    HeldRow::insert(&database.owner, clinic.organisation, "held", &patient()).unwrap().commit().unwrap();
    let id = &database.texts("SELECT id::text FROM patients")[0];
    let [key, paused] = [(); 2].map(|()| clinic.key().0.to_string());
    let closed = Clinic::open(&database.service, Environment::Development).organisation.to_string();
    let pause = format!("UPDATE api_keys SET paused_at = now() WHERE id = '{paused}'");
    let close = format!("UPDATE organisations SET closed_at = now() WHERE id = '{closed}'");
    // Each in a transaction of its own: Citus refuses both in one.
    [pause, close].iter().for_each(|change| holder.batch_execute(change).unwrap());
    let before = changeable(database);
    let hold = format!("SET application_name = 'a repair'; BEGIN; LOCK TABLE {lock}");
    holder.batch_execute(&hold).unwrap();
    let words = command.split(' ').map(|word| match word {
        "ORGANISATION" => &organisation,
        "CLOSED" => &closed,
        "PATIENT" => id,
        "KEY" => &key,
        "PAUSED" => &paused,
        word => word,
    });
    let output = words.fold(service(database), ServiceBuilder::argument).run();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{lock}, {command}: {said}");
    holder.batch_execute("ROLLBACK").unwrap();
    wait_until_idle(database);
    assert_eq!(changeable(database), before, "{lock}, {command}");
    said
}

/// The tables that commands and pages change.
const CHANGEABLE: [&str; 11] = [
    "organisations",
    "api_keys",
    "members",
    "memberships",
    "invitations",
    "sessions",
    "passkeys",
    "recovery_codes",
    "password_resets",
    "email_changes",
    "audit_entries",
];

/// Their rows, apart from the time at which a session was last used.
pub(crate) fn changeable(database: &TestDatabase) -> Vec<String> {
    let rows = |table: &&str| {
        database.texts(&format!("SELECT (to_jsonb(held) - 'last_used_at')::text FROM {table} AS held ORDER BY 1"))
    };
    CHANGEABLE.iter().flat_map(rows).collect()
}

/// A transaction that has done everything but its entry in the audit log waits for this one.
const ENTRIES: &str = "audit_entries IN SHARE MODE";

/// On a cluster, where a key is made beside its patients, a table of its own.
const STATES: &str = "organisation_states";

/// A patient whom a restore has lost, and who may have been sent again since.
const ERASE_LOST: &str = "patient erase --organisation ORGANISATION --patient 0198c5a0-0000-7000-8000-000000000000 \
    --idempotency-digest e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const COMMANDS: [(&str, &str); 40] = [
    ("patients", "restored"),
    ("audit_entries", "restored"),
    ("organisations", "restored"),
    ("environment_stamp", "restored"),
    ("api_keys", "restored --revoke-keys"),
    ("organisations", "organisation create --name Front"),
    (ENTRIES, "organisation create --name Front"),
    ("organisations", "organisation rename ORGANISATION --name Front"),
    (ENTRIES, "organisation rename ORGANISATION --name Front"),
    ("organisations", "organisation suspend ORGANISATION"),
    ("organisations", "organisation close ORGANISATION"),
    ("organisations", "organisation erase ORGANISATION"),
    ("patients", "organisation erase CLOSED"),
    ("organisations", "organisation resume ORGANISATION"),
    ("organisations", "organisation time-zone --zone Australia/Sydney ORGANISATION"),
    ("patients", ERASE_LOST),
    ("__diesel_schema_migrations", "migrate"),
    ("__diesel_schema_migrations", "migrate --check"),
    ("audit_entries", "patient show --organisation ORGANISATION --patient PATIENT"),
    (STATES, "key create --organisation ORGANISATION --name Front"),
    (ENTRIES, "key create --organisation ORGANISATION --name Front"),
    ("api_keys", "key replace KEY"),
    (ENTRIES, "key replace KEY"),
    (ENTRIES, "key replace KEY --leaked"),
    ("api_keys", "key revoke KEY"),
    ("api_keys", "key pause KEY"),
    ("api_keys", "key resume PAUSED"),
    (ENTRIES, "key resume PAUSED"),
    ("api_keys", "key networks KEY --allow 203.0.113.7"),
    ("api_keys", "key contact KEY --set Acme"),
    ("api_keys", "key clear-sent-in-clear KEY"),
    ("api_keys", "key pause --all ORGANISATION"),
    ("api_keys", "key resume --all ORGANISATION"),
    ("memberships", "member remove --organisation ORGANISATION --email ada@clinic.example"),
    ("memberships", "member change-role --role auditor --organisation ORGANISATION --email ada@clinic.example"),
    ("invitations", "member withdraw-invitation --organisation ORGANISATION --email ada@clinic.example"),
    ("members", "member reset-password --organisation ORGANISATION --email ada@clinic.example"),
    ("members", "member reset-second-factor --organisation ORGANISATION --email ada@clinic.example"),
    ("members", "member link --organisation ORGANISATION --email ada@clinic.example"),
    ("invitations", "member invite --organisation ORGANISATION --email ada@clinic.example"),
];

/// Commands that wait side by side. Each looks over another connection at what it waits for, within three seconds.
const AT_ONCE: usize = 7;
const TRIES: usize = 3;

#[test]
fn a_command_names_what_it_waited_for() {
    std::thread::scope(|scope| {
        let run = |&(lock, command)| {
            scope.spawn(move || {
                let said = repeated_complaint(TestDatabase::on_one_server, TestDatabase::connect, lock, command);
                (lock, command, said)
            })
        };
        for some in COMMANDS.chunks(AT_ONCE) {
            for running in some.iter().map(run).collect::<Vec<_>>() {
                let (lock, command, said) = running.join().unwrap();
                assert_is_named(&said, &format!("{lock}, {command}"));
            }
        }
    });
}

/// The last complaint: on a busy machine nobody may have looked in time.
fn repeated_complaint(
    make: fn() -> TestDatabase,
    hold: impl Fn(&TestDatabase) -> PgConnection,
    lock: &str,
    command: &str,
) -> String {
    let complain = |_| {
        let database = make();
        complaint_while_held(&database, hold(&database), lock, command)
    };
    let first = (1..TRIES).map(complain).find(|said| is_named(said));
    first.unwrap_or_else(|| complain(TRIES))
}

#[track_caller]
fn assert_is_named(said: &str, what: &str) {
    assert!(is_named(said), "{what}: {said}");
}

pub(crate) fn is_named(said: &str) -> bool {
    said.contains("pg_terminate_backend(") && said.contains("\"a repair\"")
}

/// A session of the owner that comes in through this node.
pub(crate) fn session_on(database: &TestDatabase, node: usize) -> PgConnection {
    PgConnection::establish(database.citus().owner_at(node, database.name()).expose()).unwrap()
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_command_names_what_it_waited_for_on_another_node() {
    for (lock, command) in COMMANDS {
        let said = repeated_complaint(TestDatabase::new, |database| session_on(database, 2), lock, command);
        assert_is_named(&said, &format!("{lock}, {command}"));
    }
}

/// Runs commands that wait for the key that this session holds.
fn wait_in_a_queue(app: &TestApp, mut holder: PgConnection) {
    let key = app.clinic.key().0.to_string();
    let hold = format!("SET application_name = 'a repair'; BEGIN; UPDATE api_keys SET note = note WHERE id = '{key}'");
    holder.batch_execute(&hold).unwrap();
    let pause = || service(&app.database).argument("key").argument("pause").argument(&key).run();
    let said = std::thread::scope(|scope| {
        let all = [(); 3].map(|()| scope.spawn(pause));
        all.map(|running| {
            let output = running.join().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
            assert_is_named(&said, "a row");
            assert_eq!(said.matches("pg_terminate_backend(").count(), 1, "{said}");
            said
        })
    });
    assert_eq!(app.database.count("api_keys WHERE paused_at IS NOT NULL"), 0);
    // It says what works.
    let [said, ..] = said;
    app.database.connect().batch_execute(&format!("SELECT {}", between(&said, "with SELECT ", ";"))).unwrap();
    assert!(pause().status.success());
}

/// The head of the queue, not the commands that wait behind it.
#[test]
fn a_command_that_waits_in_a_queue_names_its_head() {
    let app = TestApp::on_one_server(|builder| builder);
    wait_in_a_queue(&app, app.database.connect());
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_command_that_waits_in_a_queue_names_its_head_on_whichever_node() {
    let app = TestApp::start();
    for node in 0..app.database.citus().nodes() {
        wait_in_a_queue(&app, session_on(&app.database, node));
        app.database.connect().batch_execute("UPDATE api_keys SET paused_at = NULL").unwrap();
    }
}

/// A program that reads the stream finds the tokens there, and may never look at what is said beside it.
#[test]
fn a_followed_export_does_not_wait_for_a_reader_of_its_messages() {
    let app = TestApp::start();
    let (_unread, mut messages) = std::io::pipe().unwrap();
    messages.write_all(&[b'\n'; PIPE_SIZE]).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
    command.args(["export", "--follow", "--format", "jsonl", "--organisation", &app.clinic.organisation.to_string()]);
    command.env("DATABASE_URL", app.database.owner.expose()).env("INTAKE_DURABILITY", "none");
    let mut child = command.stdout(Stdio::piped()).stderr(messages).spawn().unwrap();
    let (sender, lines) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    for _ in 0..3 {
        let created = app.create(&patient()).json()["data"]["id"].as_str().unwrap().to_owned();
        let is_it = |line: String| line.contains(&created);
        while !is_it(lines.recv_timeout(Duration::from_secs(60)).expect("the stream goes on")) {}
    }
    signal("TERM", &child.id().to_string());
    assert!(wait_for_end(&mut child).success());
}
