//! What operators do to a whole organisation: rename, suspend, resume, close and erase it, and who uses it.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_test_support::{Clinic, create_request, patient, request, wait_for};
use serde_json::{Value, json};

use crate::assert_unauthorised;
use crate::fixtures::{OverWhenDropped, Terminal, TestApp, between, program, service, time_of};

/// Runs a command of an operator.
pub(crate) fn run(app: &TestApp, arguments: &[&str]) -> Output {
    arguments.iter().fold(service(&app.database), |all, one| all.argument(one)).run()
}

#[track_caller]
pub(crate) fn done(app: &TestApp, arguments: &[&str]) -> Value {
    let output = run(app, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
pub(crate) fn refused(app: &TestApp, arguments: &[&str]) -> String {
    let output = run(app, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    said
}

pub(crate) fn recorded(app: &TestApp, action: &str) -> Vec<String> {
    let columns = "concat_ws('|', subject, operator, reason)";
    app.database.texts(&format!("SELECT {columns} FROM audit_entries WHERE action = '{action}' ORDER BY at"))
}

/// The id of the only key.
fn key_id(app: &TestApp) -> String {
    app.database.texts("SELECT id::text FROM api_keys").concat()
}

/// A command of an operator, who sits at a terminal.
fn at_terminal(app: &TestApp, arguments: &[&str]) -> Terminal {
    let mut program = Command::new(env!("CARGO_BIN_EXE_intake"));
    program.args(arguments).env("DATABASE_URL", app.database.service.expose()).env("INTAKE_DURABILITY", "none");
    program.env("INTAKE_MIGRATION_DATABASE_URL", app.database.owner.expose());
    Terminal::run(program)
}

#[test]
fn what_ends_for_good_is_shown_and_asked_about_at_a_terminal() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    drop(app.member("ada@clinic.example"));
    let created: Value = serde_json::from_slice(&app.create(&patient()).body).unwrap();
    let patient = created["data"]["id"].as_str().unwrap().to_owned();
    let erase_patient = ["patient", "erase", "--organisation", &id, "--patient", &patient];
    let (close, erase) = (["organisation", "close", &id], ["organisation", "erase", &id]);
    let closing = format!(
        "This closes the organisation Test Clinic ({id}) for good.\nMembers who are removed: 1\nKeys that are revoked: 1\n  Test key (…"
    );
    let erasing = format!("This erases 1 patients of the closed organisation Test Clinic ({id}) for good.");
    let (at, key) = (created["data"]["createdAt"].as_str().unwrap(), key_id(&app));
    let erasing_one = format!("This erases the patient {patient}, created {at} by the API key {key}, for good.");
    let kept = || (app.database.count("patients"), app.database.count("api_keys WHERE revoked_at IS NULL"));

    let dry = run(&app, &[&close[..], &["--dry-run"]].concat());
    let said = String::from_utf8(dry.stdout).unwrap();
    assert!(said.starts_with(&closing) && said.ends_with("\nNothing was changed.\n"), "{said}");
    let mut terminal = at_terminal(&app, &[&erase_patient[..], &["--dry-run"]].concat());
    terminal.read_until(Some(&format!("{erasing_one}\r\nNothing was changed.")));
    for (command, preview) in [(&erase_patient[..], &erasing_one), (&close, &closing)] {
        let mut terminal = at_terminal(&app, command);
        terminal.answer("Continue? [y/N] ", "\n");
        assert!(terminal.seen.replace('\r', "").starts_with(preview), "{}", terminal.seen);
        assert_eq!((terminal.complaint().as_str(), kept()), ("intake: nothing was changed", (1, 1)));
    }
    let mut terminal = at_terminal(&app, &close);
    terminal.answer("Continue? [y/N] ", "y\n");
    terminal.read_until(Some("Closed: "));
    assert_eq!(kept(), (1, 0));
    let invited = refused(&app, &["member", "invite", "--organisation", &id, "--email", "bob@clinic.example"]);
    assert!(invited.contains(&format!("the organisation {id} is closed")), "{invited}");

    let mut terminal = at_terminal(&app, &erase);
    terminal.answer("Continue? [y/N] ", "no\n");
    assert!(terminal.seen.contains(&erasing), "{}", terminal.seen);
    assert_eq!((terminal.complaint().as_str(), kept()), ("intake: nothing was changed", (1, 0)));
    let mut terminal = at_terminal(&app, &[&erase[..], &["--yes"]].concat());
    terminal.read_until(Some("Erased 1 patients for good."));
    assert_eq!(kept(), (0, 0));
}

#[test]
fn what_is_not_there_is_refused_before_the_question() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let nobody = "018f0000-0000-7000-8000-000000000000";
    let erase = |patient| ["patient", "erase", "--organisation", &id, "--patient", patient].map(str::to_owned);
    let close = |id: &str| ["organisation", "close", id].map(str::to_owned);
    let at_terminal = |command: &[String]| {
        let mut terminal = at_terminal(&app, &command.iter().map(String::as_str).collect::<Vec<_>>());
        // A no to any question.
        terminal.answer("", "\n");
        terminal
    };
    for (command, complaint) in [
        (erase(nobody).to_vec(), format!("intake: the organisation {id} has no patient {nobody}")),
        (close(nobody).to_vec(), format!("intake: there is no organisation {nobody}")),
    ] {
        assert_eq!(at_terminal(&command).complaint(), complaint);
    }
    let (sent, key) = (app.create(&patient()).json(), key_id(&app));
    let created = sent["data"]["id"].as_str().unwrap().to_owned();
    let dry = |command: &[&str]| done(&app, &[command, &["--dry-run"]].concat());
    let erasing = ["patient", "erase", "--organisation", &id, "--patient", &created];
    let stored = json!({ "id": created, "isStored": true, "createdAt": sent["data"]["createdAt"], "keyId": key, "sentAgainAs": null });
    assert_eq!(dry(&erasing), stored);
    let closing = json!({ "id": id, "name": "Test Clinic", "members": 0, "keys": [key] });
    assert_eq!(dry(&["organisation", "close", &id]), closing);
    assert_eq!(app.database.count("api_keys WHERE revoked_at IS NULL"), 1);
    assert!(run(&app, &["organisation", "close", &id]).status.success());
    assert_eq!(dry(&["organisation", "erase", &id]), json!({ "id": id, "name": "Test Clinic", "patients": 1 }));
    assert_eq!(app.database.count("patients"), 1);
    assert!(run(&app, &erasing).status.success());
    // Nothing is left to ask about.
    at_terminal(&erasing.map(str::to_owned)).read_until(Some("was already erased at"));
    at_terminal(&close(&id)).read_until(Some("Nothing to do: it is closed already"));
}

#[test]
fn while_an_organisation_is_suspended_every_key_is_refused_at_once_and_nothing_is_lost() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    let id = app.clinic.organisation.to_string();
    let other = app.other_clinic().key().1;
    let retry = [("Idempotency-Key", "once")];
    let first = app.service.create_with(app.key(), &retry, patient().to_string().as_bytes());
    assert_eq!(first.status, 201);

    let suspended = done(&app, &["organisation", "suspend", &id, "--as", "Ada", "--reason", "asked to by phone"]);
    assert_eq!(suspended["id"], id.as_str());
    assert!(suspended["suspendedAt"].is_string());
    for instance in [&app.service, &second] {
        let valid = instance.create(app.key(), &patient());
        assert_unauthorised(&valid);
        let challenge = valid.header("www-authenticate").unwrap();
        assert!(challenge.ends_with("error_description=\"The organisation is suspended\""), "{challenge}");
        assert_unauthorised(&instance.create_with(app.key(), &[], b"{}"));
        assert_unauthorised(&instance.create_with(app.key(), &retry, patient().to_string().as_bytes()));
        let body = patient().to_string();
        let validate = format!(
            "POST /api/v1/patients/validate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            app.key().expose(),
            body.len()
        );
        assert_unauthorised(&instance.client().send(validate.as_bytes()));
        assert_eq!(instance.create(&other, &patient()).status, 201, "another organisation goes on");
    }
    wait_for("the refusals", || app.database.count("key_refusals WHERE reason = 'suspended'") > 0);
    let keys = done(&app, &["key", "list", "--organisation", &id]);
    assert_eq!(keys[0]["revokedAt"], Value::Null);
    let listed = String::from_utf8(run(&app, &["key", "list", "--organisation", &id]).stdout).unwrap();
    assert!(listed.contains("suspended 20"), "{listed}");
    let message = refused(&app, &["key", "create", "--organisation", &id, "--name", "Another"]);
    let remedy = format!("{id} is suspended, so it gets no keys: `intake organisation resume {id}` comes first");
    assert!(message.contains(&remedy), "{message}");
    // Members sign in, see it, and make no key.
    let member = app.member("ada@clinic.example");
    let page = member.get("/settings/api-keys");
    assert!(page.text().contains("Suspended"), "{}", page.text());
    let key = between(&member.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let made = member.post("/settings/api-keys", &format!("id={key}&name=Mine"));
    assert_eq!(made.status, 409, "{}", made.text());
    assert!(made.text().contains("Your organisation is suspended"), "{}", made.text());

    let unchanged = run(&app, &["organisation", "suspend", &id]);
    assert!(unchanged.status.success() && String::from_utf8(unchanged.stdout).unwrap().contains("Nothing to do"));
    let resumed = done(&app, &["organisation", "resume", &id]);
    assert_eq!(resumed, json!({ "id": id, "name": "Test Clinic" }));
    let replayed = second.create_with(app.key(), &retry, patient().to_string().as_bytes());
    assert_eq!((replayed.status, replayed.text()), (201, first.text()));
    assert_eq!(recorded(&app, "organisation_suspended"), ["Test Clinic|Ada|asked to by phone"]);
    assert_eq!(recorded(&app, "organisation_resumed").len(), 1);
    assert!(
        refused(&app, &["organisation", "suspend", &uuid::Uuid::from_u128(7).to_string()]).contains("no organisation")
    );
}

#[test]
fn no_request_that_starts_after_a_suspension_creates_anything_under_load() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let second = service(&app.database).setting("INTAKE_RATE_LIMIT", "off").start();
    let id = app.clinic.organisation.to_string();
    let is_suspended = AtomicBool::new(false);
    let bytes = create_request(app.key(), &[], patient().to_string().as_bytes());
    std::thread::scope(|scope| {
        let suspended = OverWhenDropped(&is_suspended);
        for instance in [&app.service, &second] {
            for _ in 0..6 {
                let (client, bytes, is_suspended) = (instance.client(), &bytes, &is_suspended);
                scope.spawn(move || {
                    let mut connection = client.connect();
                    loop {
                        let must_fail = is_suspended.load(Ordering::SeqCst);
                        let status = connection.exchange(bytes).status;
                        assert!(status == 201 || status == 401, "{status}");
                        assert!(!(must_fail && status == 201), "created after the suspension");
                        if must_fail {
                            return;
                        }
                    }
                });
            }
        }
        wait_for("some patients", || app.patients() > 50);
        done(&app, &["organisation", "suspend", &id]);
        drop(suspended);
    });
}

#[test]
fn a_key_that_is_made_at_the_moment_of_a_suspension_is_refused() {
    let app = TestApp::on_one_server(|builder| builder);
    let id = app.clinic.organisation.to_string();
    let mut operator = app.database.connect();
    operator.batch_execute(&format!("BEGIN; UPDATE organisations SET suspended_at = now() WHERE id = '{id}'")).unwrap();
    std::thread::scope(|scope| {
        let making = scope.spawn(|| refused(&app, &["key", "create", "--organisation", &id, "--name", "Late"]));
        let waiting = "pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        wait_for("the key to wait", || app.database.count(waiting) > 0);
        operator.batch_execute("COMMIT").unwrap();
        assert!(making.join().unwrap().contains("is suspended, so it gets no keys"));
    });
    assert_eq!(app.database.count("api_keys WHERE name = 'Late'"), 0);
}

#[test]
fn a_closed_organisation_keeps_its_patients_until_they_are_erased() {
    let app = TestApp::on_one_server(|builder| builder);
    let id = app.clinic.organisation.to_string();
    let member = app.member("ada@clinic.example");
    app.invite("guest@clinic.example");
    let kept = app.service.create(&app.other_clinic().key().1, &patient());
    for _ in 0..3 {
        assert_eq!(app.create(&patient()).status, 201);
    }
    let export = |token: Option<&str>| {
        let owner = app.database.owner.clone().with_durability(intake_infra::Durability::None);
        let mut arguments = vec!["export", "--organisation", &id, "--format", "jsonl"];
        arguments.extend(token.iter().flat_map(|token| ["--since", token]));
        let output = arguments.iter().fold(program().database_urls(&owner, &owner), |all, one| all.argument(one)).run();
        let said = String::from_utf8(output.stderr).unwrap();
        let token = said.lines().last().unwrap().strip_prefix("next: ").unwrap().to_owned();
        (String::from_utf8(output.stdout).unwrap(), token)
    };
    let (patients, token) = export(None);
    assert_eq!(patients.lines().count(), 3);
    assert!(refused(&app, &["organisation", "erase", &id]).contains("is not closed"));

    let closed = done(&app, &["organisation", "close", &id, "--as", "Ada", "--reason", "ended"]);
    assert!(closed["closedAt"].is_string());
    let answer = app.create(&patient());
    assert_unauthorised(&answer);
    assert!(answer.header("www-authenticate").unwrap().contains("The API key was revoked"));
    assert_eq!(member.get("/settings/api-keys").status, 303, "signed out");
    let left = |table: &str| app.database.count(&format!("{table} WHERE organisation_id = '{id}'"));
    assert_eq!(["memberships", "invitations", "patients"].map(left), [0, 0, 3]);
    for arguments in [
        &["organisation", "resume", &id][..],
        &["organisation", "suspend", &id],
        &["member", "invite", "--organisation", &id, "--email", "a@clinic.example"],
    ] {
        refused(&app, arguments);
    }
    let message = refused(&app, &["key", "create", "--organisation", &id, "--name", "Another"]);
    assert!(message.contains("is closed, so it gets no keys\n"), "nothing helps: {message}");
    done(&app, &["organisation", "close", &id]);
    assert_eq!(recorded(&app, "organisation_closed"), ["Test Clinic|Ada|ended"]);

    assert_eq!(done(&app, &["organisation", "erase", &id]), json!({ "id": id, "erasedPatients": 3 }));
    assert_eq!(["patients", "erasures"].map(left), [0, 3]);
    assert_eq!((app.patients(), kept.status), (1, 201), "others keep theirs");
    let (erasures, _) = export(Some(&token));
    assert_eq!(erasures.lines().filter(|line| line.contains("erasedAt")).count(), 3);
    assert_eq!(done(&app, &["organisation", "erase", &id])["erasedPatients"], 3, "in all");
    assert!(recorded(&app, "organisation_erased")[0].starts_with("3 patients"));
}

#[test]
fn an_operator_withdraws_an_invitation() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let other = app.other_clinic().organisation.to_string();
    let (withdrawn, kept) = (app.invite("Mistyped@clinic.example"), app.invite("grace@clinic.example"));
    let whose = ["--email", "mistyped@clinic.example", "--as", "Ada", "--reason", "wrong address"];
    let own = [&["member", "withdraw-invitation", "--organisation", &id][..], &whose].concat();
    let of_other = [&["member", "withdraw-invitation", "--organisation", &other][..], &whose].concat();
    assert!(refused(&app, &of_other).contains("has no open invitation for mistyped@clinic.example"));
    let open = |path: &str| app.service.client().send(&request("GET", path, &[], b"")).status;
    assert_eq!((open(&withdrawn), open(&kept)), (200, 200));
    assert_eq!(done(&app, &own), json!({ "email": "Mistyped@clinic.example" }));
    assert_eq!((open(&withdrawn), open(&kept)), (404, 200));
    assert_eq!(recorded(&app, "invitation_withdrawn"), ["Mistyped@clinic.example|Ada|wrong address"]);
    assert!(refused(&app, &own).contains("has no open invitation"));
}

#[test]
fn an_organisation_is_renamed_and_its_members_are_listed_and_removed() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let renamed = done(&app, &["organisation", "rename", &id, "--name", "Harbour", "--as", "Ada"]);
    assert_eq!(renamed, json!({ "id": id, "name": "Harbour" }));
    assert_eq!(recorded(&app, "organisation_renamed"), ["Test Clinic → Harbour|Ada"]);
    let made = done(&app, &["organisation", "create", "--name", "Second", "--as", "Ada", "--reason", "new"]);
    assert_eq!(recorded(&app, "organisation_created"), ["Second|Ada|new"]);
    assert!(made["id"].is_string());

    let (first, second) = (app.member("ada@clinic.example"), app.member("Bob@clinic.example"));
    let members = done(&app, &["member", "list", "--organisation", &id]);
    let emails: Vec<_> = members.as_array().unwrap().iter().map(|member| member["email"].as_str().unwrap()).collect();
    assert_eq!(emails, ["ada@clinic.example", "Bob@clinic.example"]);
    let remove = |email: &'static str| ["member", "remove", "--organisation", &id, "--email", email].map(str::to_owned);
    let arguments = remove("bob@clinic.example");
    done(&app, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(second.get("/settings/api-keys").status, 303, "signed out");
    assert_eq!(first.get("/settings/api-keys").status, 200);
    for (email, why) in [("ada@clinic.example", "last administrator"), ("eve@clinic.example", "has no member")] {
        let arguments = remove(email);
        let said = refused(&app, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn keys_of_all_organisations_are_listed_with_what_they_send_and_why_they_are_refused() {
    let app = TestApp::start();
    let other = app.other_clinic();
    let (other_id, other_key) = other.key();
    for _ in 0..3 {
        assert_eq!(app.service.create(&other_key, &patient()).status, 201);
    }
    assert_eq!(app.create(&json!({ "firstName": "Ada" })).status, 422);
    let keys = done(&app, &["key", "list"]);
    let keys = keys.as_array().unwrap();
    assert_eq!(keys.len(), 2);
    assert!(
        keys.iter()
            .any(|key| key["id"] == other_id.to_string() && key["organisationId"] == other.organisation.to_string())
    );
    let usage = || done(&app, &["key", "usage"]);
    wait_for("the counts", || usage().as_array().unwrap().len() == 2);
    wait_for("all of them", || usage()[0]["accepted"] == 3);
    let usage = usage();
    assert_eq!((&usage[0]["keyId"], &usage[0]["refused"]), (&json!(other_id.to_string()), &json!(0)));
    assert_eq!((&usage[1]["accepted"], &usage[1]["refused"]), (&json!(0), &json!(1)));
    assert!(["lastName", "phoneNumber", "dateOfBirth"].contains(&usage[1]["fieldRefusedMost"].as_str().unwrap()));
    let one = done(&app, &["key", "usage", "--organisation", &other.organisation.to_string(), "--days", "7"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
}

const NEW_PATIENT: &str = "gen_random_uuid(), 'Ada', 'Lovelace', '+61412345678', '1985-03-21', now(), now(), 0";

/// Adds patients to an organisation, as rows that no statistics know.
fn fill(app: &TestApp, clinic: &Clinic, patients: u32) {
    let fill = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at,
             updated_at, created_in)
         SELECT '{}', {NEW_PATIENT} FROM generate_series(1, {patients})",
        clinic.organisation
    );
    app.database.connect().batch_execute(&fill).unwrap();
}

/// Takes the statistics, the last for now.
fn analyze(app: &TestApp) {
    for table in ["patients", "erasures"] {
        for sql in [format!("ALTER TABLE {table} SET (autovacuum_enabled = off)"), format!("ANALYZE {table}")] {
            app.database.connect().batch_execute(&sql).unwrap();
        }
    }
}

/// Rows that statements have read of the tables of an erasure, on every node of a cluster.
fn rows_read(app: &TestApp) -> i64 {
    let read =
        "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint::text FROM pg_stat_user_tables
        WHERE relname ~ '^(patients|erasures)(_[0-9]+)?$'";
    let everywhere = format!("SELECT sum(result::bigint)::text FROM run_command_on_all_nodes($$ {read} $$)");
    let query = if app.database.is_on_cluster() { &everywhere } else { read };
    app.database.texts(query)[0].parse().unwrap()
}

fn read_few_rows_for_each_erased_patient(app: &TestApp) {
    let id = app.clinic.organisation.to_string();
    fill(app, &app.clinic, 25_000);
    done(app, &["organisation", "close", &id]);
    let before = rows_read(app);
    assert_eq!(done(app, &["organisation", "erase", &id])["erasedPatients"], 25_000);
    wait_for("the counts", || rows_read(app) > before + 25_000);
    // Once more, because a session passes its counts on piece by piece.
    std::thread::sleep(Duration::from_secs(1));
    let read = rows_read(app) - before;
    assert!(read < 6 * 25_000, "{read}");
}

#[test]
fn erasing_an_organisation_reads_a_few_rows_for_each_patient_whatever_the_statistics_say() {
    for others in [1, 2_000] {
        let app = TestApp::on_one_server(|builder| builder);
        fill(&app, &app.other_clinic(), others);
        analyze(&app);
        read_few_rows_for_each_erased_patient(&app);
    }
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn erasing_an_organisation_on_a_worker_reads_a_few_rows_for_each_patient_whatever_the_statistics_say() {
    let app = TestApp::start();
    let node = app.database.citus().node_of(app.database.name(), app.clinic.organisation);
    fill(&app, &Clinic::open_on(&app.database, node, Environment::Development), 2_000);
    analyze(&app);
    read_few_rows_for_each_erased_patient(&app);
}

/// Times that the creates of another organisation take until something has ended, sorted.
fn times_of_creates(app: &TestApp, work: impl FnOnce()) -> Vec<Duration> {
    const CLIENTS: usize = 4;
    const PAUSE: Duration = Duration::from_millis(10);
    let key = app.other_clinic().key().1;
    let create = create_request(&key, &[], patient().to_string().as_bytes());
    let is_over = AtomicBool::new(false);
    let create_until_over = || {
        let (mut connection, mut times) = (app.service.client().connect(), Vec::new());
        while !is_over.load(Ordering::SeqCst) {
            times.push(time_of(|| assert_eq!(connection.exchange(&create).status, 201)));
            std::thread::sleep(PAUSE);
        }
        times
    };
    let mut times = std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        let clients = [(); CLIENTS].map(|()| scope.spawn(create_until_over));
        work();
        drop(over);
        clients.map(|client| client.join().unwrap()).concat()
    });
    times.sort();
    times
}

#[test]
#[ignore = "erases 300,000 patients three times: minutes"]
fn creates_elsewhere_go_on_while_a_large_organisation_is_erased() {
    let app = TestApp::durable(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (mut calm, mut beside) = (Vec::new(), Vec::new());
    for round in 1..=3 {
        let clinic = app.other_clinic();
        let id = clinic.organisation.to_string();
        fill(&app, &clinic, 300_000);
        done(&app, &["organisation", "close", &id]);
        let measure = |times: &mut Vec<Duration>, work: &dyn Fn()| {
            let mut took = Duration::ZERO;
            let sorted = times_of_creates(&app, || took = time_of(work));
            times.push(sorted[sorted.len() * 99 / 100]);
            println!(
                "round {round}: {} creates in {took:.0?}, p99 {:.1?}, longest {:.1?}",
                sorted.len(),
                times.last().unwrap(),
                sorted.last().unwrap()
            );
        };
        measure(&mut calm, &|| std::thread::sleep(Duration::from_secs(20)));
        let erase = || assert_eq!(done(&app, &["organisation", "erase", &id])["erasedPatients"], 300_000);
        measure(&mut beside, &erase);
    }
    let [calm, beside] = [calm, beside].map(|mut p99| {
        p99.sort();
        p99[1]
    });
    println!("median p99: {calm:.1?} without, {beside:.1?} with an erasure");
    assert!(beside < 4 * calm, "{beside:?} with an erasure, {calm:?} without");
}

/// Kills several runs of an erasure, each after another batch.
fn cut_off_an_erasure(app: &TestApp) {
    let id = app.clinic.organisation.to_string();
    fill(app, &app.clinic, 65_000);
    done(app, &["organisation", "close", &id]);
    for _ in 0..3 {
        let erased = app.database.count("erasures");
        let mut erasing = Command::new(env!("CARGO_BIN_EXE_intake"));
        erasing.args(["organisation", "erase", &id]).env("DATABASE_URL", app.database.service.expose());
        erasing.env("INTAKE_MIGRATION_DATABASE_URL", app.database.owner.expose()).env("INTAKE_DURABILITY", "none");
        let mut erasing = erasing.stdout(std::process::Stdio::null()).spawn().unwrap();
        wait_for("another batch", || app.database.count("erasures") > erased);
        erasing.kill().unwrap();
        erasing.wait().unwrap();
        assert!(app.patients() > 0, "it was cut off");
    }
    assert_eq!(done(app, &["organisation", "erase", &id])["erasedPatients"], 65_000);
    assert_eq!((app.patients(), app.database.count("erasures")), (0, 65_000));
    assert!(recorded(app, "organisation_erased")[0].starts_with("65000 patients"));
}

#[test]
fn an_erasure_that_was_cut_off_counts_in_the_next_one() {
    cut_off_an_erasure(&TestApp::on_one_server(|builder| builder));
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn an_erasure_on_a_worker_that_was_cut_off_counts_in_the_next_one() {
    cut_off_an_erasure(&TestApp::start());
}
