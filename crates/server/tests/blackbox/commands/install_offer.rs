//! A machine without PostgreSQL: a person at a terminal is asked whether to install it, everyone else gets the command.
//! A debug build alone takes another folder of programs.
#![cfg(debug_assertions)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use intake_test_support::{TestDatabase, wait_for, wait_for_end};
use tempfile::TempDir;

use crate::fixtures::Terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_intake");
const QUESTION: &str = "Run it? [Y/n] ";
const ADVICE: &str = "dnf install --assumeyes postgresql-server`, which starts no server, or set DATABASE_URL";
const COMPLAINT: &str = "no PostgreSQL 15 or newer is installed: install its programs with `";

/// A machine with a package manager and without PostgreSQL.
struct Machine(TempDir);

impl Machine {
    /// `dnf` writes down how it was called, and does what the script says.
    fn with_package_manager(script: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        // The account of the database comes in, too.
        fs::set_permissions(machine.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(machine.path("root/usr")).unwrap();
        fs::create_dir(machine.path("bin")).unwrap();
        // What the guard of an embedded database runs, or it would stay.
        for program in ["cat", "rm", "rmdir", "sh", "sleep", "tr"] {
            symlink(format!("/bin/{program}"), machine.path(&format!("bin/{program}"))).unwrap();
        }
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

/// The guard of a database needs programs that go with the machine.
impl Drop for Machine {
    fn drop(&mut self) {
        let is_running = |folder: &fs::DirEntry| folder.path().join("data/postmaster.pid").exists();
        let folders = || [self.path(""), self.path("data")].into_iter().filter_map(|folder| fs::read_dir(folder).ok());
        wait_for("the database to end", || !folders().flatten().flatten().any(|folder| is_running(&folder)));
    }
}

#[test]
fn a_yes_installs_postgresql_and_goes_on() {
    for answer in ["\n", "y\n", "YES\n"] {
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
fn a_program_that_says_yes_installs_postgresql_without_a_question() {
    let machine = Machine::that_installs();
    let mut terminal = Terminal::run({
        let mut program = machine.command(PROGRAM);
        program.arg("--yes");
        program
    });
    terminal.read_until(Some("intake is ready."));
    assert_eq!(machine.calls(), "dnf install --assumeyes postgresql-server\n");
    assert!(!terminal.seen.contains(QUESTION), "{}", terminal.seen);

    let machine = Machine::with_package_manager("echo 'no room on the disk' >&2; exit 1");
    let output = machine.command(PROGRAM).arg("--yes").output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint.starts_with("no room on the disk\n") && complaint.lines().count() == 2, "{complaint}");
    assert!(complaint.contains(ADVICE), "{complaint}");
}

#[test]
fn everything_but_a_yes_installs_nothing_and_ends_with_the_line_that_says_what_to_do() {
    // A no, a word, and Ctrl-D.
    for answer in ["n\n", "maybe\n", "\u{4}"] {
        let machine = Machine::with_package_manager("");
        let mut terminal = machine.on_terminal();
        terminal.answer(QUESTION, answer);
        let complaint = terminal.complaint();
        assert!(complaint.contains(COMPLAINT), "{answer:?}: {complaint}");
        assert!(complaint.ends_with(ADVICE), "{complaint}");
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
    for (cargo, again) in [(None, "intake --yes"), (Some("/usr/bin/cargo"), "cargo run -- --yes")] {
        let mut program = machine.command(PROGRAM);
        program.envs(cargo.map(|cargo| ("CARGO", cargo)));
        let complaint = String::from_utf8(program.output().unwrap().stderr).unwrap();
        let expected = format!(
            "no PostgreSQL 15 or newer is installed: `{again}` installs it, by \
             `dnf install --assumeyes postgresql-server`, and starts; or set DATABASE_URL\""
        );
        assert!(complaint.contains(&expected) && complaint.lines().count() == 1, "{complaint}");
    }

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

/// The tests of this program, which need PostgreSQL, too.
fn tests(machine: &Machine) -> Command {
    let mut tests = machine.command("/bin/sh");
    // Their cluster ends with the program that runs them.
    tests.args(["-c", "\"$0\" \"$@\"; exit $?"]).arg(std::env::current_exe().unwrap());
    tests.args(["--exact", "commands::install_offer::a_database_is_made"]);
    tests.env("TMPDIR", machine.path(""));
    tests
}

#[test]
fn a_database_is_made() {
    assert_eq!(TestDatabase::new().count("patients"), 0);
}

#[test]
fn tests_install_postgresql_after_a_yes() {
    let machine = Machine::that_installs();
    let output = tests(&machine).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = "tests need PostgreSQL: `INTAKE_TEST_INSTALL=yes cargo test` installs it, by \
                    `dnf install --assumeyes postgresql-server`";
    assert_eq!(complaint.lines().last(), Some(expected));
    assert_eq!(machine.calls(), "");

    let output = tests(&machine).env("INTAKE_TEST_INSTALL", "yes").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(machine.calls(), "dnf install --assumeyes postgresql-server\n");

    for (answer, is_yes) in [("\n", true), ("y\n", true), ("n\n", false), ("\u{4}", false)] {
        let machine = Machine::that_installs();
        let mut terminal = Terminal::run(tests(&machine));
        terminal.answer(QUESTION, answer);
        terminal.read_until(None);
        assert_eq!(wait_for_end(&mut terminal.child).success(), is_yes, "{answer:?}: {}", terminal.seen);
        assert_eq!(machine.calls().lines().count(), usize::from(is_yes), "{answer:?}");
    }
}
