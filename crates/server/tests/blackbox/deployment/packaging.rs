//! The files of the Debian package: each exists, and systemd accepts the units. `just package-check` installs the
//! package on a fresh machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, leave_out};
use serde_json::{Value, json};

/// Ten times the exposure that `systemd-analyze security` may find.
const MOST_EXPOSED: &str = "20";

const UNITS: [&str; 4] =
    ["./intake.service", "./intake-https.socket", "./intake-audit-copy.service", "./intake-audit-copy.timer"];

const SYSTEMD: Prerequisite = Prerequisite {
    subject: "systemd's units",
    need: "systemd-analyze",
    // Homebrew has it on Linux alone, where alone it runs.
    packages: Packages { apt: "apt-get install systemd", dnf: "dnf install systemd", brew: "brew install systemd" },
};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The committed files of the package, as Cargo.toml names them.
fn sources() -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(crate_folder().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "intake").unwrap();
    let assets = package["metadata"]["deb"]["assets"].as_array().unwrap();
    let sources = assets.iter().map(|asset| asset[0].as_str().unwrap().to_owned());
    sources.filter(|source| !source.trim_start_matches("../").starts_with("target/")).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

/// The files that a source stands for: all of a folder with some ending, or one.
fn files_of(source: &str) -> Vec<PathBuf> {
    let path = crate_folder().join(source);
    match source.rsplit_once('*') {
        None => vec![path],
        Some((_, ending)) => {
            let found = files_in(path.parent().unwrap());
            found.into_iter().filter(|file| file.to_str().unwrap().ends_with(ending)).collect()
        }
    }
}

#[test]
fn every_file_of_the_package_is_there() {
    let installed: Vec<_> = sources().iter().flat_map(|source| files_of(source)).collect();
    assert!(!installed.is_empty());
    let missing: Vec<_> = installed.iter().filter(|file| !file.is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Runs systemd-analyze on the units, with the program where it was built. None, where there is no systemd.
fn analyse(arguments: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    for unit in UNITS {
        let text = fs::read_to_string(crate_folder().join("packaging").join(unit)).unwrap();
        let text = text.replace("ExecStart=/usr/bin/intake", concat!("ExecStart=", env!("CARGO_BIN_EXE_intake")));
        let scripts = concat!("ExecStart=", env!("CARGO_MANIFEST_DIR"), "/packaging/");
        let text = text.replace("ExecStart=/usr/lib/intake/", scripts);
        fs::write(folder.path().join(unit), text).unwrap();
    }
    let run = Command::new("systemd-analyze").args(arguments).current_dir(folder.path()).output();
    if run.is_err() {
        leave_out(&SYSTEMD);
    }
    run.ok()
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let Some(output) = analyse(&[&["verify", "--man=no"], &UNITS[..]].concat()) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_service_is_shut_off_from_what_it_does_not_need() {
    let security = ["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSED, "./intake.service"];
    let Some(output) = analyse(&security) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_image_is_the_same_each_time_and_has_all_that_its_programs_load() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let mut command = Command::new("python3");
        command.arg(crate_folder().join("packaging/image.py")).arg(folder.path().join(name));
        run(command.args(["1.2.3", "0123abc", env!("CARGO_BIN_EXE_intake")]));
        fs::read(folder.path().join(name)).unwrap()
    };
    assert!(make("one.tar") == make("two.tar"), "the same bytes");
    let unpack = |tar: &Path| run(Command::new("tar").arg("-xf").arg(tar).current_dir(&folder));
    unpack(Path::new("one.tar"));
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap() };
    let blob = |of: &Value| format!("blobs/sha256/{}", of["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap());
    let manifest = read(&blob(&read("index.json")["manifests"][0]));
    let config = &read(&blob(&manifest["config"]))["config"];
    assert_eq!((&config["User"], &config["Entrypoint"]), (&json!("65532:65532"), &json!(["intake"])));
    assert_eq!(config["Healthcheck"]["Test"], json!(["CMD", "intake", "probe"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.revision"], "0123abc");
    unpack(Path::new(&blob(&manifest["layers"][0])));
    let mut inside = Command::new("unshare");
    inside.arg("--map-root-user").arg(format!("--root={}", folder.path().display()));
    assert!(run(inside.args(["/usr/local/bin/intake", "--version"])).starts_with("intake "));
}

/// Runs a program to its good end. Gives what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
