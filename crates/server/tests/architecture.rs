//! The architecture document holds: dependencies point inward only, as the manifests say, and every file and folder
//! that it names is there.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// For each crate: which of our own it may build on, and what it must never name.
const RULES: [(&str, &[&str], &[&str]); 11] = [
    ("intake-domain", &[], &["actix-web", "anyhow", "diesel", "getrandom", "pq-sys", "r2d2", "tokio", "tracing"]),
    ("intake-edge", &[], &["actix-web", "anyhow", "diesel", "tokio", "tracing"]),
    ("intake-metrics", &[], &["actix-web", "anyhow", "diesel", "tokio", "tracing"]),
    ("intake-infra", &["intake-domain", "intake-metrics"], &["actix-web", "actix-http", "serde_json", "clap"]),
    (
        "intake-http",
        &["intake-domain", "intake-edge", "intake-metrics"],
        &["diesel", "diesel_migrations", "pq-sys", "r2d2", "anyhow", "clap"],
    ),
    (
        "intake-dashboard",
        &["intake-domain", "intake-edge", "intake-http", "intake-metrics"],
        &["diesel", "diesel_migrations", "pq-sys", "r2d2", "clap"],
    ),
    (
        "intake",
        &["intake-dashboard", "intake-domain", "intake-edge", "intake-http", "intake-infra", "intake-metrics"],
        &["diesel", "pq-sys", "r2d2"],
    ),
    ("intake-import", &["intake-domain"], &["actix-web", "diesel", "pq-sys", "r2d2", "tokio"]),
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

/// Folders that are built or fetched, and no part of the project.
const NOT_OURS: [&str; 4] = [".git", ".intake", "node_modules", "target"];

/// Every file and folder of the workspace, from its root; a folder with a slash at its end.
fn everything_in(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            found.insert(format!("{path}/"));
            everything_in(&entry.path(), &format!("{path}/"), found);
        } else {
            found.insert(path);
        }
    }
}

/// The files and folders that a document names: in code, or as the target of a link. A path within the workspace is
/// recognised by a slash or the ending of a file; it may begin anywhere, so that `keys/store.rs` is enough.
fn named_in(document: &str) -> Vec<&str> {
    let code = document.split('`').skip(1).step_by(2);
    let links = document.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let is_path = |name: &&str| {
        let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-/".contains(letter));
        let has_ending =
            name.rsplit_once('.').is_some_and(|(_, end)| ["rs", "md", "toml", "sql", "json"].contains(&end));
        letters && !name.starts_with('/') && (name.contains('/') || has_ending)
    };
    code.chain(links).filter(is_path).collect()
}

/// Those of a document's names that nothing in the workspace has.
fn names_of_nothing<'a>(document: &'a str, workspace: &BTreeSet<String>) -> Vec<&'a str> {
    let is_there = |name: &&str| {
        let name = name.trim_start_matches("../");
        let (file, folder) = (format!("/{name}"), format!("/{}/", name.trim_end_matches('/')));
        workspace.iter().map(|path| format!("/{path}")).any(|path| path.ends_with(&file) || path.ends_with(&folder))
    };
    named_in(document).into_iter().filter(|name| !is_there(name)).collect()
}

#[test]
fn the_architecture_document_names_no_file_that_is_not_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut workspace = BTreeSet::new();
    everything_in(root, "", &mut workspace);
    let document = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    assert!(named_in(&document).contains(&"crates/server/tests/architecture.rs"), "{:?}", named_in(&document));
    assert_eq!(names_of_nothing(&document, &workspace), [""; 0]);

    let wrong =
        "`tests/architecture.rs`, `server/src/`, `architecture.rs`, `itecture.rs`, `no_such.rs`, `such/`, [x](no.md)";
    assert_eq!(names_of_nothing(wrong, &workspace), ["itecture.rs", "no_such.rs", "such/", "no.md"]);
    assert_eq!(named_in("`INSERT INTO`, `KeyFormat::parse`, `/readyz`, `intake`, crates/none.rs"), [""; 0]);
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
    let packages = metadata["packages"].as_array().unwrap().iter().filter(is_default);
    let default_programs: Vec<_> = packages.filter_map(|package| package["default_run"].as_str()).collect();
    assert_eq!(default_programs, ["intake"]);
}

#[test]
fn cargo_run_sets_no_variable_that_looks_like_a_setting() {
    let script = include_str!("../build.rs");
    assert!(script.contains("rustc-env=BUILD_") && !script.contains("rustc-env=INTAKE_"));
}
