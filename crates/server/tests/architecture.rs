//! Dependencies point inward only: the rule of the architecture document, read from the manifests.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// For each crate: which of our own it may build on, and what it must never name.
const RULES: [(&str, &[&str], &[&str]); 8] = [
    (
        "intake-domain",
        &[],
        &["actix-web", "anyhow", "diesel", "getrandom", "pq-sys", "r2d2", "serde_json", "tokio", "tracing"],
    ),
    ("intake-infra", &["intake-domain"], &["actix-web", "actix-http", "serde_json", "rustls", "clap"]),
    ("intake-http", &["intake-domain"], &["diesel", "diesel_migrations", "pq-sys", "r2d2", "anyhow", "clap"]),
    ("intake-dashboard", &["intake-domain", "intake-http"], &["diesel", "diesel_migrations", "pq-sys", "r2d2", "clap"]),
    ("intake", &["intake-dashboard", "intake-domain", "intake-http", "intake-infra"], &["diesel", "pq-sys", "r2d2"]),
    ("intake-test-support", &["intake-domain", "intake-infra"], &[]),
    ("intake-bench", &["intake-domain", "intake-infra", "intake-test-support"], &[]),
    ("intake-torture", &["intake-domain", "intake-infra", "intake-test-support"], &[]),
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn dependencies() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let normal = package["dependencies"].as_array().unwrap().iter().filter(|one| one["kind"].is_null());
        let names = normal.map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        all.insert(package["name"].as_str().unwrap().to_owned(), names);
    }
    all
}

#[test]
fn every_crate_has_its_place() {
    let ruled: Vec<_> = RULES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    let mut ruled = ruled;
    ruled.sort();
    assert_eq!(dependencies().into_keys().collect::<Vec<_>>(), ruled);
}

#[test]
fn dependencies_point_inward_only() {
    let dependencies = dependencies();
    for (name, may, never) in RULES {
        let found = &dependencies[name];
        for own in found.iter().filter(|found| found.starts_with("intake")) {
            assert!(may.contains(&own.as_str()), "{name} builds on {own}");
        }
        for forbidden in never {
            assert!(!found.iter().any(|found| found == forbidden), "{name} names {forbidden}");
        }
    }
}

#[test]
fn cargo_run_knows_which_program_is_meant() {
    let metadata = metadata();
    let is_default =
        |package: &&Value| metadata["workspace_default_members"].as_array().unwrap().contains(&package["id"]);
    let programs: Vec<_> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_default)
        .flat_map(|package| package["targets"].as_array().unwrap())
        .filter(|target| target["kind"][0] == "bin")
        .map(|target| &target["name"])
        .collect();
    assert_eq!(programs, ["intake"]);
}
