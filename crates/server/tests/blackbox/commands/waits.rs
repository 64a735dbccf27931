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

/// What a pipe of Linux holds.
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

#[test]
fn a_command_does_not_wait_for_a_statement_that_it_has_given_up() {
    let said = complaint_while_held("api_keys", "key revoke KEY");
    assert!(said.contains("a statement hangs in the database"), "{said}");
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
