//! A newcomer's first minute: start, paste the printed line, see a patient.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use intake_test_support::{ServiceBuilder, wait_for};
use serde_json::Value;

fn in_fresh_checkout(folder: &std::path::Path) -> ServiceBuilder {
    ServiceBuilder::in_folder(env!("CARGO_BIN_EXE_intake"), std::path::Path::new(".intake")).working_folder(folder)
}

#[test]
fn the_printed_line_creates_a_patient() {
    let folder = tempfile::tempdir().unwrap();
    let service = in_fresh_checkout(folder.path()).start();
    wait_for("the curl line", || service.output().contains("\ncurl "));
    let output = service.output();
    let line = output.lines().find(|line| line.starts_with("curl ")).unwrap();
    assert!(line.contains("--cacert .intake/tls/ca.pem"), "{line}");
    let pasted = format!("{line} --silent --show-error --include");
    let answer = Command::new("bash").args(["-c", &pasted]).current_dir(folder.path()).output().unwrap();
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(answer.contains("\"firstName\":\"Ada\""));
}

#[test]
fn the_demo_key_is_the_owners_alone_and_stays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join(".intake/demo-key");
    let mut service = in_fresh_checkout(folder.path()).start();
    let first = fs::read_to_string(&key_file).unwrap();
    assert!(first.starts_with("intake_demo_"));
    assert_eq!(fs::metadata(&key_file).unwrap().mode() & 0o777, 0o600);
    assert!(!service.output().contains(&first), "the key itself is not printed");
    assert!(service.stop().success());
    let _service = in_fresh_checkout(folder.path()).start();
    assert_eq!(fs::read_to_string(&key_file).unwrap(), first);
    let list = in_fresh_checkout(folder.path()).argument("organisation").argument("list").run();
    let list = String::from_utf8(list.stdout).unwrap();
    assert_eq!(list.matches("Demo Clinic").count(), 1, "{list}");
}

#[test]
fn a_lost_demo_key_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join(".intake/demo-key");
    drop(in_fresh_checkout(folder.path()).start());
    let first = fs::read_to_string(&key_file).unwrap();
    fs::remove_file(&key_file).unwrap();
    drop(in_fresh_checkout(folder.path()).start());
    assert_ne!(fs::read_to_string(&key_file).unwrap(), first);
}

#[test]
fn a_start_does_not_use_the_demo_key_and_replaces_a_revoked_one() {
    let folder = tempfile::tempdir().unwrap();
    let key_file = folder.path().join(".intake/demo-key");
    let json = |arguments: &[&str]| -> Value {
        let program = in_fresh_checkout(folder.path());
        let output =
            arguments.iter().fold(program, |program, argument| program.argument(argument)).argument("--json").run();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let start_and_stop = || assert!(in_fresh_checkout(folder.path()).start().stop().success());
    start_and_stop();
    let first = fs::read_to_string(&key_file).unwrap();
    start_and_stop();
    let organisations = json(&["organisation", "list"]);
    let clinic = organisations[0]["id"].as_str().unwrap();
    let keys = json(&["key", "list", "--organisation", clinic]);
    assert_eq!(keys.as_array().unwrap().len(), 1, "{keys}");
    assert_eq!(keys[0]["lastUsedAt"], Value::Null);

    json(&["key", "revoke", keys[0]["id"].as_str().unwrap()]);
    start_and_stop();
    assert_ne!(fs::read_to_string(&key_file).unwrap(), first);
    assert_eq!(json(&["key", "list", "--organisation", clinic]).as_array().unwrap().len(), 2);
}
