//! `intake doctor`: one line for each part, and the exit status.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use intake_test_support::{ServiceBuilder, TestDatabase};
use serde_json::Value;

use crate::fixtures::service;

const PARTS: [&str; 9] =
    ["settings", "database", "grants", "clock", "certificate", "proxies", "mail", "sign-on", "disk"];

fn examine(builder: ServiceBuilder) -> (Option<i32>, Vec<(String, bool, String)>, String) {
    let output = builder.argument("doctor").argument("--json").run();
    let parts: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let parts = parts.iter().map(|part| (text(&part["part"]), part["isInOrder"] == true, text(&part["message"])));
    (output.status.code(), parts.collect(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn parts_without_a_fault_are_listed_as_good() {
    let database = TestDatabase::new();
    let (code, parts, said) = examine(service(&database));
    assert_eq!(parts.iter().map(|(part, ..)| part.as_str()).collect::<Vec<_>>(), PARTS);
    let wrong: Vec<_> = parts.iter().filter(|(_, is_in_order, _)| !is_in_order).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
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
    assert!(!is_in_order && why.contains("there is none, and no proxy is trusted: set INTAKE_TLS_CERT"), "{why}");
    let (is_in_order, why) = certificate(production().setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"));
    assert_eq!((is_in_order, why.as_str()), (true, "none: trusted proxies have it"));
}

#[test]
fn each_faulty_part_is_named() {
    let database = TestDatabase::new();
    let wrong = |builder: ServiceBuilder| {
        let (code, parts, said) = examine(builder);
        assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
        parts
            .into_iter()
            .filter(|(_, is_in_order, _)| !is_in_order)
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
    assert_eq!(found.iter().map(|(part, _)| part.as_str()).collect::<Vec<_>>(), ["database", "grants"], "{found:?}");
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
