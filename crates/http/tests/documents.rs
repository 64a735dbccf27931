//! The documents that are made from the table of fields. `UPDATE_DOCS=1 cargo test` writes them anew, and what changed
//! is reviewed like code.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking and say why")]

use std::fs;
use std::path::Path;

use intake_domain::{Definition, Field};
use intake_http::openapi;
use serde_json::Value;

#[test]
fn the_openapi_document_is_the_reviewed_one() {
    assert_current("docs/openapi.json", |_| openapi("https://localhost:8443"));
}

#[test]
fn every_success_names_the_end_of_the_key() {
    let document: Value = serde_json::from_str(&openapi("https://localhost:8443")).unwrap();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    for operation in operations {
        let answers = operation["responses"].as_object().unwrap().iter();
        let successes: Vec<_> = answers.filter(|(status, _)| status.starts_with('2')).collect();
        assert!(!successes.is_empty(), "{operation}");
        for (status, answer) in successes {
            let name = &operation["operationId"];
            assert!(answer["headers"]["Intake-Key-Expires"].is_object(), "{name}, {status}: {answer}");
        }
    }
}

#[test]
fn the_guide_has_the_table_of_fields() {
    assert_current("docs/api.md", |guide| {
        let (before, rest) = guide.split_once("<!-- fields -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- /fields -->").unwrap();
        format!("{before}<!-- fields -->\n{}<!-- /fields -->{after}", fields_table())
    });
}

/// The rules of the fields as a table of Markdown.
fn fields_table() -> String {
    let row = |field: Field| {
        let Definition { name, is_required, description, rule, .. } = field.definition();
        format!("| `{name}` | {description} | {} | {rule} |\n", if *is_required { "yes" } else { "no" })
    };
    format!(
        "| Field | What it holds | Required | Rule |\n|---|---|---|---|\n{}",
        Field::ALL.iter().copied().map(row).collect::<Vec<_>>().concat()
    )
}

/// Asserts that a document is what it should be, or makes it so.
fn assert_current(name: &str, expected: impl FnOnce(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let found = fs::read_to_string(&path).unwrap_or_default();
    let expected = expected(&found);
    if found == expected {
        return;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(path, expected).unwrap();
    }
    panic!(
        "{name} is not what the table of fields makes of it: run `UPDATE_DOCS=1 cargo test` and look at what changed"
    );
}
