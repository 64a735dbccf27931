//! Puts the commit and the features into the program, so that builds can be distinguished.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=INTAKE_COMMIT");
    // Changes with each commit and each checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    // A source without its repository, such as a container's build context, is given the commit.
    let commit = std::env::var("INTAKE_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    let features = ["otlp", "tls"].into_iter().filter(|feature| has(feature)).collect::<Vec<_>>().join(",");
    let detail = if features.is_empty() { commit.clone() } else { format!("{commit}, {features}") };
    // `cargo run` hands these to the program, which would take INTAKE_ for the beginning of a setting.
    println!("cargo::rustc-env=BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=BUILD_FEATURES={features}");
    println!("cargo::rustc-env=BUILD_VERSION={} ({detail})", env!("CARGO_PKG_VERSION"));
}

fn has(feature: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
