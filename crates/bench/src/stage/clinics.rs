//! The organisations that send patients.

use std::path::Path;

use anyhow::{Context, ensure};
use intake_domain::{ApiKey, Environment, KeyFormat};
use intake_infra::{Prepared, SERVICE_ROLE};
use intake_test_support::{Clinic, ServiceBuilder};
use serde_json::Value;

/// The organisations that send patients, as SQL, and a key of each.
#[derive(Default)]
pub(super) struct Clinics {
    pub(super) organisations: Vec<String>,
    pub(super) keys: Vec<ApiKey>,
}

impl Clinics {
    pub(super) fn open(count: usize, urls: &Prepared) -> Self {
        // Each clinic holds connections, so none is kept.
        let open = |_| {
            let clinic = Clinic::open(&urls.service, Environment::Development);
            (format!("'{}'", clinic.organisation), clinic.key().1)
        };
        let (organisations, keys) = (0..count).map(open).unzip();
        Self { organisations, keys }
    }

    /// Made by the commands of a program, in a database that it migrates first.
    pub(super) fn of_program(count: usize, program: &Path, data: &Path, urls: &Prepared) -> anyhow::Result<Self> {
        let run = |arguments: &[&str]| -> anyhow::Result<Value> {
            let builder = ServiceBuilder::in_folder(&program.to_string_lossy(), data);
            let builder = builder.database_urls(&urls.service, &urls.owner);
            let all = arguments.iter().chain(&["--json"]);
            let output = all.fold(builder, |builder, argument| builder.argument(argument)).run();
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{} {}: {said}", program.display(), arguments.join(" "));
            Ok(serde_json::from_slice(&output.stdout)?)
        };
        let text = |made: &Value, name: &str| made[name].as_str().map(str::to_owned).with_context(|| name.to_owned());
        let format = KeyFormat::new(&"intake".parse()?, Environment::Development);
        run(&["migrate", "--service-role", SERVICE_ROLE])?;
        let mut clinics = Self::default();
        for _ in 0..count {
            let id = text(&run(&["organisation", "create", "--name", "Clinic"])?, "id")?;
            let key = text(&run(&["key", "create", "--organisation", &id, "--name", "Key"])?, "key")?;
            clinics.organisations.push(format!("'{id}'"));
            clinics.keys.push(format.parse(&key)?);
        }
        Ok(clinics)
    }
}
