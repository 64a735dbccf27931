//! `intake audit`: the whole record, for people and for programs, as it grows.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_infra::{DatabaseUrl, Durability};
use intake_test_support::processes::{peak_memory, send as signal};
use intake_test_support::{Clinic, TestDatabase, wait_for_end};
use serde_json::Value;

use crate::commands::organisations::{done, recorded, refused, run};
use crate::fixtures::{TestApp, program};

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
    // A transaction that began before the printed entries and commits after them.
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
fn entries_are_selected_by_time_key_person_and_action_and_counted_from_the_newest() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let (key, _) = app.clinic.key();
    app.clinic.revoke(key);
    let rename = |name: &str| done(&app, &["organisation", "rename", &id, "--name", name, "--as", "Ada Lovelace"]);
    rename("One");
    rename("Two");
    let entries = |more: &[&str]| {
        let found = done(&app, &[&["audit"], more].concat());
        found.as_array().unwrap().clone()
    };
    let subjects = |more: &[&str]| -> Vec<String> {
        entries(more).iter().map(|entry| entry["subject"].as_str().unwrap().to_owned()).collect()
    };
    let renamed = ["Test Clinic → One", "One → Two"];
    assert_eq!(subjects(&["--member", "lovelace"]), renamed);
    assert_eq!(subjects(&["--action", "organisation_renamed"]), renamed);
    let actions = |more: &[&str]| -> Vec<String> {
        entries(more).iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(actions(&["--key", &key.to_string()]), ["key_created", "key_revoked"]);
    assert_eq!(
        actions(&["--action", "key_revoked", "--action", "organisation_renamed"]),
        ["key_revoked", "organisation_renamed", "organisation_renamed"]
    );
    let all = entries(&[]);
    assert_eq!(entries(&["--limit", "2"]), all[all.len() - 2..]);
    assert_eq!(entries(&["--limit", "1000"]), all);
    assert_eq!(subjects(&["--member", "Ada", "--limit", "1"]), renamed[1..]);
    let last = all.last().unwrap()["at"].as_str().unwrap();
    assert_eq!(entries(&["--until", last]), all[..all.len() - 1]);
    assert_eq!(entries(&["--since", last]), all[all.len() - 1..]);

    let nobody = uuid::Uuid::from_u128(7).to_string();
    for more in [&["--organisation", &nobody][..], &["--follow", "--organisation", &nobody]] {
        let said = refused(&app, &[&["audit"], more].concat());
        assert!(said.contains(&format!("there is no organisation {nobody}")), "{said}");
    }
    assert!(refused(&app, &["audit", "--key", &nobody]).contains(&format!("there is no key {nobody}")));
    for (arguments, part) in [
        (&["audit", "--action", "key_lent"][..], "key_revoked"),
        (&["audit", "--follow", "--limit", "1"], "--limit"),
        (&["audit", "--state", "file", "--since", "2026-01-01"], "--since"),
    ] {
        let output = run(&app, arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_command_names_its_operator_and_in_production_says_if_it_cannot() {
    let database = TestDatabase::new();
    let clinic = Clinic::open(&database.service, Environment::Production).organisation.to_string();
    let rename = |name: &str, environment: &str, variables: &[(&str, &str)], more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["organisation", "rename", &clinic, "--name", name]).args(more);
        command.env_remove("USER").env_remove("SUDO_USER").env("INTAKE_DURABILITY", "none").envs(variables.to_vec());
        command.env("INTAKE_MIGRATION_DATABASE_URL", database.owner.expose());
        command.env("DATABASE_URL", database.service.expose()).env("INTAKE_ENVIRONMENT", environment);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let newest = "SELECT coalesce(operator, '') FROM audit_entries ORDER BY at DESC LIMIT 1";
        (output.status.code(), said, database.texts(newest).remove(0))
    };
    let by = |name: &str| (Some(0), String::new(), name.to_owned());
    let (user, operator) = (("USER", "root"), ("INTAKE_OPERATOR", "Grace"));
    assert_eq!(rename("1", "production", &[user], &[]), by("root"));
    assert_eq!(rename("2", "production", &[user, operator], &[]), by("Grace"));
    assert_eq!(rename("3", "production", &[user, operator], &["--as", "Ada"]), by("Ada"));
    let (code, said, name) = rename("4", "production", &[], &[]);
    assert_eq!((code, name.as_str(), said.lines().count()), (Some(0), "", 1), "{said}");
    assert!(said.contains("--as NAME or INTAKE_OPERATOR"), "{said}");
    let (code, said, _) = rename(" ", "production", &[], &[]);
    assert_eq!((code, said.lines().count()), (Some(1), 1), "an error is one line: {said}");
    let (code, said, _) = rename("5", "production", &[("INTAKE_OPERATOR", "a\nb")], &[]);
    assert!(code == Some(1) && said.contains("INTAKE_OPERATOR is wrong"), "{said}");
}

#[test]
fn migrating_and_restoring_are_in_the_log_of_each_organisation() {
    let app = TestApp::start();
    app.other_clinic();
    let newest = "DELETE FROM __diesel_schema_migrations WHERE version = '20261126190000';
        ALTER TABLE audit_entries DROP COLUMN role";
    app.database.connect().batch_execute(newest).unwrap();
    let owner = |arguments: &[&str]| {
        let owner = app.database.owner.clone().with_durability(Durability::None);
        let output = arguments.iter().fold(program().database_urls(&owner, &owner), |all, one| all.argument(one)).run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let both = [""; 2];
    owner(&["migrate", "--check"]);
    assert!(recorded(&app, "register_migrated").is_empty());
    owner(&["migrate", "--as", "Ada", "--reason", "upgrade"]);
    assert_eq!(recorded(&app, "register_migrated"), both.map(|_| "20261126190000|Ada|upgrade"));
    owner(&["migrate", "--as", "Ada"]);
    assert_eq!(recorded(&app, "register_migrated").len(), 2, "nothing was applied");

    let at = app.database.texts("SELECT max(recorded_in)::text FROM audit_entries").remove(0);
    owner(&["restored", "--dry-run"]);
    assert!(recorded(&app, "register_restored").is_empty());
    owner(&["restored", "--as", "Grace"]);
    let found = recorded(&app, "register_restored");
    assert!(found.len() == 2 && found.iter().all(|entry| entry.ends_with("Z|Grace")), "{found:?}");
    let later = format!("audit_entries WHERE action = 'register_restored' AND recorded_in > {at}");
    assert_eq!(app.database.count(&later), 2, "their numbers are above all that were there");
}

#[test]
fn a_long_log_takes_no_more_memory_than_a_short_one() {
    const MEMORY_MAX: u64 = 64 << 20;
    let app = TestApp::start();
    let fill = format!(
        "INSERT INTO audit_entries (organisation_id, id, action, subject)
         SELECT '{}', gen_random_uuid(), 'key_noted', repeat('x', 100) FROM generate_series(1, 60000)",
        app.clinic.organisation
    );
    app.database.connect().batch_execute(&fill).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
    command.args(["audit", "--json"]).env("DATABASE_URL", app.database.service.expose());
    let mut child = command.env("INTAKE_DURABILITY", "none").stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = child.stdout.take().unwrap();
    let mut text = vec![0; 20 << 20];
    printed.read_exact(&mut text).unwrap();
    // It has read ahead, and not ended: the pipe holds less than what is left.
    let most = peak_memory(child.id()).unwrap();
    assert!(most < MEMORY_MAX, "{} MiB", most >> 20);
    printed.read_to_end(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let entries: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert_eq!(entries.len() as i64, app.database.count("audit_entries"));
}

#[test]
fn a_state_file_prints_each_entry_once_and_all_of_a_database_that_was_replaced() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let audit = || run(&app, &["audit", "--json", "--state", state.to_str().unwrap()]);
    let ids = || -> BTreeSet<String> {
        let output = audit();
        let (printed, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{said}");
        let entries = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids();
    assert_eq!((all.len() as i64, ids().len()), (app.database.count("audit_entries"), 0));
    // One that ends after the run which did not see it, and one whose clock is wrong.
    let (mut late, mut owner) = (app.database.connect(), app.database.connect());
    late.batch_execute(&format!("BEGIN; {}", insert(&id, "late", "clock_timestamp()"))).unwrap();
    owner.batch_execute(&insert(&id, "ahead", "clock_timestamp() + interval '1 year'")).unwrap();
    assert_eq!(ids().len(), 1);
    late.batch_execute("COMMIT").unwrap();
    assert_eq!((ids().len(), ids().len()), (1, 0));

    owner.batch_execute("UPDATE audit_entries SET id = gen_random_uuid() WHERE action = 'ahead'").unwrap();
    let output = audit();
    assert!(String::from_utf8(output.stderr).unwrap().contains("all entries are printed again"));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), all.len() + 2);
    assert!(ids().is_empty());
    fs::write(&state, "{}}").unwrap();
    assert!(refused(&app, &["audit", "--state", state.to_str().unwrap()]).contains("--state"));
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
    let complaint = follower.end();
    assert!(complaint.contains("Start again with --since"), "{complaint}");
}

fn insert(organisation: &str, action: &str, at: &str) -> String {
    format!(
        "INSERT INTO audit_entries (organisation_id, id, action, subject, at)
         VALUES ('{organisation}', gen_random_uuid(), '{action}', 'Clinic', {at})"
    )
}

/// `intake audit --follow`, as it prints.
pub(crate) struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(app: &TestApp, more: &[&str]) -> Self {
        Self::start_as(app, &app.database.service, more)
    }

    pub(crate) fn start_as(app: &TestApp, role: &DatabaseUrl, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["audit", "--json", "--follow"]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("DATABASE_URL", role.expose()).env("INTAKE_DURABILITY", "none");
        command.env("INTAKE_MIGRATION_DATABASE_URL", app.database.owner.expose());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || printed.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(Duration::from_secs(30)).unwrap()).unwrap()
    }

    /// Waits until it has ended by itself, with one line.
    #[track_caller]
    pub(crate) fn end(&mut self) -> String {
        assert_eq!(wait_for_end(&mut self.child).code(), Some(1));
        let complaint = std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap();
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        complaint
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
