//! A follower of the register, or of its audit log, ends at once when the right to read it has ended, and a later one
//! goes on without a loss.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use diesel::connection::SimpleConnection;
use intake_test_support::{patient, wait_for, wait_for_end};

use crate::commands::audit::Follower;
use crate::commands::export::{Following, export, given, id_of};
use crate::commands::organisations::done;
use crate::commands::readers::ReaderRole;
use crate::fixtures::{TestApp, program};

#[test]
fn a_follower_ends_with_its_right_and_goes_on_with_it() {
    let app = TestApp::start();
    let (organisation, other) = (app.clinic.organisation, app.other_clinic().organisation.to_string());
    let reader = ReaderRole::make(&app.database, "feed", Some(organisation));
    let mut token = None;
    for is_dropped in [false, true] {
        let since: Vec<_> = token.iter().flat_map(|token: &String| ["--since", token]).collect();
        let following = Following::start_as(&reader.url, organisation, &[&["--follow"], &*since].concat());
        let created = id_of(&app, &patient());
        assert_eq!(following.next_id(), created);
        if is_dropped {
            reader.drop_grants();
        } else {
            let _ = reader.grant(&["--organisation", &other]);
        }
        let (last, complaint) = following.end();
        for part in ["this role may not read its patients: ", "intake migrate --reader-role"] {
            assert!(complaint.contains(part), "{complaint}");
        }
        let meanwhile = id_of(&app, &patient());
        let _ = reader.grant(&["--organisation", &organisation.to_string()]);
        let as_reader = program().database_urls(&reader.url, &reader.url);
        let found = given(export(as_reader, organisation, &["--format", "jsonl", "--since", &last]));
        assert_eq!(found.ids(), [meanwhile], "nothing is lost, and nothing comes twice");
        token = Some(found.token);
    }
}

/// The views would show nothing, and what they did not show would never be given out.
#[test]
fn a_right_that_ends_and_comes_back_during_an_export_loses_no_patient() {
    let app = TestApp::on_one_server(|builder| builder);
    let organisation = app.clinic.organisation.to_string();
    let reader = ReaderRole::make(&app.database, "feed", Some(app.clinic.organisation));
    let mut owner = app.database.connect();
    // Two pages, the first of which does not fit into a pipe.
    let insert = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at, updated_at)
         SELECT '{organisation}', gen_random_uuid(), repeat('x', 200), 'y', '+61491570006', '1985-12-10', now(), now()
         FROM generate_series(1, 1500)"
    );
    owner.batch_execute(&insert).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
    command.args(["export", "--format", "jsonl", "--organisation", &organisation]);
    command.env("DATABASE_URL", reader.url.expose()).env("INTAKE_DURABILITY", "none");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    output.next().unwrap().unwrap();
    let other = app.other_clinic().organisation.to_string();
    let limit =
        |to: &str| app.database.connect().batch_execute(&format!("UPDATE readers SET organisation_id = '{to}'"));
    limit(&other).unwrap();
    // Erasures come after the patients.
    owner.batch_execute("BEGIN; LOCK TABLE erasures IN ACCESS EXCLUSIVE MODE").unwrap();
    let reading = std::thread::spawn(move || output.map_while(Result::ok).count());
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
    wait_for("the end of the patients", || child.try_wait().unwrap().is_some() || app.database.count(waits) > 0);
    limit(&organisation).unwrap();
    owner.batch_execute("ROLLBACK").unwrap();
    let status = wait_for_end(&mut child);
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    let read = reading.join().unwrap() + 1;
    assert!(status.code() == Some(1) && read < 1_500, "{read}: {said}");
    assert!(said.contains("this role may not read its patients") && !said.contains("next: "), "{said}");
}

#[test]
fn a_follower_of_the_audit_log_ends_with_its_right() {
    let app = TestApp::start();
    let role = ReaderRole::make_powerless(&app.database, "siem");
    role.become_service();
    let organisation = app.clinic.organisation.to_string();
    let _ = done(&app, &["organisation", "rename", &organisation, "--name", "Renamed"]);
    let mut follower = Follower::start_as(&app, &role.url, &[]);
    let _ = follower.next();
    role.drop_grants();
    let complaint = follower.end();
    for part in ["this role may not read the audit log", "intake migrate --service-role"] {
        assert!(complaint.contains(part), "{complaint}");
    }
}
