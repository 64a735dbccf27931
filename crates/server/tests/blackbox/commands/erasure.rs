//! A person's rights: what is stored about them is shown, and what was erased is gone and does not come back.

use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

use diesel::connection::SimpleConnection;
use intake_domain::{Actor, AuditContext, AuditEntryId, Environment, Erasable, EraseOutcome, PatientId, PatientRights};
use intake_edge as edge;
use intake_infra::PostgresPatientRights;
use intake_test_support::{Clinic, HeldRow, Response, TestDatabase, create_request, freeze_writer, patient, wait_for};
use serde_json::{Value, json};

use crate::fixtures::{TestApp, first_row_sleeps, service, wait_for_lock_waits};
use crate::{assert_problem, patient_with};

const ERASED: &str = "The patient that was created with this Idempotency-Key has been erased";

/// Runs `intake patient` in this app's database.
pub(crate) fn run(app: &TestApp, command: &str, id: &str, more: &[&str]) -> Output {
    let organisation = app.clinic.organisation.to_string();
    let arguments = ["patient", command, "--organisation", &organisation, "--patient", id];
    arguments.iter().chain(more).fold(service(&app.database), |all, one| all.argument(one)).run()
}

#[track_caller]
fn text_of(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn send(app: &TestApp, key: &str, patient: &Value) -> Response {
    app.service.create_with(app.key(), &[("Idempotency-Key", key)], patient.to_string().as_bytes())
}

fn id_of(created: &Response) -> String {
    assert_eq!(created.status, 201, "{}", created.text());
    created.json()["data"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn everything_that_is_stored_is_shown() {
    let app = TestApp::start();
    let (key_id, key) = app.clinic.key();
    let sent = patient_with("suburb", "");
    let created = app.service.create_with(&key, &[("Idempotency-Key", "acme-1")], sent.to_string().as_bytes());
    let id = id_of(&created);
    let shown: Value = serde_json::from_str(&text_of(run(&app, "show", &id, &["--json"]))).unwrap();
    let mut expected = created.json()["data"].clone();
    expected["keyId"] = json!(key_id.to_string());
    expected["keyName"] = json!("Test key");
    expected["idempotencyKey"] = json!("acme-1");
    assert_eq!(shown, expected);
    let text = text_of(run(&app, "show", &id, &[]));
    for part in [id.as_str(), "Lovelace", "+61412345678", "acme-1", "Test key", shown["createdAt"].as_str().unwrap()] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let other = app.other_clinic().organisation.to_string();
    let arguments = ["patient", "show", "--organisation", &other, "--patient", &id];
    let nothing = arguments.iter().fold(service(&app.database), |all, one| all.argument(one)).run();
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("has no patient"));

    // Who was looked at is on record, twice, and nothing else of them.
    let recorded = "SELECT concat(action, ' ', actor, subject) FROM audit_entries WHERE action LIKE 'patient%'";
    assert_eq!(app.database.texts(recorded), vec![format!("patient_shown {id}"); 2]);
    let page = app.member("ada@clinic.example").get("/settings/activity?kind=patients").text();
    let entry = format!(
        "<td data-label=\"Who\">An operator</td><td data-label=\"What\">viewed patient <strong>{id}</strong></td>"
    );
    assert_eq!(page.matches(&entry).count(), 2, "{page}");
}

#[test]
fn a_patient_of_before_the_key_was_kept_is_shown_too() {
    let app = TestApp::start();
    let id = id_of(&app.create(&patient()));
    let forget = diesel::sql_query("UPDATE patients SET key_id = NULL");
    diesel::RunQueryDsl::execute(forget, &mut app.database.connect()).unwrap();
    assert!(text_of(run(&app, "show", &id, &[])).contains("by an API key that was not kept at that time"));
}

#[test]
fn an_erased_patient_is_gone_and_a_repetition_brings_nobody_back() {
    let app = TestApp::start();
    let id = id_of(&send(&app, "acme-1", &patient()));
    let kept = id_of(&send(&app, "acme-2", &patient()));
    let text = text_of(run(&app, "erase", &id, &[]));
    assert!(text.contains(&id) && text.contains("backups") && text.contains("standbys") && text.contains("exports"));
    assert_eq!(app.database.count(&format!("patients WHERE id = '{id}'")), 0);

    assert_problem(&send(&app, "acme-1", &patient()), 410, "Gone", ERASED);
    let (_, rotated) = app.clinic.key();
    let headers = [("Idempotency-Key", "acme-1")];
    let again = app.service.create_with(&rotated, &headers, patient().to_string().as_bytes());
    assert_problem(&again, 410, "Gone", ERASED);
    // What it was created with is forgotten, so this may be another patient or not.
    assert_problem(&send(&app, "acme-1", &patient_with("lastName", "Hopper")), 410, "Gone", ERASED);
    assert_eq!(id_of(&send(&app, "acme-2", &patient())), kept);
    assert_eq!(app.database.tables_that_hold("acme-1"), [""; 0]);
    let elsewhere = app.other_clinic();
    let elsewhere = app.service.create_with(&elsewhere.key().1, &headers, patient().to_string().as_bytes());
    assert_eq!(elsewhere.status, 201, "another organisation's key is another key");
    assert_eq!(app.patients(), 2);

    let first: Value = serde_json::from_str(&text_of(run(&app, "erase", &id, &["--json"]))).unwrap();
    let second: Value = serde_json::from_str(&text_of(run(&app, "erase", &id, &["--json"]))).unwrap();
    assert_eq!((&first, &first["id"]), (&second, &json!(id)), "once is for good");
    let gone = run(&app, "show", &id, &[]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("was erased at"));
    let recorded =
        app.database.texts("SELECT action || ' ' || subject FROM audit_entries WHERE action LIKE 'patient%'");
    assert_eq!(recorded, [format!("patient_erased {id}")]);
}

#[test]
fn in_a_batch_only_erased_patients_get_410() {
    let app = TestApp::start();
    let erased: Vec<_> = (0..16).map(|number| id_of(&send(&app, &format!("key-{number}"), &patient()))).collect();
    for id in erased.iter().step_by(2) {
        text_of(run(&app, "erase", id, &[]));
    }
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let send = |number| {
            let app = &app;
            scope.spawn(move || send(app, &format!("key-{number}"), &patient()).status)
        };
        (0..32).map(send).collect::<Vec<_>>().into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    for (number, status) in answers.into_iter().enumerate() {
        let is_erased = number < 16 && number % 2 == 0;
        assert_eq!(status, if is_erased { 410 } else { 201 }, "{number}");
    }
    assert_eq!(app.patients(), 24);
}

/// Puts the register back to before the patient came.
pub(crate) fn lose(app: &TestApp, id: &str) {
    let lose = format!(
        "DELETE FROM erasures WHERE patient_id = '{id}'; DELETE FROM patients WHERE id = '{id}';
         DELETE FROM audit_entries WHERE subject = '{id}'"
    );
    app.database.connect().batch_execute(&lose).unwrap();
}

fn digest_on_record(app: &TestApp, id: &str) -> String {
    let entries = service(&app.database).argument("audit").argument("--json").run();
    let entries: Value = serde_json::from_str(&text_of(entries)).unwrap();
    let is_it = |entry: &&Value| entry["subject"] == id && entry["action"] == "patient_erased";
    let entry = entries.as_array().unwrap().iter().find(is_it).unwrap().clone();
    entry["idempotencyDigest"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn an_erasure_is_repeated_for_a_patient_that_a_restore_has_lost() {
    let app = TestApp::start();
    let id = id_of(&send(&app, "new-1", &patient()));
    text_of(run(&app, "erase", &id, &[]));
    let digest = digest_on_record(&app, &id);
    lose(&app, &id);

    let unknown = run(&app, "erase", &id, &[]);
    assert_eq!(unknown.status.code(), Some(1), "without the digest an id may be a slip");
    let erased = text_of(run(&app, "erase", &id, &["--idempotency-digest", &digest]));
    assert!(erased.contains(&format!("{id} was erased at 2")), "{erased}");
    assert_problem(&send(&app, "new-1", &patient()), 410, "Gone", ERASED);
    assert_eq!(app.patients(), 0);
    // The next restore finds the digest again.
    assert_eq!(digest_on_record(&app, &id), digest);
    let again = text_of(run(&app, "erase", &id, &["--idempotency-digest", &digest]));
    assert!(again.contains("was already erased at 2"), "{again}");
    let elsewhere = uuid::Uuid::from_u128(7).to_string();
    let arguments =
        ["patient", "erase", "--organisation", &elsewhere, "--patient", &id, "--idempotency-digest", &digest];
    let nowhere = arguments.iter().fold(service(&app.database), |all, one| all.argument(one)).run();
    assert_eq!((nowhere.status.code(), app.database.count("erasures")), (Some(1), 1));
}

#[test]
fn a_lost_patient_who_was_sent_again_before_the_erasure_is_erased_too() {
    let app = TestApp::start();
    let id = id_of(&send(&app, "new-1", &patient()));
    text_of(run(&app, "erase", &id, &[]));
    let digest = digest_on_record(&app, &id);
    lose(&app, &id);
    let again = id_of(&send(&app, "new-1", &patient()));
    let kept = id_of(&send(&app, "new-2", &patient()));

    let erased = text_of(run(&app, "erase", &id, &["--idempotency-digest", &digest, "--json"]));
    assert_eq!(serde_json::from_str::<Value>(&erased).unwrap()["sentAgainAs"], json!(again));
    assert_problem(&send(&app, "new-1", &patient()), 410, "Gone", ERASED);
    assert_eq!(app.database.texts("SELECT id::text FROM patients"), [kept.as_str()]);
    let recorded = "SELECT subject FROM audit_entries WHERE action = 'patient_erased' ORDER BY subject";
    let mut both = [id.as_str(), &again];
    both.sort_unstable();
    assert_eq!(app.database.texts(recorded), both);
    assert_eq!(app.database.texts("SELECT patient_id::text FROM erasures ORDER BY 1"), both);
    // The same from the other end: the one who came back is known when the other is erased.
    lose(&app, &id);
    text_of(run(&app, "erase", &id, &["--idempotency-digest", &digest]));
    assert_problem(&send(&app, "new-1", &patient()), 410, "Gone", ERASED);
}

#[test]
fn a_digest_is_none_or_64_hexadecimal_digits() {
    let app = TestApp::start();
    let id = id_of(&app.create(&patient()));
    let wrong = run(&app, "erase", &id, &["--idempotency-digest", "acme-1"]);
    assert_eq!((wrong.status.code(), app.patients()), (Some(2), 1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("must be 64 hexadecimal digits, or none"));
}

/// A repetition that has begun when the erasure is committed does not see it.
#[test]
fn an_erasure_wins_against_repetitions_at_the_same_moment() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let mut rights =
        PostgresPatientRights::new(&app.database.owner.clone().with_durability(app.database.service.durability()));
    for round in 0..40 {
        let key = format!("race-{round}");
        let created = id_of(&send(&app, &key, &patient()));
        let bytes = create_request(app.key(), &[("Idempotency-Key", &key)], patient().to_string().as_bytes());
        let is_over = AtomicBool::new(false);
        let ids: Vec<String> = std::thread::scope(|scope| {
            let repeat = || {
                let client = app.service.client();
                let mut ids = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    let answer = client.send(&bytes);
                    assert!([201, 410].contains(&answer.status), "{}", answer.text());
                    if answer.status == 201 {
                        ids.push(id_of(&answer));
                    }
                }
                ids
            };
            let repeaters: Vec<_> = (0..4).map(|_| scope.spawn(repeat)).collect();
            let id: PatientId = created.parse().unwrap();
            let entry_id = AuditEntryId::new(edge::now(), edge::random());
            let audit = AuditContext {
                entry_id,
                actor: Actor::Operator(intake_domain::Operator::default()),
                address: None,
                at: edge::now(),
                confirmed_in: None,
            };
            let outcome = rights.erase(app.clinic.organisation, Erasable::Stored(id), &audit);
            is_over.store(true, Ordering::SeqCst);
            assert!(matches!(outcome, Ok(Some(EraseOutcome::Erased { .. }))), "{outcome:?}");
            repeaters.into_iter().flat_map(|repeater| repeater.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == created), "an erased patient came back");
        assert_eq!(app.patients(), 0);
    }
}

#[test]
fn an_erasure_waits_for_an_open_transaction_and_holds_nobody_up_for_long() {
    let app = TestApp::start();
    let id = id_of(&send(&app, "erase-me", &patient()));
    let held = HeldRow::insert(&app.database.owner, app.clinic.organisation, "held", &patient()).unwrap();
    std::thread::scope(|scope| {
        let erasing = scope.spawn(|| run(&app, "erase", &id, &[]));
        for _ in 0..5 {
            assert_eq!(app.create(&patient()).status, 201);
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        held.commit().unwrap();
        text_of(erasing.join().unwrap());
    });
    assert_eq!(app.database.count(&format!("patients WHERE id = '{id}'")), 0);
}

/// The statement of the first try is still to come, or in the middle, when its patient was stored by the second and
/// erased.
#[test]
fn a_statement_that_wakes_up_late_stores_no_erased_patient() {
    for key in [None, Some("late-1")] {
        let app = TestApp::on_one_server(|builder| builder);
        let headers: Vec<_> = key.iter().map(|key| ("Idempotency-Key", *key)).collect();
        let send = || app.service.create_with(app.key(), &headers, patient().to_string().as_bytes());
        assert_eq!(app.create(&patient()).status, 201);

        let of_service = "application_name = 'intake' AND datname = current_database() AND query LIKE 'INSERT%'";
        // Before its snapshot: the statement is in the socket of a process that is frozen.
        let frozen = freeze_writer(&app.database.owner, "intake").unwrap();
        let id = id_of(&send());
        text_of(run(&app, "erase", &id, &[]));
        drop(frozen);
        wait_for("the late statement", || {
            app.database.count(&format!("pg_stat_activity WHERE {of_service} AND state = 'active'")) == 0
        });
        assert_eq!(app.database.count(&format!("patients WHERE id = '{id}'")), 0, "{key:?}");
        assert_eq!(app.patients(), 1, "{key:?}");
    }
}

#[test]
fn an_erasure_waits_for_a_statement_that_sleeps_between_its_look_and_its_row() {
    for key in [None, Some("late-2")] {
        let app = TestApp::on_one_server(|builder| builder);
        let headers: Vec<_> = key.iter().map(|key| ("Idempotency-Key", *key)).collect();
        // The key is known, and its statement planned.
        assert_eq!(app.create(&patient()).status, 201);
        // After it has looked for erasures, and before it stores its patient.
        first_row_sleeps(&app.database, "INSERT ON patients", 4.0);
        let created = app.service.create_with(app.key(), &headers, patient().to_string().as_bytes());
        let id = id_of(&created);
        assert!(app.service.output().contains("a statement hangs in the database"), "{key:?}");
        let sleeping = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
        assert_eq!(app.database.count(sleeping), 1);
        text_of(run(&app, "erase", &id, &[]));
        assert_eq!(app.database.count(sleeping), 0, "the erasure came before the end of the statement");
        assert_eq!(app.patients(), 1, "{key:?}");
        let again: Value = serde_json::from_str(&text_of(run(&app, "erase", &id, &["--json"]))).unwrap();
        assert_eq!(again["id"], json!(id));
    }
}

/// Settings of the role do not widen the gap: a snapshot from before the lock would not see the erasure.
#[test]
fn a_drifted_isolation_level_brings_nobody_back() {
    let database = TestDatabase::on_one_server();
    let drift = format!("ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'", database.name());
    database.connect().batch_execute(&drift).unwrap();
    let service = service(&database).start();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (_, key) = clinic.key();
    assert_eq!(service.create(&key, &patient()).status, 201);
    let mut holder = database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients IN SHARE ROW EXCLUSIVE MODE").unwrap();
    let headers = [("Idempotency-Key", "drift-1")];
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| service.create_with(&key, &headers, patient().to_string().as_bytes()));
        wait_for_lock_waits(&database, 1);
        // As an erasure does that was waited for.
        let note = "INSERT INTO erasures (organisation_id, patient_id, idempotency_digest)
            SELECT organisation_id, gen_random_uuid(), sha256('drift-1') FROM patients";
        holder.batch_execute(&format!("{note}; COMMIT")).unwrap();
        answer.join().unwrap()
    });
    assert_problem(&answer, 410, "Gone", ERASED);
}

#[test]
fn nothing_of_an_erased_patient_stays_in_the_statistics() {
    let app = TestApp::on_one_server(|builder| builder);
    let secrets = ["Quetzalcoatl", "+61400999888", "quetzal@clinic.example", "stat-1"];
    let mut person = patient_with("lastName", secrets[0]);
    (person["phoneNumber"], person["email"]) = (json!(secrets[1]), json!(secrets[2]));
    let id = id_of(&send(&app, secrets[3], &person));
    for number in 0..20 {
        assert_eq!(send(&app, &format!("other-{number}"), &patient()).status, 201);
    }
    app.database.connect().batch_execute("ANALYZE patients").unwrap();
    let shown = |secret: &str| {
        app.database.count(&format!(
            "pg_stats WHERE schemaname = 'public' AND position('{secret}' in
                concat(most_common_vals::text, histogram_bounds::text, most_common_elems::text)) > 0"
        ))
    };
    assert!(secrets.iter().any(|secret| shown(secret) > 0), "the statistics hold values");
    text_of(run(&app, "erase", &id, &[]));
    for secret in secrets {
        assert_eq!(shown(secret), 0, "{secret}");
        assert_eq!(app.database.tables_that_hold(secret), [""; 0]);
    }
}

/// As a program of before this guard may have left it.
#[test]
fn a_patient_who_came_back_can_be_erased_again() {
    let app = TestApp::start();
    let id = id_of(&app.create(&patient()));
    let keep = format!("CREATE TABLE kept AS SELECT * FROM patients WHERE id = '{id}'");
    app.database.connect().batch_execute(&keep).unwrap();
    text_of(run(&app, "erase", &id, &[]));
    let text = text_of(run(&app, "erase", &id, &[]));
    assert!(text.contains("was already erased at 2"), "{text}");
    app.database.connect().batch_execute("INSERT INTO patients SELECT * FROM kept; DROP TABLE kept").unwrap();
    text_of(run(&app, "erase", &id, &[]));
    assert_eq!(app.patients(), 0);
}

#[test]
fn an_erasure_names_what_is_in_its_way_and_how_to_end_it() {
    let app = TestApp::on_one_server(|builder| builder);
    let id = id_of(&app.create(&patient()));
    let mut holder = app.database.connect();
    holder
        .batch_execute("SET application_name = 'a report'; BEGIN; LOCK TABLE patients IN ROW EXCLUSIVE MODE")
        .unwrap();
    let failed = run(&app, "erase", &id, &[]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    let pid = &app.database.texts("SELECT pid::text FROM pg_stat_activity WHERE application_name = 'a report'")[0];
    for part in [&format!("pg_terminate_backend({pid})"), "\"a report\"", "in a transaction since 2"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!((said.lines().count(), app.patients()), (1, 1), "{said}");
    // It says what works.
    app.database.administer(&format!("SELECT pg_terminate_backend({pid})"));
    text_of(run(&app, "erase", &id, &[]));
}
