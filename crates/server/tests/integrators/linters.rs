//! What linters and a generator of collections say of the document. It is the one of a service at a public address:
//! that an address is only of this machine, they would rightly remark.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::{Integration, npm_program, work_folder};
use crate::tools::{self, run};

/// The operations of the document by their summaries, in the order of a collection.
const REQUESTS: [&str; 6] = [
    "Create a patient",
    "Check a patient without creating it",
    "Show the calling key",
    "Compare what the calling key created on a day",
    "Show what may be wrong with the patients that the calling key created",
    "List the last refused requests of the calling key",
];

fn public_service() -> Integration {
    Integration::start_with(|builder| builder.setting("INTAKE_PUBLIC_URL", "https://intake.test"))
}

#[test]
#[ignore = "just generators"]
fn redocly_and_spectral_find_nothing() {
    let Some(node) = tools::node() else { return };
    let folder = work_folder(node, &["redocly.yaml", "spectral.yaml"]);
    public_service().save_document(folder.path());
    let mut redocly = Command::new(npm_program(node, "redocly"));
    let redocly = redocly.args(["lint", "openapi.json", "--format=json"]).env("REDOCLY_TELEMETRY", "off");
    let found: Value = serde_json::from_str(&run(redocly.current_dir(&folder))).unwrap();
    assert_eq!(found["totals"]["errors"], 0, "{found}");
    assert_eq!(found["totals"]["warnings"], 0, "{found}");
    let mut spectral = Command::new(npm_program(node, "spectral"));
    let spectral = spectral.args(["lint", "openapi.json", "--ruleset=spectral.yaml", "--fail-severity=hint"]);
    run(spectral.current_dir(&folder));
}

#[test]
fn it_is_yaml_too_and_its_patterns_look_neither_ahead_nor_for_halves_of_characters() {
    let Some(python) = tools::python() else { return };
    let app = public_service();
    let folder = work_folder(python, &[]);
    app.save_document(folder.path());
    let read = "import yaml; yaml.load(open('openapi.json'), Loader=yaml.CSafeLoader)";
    run(Command::new(python.join("bin/python")).args(["-c", read]).current_dir(&folder));
    let document = fs::read_to_string(folder.path().join("openapi.json")).unwrap();
    assert!(document.is_ascii() && !document.contains("(?!") && !document.contains("(?="), "{document}");
    for surrogate in ["\\uD8", "\\uD9", "\\uDA", "\\uDB", "\\uDC", "\\uDD", "\\uDE", "\\uDF"] {
        assert!(!document.contains(surrogate), "{surrogate}");
    }
}

#[test]
fn go_reads_it_as_yaml_and_finds_the_same_in_it() {
    let Some(go_path) = tools::go_yaml() else { return };
    let folder = tempfile::tempdir().unwrap();
    public_service().save_document(folder.path());
    let mut go = Command::new("go");
    let go = go.arg("run").arg(tools::file("yaml.go")).env("GOPATH", go_path).env("GO111MODULE", "off");
    let read: Value = serde_json::from_str(&run(go.current_dir(&folder))).unwrap();
    let served: Value = serde_json::from_slice(&fs::read(folder.path().join("openapi.json")).unwrap()).unwrap();
    assert_eq!(read, served);
}

#[test]
#[ignore = "just generators"]
fn a_collection_for_postman_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = public_service();
    let folder = work_folder(node, &[]);
    app.save_document(folder.path());
    // By default, values are made up for each pattern, and `<date>` is left to fill in: /docs/postman.json needs none.
    for (options, status) in [(&[][..], 422), (&["--options", "parametersResolution=Example"], 201)] {
        let mut converter = Command::new(npm_program(node, "openapi2postmanv2"));
        let files = ["--spec", "openapi.json", "--output", "collection.json"];
        run(converter.args(files).args(options).current_dir(&folder));
        let collection = fs::read(folder.path().join("collection.json")).unwrap();
        let collection: Value = serde_json::from_slice(&collection).unwrap();
        assert_eq!(collection["auth"]["type"], "bearer");
        let mut requests = Vec::new();
        requests_in(&collection, &mut requests);
        let names: Vec<_> = requests.iter().map(|request| request["name"].as_str().unwrap()).collect();
        assert_eq!(names, REQUESTS);
        let body = requests[0]["body"]["raw"].as_str().unwrap();
        let answer = app.create(body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert_eq!(answer.text().contains("dateOfBirth\"],\"message"), status == 422, "{}", answer.text());
    }
}

/// The requests of a folder of a collection, and of those within.
fn requests_in<'a>(folder: &'a Value, found: &mut Vec<&'a Value>) {
    for item in folder["item"].as_array().unwrap() {
        match item.get("request") {
            Some(request) => found.push(request),
            None => requests_in(item, found),
        }
    }
}
