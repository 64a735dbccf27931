//! The command line: text for people, one JSON value for programs, one line for whatever goes wrong.

use std::process::Output;

use intake_domain::Environment;
use intake_infra::DatabaseUrl;
use intake_test_support::{Clinic, ServiceBuilder, TestDatabase, complaint_in, patient};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::values::{REQUIRED, answered_members};
use crate::assert_unauthorised;
use crate::fixtures::{TestApp, demo_key, program, service};

const PROGRAM: &str = env!("CARGO_BIN_EXE_intake");

fn run(builder: ServiceBuilder, arguments: &[&str]) -> Output {
    arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).run()
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn text_of(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line of an error.
#[track_caller]
fn complaint(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty());
    assert!(code == 2 || text.lines().count() == 1, "{text}");
    complaint_in(&output.stderr)
}

/// Returns how many migrations there are.
fn migrations() -> usize {
    let entries = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn organisations_and_keys_are_made_used_listed_and_revoked() {
    let database = TestDatabase::new();
    let running = service(&database).start();
    let intake = |arguments: &[&str]| run(service(&database), arguments);

    assert_eq!(json_of(&intake(&["organisation", "list", "--json"])), json!([]));
    let organisation = json_of(&intake(&["organisation", "create", "--name", "Harbour Clinic", "--json"]));
    assert_eq!(names(&organisation), ["id", "name"]);
    assert_eq!(organisation["name"], "Harbour Clinic");
    assert_eq!(json_of(&intake(&["organisation", "list", "--json"])), json!([organisation]));
    let id = organisation["id"].as_str().unwrap();

    let key = json_of(&intake(&["key", "create", "--organisation", id, "--name", "Front desk", "--json"]));
    assert_eq!(names(&key), ["id", "key", "name", "organisationId"]);
    assert_eq!((key["name"].as_str(), key["organisationId"].as_str()), (Some("Front desk"), Some(id)));
    let secret = key["key"].as_str().unwrap();
    let api_key = demo_key(secret);
    assert_eq!(running.create(&api_key, &patient()).json()["data"]["organisationId"], id);

    let list = json_of(&intake(&["key", "list", "--organisation", id, "--json"]));
    let listed = &list[0];
    let expected = ["createdAt", "expiresAt", "hint", "id", "lastUsedAt", "name", "revokedAt"];
    assert_eq!(names(listed), expected);
    assert_eq!(listed["hint"], secret[secret.len() - 4..]);
    assert_eq!((&listed["expiresAt"], &listed["revokedAt"]), (&Value::Null, &Value::Null));
    assert!(!list.to_string().contains(secret));

    let key_id = key["id"].as_str().unwrap();
    let revoked = json_of(&intake(&["key", "revoke", key_id, "--json"]));
    assert_eq!(names(&revoked), ["id", "revokedAt"]);
    assert_eq!(revoked["id"], key_id);
    assert_unauthorised(&running.create(&api_key, &patient()));
    assert_eq!(json_of(&intake(&["key", "revoke", key_id, "--json"])), revoked, "once is for good");
    let again = String::from_utf8(intake(&["key", "revoke", key_id]).stdout).unwrap();
    assert_eq!(
        again.trim(),
        format!("Key {key_id} was already revoked at {}.", revoked["revokedAt"].as_str().unwrap())
    );
    let list = json_of(&intake(&["key", "list", "--organisation", id, "--json"]));
    assert_eq!(list[0]["revokedAt"], revoked["revokedAt"]);
}

#[test]
fn where_nothing_can_be_printed_a_command_fails_and_names_what_it_made() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let create = ["key", "create", "--organisation", &id, "--name", "Front desk"];
    let complained = complaint(&run(service(&app.database).full_stdout(), &create), 1);
    let key = app.database.texts("SELECT id::text FROM api_keys").concat();
    assert!(complained.contains(&format!("intake key revoke {key}")), "{complained}");
    let revoked = run(service(&app.database).full_stdout().full_stderr(), &["key", "revoke", &key]);
    assert_eq!(revoked.status.code(), Some(1));
    assert_eq!(app.database.count("api_keys WHERE revoked_at IS NOT NULL"), 1);
    // A reader that has gone has not seen the key either.
    for (command, made) in [
        (&create[..], "intake key revoke "),
        (&["organisation", "create", "--name", "Harbour Clinic"], "the organisation "),
        (
            &["member", "invite", "--organisation", &id, "--email", "ada@example.com"],
            "a link for ada@example.com was made",
        ),
    ] {
        for reader in ["exec >/dev/full", "exec > >(:); sleep 0.1"] {
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", &format!("{reader}; exec \"$0\" \"$@\""), PROGRAM]).args(command);
            shell.env("DATABASE_URL", app.database.service.expose()).env("INTAKE_DURABILITY", "none");
            let ended = shell.output().unwrap();
            let complained = complaint(&ended, 1);
            assert!(complained.contains(made), "{reader}: {complained}");
        }
    }
    // The token cannot be told: what was given out may come again.
    let _ = app.create(&patient());
    let given = run(
        service(&app.database).database_urls(&app.database.owner, &app.database.owner).full_stderr(),
        &["export", "--organisation", &id, "--format", "jsonl"],
    );
    assert_eq!((given.status.code(), given.stderr.len()), (Some(1), 0));
    assert!(!given.stdout.is_empty());
}

#[test]
fn a_key_that_is_refused_for_another_reason_is_not_said_to_work() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let (key, _) = app.clinic.key();
    let key = key.to_string();
    let said = |arguments: &[&str]| text_of(&run(service(&app.database), arguments));
    let _ = said(&["key", "pause", &key]);
    assert!(
        said(&["key", "networks", &key])
            .ends_with("accepted from: any. Its requests are refused, because it is paused.\n")
    );
    let _ = said(&["organisation", "suspend", &id]);
    let resumed = said(&["key", "resume", &key]);
    assert!(
        resumed.contains("no longer paused. Its requests are refused, because its organisation is suspended."),
        "{resumed}"
    );
    let _ = said(&["organisation", "resume", &id]);
    assert!(said(&["key", "networks", &key]).ends_with("accepted from: any\n"));
    let _ = said(&["key", "pause", &key]);
    assert!(said(&["key", "resume", &key]).contains("works again"));
}

#[test]
fn without_json_the_commands_speak_to_people() {
    let database = TestDatabase::new();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let id = clinic.organisation.to_string();
    let intake = |arguments: &[&str]| text_of(&run(service(&database), arguments));
    assert!(intake(&["key", "list", "--organisation", &id]).contains("no key yet"));
    let made = intake(&["key", "create", "--organisation", &id, "--name", "Front desk", "--expires", "2999-12-31"]);
    assert!(made.contains("Front desk") && made.contains("cannot be retrieved later") && made.contains("intake_demo_"));
    let list = intake(&["key", "list", "--organisation", &id]);
    assert!(list.contains("Front desk") && list.contains("active, expires 2999-12-31T00:00:00.000Z"), "{list}");
    assert!(intake(&["organisation", "create", "--name", "Second"]).contains("Second"));
    assert!(intake(&["organisation", "list"]).contains("Test Clinic"));
    assert!(intake(&["--help"]).contains("Patient intake API for clinics"));
}

#[test]
fn a_build_names_its_version_and_commit_everywhere() {
    let app = TestApp::start();
    let version = text_of(&run(service(&app.database), &["--version"]));
    let (name, detail) = version.trim().split_once(" (").unwrap();
    assert_eq!(name, concat!("intake ", env!("CARGO_PKG_VERSION")));
    let commit = detail.trim_end_matches(')').split(", ").next().unwrap();
    assert!(commit.len() >= 7 && commit.chars().all(|letter| letter.is_ascii_hexdigit()), "{version}");
    let metrics = app.service.probe("/metrics").text();
    let build = metrics.lines().find(|line| line.starts_with("intake_build_info{")).unwrap();
    assert!(build.contains(&format!("commit=\"{commit}\"")), "{build}");
    let log = app.service.output();
    assert!(log.lines().next().unwrap().contains(commit), "{log}");
}

#[test]
fn a_probe_says_whether_the_service_beside_it_lives_and_is_ready() {
    let app = TestApp::start();
    let admin = app.service.admin_address().to_string();
    let probe = |arguments: &[&str]| {
        let arguments = [&["probe", "--admin-addr", &admin], arguments].concat();
        run(service(&app.database), &arguments)
    };
    for arguments in [&[][..], &["--ready"]] {
        let output = probe(arguments);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    drop(app.service);
    let output = probe(&[]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains(&admin) && complaint.lines().count() == 1, "{complaint}");
}

#[test]
fn a_link_leads_to_this_machine_unless_another_address_is_set() {
    let database = TestDatabase::new();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let id = clinic.organisation.to_string();
    let link = |builder: ServiceBuilder| {
        let arguments = ["member", "invite", "--organisation", &id, "--email", "ada@clinic.example", "--json"];
        json_of(&run(builder, &arguments))["link"].as_str().unwrap().to_owned()
    };
    assert!(link(service(&database)).starts_with("https://localhost:8443/invitations/"));
    let public = service(&database).setting("INTAKE_PUBLIC_URL", "https://intake.example");
    assert!(link(public).starts_with("https://intake.example/invitations/"));
}

#[test]
fn a_keys_end_is_a_moment_or_a_day() {
    let database = TestDatabase::new();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let id = clinic.organisation.to_string();
    let create = |time: &str| {
        run(service(&database), &["key", "create", "--organisation", &id, "--name", "k", "--json", "--expires", time])
    };
    json_of(&create("2999-12-31"));
    json_of(&create("2999-12-31T10:00:00+10:00"));
    json_of(&create("2020-01-01"));
    complaint(&create("tomorrow"), 2);
    let list = json_of(&run(service(&database), &["key", "list", "--organisation", &id, "--json"]));
    let ends: Vec<_> = list.as_array().unwrap().iter().map(|key| key["expiresAt"].as_str().unwrap()).collect();
    assert_eq!(ends, ["2999-12-31T00:00:00.000Z", "2999-12-31T00:00:00.000Z", "2020-01-01T00:00:00.000Z"]);
}

#[test]
fn an_error_is_one_line_and_exit_1() {
    let database = TestDatabase::new();
    let nobody = Uuid::from_u128(7).to_string();
    let intake = |arguments: &[&str]| run(service(&database), arguments);
    let cases: [(&[&str], &str); 8] = [
        (&["key", "create", "--organisation", &nobody, "--name", "k"], "there is no organisation"),
        (&["key", "list", "--organisation", &nobody], "there is no organisation"),
        (&["key", "usage", "--organisation", &nobody], "there is no organisation"),
        (&["member", "list", "--organisation", &nobody], "there is no organisation"),
        (&["key", "revoke", &nobody], "there is no key"),
        (&["organisation", "create", "--name", " "], "--name: must not be blank"),
        (&["organisation", "create", "--name", ""], "--name: must be 1 to 100 characters long"),
        (&["organisation", "create", "--name", "a\nb"], "--name: must not contain control characters"),
    ];
    for (arguments, expected) in cases {
        let complaint = complaint(&intake(arguments), 1);
        assert!(complaint.starts_with("intake: ") && complaint.contains(expected), "{complaint}");
    }
    let unreachable = program().setting("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none");
    assert!(complaint(&run(unreachable, &["organisation", "list"]), 1).contains("cannot connect to the database"));
}

#[test]
fn wrong_usage_is_exit_2() {
    for arguments in [
        &["frobnicate"][..],
        &["key"],
        &["key", "create"],
        &["key", "revoke"],
        &["key", "revoke", "not-a-uuid"],
        &["key", "usage", "--days", "31"],
        &["organisation", "create"],
        &["serve", "--unknown"],
        &["key", "list", "--organisation", "7"],
    ] {
        complaint(&run(program(), arguments), 2);
    }
}

#[test]
fn a_wrong_setting_stops_the_start_with_a_line_that_names_it() {
    let settings = [
        ("INTAKE_ENVIRONMENT", "staging"),
        ("DATABASE_URL", "postgres://db.example/intake"),
        ("DATABASE_URL", "nonsense"),
        ("INTAKE_HTTPS_ADDR", "nowhere"),
        ("INTAKE_HTTP_ADDR", "nowhere"),
        ("INTAKE_ADMIN_ADDR", "nowhere"),
        ("INTAKE_TRUSTED_PROXIES", "nowhere"),
        ("INTAKE_KEY_PREFIX", "Über"),
        ("INTAKE_RATE_LIMIT", "1"),
        ("INTAKE_DEADLINE", "soon"),
        ("INTAKE_PUBLIC_URL", "http://localhost"),
        ("INTAKE_LOG", "x=y"),
        ("INTAKE_TLS_CERT", "/nowhere.pem"),
    ];
    for (name, value) in settings {
        let complaint = complaint(&program().setting(name, value).run(), 1);
        assert!(complaint.contains(name), "{name}={value}: {complaint}");
        assert!(!complaint.contains("db.example"), "an address may hold a password");
    }
}

#[test]
fn a_flag_wins_over_its_variable() {
    let database = TestDatabase::new();
    let wrong = service(&database).setting("INTAKE_RATE_LIMIT", "wrong").setting("INTAKE_DEADLINE", "wrong");
    let started = wrong.argument("serve").argument("--rate-limit=off").argument("--deadline").argument("2s").start();
    started.wait_until_ready();
}

#[test]
fn migrating_prints_what_was_applied_and_grants_exactly_what_the_service_needs() {
    let database = TestDatabase::empty_and_durable();
    let role = format!("role of {}", database.name());
    let create_role = format!("CREATE ROLE \"{role}\" LOGIN");
    database.administer(&create_role);
    let owner = || program().database_urls(&database.owner, &database.owner);

    let nobody = run(owner(), &["migrate", "--service-role", "no such role"]);
    assert!(complaint(&nobody, 1).contains("no role no such role"));
    let powerful = run(owner(), &["migrate", "--service-role", "intake_owner"]);
    assert!(complaint(&powerful, 1).contains("needs a role of its own"));
    let applied = json_of(&run(owner(), &["migrate", "--service-role", &role, "--json"]));
    assert_eq!(applied["applied"].as_array().unwrap().len(), migrations(), "nothing was applied before");
    assert!(text_of(&run(owner(), &["migrate"])).contains("up to date"));

    let socket = database.socket_folder();
    let as_role = DatabaseUrl::on_socket(&socket.to_string_lossy(), &role, database.name());
    let production = |builder: ServiceBuilder| {
        builder.setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
    };
    let running = production(program().database_urls(&as_role, &as_role)).start();
    let organisation = json_of(&run(
        production(program().database_urls(&as_role, &as_role)),
        &["organisation", "create", "--name", "Clinic", "--json"],
    ));
    let key = json_of(&run(
        production(program().database_urls(&as_role, &as_role)),
        &["key", "create", "--organisation", organisation["id"].as_str().unwrap(), "--name", "k", "--json"],
    ));
    let format = intake_domain::KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
    let key = format.parse(key["key"].as_str().unwrap()).unwrap();
    let headers = [("X-Forwarded-Proto", "https")];
    let bytes = intake_test_support::create_request(&key, &headers, patient().to_string().as_bytes());
    assert_eq!(running.plain_client().send(&bytes).status, 201);
    drop(running);
    let drop_role = format!("DROP OWNED BY \"{role}\"");
    diesel::connection::SimpleConnection::batch_execute(&mut database.connect(), &drop_role).unwrap();
    let drop_role = format!("DROP ROLE \"{role}\"");
    database.administer(&drop_role);
}

#[test]
fn migrating_a_fresh_database_prints_what_was_applied() {
    let database = TestDatabase::empty();
    let applied = json_of(&run(program().database_urls(&database.owner, &database.owner), &["migrate", "--json"]));
    assert_eq!(applied["applied"].as_array().unwrap().len(), migrations());
}

#[test]
fn the_openapi_document_describes_the_interface() {
    let document = json_of(&run(program(), &["openapi"]));
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = &document["components"]["schemas"];
    let mut answered: Vec<_> = schemas["Patient"]["required"].as_array().unwrap().iter().collect();
    answered.sort_by_key(|name| name.as_str());
    assert_eq!(answered, answered_members());
    assert_eq!(schemas["PatientToCreate"]["required"], json!(REQUIRED));
    let answers = document["paths"]["/patients"]["post"]["responses"].as_object().unwrap();
    let statuses: Vec<_> = answers.keys().map(String::as_str).collect();
    assert_eq!(statuses, ["201", "400", "401", "408", "410", "413", "415", "422", "426", "429", "500", "503"]);
    assert_eq!(json_of(&run(program(), &["openapi", "--json"])), document);
}
