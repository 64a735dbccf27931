//! A service, and the program that imports patients into it.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use intake_domain::{ApiKey, Environment};
use intake_infra::Durability;
use intake_test_support::{Clinic, Service, ServiceBuilder, TestDatabase, free_port};
use tempfile::TempDir;

pub(crate) const HEADER: &str = "firstName,lastName,phoneNumber,dateOfBirth,email,suburb";

/// A service with an empty register, and a folder with a key.
pub(crate) struct Import {
    pub(crate) service: Service,
    pub(crate) database: TestDatabase,
    pub(crate) clinic: Clinic,
    pub(crate) folder: TempDir,
    doubts: RefCell<String>,
}

impl Import {
    pub(crate) fn start() -> Self {
        Self::start_with("off")
    }

    pub(crate) fn start_with(rate_limit: &str) -> Self {
        let database = TestDatabase::new();
        let builder = ServiceBuilder::new(service_program().to_str().unwrap()).database(&database);
        // One to come back on.
        let builder = builder.setting("INTAKE_HTTPS_ADDR", format!("127.0.0.1:{}", free_port()));
        let service = builder.setting("INTAKE_RATE_LIMIT", rate_limit).start();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let import =
            Self { service, database, clinic, folder: tempfile::tempdir().unwrap(), doubts: RefCell::default() };
        import.write_key(&import.clinic.key().1);
        import
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn write_key(&self, key: &ApiKey) {
        self.write("key", format!("{}\n", key.expose()));
    }

    pub(crate) fn command(&self, file: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake-import"));
        command.current_dir(&self.folder).arg(file).args(more).args(["--key-file", "key", "--cacert"]);
        command.arg(self.service.data_dir().join("tls/ca.pem")).stdin(Stdio::null());
        command.arg("--url").arg(format!("https://localhost:{}", self.service.https.unwrap().port()));
        command
    }

    /// Runs it to its end, which must be a good one; gives what it printed but doubts.
    #[track_caller]
    pub(crate) fn run(&self, file: &str, more: &[&str]) -> String {
        let output = self.command(file, more).output().unwrap();
        assert!(output.status.success(), "{}{}", printed(&output), complaint(&output));
        self.facts(&output)
    }

    /// Runs it to its end, which must be a bad one; gives what it printed but doubts, and what it complained of.
    #[track_caller]
    pub(crate) fn fail(&self, file: &str, more: &[&str]) -> (String, String) {
        let output = self.command(file, more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        (self.facts(&output), complaint(&output))
    }

    /// The doubts that the last run ended with.
    pub(crate) fn doubts(&self) -> String {
        self.doubts.borrow().clone()
    }

    /// The output of a run without its doubts, which nearly every made-up patient raises.
    pub(crate) fn facts(&self, output: &Output) -> String {
        let mut facts = printed(output);
        *self.doubts.borrow_mut() = facts.split_off(facts.find("probably wrong").unwrap_or(facts.len()));
        facts
    }

    /// Another organisation, whose key is taken from now on.
    pub(crate) fn other_clinic(&self) -> Clinic {
        let other = Clinic::open(&self.database.service, Environment::Development);
        self.write_key(&other.key().1);
        other
    }

    /// Runs a command of the service as the owner of the database, who may do everything.
    #[track_caller]
    pub(crate) fn as_owner(&self, arguments: &[&str]) {
        let owner = self.database.owner.clone().with_durability(Durability::None);
        let program = ServiceBuilder::new(service_program().to_str().unwrap()).database_urls(&owner, &owner);
        let output = arguments.iter().fold(program, |program, argument| program.argument(argument)).run();
        assert!(output.status.success(), "{}", complaint(&output));
    }

    /// The options that the program proposes for a file, and what it says of them.
    #[track_caller]
    pub(crate) fn propose(&self, file: &str) -> (Vec<String>, String) {
        self.propose_with(file, &[])
    }

    /// Does so beside options that are given.
    #[track_caller]
    pub(crate) fn propose_with(&self, file: &str, given: &[&str]) -> (Vec<String>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake-import"));
        let output = command.current_dir(&self.folder).args([file, "--propose"]).args(given).output().unwrap();
        assert!(output.status.success(), "{}", complaint(&output));
        let said = printed(&output);
        let (options, said) = (said.lines().last().unwrap(), complaint(&output));
        let split = Command::new("sh").args(["-c", &format!("printf '%s\\n' x {options}")]).output().unwrap();
        (printed(&split).lines().skip(1).map(str::to_owned).collect(), said)
    }

    pub(crate) fn report(&self) -> Vec<Vec<String>> {
        let mut reader = csv::Reader::from_path(self.path("report.csv")).unwrap();
        reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
    }

    /// Row, outcome and message of each line of the report, without doubts.
    pub(crate) fn messages(&self) -> Vec<(String, String, String)> {
        let rows = self.report().into_iter();
        let named = |row: Vec<String>| {
            let [row, outcome, _, _, message, _, _]: [String; 7] = row.try_into().unwrap();
            let notes: Vec<_> = message.split("; ").filter(|note| !note.starts_with("look at it: ")).collect();
            (row, outcome, notes.join("; "))
        };
        rows.map(named).collect()
    }

    pub(crate) fn patients(&self) -> i64 {
        self.database.count("patients")
    }

    /// Returns what the register holds of one field.
    pub(crate) fn texts(&self, column: &str) -> Vec<String> {
        self.database.texts(&format!("SELECT coalesce({column}::text, 'null') FROM patients ORDER BY 1"))
    }
}

pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The service, which `cargo test` builds beside this program.
pub(crate) fn service_program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_intake-import")).with_file_name("intake");
    assert!(program.exists(), "this test needs the program intake: cargo build");
    program
}

/// This many rows, all different.
pub(crate) fn many(count: usize) -> String {
    let mut text = format!("{HEADER}\n");
    for number in 0..count {
        text.push_str(&format!("Test,Patient-{number:06},+614{number:08},1985-12-10,,Carlton\n"));
    }
    text
}
