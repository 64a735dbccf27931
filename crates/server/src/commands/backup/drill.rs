//! Tries a backup with the drill of the package: starts it in a temporary folder, and reports what is missing in it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use super::restore::{ORIGIN, RECORD};
use crate::settings::configuration::Configuration;

const SCRIPT: &str = include_str!("../../../packaging/drill");

/// Returns the drill's report.
pub(super) fn run(backup: &Path, configuration: &Configuration) -> anyhow::Result<String> {
    let about = || backup.display().to_string();
    let origin = backup.join(ORIGIN);
    let name = || origin.display().to_string();
    let origin: Value = serde_json::from_str(&fs::read_to_string(&origin).with_context(name)?).with_context(name)?;
    let text = |name: &str| origin.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let data = backup.join("data");
    let mut drill = Command::new("bash");
    // The log that the backup needs is in its own data.
    drill.args(["-c", SCRIPT, "drill"]).args([&data, &data.join("pg_wal"), &backup.join(RECORD)]);
    drill
        .env("PGUSER", text("role"))
        .env("PGDATABASE", text("database"))
        .env("INTAKE_ENVIRONMENT", text("environment"));
    if let Some(programs) = &configuration.postgres_bin {
        drill.env("INTAKE_POSTGRES_BIN", programs);
    }
    // The drill runs this program.
    let program = env::current_exe().context("the path of this program cannot be read")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&path));
    let output = drill.env("PATH", env::join_paths(folders)?).output().context("bash cannot be run")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{}: the backup cannot be restored: {}",
            about(),
            said.trim().lines().last().unwrap_or("no reason given")
        );
    }
    Ok(format!("{}\n{}", about(), String::from_utf8_lossy(&output.stdout).trim_end()))
}
