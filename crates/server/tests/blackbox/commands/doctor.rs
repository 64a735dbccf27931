//! `intake doctor`: one line for each part, and the exit status.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use intake_edge as edge;
use intake_test_support::{ServiceBuilder, TestDatabase};
use serde_json::Value;

use crate::fixtures::service;

const PARTS: [&str; 14] = [
    "settings",
    "service",
    "database",
    "grants",
    "storing",
    "clock",
    "certificate",
    "address",
    "proxies",
    "mail",
    "sign-on",
    "disk",
    "backup",
    "audit copy",
];

/// Name of a part, whether it is in order (None: not checked), and the message.
pub(crate) type Part = (String, Option<bool>, String);

/// Runs the command: its exit status, the parts, and its standard error.
pub(crate) fn examine(builder: ServiceBuilder) -> (Option<i32>, Vec<Part>, String) {
    let output = builder.argument("doctor").argument("--json").run();
    let parts: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let parts = parts.iter().map(|part| (text(&part["part"]), part["isInOrder"].as_bool(), text(&part["message"])));
    (output.status.code(), parts.collect(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn parts_without_a_fault_are_listed_as_good() {
    let database = TestDatabase::new();
    let (code, parts, said) = examine(service(&database));
    assert_eq!(parts.iter().map(|(part, ..)| part.as_str()).collect::<Vec<_>>(), PARTS);
    let unchecked: Vec<_> =
        parts.iter().filter(|(_, is_in_order, _)| *is_in_order != Some(true)).map(|(part, ..)| part.as_str()).collect();
    assert_eq!(unchecked, ["service", "address", "disk", "backup", "audit copy"], "{parts:?}");
    assert!(parts.iter().all(|(_, is_in_order, _)| *is_in_order != Some(false)), "{parts:?}");
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let output = service(&database).argument("doctor").run();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), PARTS.len());
    assert!(text.starts_with("settings     ok     development\n"), "{text}");
}

#[test]
fn a_certificate_that_is_nowhere_is_not_said_to_be_in_order() {
    let database = TestDatabase::new();
    let production = || service(&database).setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_DURABILITY", "");
    let certificate = |builder: ServiceBuilder| {
        let (_, parts, _) = examine(builder);
        parts
            .into_iter()
            .find(|(part, ..)| part == "certificate")
            .map(|(_, is_in_order, why)| (is_in_order, why))
            .unwrap()
    };
    let (is_in_order, why) = certificate(production());
    assert!(
        is_in_order == Some(false) && why.contains("there is none, and no proxy is trusted: set INTAKE_TLS_CERT"),
        "{why}"
    );
    let (is_in_order, why) = certificate(production().setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"));
    assert_eq!(
        (is_in_order, why.as_str()),
        (None, "not checked: trusted proxies have it; `address` is what they show")
    );
}

fn part(builder: ServiceBuilder, name: &str) -> (Option<bool>, String) {
    let (_, parts, _) = examine(builder);
    let found = parts.into_iter().find(|(part, ..)| part == name);
    found.map(|(_, is_in_order, why)| (is_in_order, why)).unwrap()
}

#[test]
fn the_service_beside_the_command_is_asked() {
    let database = TestDatabase::new();
    let mut running = service(&database).start();
    running.wait_until_ready();
    let admin = running.admin_address().to_string();
    let asked = || part(service(&database).setting("INTAKE_ADMIN_ADDR", &admin), "service");
    assert_eq!(asked(), (Some(true), "it is ready to store patients".to_owned()));
    let mail = service(&database)
        .setting("INTAKE_ADMIN_ADDR", &admin)
        .setting("INTAKE_SMTP_URL", "smtp://127.0.0.1:1")
        .setting("INTAKE_MAIL_FROM", "a@b.co");
    assert!(part(mail, "mail").1.contains("mails that wait: 0"));
    running.stop();
    let (is_in_order, why) = asked();
    assert!(is_in_order.is_none() && why.contains("no service runs at"), "{why}");
    let production = service(&database).setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_DURABILITY", "");
    let (is_in_order, why) = part(production.setting("INTAKE_ADMIN_ADDR", &admin), "service");
    assert!(is_in_order == Some(false) && why.contains("no service runs at"), "{why}");
}

#[test]
fn the_public_address_is_judged_as_clients_see_it() {
    let database = TestDatabase::new();
    let running = service(&database).start();
    let port = running.https.unwrap().port();
    let authority = running.data_dir().join("tls/ca.pem");
    let shown = |url: &str, authority: Option<&std::path::Path>| {
        let builder = service(&database).setting("INTAKE_PUBLIC_URL", url);
        let trusting = authority.into_iter().fold(builder, |builder, file| builder.setting("SSL_CERT_FILE", file));
        part(trusting, "address")
    };
    let url = format!("https://localhost:{port}");
    let (is_in_order, why) = shown(&url, Some(&authority));
    assert!(is_in_order == Some(true) && why.contains("its certificate is good until"), "{why}");
    let (is_in_order, why) = shown(&url, None);
    assert!(is_in_order == Some(false) && why.contains("certificate"), "{why}");
    let (is_in_order, why) = shown(&format!("https://127.0.0.2:{port}"), Some(&authority));
    assert!(is_in_order == Some(false), "another name or address: {why}");
    let admin = running.admin_address().port();
    let (is_in_order, why) = shown(&format!("https://localhost:{admin}"), Some(&authority));
    assert!(is_in_order == Some(false) && why.contains("no TLS connection"), "{why}");
}

#[test]
fn each_faulty_part_is_named() {
    let database = TestDatabase::new();
    let wrong = |builder: ServiceBuilder| {
        let (code, parts, said) = examine(builder);
        assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
        parts
            .into_iter()
            .filter(|(_, is_in_order, _)| *is_in_order == Some(false))
            .map(|(part, _, why)| (part, why))
            .collect::<Vec<_>>()
    };
    let found = wrong(
        service(&database).setting("INTAKE_SMTP_URL", "smtp://127.0.0.1:1").setting("INTAKE_MAIL_FROM", "a@b.co"),
    );
    assert_eq!(found.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>(), ["mail"], "{found:?}");
    let everyone = service(&database).setting("INTAKE_TRUSTED_PROXIES", "0.0.0.0/0");
    assert_eq!(wrong(everyone)[0].0, "proxies");
    let empty = TestDatabase::empty();
    let found = wrong(service(&empty));
    assert_eq!(
        found.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>(),
        ["database", "grants", "storing"],
        "{found:?}"
    );
    assert!(found.iter().all(|(_, why)| why.ends_with("run `intake migrate` first")), "{found:?}");

    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    fs::write(&certificate, "none").unwrap();
    fs::write(&key, "none").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let found = wrong(service(&database).setting("INTAKE_TLS_CERT", &certificate).setting("INTAKE_TLS_KEY", &key));
    assert_eq!(found.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>(), ["settings", "certificate"]);
    assert!(found[0].1.contains("can read") && found[0].1.contains("key.pem"), "{found:?}");
    let misspelt = service(&database).setting("INTAKE_DRIAN_DELAY", "1s");
    assert!(wrong(misspelt)[0].1.contains("INTAKE_DRIAN_DELAY"));
}

#[test]
fn a_trigger_that_swallows_patients_is_named() {
    let database = TestDatabase::new();
    let swallow = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER swallow BEFORE INSERT ON patients FOR EACH ROW EXECUTE FUNCTION swallow()";
    diesel::connection::SimpleConnection::batch_execute(&mut database.connect(), swallow).unwrap();
    let (is_in_order, why) = part(service(&database), "storing");
    assert!(is_in_order == Some(false) && why.contains("stored nothing, without an error"), "{why}");
}

#[test]
fn old_backups_and_missing_copies_are_named() {
    let database = TestDatabase::new();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("intake-backup.prom");
    let backup = || part(service(&database).setting("INTAKE_BACKUP_MARK", &mark), "backup");
    let copy = || part(service(&database).setting("INTAKE_AUDIT_COPIES", folder.path()), "audit copy");
    let missing = "copied, which each copy touches at its end: No such file or directory";
    assert!(backup().0 == Some(false) && copy().0 == Some(false) && copy().1.contains(missing));
    for left in ["lock", "state", "audit-2026-11.jsonl.gz"] {
        fs::write(folder.path().join(left), "").unwrap();
    }
    assert!(copy().1.contains(missing), "a run that fails can leave these: {}", copy().1);
    let copied = fs::File::create(folder.path().join("copied")).unwrap();
    let file = fs::File::create(&mark).unwrap();
    assert_eq!((backup().0, copy().0), (Some(true), Some(true)));
    let before = |duration: time::Duration| (edge::now() - duration).into();
    file.set_modified(before(time::Duration::hours(27))).unwrap();
    let (is_in_order, why) = backup();
    assert!(is_in_order == Some(false) && why.contains("INTAKE_BACKUP_MARK: the newest backup ended at"), "{why}");
    copied.set_modified(before(time::Duration::minutes(50))).unwrap();
    assert_eq!(copy().0, Some(true));
    copied.set_modified(before(time::Duration::minutes(70))).unwrap();
    let (is_in_order, why) = copy();
    assert!(is_in_order == Some(false) && why.contains("INTAKE_AUDIT_COPIES: the newest copy ended at"), "{why}");
    assert!(why.contains("systemctl status intake-audit-copy"), "{why}");
}
