//! A machine without PostgreSQL: a person at a terminal is asked whether to install it, everyone else gets the command.
//! A debug build alone takes another folder of programs.
#![cfg(debug_assertions)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use intake_test_support::{TestDatabase, wait_for_end};
use tempfile::TempDir;

use crate::fixtures::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_intake");
const QUESTION: &str = "Run it? [y/N] ";
const COMPLAINT: &str = "no PostgreSQL 15 or newer is installed: install its programs with `";

/// A machine with a package manager and without PostgreSQL.
struct Machine(TempDir);

impl Machine {
    /// `dnf` writes down how it was called, and does what the script says.
    fn with_package_manager(script: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(machine.path("root/usr")).unwrap();
        fs::create_dir(machine.path("bin")).unwrap();
        symlink("/bin/sh", machine.path("bin/sh")).unwrap();
        machine.add_program("sudo", "exec \"$@\"");
        machine.add_program("dnf", &format!("echo \"dnf $*\" >>'{}'\n{script}", machine.path("calls")));
        machine
    }

    /// Installs the PostgreSQL of the machine that the tests run on.
    fn that_installs() -> Self {
        let programs = TestDatabase::empty().texts("SELECT setting FROM pg_config WHERE name = 'BINDIR'").remove(0);
        Self::with_package_manager(&format!(
            "PATH=/usr/bin:/bin\npackage=\"$INTAKE_TEST_ROOT/usr/pgsql-installed\"\n\
             mkdir \"$package\" && ln -s '{programs}' \"$package/bin\""
        ))
    }

    fn add_program(&self, name: &str, script: &str) {
        let file = self.path(&format!("bin/{name}"));
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns how the package manager was called.
    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", self.path("bin")).env("INTAKE_TEST_ROOT", self.path("root"));
        command.env("INTAKE_DATA_DIR", self.path("data")).stdin(Stdio::null());
        for listener in ["INTAKE_HTTPS_ADDR", "INTAKE_HTTP_ADDR", "INTAKE_ADMIN_ADDR"] {
            command.env(listener, "127.0.0.1:0");
        }
        command
    }

    fn on_terminal(&self) -> Terminal {
        Terminal::run(self.command(PROGRAM))
    }
}

#[test]
fn a_yes_installs_postgresql_and_goes_on() {
    for answer in ["y\n", "YES\n"] {
        let machine = Machine::that_installs();
        let mut terminal = machine.on_terminal();
        terminal.answer(QUESTION, answer);
        terminal.read_until(Some("intake is ready."));
        assert_eq!(machine.calls(), "dnf install --assumeyes postgresql-server\n");
        assert!(
            terminal.seen.contains("dnf install --assumeyes postgresql-server\r\n\r\nRun it?"),
            "{}",
            terminal.seen
        );
        assert_eq!(terminal.seen.matches(QUESTION).count(), 1);
    }
}

#[test]
fn everything_but_a_yes_installs_nothing_and_ends_with_the_line_that_says_what_to_do() {
    // Enter alone, a no, a word, and Ctrl-D.
    for answer in ["\n", "n\n", "maybe\n", "\u{4}"] {
        let machine = Machine::with_package_manager("");
        let mut terminal = machine.on_terminal();
        terminal.answer(QUESTION, answer);
        let complaint = terminal.complaint();
        assert!(complaint.contains(COMPLAINT), "{answer:?}: {complaint}");
        let end = "dnf install --assumeyes postgresql-server`, which starts no server, or set DATABASE_URL";
        assert!(complaint.ends_with(end), "{complaint}");
        assert_eq!(machine.calls(), "");
        // Made by root, the database would belong to another account than the one that a package adds.
        assert!(!Path::new(&machine.path("data")).exists());
    }
}

#[test]
fn the_output_of_a_failed_installation_precedes_the_advice() {
    for script in ["echo 'no room on the disk' >&2; exit 1", "echo 'no room on the disk'"] {
        let machine = Machine::with_package_manager(script);
        let mut terminal = machine.on_terminal();
        terminal.answer(QUESTION, "y\n");
        terminal.read_until(Some("no room on the disk"));
        let complaint = terminal.complaint();
        assert!(complaint.contains(COMPLAINT), "{complaint}");
    }
}

#[test]
fn a_program_is_never_asked() {
    let machine = Machine::with_package_manager("");
    let output = machine.command(PROGRAM).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains(COMPLAINT) && complaint.lines().count() == 1, "{complaint}");

    // Half a terminal is none: what the program reads comes from a file, or what it says goes into one.
    for redirection in ["</dev/null", "2>/dev/null"] {
        let mut shell = machine.command("/bin/sh");
        shell.args(["-c", &format!("exec \"$0\" {redirection}"), PROGRAM]);
        let mut terminal = Terminal::run(shell);
        terminal.read_until(None);
        assert_eq!(wait_for_end(&mut terminal.child).code(), Some(1));
        assert!(!terminal.seen.contains(QUESTION), "{}", terminal.seen);
    }
    assert_eq!(machine.calls(), "");
}

#[test]
fn no_question_is_asked_when_the_database_is_configured() {
    let machine = Machine::with_package_manager("");
    for (setting, value) in [("INTAKE_POSTGRES_BIN", "/nowhere"), ("DATABASE_URL", "postgres://127.0.0.1:1/none")] {
        let mut program = machine.command(PROGRAM);
        program.env(setting, value);
        let complaint = Terminal::run(program).complaint();
        assert!(complaint.contains(&format!(" {setting}: ")), "{complaint}");
    }
}
