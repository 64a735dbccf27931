//! The files of the Debian package: each is installed, units are sound and closed, completions complete. What needs a machine
//! of its own (installing, starting, the first patient) is `just package-check`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, leave_out};
use serde_json::Value;

/// Ten times the exposure that `systemd-analyze security` may find.
const MOST_EXPOSED: &str = "20";

const SYSTEMD: Prerequisite = Prerequisite {
    subject: "systemd's units",
    need: "systemd-analyze",
    // Homebrew has it on Linux alone, where alone it runs.
    packages: Packages { apt: "apt-get install systemd", dnf: "dnf install systemd", brew: "brew install systemd" },
};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the files of the package are from, without the programs, and as they stand in Cargo.toml.
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
    sources.filter(|source| !source.starts_with("target/release/")).collect()
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
fn every_file_of_the_package_is_there_and_installed() {
    let installed: BTreeSet<_> = sources().iter().flat_map(|source| files_of(source)).collect();
    let missing: Vec<_> = installed.iter().filter(|file| !file.is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for folder in ["man", "completions", "../../import/packaging/man", "../../import/packaging/completions"] {
        let folder = crate_folder().join("packaging").join(folder);
        let names = |files: &mut dyn Iterator<Item = &PathBuf>| -> BTreeSet<_> {
            files.map(|file| file.file_name().unwrap().to_owned()).collect()
        };
        let left_out: Vec<_> =
            names(&mut files_in(&folder).iter()).difference(&names(&mut installed.iter())).cloned().collect();
        assert!(left_out.is_empty(), "{left_out:?}");
    }
}

/// Runs systemd-analyze on the units, with the program where it was built. None, where there is no systemd.
fn analyse(arguments: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    for unit in ["intake.service", "intake-https.socket"] {
        let text = fs::read_to_string(crate_folder().join("packaging").join(unit)).unwrap();
        let text = text.replace("ExecStart=/usr/bin/intake", concat!("ExecStart=", env!("CARGO_BIN_EXE_intake")));
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
    let Some(output) = analyse(&["verify", "--man=no", "./intake.service", "./intake-https.socket"]) else { return };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_service_is_shut_off_from_what_it_does_not_need() {
    let security = ["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSED, "./intake.service"];
    let Some(output) = analyse(&security) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// What bash offers after these words.
fn offered(program: &str, file: &str, words: &[&str]) -> Vec<String> {
    let line = [&[program], words].concat();
    let (before, last) = (line[line.len() - 2], line[line.len() - 1]);
    let script = format!(
        "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
         function=$(complete -p {program} | sed 's/.* -F \\([^ ]*\\) .*/\\1/'); \
         $function {program} '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let file = crate_folder().join(file);
    let output = Command::new("bash").args(["-c", &script]).arg(file).args(line).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_shell_completes_commands_and_their_arguments() {
    let intake = |words: &[&str]| offered("intake", "packaging/completions/intake.bash", words);
    assert_eq!(intake(&["mig"]), ["migrate"]);
    assert_eq!(intake(&["migrate", "--service"]), ["--service-role"]);
    assert_eq!(intake(&["key", "cr"]), ["create"]);
    assert_eq!(intake(&["export", "--format", "c"]), ["csv"]);
    let import = "../import/packaging/completions/intake-import.bash";
    assert_eq!(offered("intake-import", import, &["--australian"]), ["--australian-phones"]);
}
