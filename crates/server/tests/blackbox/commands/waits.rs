//! No command waits without a word: it names who holds the table that it needs, and how to end that.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_test_support::processes::send as signal;
use intake_test_support::{Clinic, HeldRow, ServiceBuilder, TestDatabase, patient, wait_for_end};

use crate::fixtures::{TestApp, service};

/// Capacity of a pipe of Linux.
const PIPE_SIZE: usize = 65_536;

/// Runs the command while another program holds the table, and gives what it complains of.
fn complaint_while_held(table: &str, command: &str) -> String {
    let database = TestDatabase::on_one_server();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let organisation = clinic.organisation.to_string();
    HeldRow::insert(&database.owner, clinic.organisation, "held", &patient()).unwrap().commit().unwrap();
    let id = &database.texts("SELECT id::text FROM patients")[0];
    let key = clinic.key().0.to_string();
    let mut holder = database.connect();
    let hold = format!("SET application_name = 'a repair'; BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
    holder.batch_execute(&hold).unwrap();
    let words = command.split(' ').map(|word| match word {
        "ORGANISATION" => &organisation,
        "PATIENT" => id,
        "KEY" => &key,
        word => word,
    });
    let output = words.fold(service(&database), ServiceBuilder::argument).run();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{table}, {command}: {said}");
    said
}

#[test]
fn a_command_names_what_it_waited_for() {
    let commands = [
        ("patients", "restored"),
        ("audit_entries", "restored"),
        ("organisations", "restored"),
        ("environment_stamp", "restored"),
        ("api_keys", "restored --revoke-keys"),
        ("organisations", "organisation erase ORGANISATION"),
        ("__diesel_schema_migrations", "migrate"),
        ("__diesel_schema_migrations", "migrate --check"),
        ("audit_entries", "patient show --organisation ORGANISATION --patient PATIENT"),
        ("api_keys", "key revoke KEY"),
        ("api_keys", "key pause KEY"),
        ("api_keys", "key networks KEY --allow 203.0.113.7"),
        ("organisations", "organisation suspend ORGANISATION"),
        ("organisations", "organisation close ORGANISATION"),
        ("invitations", "member invite --organisation ORGANISATION --email ada@clinic.example"),
    ];
    std::thread::scope(|scope| {
        let run = |(table, command)| scope.spawn(move || (table, command, complaint_while_held(table, command)));
        for running in commands.map(run) {
            let (table, command, said) = running.join().unwrap();
            let is_named = said.contains("pg_terminate_backend(") && said.contains("\"a repair\"");
            assert!(is_named, "{table}, {command}: {said}");
        }
    });
}

/// The head of the queue, not the commands that wait behind it.
#[test]
fn a_command_that_waits_in_a_queue_names_its_head() {
    let app = TestApp::on_one_server(|builder| builder);
    let key = app.clinic.key().0.to_string();
    let mut holder = app.database.connect();
    let hold = format!("SET application_name = 'a repair'; BEGIN; UPDATE api_keys SET note = note WHERE id = '{key}'");
    holder.batch_execute(&hold).unwrap();
    std::thread::scope(|scope| {
        let pause = || service(&app.database).argument("key").argument("pause").argument(&key).run();
        let all = [(); 3].map(|()| scope.spawn(pause));
        for output in all.map(|running| running.join().unwrap()) {
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
            let named = (said.matches("pg_terminate_backend(").count(), said.contains("\"a repair\""));
            assert_eq!(named, (1, true), "{said}");
        }
    });
    holder.batch_execute("ROLLBACK").unwrap();
    assert_eq!(app.database.count("api_keys WHERE paused_at IS NOT NULL"), 0);
}

#[test]
fn a_change_that_a_page_has_refused_because_of_a_lock_is_not_made_later() {
    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_DEADLINE", "3s"));
    let member = app.member("ada@clinic.example");
    let key = app.clinic.key().0.to_string();
    let path = |change: &str| format!("/settings/api-keys/{key}/{change}");
    assert_eq!(member.confirm(&path("pause")).status, 303);
    let mut holder = app.database.connect();
    let hold = format!("SET application_name = 'a repair'; BEGIN; UPDATE api_keys SET note = note WHERE id = '{key}'");
    holder.batch_execute(&hold).unwrap();
    for change in ["resume", "revoke"] {
        let refused = member.confirm(&path(change));
        let text = refused.text();
        assert_eq!(refused.status, 503, "{change}: {text}");
        for part in ["nothing was changed", "a repair", "pg_terminate_backend("] {
            assert!(text.contains(part), "{change}, {part}: {text}");
        }
    }
    holder.batch_execute("COMMIT").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(app.database.count("api_keys WHERE paused_at IS NOT NULL AND revoked_at IS NULL"), 1);
    assert_eq!(app.database.count("api_keys WHERE suspended_at IS NOT NULL"), 0);
    assert_eq!(member.confirm(&path("resume")).status, 303);
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
