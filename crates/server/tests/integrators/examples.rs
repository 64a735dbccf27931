//! The document is exact in both directions: schemathesis makes requests from it that are valid, and requests that are
//! not, and holds each answer against it. `INTAKE_EXAMPLES=5000 cargo test --test integrators -- examples` takes about
//! half an hour.

use crate::fixtures::{Integration, work_folder};
use crate::tools::{self, run};

/// For each operation: enough to find what is plainly wrong.
const EXAMPLES: &str = "100";

#[test]
fn requests_that_the_document_allows_are_accepted() {
    run_schemathesis("positive");
}

#[test]
fn requests_that_the_document_forbids_are_refused() {
    run_schemathesis("negative");
}

fn run_schemathesis(mode: &str) {
    let Some(python) = tools::python() else { return };
    let app = Integration::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let folder = work_folder(python, &[]);
    let asked = std::env::var("INTAKE_EXAMPLES").ok();
    let mut command = app.command(python.join("bin/schemathesis"));
    command.args(["run", &format!("{}/openapi.json", app.url()), "--no-color", "--workers=2", "--mode", mode]);
    let tested = if mode == "negative" {
        // Nothing that these take can be wrong.
        command.args(["--exclude-path-regex", "/key(/quality|/refusals)?$"]);
        3
    } else {
        6
    };
    command.args(["--max-examples", asked.as_deref().unwrap_or(EXAMPLES)]);
    if asked.is_none() {
        // A run of CI fails for what has changed, and for nothing else.
        command.arg("--seed=1");
    }
    command.arg("--header").arg(format!("Authorization: Bearer {}", app.key.expose()));
    command.arg("--tls-verify").arg(app.service.data_dir().join("tls/ca.pem"));
    command.env("SCHEMATHESIS_HOOKS", tools::file("schemathesis_hooks.py")).current_dir(&folder);
    let report = run(&mut command);
    assert!(report.contains(&format!("Tested: {tested}")), "{report}");
    assert!(report.contains("No issues found"), "{report}");
}
