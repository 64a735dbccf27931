//! Clients are generated, not written: what these generators make of the served document creates patients, is typed,
//! and has names that a person would choose.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fixtures::{Integration, npm_program, work_folder};
use crate::guide;
use crate::tools::{self, run};

/// Generators that no test runs, and why.
const NOT_TRIED: [(&str, &str); 4] = [
    ("openapi-generator for `kotlin`", "its clients need OkHttp 4, Ktor or Spring, which Debian does not package"),
    ("openapi-generator for `csharp`", "its clients need .NET or Newtonsoft.Json 13, which Debian does not package"),
    ("oapi-codegen", "only Go's module proxy offers it"),
    ("progenitor", "it reads OpenAPI 3.0, and the document is 3.1"),
];

#[test]
#[ignore = "just generators"]
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
        "compared_day.py",
        "created_patient.py",
        "described_key.py",
        "field_error.py",
        "key.py",
        "key_day.py",
        "key_mark.py",
        "key_quality.py",
        "key_rate.py",
        "key_refusal.py",
        "key_refusals.py",
        "meta.py",
        "patient.py",
        "patient_to_create.py",
        "patient_to_create_country.py",
        "preference.py",
        "problem.py",
        "valid_patient.py",
        "valid_patient_data_type_0.py",
    ];
    assert_eq!(models, expected, "one type for each thing");
    assert_creates_one(
        &app,
        app.command(python.join("bin/python")).arg("with_openapi_python_client.py"),
        folder.path(),
    );
}

#[test]
#[ignore = "just generators"]
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
#[ignore = "just generators"]
fn hey_api_makes_a_client_that_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let folder = work_folder(node, &["tsconfig.json", "openapi-ts.config.js", "clients/with_hey_api.ts"]);
    app.save_document(folder.path());
    run(Command::new(npm_program(node, "openapi-ts")).arg("--no-log-file").current_dir(&folder));
    check_types(node, folder.path());
    assert_creates_one(&app, app.command("node").arg("with_hey_api.js"), folder.path());
}

#[test]
#[ignore = "just generators"]
fn orval_makes_a_client_that_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let folder = work_folder(node, &["tsconfig.json", "orval.config.js", "clients/with_orval.ts"]);
    app.save_document(folder.path());
    run(app.command(npm_program(node, "orval")).current_dir(&folder));
    check_types(node, folder.path());
    assert_creates_one(&app, app.command("node").arg("with_orval.js"), folder.path());
}

#[test]
#[ignore = "just generators"]
fn swagger_typescript_api_makes_a_client_that_creates_a_patient() {
    let Some(node) = tools::node() else { return };
    let app = Integration::start();
    let folder = work_folder(node, &["tsconfig.json", "clients/with_swagger_typescript_api.ts"]);
    app.save_document(folder.path());
    let mut generator = Command::new(npm_program(node, "swagger-typescript-api"));
    let options = ["generate", "--path=openapi.json", "--output=.", "--name=swagger-typescript-api.ts"];
    run(generator.args(options).current_dir(&folder));
    check_types(node, folder.path());
    assert_creates_one(&app, app.command("node").arg("with_swagger_typescript_api.js"), folder.path());
}

#[test]
#[ignore = "just generators"]
fn datamodel_code_generator_makes_models_that_create_a_patient() {
    let Some(python) = tools::python() else { return };
    let app = Integration::start();
    let program = "with_datamodel_code_generator.py";
    let folder = work_folder(python, &[&format!("clients/{program}")]);
    app.save_document(folder.path());
    let mut generator = Command::new(python.join("bin/datamodel-codegen"));
    let options = ["--input=openapi.json", "--output=models.py", "--output-model-type=pydantic_v2.BaseModel"];
    run(generator.args(options).current_dir(&folder));
    assert_creates_one(&app, app.command(python.join("bin/python")).arg(program), folder.path());
}

#[test]
fn generators_that_cannot_be_tried_are_named() {
    let guide = guide::guide();
    let named = guide.split_once("\nNot tested: ").unwrap().1.split("\n\n").next().unwrap();
    for (generator, why) in NOT_TRIED {
        tools::say_skipped(&format!("{generator}: {why}"));
        assert!(named.contains(generator), "the guide does not name {generator}: {named}");
    }
}

/// Checks all types, and makes JavaScript of it.
fn check_types(node: &Path, folder: &Path) {
    run(Command::new(npm_program(node, "tsc")).args(["--project", ".", "--noEmitOnError"]).current_dir(folder));
}

/// Asserts that a client creates one patient, and understands why another is refused.
#[track_caller]
pub(crate) fn assert_creates_one(app: &Integration, client: &mut Command, folder: &Path) {
    let printed = run(client.current_dir(folder));
    let (id, field) = printed.trim().split_once(' ').unwrap();
    assert_eq!((id.len(), field), (36, "phoneNumber"));
    assert_eq!(app.patients(), 1);
}
