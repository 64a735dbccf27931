//! Clients are generated, not written: what three generators make of the served document creates patients, is typed, and has
//! names that a person would choose.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fixtures::{Integration, npm_program, work_folder};
use crate::tools::{self, run};

#[test]
fn openapi_python_client_makes_a_client_that_creates_a_patient() {
    let Some(python) = tools::python() else { return };
    let app = Integration::start();
    let folder = work_folder(python, &["clients/with_openapi_python_client.py"]);
    app.save_document(folder.path());
    let generator = python.join("bin/openapi-python-client");
    let options = ["--path=openapi.json", "--output-path=generated", "--meta=none", "--fail-on-warning"];
    // It formats what it has made with ruff, which it looks for on the path.
    let path = format!("{}:{}", python.join("bin").display(), std::env::var("PATH").unwrap());
    run(Command::new(generator).arg("generate").args(options).env("PATH", path).current_dir(&folder));
    let mut models: Vec<_> = fs::read_dir(folder.path().join("generated/models"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    models.sort();
    let expected = [
        "__init__.py",
        "created_patient.py",
        "field_error.py",
        "meta.py",
        "new_patient.py",
        "new_patient_country.py",
        "patient.py",
        "problem.py",
        "valid_patient.py",
        "validation_problem.py",
    ];
    assert_eq!(models, expected, "one type for each thing");
    assert_creates_one(
        &app,
        app.command(python.join("bin/python")).arg("with_openapi_python_client.py"),
        folder.path(),
    );
}

#[test]
fn openapi_typescript_and_openapi_fetch_make_a_client_that_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let folder = work_folder(node, &["tsconfig.json", "clients/with_openapi_fetch.ts"]);
    app.save_document(folder.path());
    let mut generator = Command::new(npm_program(node, "openapi-typescript"));
    run(generator.args(["openapi.json", "--output", "openapi-typescript.d.ts"]).current_dir(&folder));
    check_types(node, folder.path());
    assert_creates_one(&app, app.command("node").arg("with_openapi_fetch.js"), folder.path());
}

#[test]
fn hey_api_makes_a_client_that_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let folder = work_folder(node, &["tsconfig.json", "openapi-ts.config.js", "clients/with_hey_api.ts"]);
    app.save_document(folder.path());
    run(Command::new(npm_program(node, "openapi-ts")).arg("--no-log-file").current_dir(&folder));
    check_types(node, folder.path());
    assert_creates_one(&app, app.command("node").arg("with_hey_api.js"), folder.path());
}

/// Checks all types, and makes JavaScript of it.
fn check_types(node: &Path, folder: &Path) {
    run(Command::new(npm_program(node, "tsc")).args(["--project", ".", "--noEmitOnError"]).current_dir(folder));
}

/// Asserts that a client creates one patient, and understands why another is refused.
#[track_caller]
fn assert_creates_one(app: &Integration, client: &mut Command, folder: &Path) {
    let printed = run(client.current_dir(folder));
    let (id, field) = printed.trim().split_once(' ').unwrap();
    assert_eq!((id.len(), field), (36, "phoneNumber"));
    assert_eq!(app.patients(), 1);
}
