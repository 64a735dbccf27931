//! `intake audit`: the whole record, for people and for programs, as it grows.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use intake_test_support::processes::send as signal;
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

    let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
    command.args(["audit", "--json", "--follow", "--organisation", &id]).stdout(Stdio::piped());
    command.env("DATABASE_URL", app.database.service.expose()).env("INTAKE_DURABILITY", "none");
    command.env("INTAKE_MIGRATION_DATABASE_URL", app.database.owner.expose());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    for expected in &of_one {
        assert_eq!(next()["id"], expected["id"]);
    }
    // One that began before what was printed already, and ends after it.
    let mut late = app.database.connect();
    let insert = format!(
        "BEGIN; INSERT INTO audit_entries (organisation_id, id, action, subject)
         VALUES ('{id}', gen_random_uuid(), 'late', 'Clinic')"
    );
    diesel::connection::SimpleConnection::batch_execute(&mut late, &insert).unwrap();
    rename(&id, "Three", "third");
    assert_eq!(next()["reason"], "third");
    diesel::connection::SimpleConnection::batch_execute(&mut late, "COMMIT").unwrap();
    assert_eq!(next()["action"], "late");
    signal("TERM", &child.id().to_string());
    assert!(child.wait().unwrap().success());
}
