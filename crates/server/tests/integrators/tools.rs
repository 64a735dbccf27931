//! The integrators' tools: packages of npm and Python in pinned versions, installed once into the target folder. Where
//! that cannot be, a line says so, and the tests that need them are left out.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, leave_out};

/// Messages of the registries' clients that reach none.
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
    or_skip(FOLDER.get_or_init(|| find_node().and_then(|()| install_npm("node", ""))))
}

/// A folder with programs that take what is delivered.
pub(crate) fn receivers() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(FOLDER.get_or_init(|| find_node().and_then(|()| install_npm("receivers", "receivers/"))))
}

/// A virtual environment with the packages of Python.
pub(crate) fn python() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(FOLDER.get_or_init(|| find_python().and_then(|()| install_python("python", "requirements.txt"))))
}

/// A virtual environment with openapi-generator, and what its clients for Python need.
pub(crate) fn generators() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    language("java")?;
    or_skip(FOLDER.get_or_init(|| find_python().and_then(|()| install_python("generators", "generators.txt"))))
}

/// The program that runs PHP.
pub(crate) fn php() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(PROGRAM.get_or_init(find_php))
}

/// Java's annotations, which clients need and the JDK has no more.
pub(crate) fn java_annotations() -> Option<&'static Path> {
    static FILE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(FILE.get_or_init(|| {
        let file = PathBuf::from("/usr/share/java/geronimo-annotation-1.3-spec.jar");
        let package = "javax.annotation (Debian: apt install libgeronimo-annotation-1.3-spec-java)";
        if file.exists() { Ok(file) } else { missing(package) }
    }))
}

/// Go's parser of YAML, as Debian packages it.
pub(crate) fn go_yaml() -> Option<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    language("go")?;
    or_skip(FOLDER.get_or_init(|| {
        let folder = PathBuf::from("/usr/share/gocode");
        let package = "go-yaml (Debian: apt install golang-gopkg-yaml.v3-dev)";
        if folder.join("src/gopkg.in/yaml.v3").exists() { Ok(folder) } else { missing(package) }
    }))
}

/// Looks for a program of one of these languages. Where it is not, its tests are left out by name.
pub(crate) fn language(program: &str) -> Option<()> {
    let (need, packages) = match program {
        "go" => {
            ("Go", Packages { apt: "apt-get install golang-go", dnf: "dnf install golang", brew: "brew install go" })
        }
        "ruby" => {
            ("Ruby", Packages { apt: "apt-get install ruby", dnf: "dnf install ruby", brew: "brew install ruby" })
        }
        "mcs" | "cert-sync" => {
            let apt = "apt-get install mono-mcs mono-runtime libmono-system-net-http4.0-cil ca-certificates-mono";
            ("Mono", Packages { apt, dnf: "dnf install mono-core", brew: "brew install mono" })
        }
        _ => {
            let dnf = "dnf install java-latest-openjdk-devel";
            ("a JDK", Packages { apt: "apt-get install default-jdk-headless", dnf, brew: "brew install openjdk" })
        }
    };
    if Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success() {
        return Some(());
    }
    leave_out(&Prerequisite { subject: "integrators' languages", need, packages });
    None
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

fn install_npm(name: &str, lists: &str) -> Result<PathBuf, String> {
    let lists = ["package.json", "package-lock.json"].map(|list| format!("{lists}{list}"));
    install(name, &lists.each_ref().map(String::as_str), |folder| {
        let mut install = Command::new("npm");
        install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]).current_dir(folder);
        vec![install]
    })
}

fn install_python(name: &str, list: &str) -> Result<PathBuf, String> {
    install(name, &[list], |folder| {
        let mut environment = Command::new("python3");
        environment.args(["-m", "venv", "--clear", "."]).current_dir(folder);
        let mut install = Command::new(folder.join("bin/pip"));
        install.args(["install", "--quiet", "--disable-pip-version-check", "--retries=1"]);
        install.args(["--require-hashes", "--requirement"]).arg(file(list));
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
        fs::copy(file(list), folder.join(Path::new(list).file_name().unwrap())).unwrap();
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
    say_skipped(&format!("{}: {why}", std::thread::current().name().unwrap_or_default()));
    None
}

/// Says what is left out, and why.
pub(crate) fn say_skipped(what: &str) {
    // What a macro prints is swallowed when the test passes.
    io::stderr().write_all(format!("skipped: {what}\n").as_bytes()).unwrap();
}
