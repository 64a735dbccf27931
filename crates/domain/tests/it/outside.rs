//! The domain in another service: the examples and the README's program are built in a package that takes the domain as
//! it is by default.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const MANIFEST: &str = r#"
[workspace]

[package]
name = "outside"
version = "0.0.0"
edition = "2024"

[dependencies]
intake-domain = { path = 'DOMAIN' }
time = { version = "0.3", default-features = false, features = ["std"] }

[[bin]]
name = "validate"
path = 'DOMAIN/examples/validate.rs'

[[bin]]
name = "validate_table"
path = 'DOMAIN/examples/validate_table.rs'

[[bin]]
name = "readme"
path = 'readme.rs'
"#;

/// The other service's folder, with the versions of dependencies that the workspace has locked.
fn package(name: &str) -> PathBuf {
    let domain = env!("CARGO_MANIFEST_DIR");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("Cargo.toml"), MANIFEST.replace("DOMAIN", domain)).unwrap();
    fs::copy(Path::new(domain).join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let (_, code) = include_str!("../../README.md").split_once("```rust\n").unwrap();
    fs::write(folder.join("readme.rs"), code.split_once("```").unwrap().0).unwrap();
    folder
}

/// Runs cargo in the folder, which keeps what was built for the next time.
fn cargo(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut cargo = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--offline")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that fails early leaves its input unread.
    let _ = cargo.stdin.take().unwrap().write_all(input.as_bytes());
    cargo.wait_with_output().unwrap()
}

#[track_caller]
fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
#[ignore = "just test-all"]
fn another_service_validates_json_lines_and_tables() {
    let folder = package("validating");
    let lines = [
        r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10"}"#,
        r#"{"firstName":"Ada","lastName":7,"phoneNumber":"+61412345678","dateOfBirth":"1985-02-30"}"#,
        r#"{"firstName""#,
    ];
    let said = text(&cargo(&folder, &["run", "--quiet", "--bin", "validate"], &lines.join("\n")));
    let expected = [
        "1: valid",
        "2: lastName: must be a string; dateOfBirth: must be a real date",
        "3: the patient is not valid JSON: error at line 1 column 12",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);

    text(&cargo(&folder, &["run", "--quiet", "--bin", "readme"], ""));

    let validate_table = ["run", "--quiet", "--bin", "validate_table"];
    let table = "firstName\tlastName\tphoneNumber\tdateOfBirth\temail\n\
                 Ada\tLovelace\t+61412345678\t1985-12-10\t\n\
                 Ada\t\t0412 345 678\t1985-12-10\tada@example\n";
    let said = text(&cargo(&folder, &validate_table, table));
    let expected = [
        "2: valid",
        "3: lastName: is required; phoneNumber: E.164 format is required, for example +61491570006; \
         email: must be a valid email address",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);

    let refused = cargo(&folder, &validate_table, "firstName\tsurname\nAda\tLovelace\n");
    assert!(!refused.status.success());
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(complaint.contains("UnknownField") && complaint.contains("surname"), "{complaint}");
}

/// Checks a promise of the README.
#[test]
fn a_crate_that_only_validates_builds_at_most_15_crates_and_nothing_about_access() {
    let tree = ["tree", "--prefix", "none", "--no-dedupe", "--edges", "normal", "--format", "{p}"];
    let tree = text(&cargo(&package("counting"), &tree, ""));
    let crates: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains("serde_json"), "{crates:?}");
    assert!(crates.len() <= 15, "{}: {crates:?}", crates.len());
    for access in ["actix-web", "async-trait", "diesel", "garde", "sha2", "tokio", "totp-rs", "zeroize"] {
        assert!(!crates.contains(access), "{access}");
    }
}

#[test]
fn the_package_holds_its_licence() {
    let list = ["package", "--list", "--allow-dirty", "--package", "intake-domain"];
    let listed = text(&cargo(Path::new(env!("CARGO_MANIFEST_DIR")), &list, ""));
    assert!(["LICENSE", "README.md"].iter().all(|name| listed.lines().any(|line| line == *name)), "{listed}");
}
