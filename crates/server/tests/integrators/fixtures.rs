//! A running service with a key, and how programs that are not ours are started beside it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment};
use intake_test_support::{Clinic, Response, Service, ServiceBuilder, TestDatabase, create_request, request, wait_for};
use serde_json::Value;
use tempfile::TempDir;

use crate::tools;

/// A service in development over a database of its own, with a key.
pub(crate) struct Integration {
    pub(crate) service: Service,
    pub(crate) key: ApiKey,
    clinic: Clinic,
    database: TestDatabase,
}

impl Integration {
    pub(crate) fn start() -> Self {
        Self::start_with(|builder| builder)
    }

    pub(crate) fn start_with(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::new();
        let service = settings(program().database(&database)).start();
        let clinic = Clinic::open(&database.service, Environment::Development);
        Self { service, key: clinic.key().1, clinic, database }
    }

    /// The base address, as a guide gives it.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/api/v1", self.service.https.unwrap().port())
    }

    /// A program with the service's address, the key and the authority to trust.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let authority = self.service.data_dir().join("tls/ca.pem");
        command.env("INTAKE_URL", self.url()).env("INTAKE_KEY", self.key.expose());
        command.env("SSL_CERT_FILE", &authority).env("NODE_EXTRA_CA_CERTS", &authority);
        command
    }

    pub(crate) fn create(&self, body: &str) -> Response {
        self.service.client().send(&create_request(&self.key, &[], body.as_bytes()))
    }

    /// Writes an export of the organisation's patients into this file, as the owner.
    pub(crate) fn export(&self, format: &str, more: &[&str], file: &Path) {
        let organisation = self.clinic.organisation.to_string();
        let owner = self.database.owner.clone().with_durability(self.database.service.durability());
        let arguments = ["export", "--organisation", &organisation, "--format", format, "--output"];
        let arguments = [&arguments[..], &[file.to_str().unwrap()], more].concat();
        let command = arguments.iter().fold(program().database_urls(&owner, &owner), |all, one| all.argument(one));
        let output = command.run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Delivers to this target, as the owner and from the beginning.
    pub(crate) fn deliver(&self, to: &str, more: &[&str]) -> Delivery {
        let (folder, organisation) = (TempDir::new().unwrap(), self.clinic.organisation.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.args(["deliver", "--organisation", &organisation, "--to", to, "--state"]).arg(folder.path()).args(more);
        command.env("DATABASE_URL", self.database.owner.expose()).env("INTAKE_DURABILITY", "none");
        Delivery { folder, _running: Running(command.spawn().unwrap()) }
    }

    /// Erases a patient, as the owner.
    pub(crate) fn erase(&self, id: &str) {
        let organisation = self.clinic.organisation.to_string();
        let arguments = ["patient", "erase", "--organisation", &organisation, "--patient", id];
        let command = program().database(&self.database);
        assert!(arguments.iter().fold(command, |all, one| all.argument(one)).run().status.success());
    }

    /// Removes patients as a fault of the database would, which nothing of the service learns.
    pub(crate) fn remove_behind_the_service(&self, ids: &[&str]) {
        let remove = format!("DELETE FROM patients WHERE id IN ('{}')", ids.join("', '"));
        self.database.connect().batch_execute(&remove).unwrap();
    }

    pub(crate) fn patients(&self) -> i64 {
        self.database.count("patients")
    }

    /// Writes the document that the service serves into a folder.
    pub(crate) fn save_document(&self, folder: &Path) {
        let served = self.service.client().send(&request("GET", "/api/v1/openapi.json", &[], b""));
        assert_eq!(served.status, 200);
        fs::write(folder.join("openapi.json"), served.body).unwrap();
    }
}

/// A program, killed when dropped.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program, and waits for the address that it prints.
    pub(crate) fn start(command: &mut Command) -> (Self, String) {
        let mut running = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut address = String::new();
        BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        (running, address.trim_end().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A delivery that runs.
pub(crate) struct Delivery {
    _running: Running,
    folder: TempDir,
}

impl Delivery {
    /// Waits until the target has taken this many patients and erasures.
    pub(crate) fn wait_for(&self, delivered: usize, erased: usize) {
        let file = self.folder.path().join("status.json");
        wait_for("the delivery", || {
            let status: Value = fs::read(&file).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
            status["delivered"] == delivered && status["erased"] == erased
        });
    }
}

/// The program, on ports of its own.
pub(crate) fn program() -> ServiceBuilder {
    ServiceBuilder::new(env!("CARGO_BIN_EXE_intake"))
}

/// A program of one of npm's packages.
pub(crate) fn npm_program(node: &Path, name: &str) -> std::path::PathBuf {
    node.join("node_modules/.bin").join(name)
}

/// A folder from which programs find npm's packages, with copies of these files. Gone when dropped.
pub(crate) fn work_folder(within: &Path, files: &[&str]) -> TempDir {
    let folder = TempDir::with_prefix_in("work-", within).unwrap();
    for name in files {
        let name = Path::new(name);
        fs::copy(tools::file(name.to_str().unwrap()), folder.path().join(name.file_name().unwrap())).unwrap();
    }
    folder
}
