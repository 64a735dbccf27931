//! `intake audit`: the whole record, for people and for programs, as it grows.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_test_support::processes::send as signal;
use intake_test_support::wait_for_end;
use serde_json::Value;

use crate::commands::organisations::run;
use crate::fixtures::TestApp;

#[test]
fn the_audit_log_is_printed_filtered_and_followed() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let other = app.other_clinic().organisation.to_string();
    let rename = |organisation: &str, name: &str, reason: &str| {
        let output =
            run(&app, &["organisation", "rename", organisation, "--name", name, "--as", "Ada", "--reason", reason]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    rename(&id, "One", "first");
    rename(&other, "Two", "second");
    let entries = |more: &[&str]| -> Vec<Value> {
        let output = run(&app, &[&["audit", "--json"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let all = entries(&[]);
    assert!(all.is_sorted_by_key(|entry| entry["at"].as_str().map(str::to_owned)));
    let of_one = entries(&["--organisation", &id]);
    let last = of_one.last().unwrap();
    assert_eq!((&last["action"], &last["reason"]), (&"organisation_renamed".into(), &"first".into()));
    assert_eq!((&last["actor"]["kind"], &last["actor"]["name"]), (&"operator".into(), &"Ada".into()));
    assert!(of_one.iter().all(|entry| entry["organisationId"] == id.as_str()));
    assert!(entries(&["--since", "2999-01-01"]).is_empty());
    let text = String::from_utf8(run(&app, &["audit"]).stdout).unwrap();
    assert!(
        text.lines().last().unwrap().ends_with("organisation_renamed  Test Clinic → Two  by operator Ada: second"),
        "{text}"
    );

    let mut follower = Follower::start(&app, &["--organisation", &id]);
    for expected in &of_one {
        assert_eq!(follower.next()["id"], expected["id"]);
    }
    // One that began before what was printed already, and ends after it.
    let mut late = app.database.connect();
    late.batch_execute(&format!("BEGIN; {}", insert(&id, "late", "clock_timestamp()"))).unwrap();
    rename(&id, "Three", "third");
    assert_eq!(follower.next()["reason"], "third");
    late.batch_execute("COMMIT").unwrap();
    assert_eq!(follower.next()["action"], "late");
    signal("TERM", &follower.child.id().to_string());
    assert!(follower.child.wait().unwrap().success());
}

#[test]
fn a_follower_prints_each_entry_once_whatever_the_clock_of_the_database_did() {
    let app = TestApp::start();
    let (id, other) = (app.clinic.organisation.to_string(), app.other_clinic().organisation.to_string());
    let mut owner = app.database.connect();
    let shared = "INSERT INTO audit_entries (organisation_id, id, action, subject)
        SELECT organisation_id, '00000000-0000-7000-8000-000000000000', 'of_both', ''
        FROM unnest(ARRAY";
    owner.batch_execute(&format!("{shared}['{id}', '{other}']::uuid[]) AS organisation_id")).unwrap();
    let mut follower = Follower::start(&app, &[]);
    let before = app.database.count("audit_entries");
    let printed: Vec<Value> = (0..before).map(|_| follower.next()).collect();
    assert_eq!(printed.iter().filter(|entry| entry["action"] == "of_both").count(), 2, "one in each organisation");
    // What a clock leaves that is ahead for one entry, right again, and then set back.
    for offset in ["11 hours", "0", "-10 minutes", "-2 hours", "1 year", "-3 days", "-1 year", "0"] {
        let at = format!("clock_timestamp() + interval '{offset}'");
        owner.batch_execute(&insert(&id, offset, &at)).unwrap();
        assert_eq!(follower.next()["action"], offset);
    }
    // In between the follower looked several times.
    std::thread::sleep(Duration::from_secs(3));
    owner.batch_execute(&insert(&id, "last", "clock_timestamp()")).unwrap();
    assert_eq!(follower.next()["action"], "last", "nothing is printed twice");
}

#[test]
fn a_follower_ends_on_a_database_that_lacks_what_was_printed() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let mut follower = Follower::start(&app, &[]);
    let mut owner = app.database.connect();
    owner.batch_execute(&insert(&id, "lost", "clock_timestamp()")).unwrap();
    while follower.next()["action"] != "lost" {}
    std::thread::sleep(Duration::from_secs(3));
    assert!(follower.child.try_wait().unwrap().is_none(), "it goes on");
    // A restore takes away what came last, and gives its number to another entry.
    let restored = "UPDATE audit_entries SET id = gen_random_uuid(), action = 'other' WHERE action = 'lost'";
    owner.batch_execute(restored).unwrap();
    assert_eq!(wait_for_end(&mut follower.child).code(), Some(1));
    let mut complaint = String::new();
    follower.child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert!(complaint.contains("Start again with --since"), "{complaint}");
}

fn insert(organisation: &str, action: &str, at: &str) -> String {
    format!(
        "INSERT INTO audit_entries (organisation_id, id, action, subject, at)
         VALUES ('{organisation}', gen_random_uuid(), '{action}', 'Clinic', {at})"
    )
}

/// `intake audit --follow`, as it prints.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(app: &TestApp, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["audit", "--json", "--follow"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("DATABASE_URL", app.database.service.expose()).env("INTAKE_DURABILITY", "none");
        command.env("INTAKE_MIGRATION_DATABASE_URL", app.database.owner.expose());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || printed.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(Duration::from_secs(30)).unwrap()).unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
