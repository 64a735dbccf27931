//! The change feed: whatever commits when, each patient is exported once, and a token that does not fit is refused.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::OrganisationId;
use intake_infra::{DatabaseUrl, Durability};
use intake_test_support::processes::send as signal;
use intake_test_support::{HeldRow, ServiceBuilder, TestDatabase, patient, wait_for, wait_for_end};
use serde_json::{Value, json};

use crate::commands::erasure;
use crate::commands::readers::ReaderRole;
use crate::fixtures::{OverWhenDropped, Terminal, TestApp, demo_key, program, service};
use crate::patient_with;

/// Output of an export.
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) token: String,
    said: String,
}

impl Given {
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.lines().iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn export(builder: ServiceBuilder, organisation: OrganisationId, more: &[&str]) -> Output {
    let organisation = organisation.to_string();
    let arguments = ["export", "--organisation", &organisation];
    arguments.iter().chain(more).fold(builder, |all, one| all.argument(one)).run()
}

#[track_caller]
pub(crate) fn given(output: Output) -> Given {
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let token = said.lines().last().unwrap().strip_prefix("next: ").unwrap().to_owned();
    Given { text: String::from_utf8(output.stdout).unwrap(), token, said }
}

#[track_caller]
pub(crate) fn refused(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(output.stdout.is_empty());
    said
}

/// As the owner, who may read everything.
fn all(app: &TestApp, more: &[&str]) -> Output {
    let owner = app.database.owner.clone().with_durability(Durability::None);
    export(program().database_urls(&owner, &owner), app.clinic.organisation, more)
}

#[track_caller]
fn since(app: &TestApp, token: &str) -> Given {
    given(all(app, &["--format", "jsonl", "--since", token]))
}

pub(crate) fn id_of(app: &TestApp, patient: &Value) -> String {
    app.create(patient).json()["data"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_reader_gets_what_the_api_answered_and_later_what_came_since() {
    let app = TestApp::start();
    let reader = ReaderRole::make(&app.database, "feed", Some(app.clinic.organisation));
    let as_reader = |url: &DatabaseUrl| program().database_urls(url, url);
    let jsonl = |more: &[&str]| {
        let arguments = [&["--format", "jsonl"], more].concat();
        export(as_reader(&reader.url), app.clinic.organisation, &arguments)
    };
    let none = given(jsonl(&[]));
    assert_eq!(none.text, "");
    let whole = json!({
        "firstName": "Zoë", "lastName": "O'Brien, \"Z\"", "phoneNumber": "+61412345678", "dateOfBirth": "1985-03-21",
        "email": "zoe@example.com", "addressLine1": "", "suburb": "Carlton", "country": "AU",
    });
    let answers = [app.create(&patient()), app.create(&whole)];
    let first = given(jsonl(&["--since", &none.token]));
    let expected: String = answers
        .iter()
        .map(|answer| answer.text().trim().strip_prefix("{\"data\":").unwrap().replace(",\"meta\":{}}", "\n"))
        .collect();
    assert_eq!(first.text, expected, "byte for byte");
    assert_eq!(given(jsonl(&["--since", &first.token])).text, "");
    assert_eq!(given(jsonl(&["--since", &none.token])).text, first.text, "a token can be used again");
    assert_eq!(given(jsonl(&[])).ids(), first.ids());

    let others = app.other_clinic().organisation;
    let refusal = refused(export(as_reader(&reader.url), others, &["--format", "jsonl"]));
    assert!(refusal.contains("this role may not read its patients"), "{refusal}");
    let powerless = refused(export(service(&app.database), app.clinic.organisation, &["--format", "jsonl"]));
    assert!(powerless.contains("intake migrate --reader-role"), "{powerless}");
    let empty = TestDatabase::empty();
    let unmigrated = refused(export(
        as_reader(&empty.owner.clone().with_durability(Durability::None)),
        others,
        &["--format", "jsonl"],
    ));
    assert!(unmigrated.contains("run `intake migrate` first"), "{unmigrated}");
}

/// A system that has the patient cannot know that the register has lost them.
#[test]
fn a_reader_sees_the_erasure_of_a_patient_that_a_restore_has_lost() {
    let app = TestApp::start();
    let token = given(all(&app, &["--format", "jsonl"])).token;
    let id = id_of(&app, &patient());
    assert!(erasure::run(&app, "erase", &id, &[]).status.success());
    erasure::lose(&app, &id);
    assert!(since(&app, &token).ids().is_empty());
    assert!(erasure::run(&app, "erase", &id, &["--idempotency-digest", "none"]).status.success());
    assert_eq!(since(&app, &token).ids(), [id.as_str()]);
}

#[test]
fn a_late_commit_is_exported_late_and_once() {
    let app = TestApp::start();
    let organisation = app.clinic.organisation;
    let held = |key: &str| HeldRow::insert(&app.database.owner, organisation, key, &patient()).unwrap();
    let (late, never) = (held("late"), held("never"));
    let early = id_of(&app, &patient());
    let first = given(all(&app, &["--format", "jsonl"]));
    assert_eq!(first.ids(), std::slice::from_ref(&early), "the two that are open are not exported");
    never.roll_back().unwrap();
    // A sub-transaction has a number of its own.
    let mut nested = app.database.connect();
    let insert = "INSERT INTO patients
        (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at, updated_at)
        SELECT organisation_id, gen_random_uuid(), first_name, last_name, phone_number, date_of_birth, created_at, updated_at
        FROM patients LIMIT 1";
    nested.batch_execute(&format!("BEGIN; SAVEPOINT one; {insert}; SAVEPOINT two; {insert}; ROLLBACK TO two")).unwrap();
    let second = since(&app, &first.token);
    assert_eq!(second.text, "");
    late.commit().unwrap();
    let third = since(&app, &second.token);
    assert_eq!(third.ids().len(), 1);
    nested.batch_execute("COMMIT").unwrap();
    let fourth = since(&app, &third.token);
    assert_eq!(fourth.ids().len(), 1);
    assert_eq!(since(&app, &fourth.token).text, "");
    let exported: BTreeSet<_> = [first, third, fourth].iter().flat_map(Given::ids).collect();
    let stored: BTreeSet<_> = app.database.texts("SELECT id::text FROM patients").into_iter().collect();
    assert_eq!((exported.len(), exported), (3, stored));
}

#[test]
fn while_many_write_each_patient_is_exported_once() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    let is_over = AtomicBool::new(false);
    let (mut exported, token) = std::thread::scope(|scope| {
        let _over = OverWhenDropped(&is_over);
        for number in 0..6 {
            let (is_over, app, second) = (&is_over, &app, &second);
            scope.spawn(move || {
                let client = if number % 2 == 0 { app.service.client() } else { second.client() };
                for count in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    // Every third is a replay.
                    let key = format!("{number}-{}", count - count % 3 / 2);
                    let headers = [("Idempotency-Key", key.as_str())];
                    let bytes =
                        intake_test_support::create_request(app.key(), &headers, patient().to_string().as_bytes());
                    assert_eq!(client.send(&bytes).status, 201);
                }
            });
        }
        for number in 0..2 {
            let (is_over, app) = (&is_over, &app);
            scope.spawn(move || {
                for count in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        return;
                    }
                    let key = format!("held-{number}-{count}");
                    let held = HeldRow::insert(&app.database.owner, app.clinic.organisation, &key, &patient()).unwrap();
                    std::thread::sleep(Duration::from_millis(150 + 100 * number));
                    if count % 4 == 3 { held.roll_back() } else { held.commit() }.unwrap();
                }
            });
        }
        let mut given_out = given(all(&app, &["--format", "jsonl"]));
        let mut exported = given_out.ids();
        for _ in 0..25 {
            given_out = since(&app, &given_out.token);
            exported.extend(given_out.ids());
        }
        // A process that is still writing ends first.
        (exported, given_out.token)
    });
    exported.extend(since(&app, &token).ids());
    let stored: BTreeSet<_> = app.database.texts("SELECT id::text FROM patients").into_iter().collect();
    assert!(stored.len() > 100, "{}", stored.len());
    assert_eq!(exported.len(), stored.len(), "once");
    assert_eq!(exported.into_iter().collect::<BTreeSet<_>>(), stored);
}

/// Replays take numbers of transactions and write nothing that is flushed: after a crash PostgreSQL gives these numbers
/// out again, to patients.
#[test]
fn a_token_stays_true_when_postgresql_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = || ServiceBuilder::in_folder(env!("CARGO_BIN_EXE_intake"), folder.path());
    let running = in_folder().start();
    let key = demo_key(&fs::read_to_string(folder.path().join("demo-key")).unwrap());
    let create = |idempotency_key: &str| {
        running.create_with(&key, &[("Idempotency-Key", idempotency_key)], patient().to_string().as_bytes())
    };
    let first = create("0").json();
    let organisation: OrganisationId = first["data"]["organisationId"].as_str().unwrap().parse().unwrap();
    let mut exported = Vec::new();
    let mut token: Option<String> = None;
    for round in 1..=4 {
        assert_eq!(create(&round.to_string()).status, 201);
        let mut arguments = vec!["--format", "jsonl"];
        if let Some(token) = &token {
            arguments.extend(["--since", token]);
        }
        for _ in 0..20 {
            assert_eq!(create("0").status, 201);
        }
        let given_out = given(export(in_folder(), organisation, &arguments));
        exported.extend(given_out.ids());
        token = Some(given_out.token);
        for _ in 0..20 {
            assert_eq!(create("0").status, 201);
        }
        let postmaster = fs::read_to_string(folder.path().join("postgres/data/postmaster.pid")).unwrap();
        signal("KILL", postmaster.lines().next().unwrap());
        wait_for("PostgreSQL to come back", || create(&format!("after-{round}")).status == 201);
    }
    let token = token.unwrap();
    exported.extend(given(export(in_folder(), organisation, &["--format", "jsonl", "--since", &token])).ids());
    let everything: BTreeSet<_> =
        given(export(in_folder(), organisation, &["--format", "jsonl"])).ids().into_iter().collect();
    assert_eq!((exported.len(), everything.len()), (9, 9));
    assert_eq!(exported.into_iter().collect::<BTreeSet<_>>(), everything);
}

#[test]
fn a_token_that_does_not_fit_is_refused_with_what_to_do() {
    let app = TestApp::start();
    let (key, _) = app.clinic.key();
    let key = key.to_string();
    let token = given(all(&app, &["--format", "jsonl"])).token;
    let with_key = given(all(&app, &["--format", "jsonl", "--key", &key])).token;
    let refusal = |more: &[&str]| refused(all(&app, &[&["--format", "jsonl"], more].concat()));
    assert!(refusal(&["--since", "7"]).contains("this is not a token"));
    // An unset variable, say.
    assert_eq!(all(&app, &["--format", "jsonl", "--since", ""]).status.code(), Some(2));
    let unknown = refusal(&["--since", &uuid::Uuid::from_u128(7).to_string()]);
    assert!(unknown.contains("does not know the token") && unknown.contains("export everything once"), "{unknown}");
    assert!(refusal(&["--since", &token, "--key", &key]).contains("with the same --key"));
    assert!(refusal(&["--since", &with_key]).contains("with the same --key"));
    let owner = app.database.owner.clone().with_durability(Durability::None);
    let arguments = ["--format", "jsonl", "--since", &token];
    let other = refused(export(program().database_urls(&owner, &owner), app.other_clinic().organisation, &arguments));
    assert!(other.contains("for another organisation"), "{other}");

    let change = |sql: &str| app.database.connect().batch_execute(sql).unwrap();
    change("UPDATE feed_marks SET system_identifier = 7");
    assert!(refusal(&["--since", &token]).contains("made in another database"));
    change("UPDATE origin SET system_identifier = 7");
    assert!(refusal(&[]).contains("intake restored"));
    change("UPDATE origin SET system_identifier = (SELECT system_identifier FROM pg_control_system())");
}

#[test]
fn an_erasure_is_exported_in_every_format() {
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    let id = id_of(&app, &patient());
    let kept = id_of(&app, &patient());
    let token = given(all(&app, &["--format", "jsonl"])).token;
    assert!(erasure::run(&app, "erase", &id, &[]).status.success());
    let exported = since(&app, &token);
    assert_eq!(exported.lines().len(), 1);
    let line = &exported.lines()[0];
    let at = line["erasedAt"].as_str().unwrap();
    assert_eq!(exported.text, format!("{{\"id\":\"{id}\",\"erasedAt\":\"{at}\"}}\n"));
    assert_eq!(since(&app, &exported.token).text, "", "once");
    assert_eq!(given(all(&app, &["--format", "jsonl"])).ids(), [kept.clone(), id.clone()]);

    // Where it has no place among the patients.
    for format in ["csv", "fhir"] {
        let on_stream = given(all(&app, &["--format", format, "--since", &token]));
        assert!(!on_stream.text.contains(&id));
        assert!(on_stream.said.starts_with(&format!("erased: {id} {at}\nnext: ")), "{}", on_stream.said);
    }
    let file = |name: &str| folder.path().join(name);
    let to_file = |format: &str, name: &str| {
        let path = file(name);
        given(all(&app, &["--format", format, "--since", &token, "--output", path.to_str().unwrap()])).said
    };
    assert!(to_file("csv", "patients.csv").starts_with("next: "));
    assert_eq!(fs::read_to_string(file("patients.erased.csv")).unwrap(), format!("id,erasedAt\r\n{id},{at}\r\n"));
    to_file("fhir", "patients.ndjson");
    let bundle: Value = serde_json::from_str(&fs::read_to_string(file("patients.deleted.ndjson")).unwrap()).unwrap();
    assert_eq!(bundle["entry"][0]["request"], json!({ "method": "DELETE", "url": format!("Patient/{id}") }));
    assert_eq!(fs::read_to_string(file("patients.ndjson")).unwrap(), "");
}

#[test]
fn a_table_opens_safely_in_a_spreadsheet() {
    let app = TestApp::start();
    let mut sent = patient_with("lastName", "=HYPERLINK(\"x\")");
    sent["firstName"] = json!("'t");
    sent["suburb"] = json!("");
    sent["state"] = json!("a,b");
    let answer = app.create(&sent).json()["data"].clone();
    let text = given(all(&app, &["--format", "csv"])).text;
    let expected = format!(
        "id,firstName,lastName,phoneNumber,email,dateOfBirth,addressLine1,addressLine2,suburb,state,postcode,country,\
         organisationId,isIdentified,createdAt,updatedAt\r\n{},''t,\"'=HYPERLINK(\"\"x\"\")\",'+61412345678,,1985-03-21,,,\
         ',\"a,b\",,,{},true,{},{}\r\n",
        answer["id"].as_str().unwrap(),
        app.clinic.organisation,
        answer["createdAt"].as_str().unwrap(),
        answer["updatedAt"].as_str().unwrap()
    );
    assert_eq!(text, expected);
}

#[test]
fn a_file_appears_when_complete_and_only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let app = TestApp::start();
    let id = id_of(&app, &patient());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.jsonl");
    let to_file =
        |more: &[&str]| all(&app, &[&["--format", "jsonl", "--output", path.to_str().unwrap()], more].concat());
    let first = given(to_file(&[]));
    assert_eq!(first.text, "");
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains(&id));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // A refused run touches nothing that is complete.
    refused(to_file(&["--since", &uuid::Uuid::nil().to_string()]));
    assert_eq!(fs::read_to_string(&path).unwrap(), written);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // What a killed run has left is overwritten.
    fs::write(folder.path().join("patients.jsonl.unfinished"), "half of something that is longer than what comes")
        .unwrap();
    assert!(!first.said.contains("replaced"), "{}", first.said);
    let second = given(to_file(&["--since", &first.token]));
    assert!(second.said.starts_with(&format!("replaced {}", path.display())), "{}", second.said);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = Path::new("/nowhere/patients.jsonl");
    let refusal = refused(all(&app, &["--format", "jsonl", "--output", nowhere.to_str().unwrap()]));
    assert!(refusal.contains("--output"), "{refusal}");
}

#[test]
fn a_file_that_is_there_is_asked_about_at_a_terminal() {
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.csv");
    fs::write(&path, "of yesterday").unwrap();
    let export = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["export", "--format", "jsonl", "--organisation", &app.clinic.organisation.to_string()]);
        command.arg("--output").arg(&path).args(more);
        command.env("DATABASE_URL", app.database.owner.expose()).env("INTAKE_DURABILITY", "none");
        Terminal::run(command)
    };
    let mut terminal = export(&[]);
    terminal.answer("is there. Replace it? [y/N] ", "\n");
    assert!(terminal.complaint().ends_with("nothing was changed"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "of yesterday");
    let mut terminal = export(&["--yes"]);
    terminal.read_until(Some("replaced "));
    assert!(wait_for_end(&mut terminal.child).success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn a_device_is_never_replaced_and_a_link_is_followed() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let to = |path: &Path| all(&app, &["--format", "jsonl", "--output", path.to_str().unwrap()]);
    given(to(&link));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap().lines().count(), 1);

    let device = folder.path().join("device");
    assert!(Command::new("mkfifo").arg(&device).status().unwrap().success());
    fs::remove_file(&real).unwrap();
    for (path, words) in [
        (&device, "is not a regular file"),
        (&folder.path().to_owned(), "is not a regular file"),
        (&link, "No such file"),
    ] {
        let said = refused(to(path));
        assert!(said.contains("--output") && said.contains(words), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");

    let streamed = given(all(&app, &["--format", "jsonl", "--output", "-"]));
    assert_eq!(streamed.ids().len(), 1);
}

#[test]
fn everything_that_one_key_created_can_be_exported() {
    let app = TestApp::start();
    let (leaked_id, leaked) = app.clinic.key();
    let (erased, kept) = (app.service.create(&leaked, &patient()), app.service.create(&leaked, &patient()));
    let id = |answer: &intake_test_support::Response| answer.json()["data"]["id"].as_str().unwrap().to_owned();
    let (erased, kept) = (id(&erased), id(&kept));
    let other = id_of(&app, &patient());
    assert!(erasure::run(&app, "erase", &erased, &[]).status.success());
    assert!(erasure::run(&app, "erase", &other, &[]).status.success());
    let exported = given(all(&app, &["--format", "jsonl", "--key", &leaked_id.to_string()]));
    assert_eq!(exported.ids(), [kept, erased]);
}

/// Returns how many rows of patients disconnected sessions have read.
fn rows_read(app: &TestApp) -> i64 {
    let exporting = "pg_stat_activity WHERE query LIKE '%feed_open%' AND pid <> pg_backend_pid()";
    wait_for("the export to disconnect", || app.database.count(exporting) == 0);
    let read = "SELECT (seq_tup_read + idx_tup_fetch)::text FROM pg_stat_user_tables WHERE relname = 'patients'";
    app.database.texts(read).first().unwrap().parse().unwrap()
}

#[test]
fn a_large_difference_is_exported_once_in_order_and_read_a_few_times() {
    let app = TestApp::start();
    // Which would read the rows too, whenever it comes by.
    let no_vacuum = "ALTER TABLE patients SET (autovacuum_enabled = off); ALTER INDEX patients_created_in SET (autosummarize = off)";
    app.database.connect().batch_execute(no_vacuum).unwrap();
    let first = given(all(&app, &["--format", "jsonl"]));
    let insert = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at, updated_at)
         SELECT '{}', gen_random_uuid(), 'Ada', n::text, '+61412345678', '1985-03-21', now(), now()
         FROM generate_series(1, $1) AS n",
        app.clinic.organisation
    );
    let told_in_order = |given: &Given, rows: usize| {
        let ids = given.ids();
        assert_eq!(ids.len(), rows);
        assert!(ids.is_sorted());
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    };
    app.database.connect().batch_execute(&insert.replace("$1", "2500")).unwrap();
    let few = since(&app, &first.token);
    told_in_order(&few, 2_500);
    // Too many for their ids to be kept.
    app.database.connect().batch_execute(&insert.replace("$1", "100500")).unwrap();
    for (more, rows) in [(["--since", few.token.as_str()].as_slice(), 100_500), (&[], 103_000)] {
        let before = rows_read(&app);
        told_in_order(&given(all(&app, &[&["--format", "jsonl"], more].concat())), rows);
        // To see that they are many, to divide them, and to give them out; not once for each page.
        let read = rows_read(&app) - before;
        assert!((200_000..350_000).contains(&read), "{read}");
    }
}

/// An export that goes on.
pub(crate) struct Following {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
    said: std::thread::JoinHandle<String>,
}

impl Following {
    fn start(app: &TestApp, more: &[&str]) -> Self {
        let owner = app.database.owner.clone().with_durability(Durability::None);
        Self::start_as(&owner, app.clinic.organisation, &[&["--follow"], more].concat())
    }

    pub(crate) fn start_as(role: &DatabaseUrl, organisation: OrganisationId, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["export", "--format", "jsonl", "--organisation", &organisation.to_string()]).args(more);
        command.env("DATABASE_URL", role.expose()).env("INTAKE_DURABILITY", "none");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let stderr = child.stderr.take().unwrap();
        let said = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap());
        Self { child, lines, said }
    }

    fn next_line(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(Duration::from_secs(120)).unwrap()).unwrap()
    }

    /// The next line that is no token.
    pub(crate) fn next_id(&self) -> String {
        loop {
            if let Some(id) = self.next_line()["id"].as_str() {
                return id.to_owned();
            }
        }
    }

    /// Asks it to stop; returns the last token that it printed.
    fn stop(self) -> String {
        self.stop_and_tell_all().lines().last().unwrap().strip_prefix("next: ").unwrap().to_owned()
    }

    /// Waits until it has ended by itself, with one line; returns the token before it, and the line.
    pub(crate) fn end(mut self) -> (String, String) {
        assert_eq!(wait_for_end(&mut self.child).code(), Some(1));
        let said = self.said.join().unwrap();
        let mut lines: Vec<_> = said.lines().collect();
        let complaint = lines.pop().unwrap().to_owned();
        let tokens: Vec<_> = lines.iter().map(|line| line.strip_prefix("next: ").unwrap()).collect();
        (tokens.last().copied().unwrap_or_default().to_owned(), complaint)
    }

    /// Asks it to stop; returns everything that it said.
    fn stop_and_tell_all(mut self) -> String {
        signal("TERM", &self.child.id().to_string());
        assert!(self.child.wait().unwrap().success());
        assert!(self.lines.iter().all(|line| line.starts_with("{\"next\":")), "nothing but tokens was left");
        self.said.join().unwrap()
    }
}

#[test]
fn a_follower_gets_everything_at_once_and_leaves_a_token() {
    let app = TestApp::start();
    let first = id_of(&app, &patient());
    let following = Following::start(&app, &[]);
    assert_eq!(following.next_id(), first);
    let second = id_of(&app, &patient());
    assert_eq!(following.next_id(), second);
    let held = HeldRow::insert(&app.database.owner, app.clinic.organisation, "held", &patient()).unwrap();
    let third = id_of(&app, &patient());
    assert_eq!(following.next_id(), third);
    held.commit().unwrap();
    let fourth = following.next_id();
    assert!(![first, second, third].contains(&fourth));
    // While nothing happens, nothing is written: neither a mark nor anything else, by whichever way.
    let written = || app.database.count(&format!("feed_marks WHERE organisation_id = '{}'", app.clinic.organisation));
    let mut before = written();
    wait_for("the last mark", || {
        std::thread::sleep(Duration::from_secs(2));
        let now = written();
        std::mem::replace(&mut before, now) == now
    });
    assert_eq!(app.service.create(&app.other_clinic().key().1, &patient()).status, 201);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(written(), before);
    let token = following.stop();
    let fifth = id_of(&app, &patient());
    assert_eq!(since(&app, &token).ids(), [fifth]);
}

#[test]
fn a_follower_survives_a_lost_connection() {
    let app = TestApp::start();
    let following = Following::start(&app, &[]);
    for _ in 0..3 {
        let id = id_of(&app, &patient());
        assert_eq!(following.next_id(), id);
        let kick = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = '{}' AND pid <> pg_backend_pid() AND query LIKE '%FROM erasures_v1%'",
            app.database.name()
        );
        app.database.connect().batch_execute(&kick).unwrap();
    }
    following.stop();
}

#[test]
fn a_followed_file_appears_in_the_end() {
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.jsonl");
    let following = Following::start(&app, &["--output", path.to_str().unwrap()]);
    wait_for("the first mark", || app.database.count("feed_marks") >= 1);
    let id = id_of(&app, &patient());
    wait_for("the mark", || app.database.count("feed_marks") >= 2);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!path.exists());
    let token = following.stop();
    assert!(fs::read_to_string(&path).unwrap().contains(&id));
    assert_eq!(since(&app, &token).text, "");
}

#[test]
fn a_follower_names_what_locks_the_register_and_goes_on_afterwards() {
    let app = TestApp::on_one_server(|builder| builder);
    let following = Following::start(&app, &[]);
    let first = app.create(&patient()).json()["data"]["id"].clone();
    assert_eq!(following.next_id(), first);
    let mut holder = app.database.connect();
    let hold = "SET application_name = 'a repair'; BEGIN; LOCK TABLE patients IN ACCESS EXCLUSIVE MODE";
    holder.batch_execute(hold).unwrap();
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_start >
        (SELECT backend_start FROM pg_stat_activity
            WHERE application_name = 'a repair' AND datname = current_database())";
    // A second connection: the first has given up.
    wait_for("another try", || app.database.count(waits) > 0);
    holder.batch_execute("ROLLBACK").unwrap();
    let second = app.create(&patient()).json()["data"]["id"].clone();
    assert_eq!(following.next_id(), second);
    let said = following.stop_and_tell_all();
    assert!(said.contains("still trying: a lock is held by the process") && said.contains("\"a repair\""), "{said}");
}

#[test]
fn a_followed_stream_holds_rows_erasures_and_tokens() {
    let app = TestApp::start();
    let (id, kept) = (id_of(&app, &patient()), id_of(&app, &patient()));
    assert!(erasure::run(&app, "erase", &id, &[]).status.success());
    let streamed = |format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        let organisation = app.clinic.organisation.to_string();
        command.args(["export", "--follow", "--organisation", &organisation, "--format", format]);
        command.env("DATABASE_URL", app.database.owner.expose()).env("INTAKE_DURABILITY", "none");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let token = said.next().unwrap().unwrap().strip_prefix("next: ").unwrap().to_owned();
        signal("TERM", &child.id().to_string());
        let text = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(said.map(Result::unwrap).collect::<Vec<_>>(), [format!("next: {token}")]);
        (text, token)
    };
    let (text, token) = streamed("jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["id"].as_str(), lines[1]["id"].as_str()), (Some(&*kept), Some(&*id)));
    assert_eq!((lines.len(), &lines[2]), (3, &json!({ "next": token })));
    assert_eq!(since(&app, &token).text, "");

    let (text, token) = streamed("csv");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), rows[0].len(), &rows[0][15..]), (4, 18, &["updatedAt", "erasedAt", "next"][..]));
    assert!(rows.iter().all(|row| row.len() == 18), "{rows:?}");
    assert_eq!((rows[1][0], rows[1][16], rows[1][17]), (&*kept, "", ""));
    assert_eq!((rows[2][0], rows[2][17]), (&*id, ""));
    assert_eq!((rows[3][0], rows[3][16], rows[3][17]), ("", "", &*token));

    let (text, token) = streamed("fhir");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[1]["managingOrganization"]["reference"],
        format!("Organization/{}", lines[0]["id"].as_str().unwrap())
    );
    assert_eq!(lines[2]["entry"][0]["request"]["url"], format!("Patient/{id}"));
    let parameters = json!({ "resourceType": "Parameters", "parameter": [{ "name": "next", "valueString": token }] });
    assert_eq!((lines.len(), &lines[3]), (4, &parameters));
}

#[test]
fn fhir_names_the_organisation_the_way_and_addresses_of_another_form() {
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    let ids = ["VIC", "Victoria", "Bayern"].map(|state| {
        let mut sent = patient_with("addressLine1", "12 Harbour Street");
        sent["state"] = json!(state);
        id_of(&app, &sent)
    });
    let resources = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let path = folder.path().join("Patient.ndjson");
    let output = ["--format", "fhir", "--output", path.to_str().unwrap()];
    let said = given(all(&app, &output)).said;
    assert!(said.starts_with("2 of 3 addresses have not the form of an Australian one\n"), "{said}");
    let states = |patients: &[Value]| patients.iter().map(|one| one["address"][0]["state"].clone()).collect::<Vec<_>>();
    assert_eq!(states(&resources("Patient.ndjson")), ["VIC", "Victoria", "Bayern"]);

    let said = given(all(&app, &[&output[..], &["--australian-states", "--provenance"]].concat())).said;
    assert!(said.starts_with("1 of 3 addresses have not"), "{said}");
    let patients = resources("Patient.ndjson");
    assert_eq!(states(&patients), ["VIC", "VIC", "Bayern"]);
    let organisation = resources("Patient.organization.ndjson");
    let reference = format!("Organization/{}", organisation[0]["id"].as_str().unwrap());
    for (patient, (provenance, id)) in patients.iter().zip(resources("Patient.provenance.ndjson").iter().zip(&ids)) {
        assert_eq!((&patient["id"], &patient["gender"]), (&json!(id), &json!("unknown")));
        assert_eq!(patient["identifier"][0]["value"], format!("urn:uuid:{id}"));
        assert_eq!(patient["managingOrganization"]["reference"], reference);
        assert_eq!(provenance["target"][0]["reference"], format!("Patient/{id}"));
        let key = app.database.texts("SELECT id::text FROM api_keys");
        assert_eq!(provenance["agent"][0]["who"]["identifier"]["value"], format!("urn:uuid:{}", key[0]));
    }
    assert!(refused(all(&app, &["--format", "csv", "--provenance"])).contains("belong to --format fhir"));
}

#[test]
fn a_state_file_goes_on_where_the_last_run_ended() {
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    let (state, output) = (folder.path().join("state"), folder.path().join("patients.jsonl"));
    let arguments = ["--format", "jsonl", "--state", state.to_str().unwrap()];
    let first = id_of(&app, &patient());
    let run = given(all(&app, &arguments));
    assert_eq!(run.ids(), [first]);
    assert_eq!(fs::read_to_string(&state).unwrap(), format!("{}\n", run.token));
    // A run that fails leaves it alone.
    let second = id_of(&app, &patient());
    fs::create_dir(&output).unwrap();
    let with_output = [&arguments[..], &["--output", output.to_str().unwrap()]].concat();
    refused(all(&app, &with_output));
    assert_eq!(fs::read_to_string(&state).unwrap(), format!("{}\n", run.token));
    fs::remove_dir(&output).unwrap();
    let token = given(all(&app, &with_output)).token;
    assert!(fs::read_to_string(&output).unwrap().contains(&second));
    assert_eq!(fs::read_to_string(&state).unwrap(), format!("{token}\n"));
    assert_eq!(given(all(&app, &arguments)).text, "");

    let following = Following::start(&app, &["--state", state.to_str().unwrap()]);
    let third = id_of(&app, &patient());
    assert_eq!(following.next_id(), third);
    let token = following.stop();
    assert_eq!(fs::read_to_string(&state).unwrap(), format!("{token}\n"));

    assert_eq!(all(&app, &[&arguments[..], &["--since", &token]].concat()).status.code(), Some(2));
    app.database.connect().batch_execute("DELETE FROM feed_marks").unwrap();
    let exported = refused(all(&app, &arguments));
    assert!(exported.contains(&format!("export everything once, after removing {}", state.display())), "{exported}");
    fs::write(&state, "").unwrap();
    assert!(refused(all(&app, &arguments)).contains("this is not a token"));
}

#[test]
fn a_printed_token_stays_valid_until_a_later_one_is_printed() {
    let app = TestApp::start();
    let following = Following::start(&app, &[]);
    let first = id_of(&app, &patient());
    assert_eq!(following.next_id(), first);
    let mut token = following.next_line()["next"].as_str().unwrap().to_owned();
    // A quiet weekend, and then more than a pipe holds, for a consumer that does not read.
    app.database.connect().batch_execute("UPDATE feed_marks SET made_at = made_at - interval '3 days'").unwrap();
    let filler = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at, updated_at)
         SELECT id, gen_random_uuid(), repeat('x', 200), 'y', '+61491570006', '1985-12-10', now(), now()
         FROM organisations, generate_series(1, 9000) WHERE id = '{}'",
        app.clinic.organisation
    );
    let marks = || app.database.count("feed_marks");
    let before = marks();
    let Following { mut child, lines, .. } = following;
    drop(lines);
    app.database.connect().batch_execute(&filler).unwrap();
    wait_for("a mark whose token is not printed", || marks() > before);
    child.kill().unwrap();
    child.wait().unwrap();
    // The next sweep, seen by a mark that is over.
    app.database
        .connect()
        .batch_execute(
            "INSERT INTO feed_marks (organisation_id, system_identifier, next, running, made_at)
             VALUES (gen_random_uuid(), 7, 7, '{}', now() - interval '401 days')",
        )
        .unwrap();
    let _sweeper = service(&app.database).start();
    wait_for("a sweep", || app.database.count("feed_marks WHERE system_identifier = 7") == 0);
    let rest = since(&app, &token);
    assert_eq!(rest.ids().len(), 9000);
    token = rest.token;
    assert_eq!(since(&app, &token).text, "");
}

#[test]
fn an_export_waits_for_a_database_that_is_away_when_it_starts() {
    let app = TestApp::start();
    let id = id_of(&app, &patient());
    // The way to the database comes when the export has looked for it in vain.
    let folder = tempfile::tempdir().unwrap();
    let owner = DatabaseUrl::on_socket(&folder.path().to_string_lossy(), "intake_owner", app.database.name());
    let owner = owner.with_durability(Durability::None);
    let socket = app.database.socket_folder().join(".s.PGSQL.5432");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(2));
            std::os::unix::fs::symlink(&socket, folder.path().join(".s.PGSQL.5432")).unwrap();
        });
        let output = export(program().database_urls(&owner, &owner), app.clinic.organisation, &["--format", "jsonl"]);
        assert_eq!(given(output).ids(), [id]);
    });
}

#[test]
fn exports_are_in_the_audit_log_with_role_and_number() {
    let app = TestApp::start();
    let reader = ReaderRole::make(&app.database, "recorded", Some(app.clinic.organisation));
    let run = |more: &[&str]| {
        let arguments = [&["--format", "jsonl"], more].concat();
        given(export(program().database_urls(&reader.url, &reader.url), app.clinic.organisation, &arguments))
    };
    let recorded = || {
        let columns = "concat_ws('|', organisation_id, operator, subject)";
        app.database
            .texts(&format!("SELECT {columns} FROM audit_entries WHERE action = 'patients_exported' ORDER BY at"))
    };
    let empty = run(&[]);
    assert_eq!(recorded(), [""; 0], "nothing was given out");
    id_of(&app, &patient());
    let one = run(&["--since", &empty.token]);
    id_of(&app, &patient());
    run(&[]);
    let (organisation, role) = (app.clinic.organisation, reader.name());
    let entry = |patients: &str| format!("{organisation}|the role {role}|{patients}");
    assert_eq!(recorded(), [entry("1 patient"), entry("2 patients")]);
    let following = Following::start(&app, &["--since", &one.token]);
    following.next_id();
    let third = id_of(&app, &patient());
    assert_eq!(following.next_id(), third);
    assert_eq!(recorded().len(), 3, "before it was given out");
    following.stop();
    assert_eq!(
        recorded()[2..].iter().map(|line| line.rsplit('|').next().unwrap()).collect::<Vec<_>>(),
        ["1 patient"; 2]
    );
}

/// The program in docs/examples, killed again and again, has each patient once, and none that was erased.
#[test]
fn the_documented_consumer_keeps_an_exact_copy() {
    let program = include_str!("../../../../../docs/examples/keep_copy.py");
    assert!(program.lines().filter(|line| !line.is_empty()).count() <= 20);
    let app = TestApp::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("copy.py"), program).unwrap();
    let intake = Path::new(env!("CARGO_BIN_EXE_intake")).parent().unwrap();
    let path = format!("{}:{}", intake.display(), std::env::var("PATH").unwrap());
    let start = || {
        let mut command = Command::new("python3");
        command.args(["copy.py", &app.clinic.organisation.to_string()]).current_dir(&folder).env("PATH", &path);
        command.env("DATABASE_URL", app.database.owner.expose()).env("INTAKE_DURABILITY", "none");
        command.stderr(Stdio::null()).spawn().unwrap()
    };
    let copied = || {
        let query = "import sqlite3; print(*[row[0] for row in sqlite3.connect('patients.db').execute('SELECT id FROM patients ORDER BY id')])";
        let output = Command::new("python3").args(["-c", query]).current_dir(&folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let stored = || app.database.texts("SELECT id::text FROM patients ORDER BY 1");
    for round in 0..4 {
        let mut consumer = start();
        let created: Vec<_> = (0..20).map(|_| id_of(&app, &patient())).collect();
        if round % 2 == 0 {
            wait_for("some of them", || copied().contains(&created[0]));
        }
        consumer.kill().unwrap();
        consumer.wait().unwrap();
        assert!(erasure::run(&app, "erase", &created[0], &[]).status.success());
    }
    let mut consumer = start();
    wait_for("the copy", || copied() == stored());
    assert_eq!(stored().len(), 76);
    consumer.kill().unwrap();
    consumer.wait().unwrap();
    let followers = format!(
        "pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid() AND query LIKE '%FROM erasures_v1%'",
        app.database.name()
    );
    wait_for("the exports to notice", || app.database.count(&followers) == 0);
}
