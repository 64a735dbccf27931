//! The integrators' tools: packages of npm and Python in pinned versions, installed once into the target folder. Where that
//! cannot be, a line says so, and the tests that need them are left out.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// How the clients of the registries say that they reach none.
const UNREACHABLE: [&str; 12] = [
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENETUNREACH",
    "ENOTFOUND",
    "ETIMEDOUT",
    "Connection refused",
    "Failed to establish a new connection",
    "Name or service not known",
    "Network is unreachable",
    "Temporary failure in name resolution",
    "timed out",
];
/// The oldest Node.js that the tools run on.
const OLDEST_NODE: u32 = 20;

/// A folder with the packages of npm.
pub(crate) fn node() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(FOLDER.get_or_init(|| find_node().and_then(|()| install_node())))
}

/// A virtual environment with the packages of Python.
pub(crate) fn python() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(FOLDER.get_or_init(|| find_python().and_then(|()| install_python())))
}

/// The program that runs PHP.
pub(crate) fn php() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(PROGRAM.get_or_init(find_php))
}

/// Runs a program to its end, which must be a good one. Gives what it printed.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [printed, complaints] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{:?} failed:\n{printed}\n{complaints}", command.get_program());
    printed
}

/// A file that the tests bring along.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integrators/tools").join(name)
}

fn install_node() -> Result<PathBuf, String> {
    install("node", &["package.json", "package-lock.json"], |folder| {
        let mut install = Command::new("npm");
        install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]).current_dir(folder);
        vec![install]
    })
}

fn install_python() -> Result<PathBuf, String> {
    install("python", &["requirements.txt"], |folder| {
        let mut environment = Command::new("python3");
        environment.args(["-m", "venv", "--clear", "."]).current_dir(folder);
        let mut install = Command::new(folder.join("bin/pip"));
        install.args(["install", "--quiet", "--disable-pip-version-check", "--retries=1", "--requirement"]);
        install.arg(file("requirements.txt"));
        vec![environment, install]
    })
}

/// Installs what these files list, unless it was done before, or says why not. Other tests of the same run wait for it.
fn install(name: &str, lists: &[&str], commands: impl FnOnce(&Path) -> Vec<Command>) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("integrators").join(name);
    let wanted: String = lists.iter().map(|list| fs::read_to_string(file(list)).unwrap()).collect();
    let done = folder.join("installed");
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).unwrap();
    for list in lists {
        fs::copy(file(list), folder.join(list)).unwrap();
    }
    for mut command in commands(&folder) {
        let output = command.output().unwrap();
        if output.status.success() {
            continue;
        }
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        let why = UNREACHABLE.into_iter().find(|words| said.contains(words));
        assert!(why.is_some(), "{name}: the packages cannot be installed:\n{said}");
        return Err(format!("the registry of packages for {name} cannot be reached: {}", why.unwrap_or_default()));
    }
    fs::write(done, wanted).unwrap();
    Ok(folder)
}

fn find_node() -> Result<(), String> {
    let version = Command::new("node").arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8(version).unwrap();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    let has_npm = Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success());
    match major {
        // Debian has none that is newer.
        Some(major) if has_npm && major < OLDEST_NODE => {
            Err(format!("the tools of integrators need Node.js {OLDEST_NODE}, here is {major}"))
        }
        Some(_) if has_npm => Ok(()),
        _ => missing("Node.js and npm (Debian: apt install npm)"),
    }
}

fn find_python() -> Result<(), String> {
    let check = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
    match check {
        Ok(output) if output.status.success() => Ok(()),
        _ => missing("Python with venv (Debian: apt install python3-venv)"),
    }
}

fn find_php() -> Result<PathBuf, String> {
    let extensions = Command::new("php").arg("-m").output().map(|output| output.stdout).unwrap_or_default();
    if String::from_utf8_lossy(&extensions).lines().any(|extension| extension == "curl") {
        return Ok("php".into());
    }
    missing("PHP with its extension curl (Debian: apt install php-cli php-curl)")
}

/// Under CI that is a failure.
fn missing<T>(what: &str) -> Result<T, String> {
    assert!(std::env::var_os("CI").is_none(), "the tests of integrators need {what}");
    Err(format!("the tests of integrators need {what}"))
}

/// The folder, or none, with a line that says why.
fn or_skip(folder: &'static Result<PathBuf, String>) -> Option<&'static Path> {
    let why = match folder {
        Ok(folder) => return Some(folder),
        Err(why) => why,
    };
    let thread = std::thread::current();
    // What a macro prints is swallowed when the test passes.
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or_default());
    io::stderr().write_all(line.as_bytes()).unwrap();
    None
}
