//! The files of the Debian package: each exists, and systemd accepts the units. `just package-check` installs the
//! package on a fresh machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, leave_out};
use serde_json::{Value, json};

/// Ten times the exposure that `systemd-analyze security` may find.
const MOST_EXPOSED: &str = "20";

const UNITS: [&str; 9] = [
    "./intake.service",
    "./intake-https.socket",
    "./intake-audit-copy.service",
    "./intake-audit-copy.timer",
    "./intake-deliver@.service",
    "./intake-backup.service",
    "./intake-backup.timer",
    "./intake-pairs@.service",
    "./intake-pairs@.timer",
];

const SYSTEMD: Prerequisite = Prerequisite {
    subject: "systemd's units",
    need: "systemd-analyze",
    // Homebrew has it on Linux alone, where alone it runs.
    packages: Packages { apt: "apt-get install systemd", dnf: "dnf install systemd", brew: "brew install systemd" },
};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The committed files of the package and where they go, as Cargo.toml names them.
fn assets() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"])
        .arg(crate_folder().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "intake").unwrap();
    let assets = package["metadata"]["deb"]["assets"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let assets = assets.iter().map(|asset| (text(&asset[0]), text(&asset[1])));
    assets.filter(|(source, _)| !source.trim_start_matches("../").starts_with("target/")).collect()
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
    let installed: Vec<_> = assets().iter().flat_map(|(source, _)| files_of(source)).collect();
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

/// The group of a folder reads the files that a delivery writes there, which no mode of theirs can allow alone.
#[test]
fn the_unit_of_a_delivery_lets_the_group_read_its_files() {
    let unit = fs::read_to_string(crate_folder().join("packaging/intake-deliver@.service")).unwrap();
    assert!(unit.lines().any(|line| line == "UMask=0027"), "{unit}");
    assert!(unit.lines().any(|line| line == "StateDirectoryMode=0700"), "{unit}");
}

#[test]
fn services_are_shut_off_from_what_they_do_not_need() {
    for unit in UNITS.iter().filter(|unit| unit.ends_with(".service")) {
        let Some(output) = analyse(&["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSED, unit])
        else {
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
#[ignore = "just test-all"]
fn the_image_is_the_same_each_time_and_has_all_that_its_programs_load() {
    let folder = tempfile::tempdir().unwrap();
    // As a release has it: what a debugger needs takes half a minute to compress.
    let program = folder.path().join("intake");
    run(Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_intake")));
    let make = |name: &str| {
        let mut command = Command::new("python3");
        command.arg(crate_folder().join("packaging/image.py")).arg(folder.path().join(name));
        run(command.args(["1.2.3", "0123abc"]).arg(&program));
        fs::read(folder.path().join(name)).unwrap()
    };
    assert!(make("one.tar") == make("two.tar"), "the same bytes");
    let unpack = |tar: &Path| run(Command::new("tar").arg("-xf").arg(tar).current_dir(&folder));
    unpack(Path::new("one.tar"));
    let read = |name: &str| -> Value { serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap() };
    let blob = |of: &Value| format!("blobs/sha256/{}", of["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap());
    let manifest = read(&blob(&read("index.json")["manifests"][0]));
    // Docker's own store of images looks for the parts here.
    let docker = read("manifest.json");
    let parts = (&docker[0]["Config"], &docker[0]["Layers"], &docker[0]["RepoTags"]);
    let [configuration, layer] = [&manifest["config"], &manifest["layers"][0]].map(|of| json!(blob(of)));
    assert_eq!(parts, (&configuration, &json!([layer]), &json!(["intake:1.2.3"])));
    let config = &read(&blob(&manifest["config"]))["config"];
    assert_eq!((&config["User"], &config["Entrypoint"]), (&json!("65532:65532"), &json!(["intake"])));
    assert_eq!(config["Healthcheck"]["Test"], json!(["CMD", "intake", "probe"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.revision"], "0123abc");
    unpack(Path::new(&blob(&manifest["layers"][0])));
    let mut inside = Command::new("unshare");
    inside.arg("--map-root-user").arg(format!("--root={}", folder.path().display()));
    assert!(run(inside.args(["/usr/local/bin/intake", "--version"])).starts_with("intake "));
}

#[test]
fn every_link_of_the_documents_leads_somewhere_in_the_archive_and_in_the_package() {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new(crate_folder().join("packaging/documents")).arg(folder.path()));
    let root = folder.path();
    let mut unseen = vec![root.to_owned()];
    let mut archive = BTreeMap::new();
    while let Some(next) = unseen.pop() {
        unseen.extend(fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
        archive.extend(files_in(&next).into_iter().map(|file| (file.strip_prefix(root).unwrap().to_owned(), file)));
    }
    let mut package = BTreeMap::new();
    for (source, target) in assets() {
        let is_folder = target.ends_with('/');
        let place =
            |file: &Path| Path::new(&target).join(if is_folder { file.file_name().unwrap() } else { "".as_ref() });
        package.extend(files_of(&source).into_iter().map(|file| (place(&file), file)));
    }
    for (files, at_least) in [(archive, 60), (package, 60)] {
        let (count, dead) = dead_links(&files);
        assert!(count >= at_least && dead.is_empty(), "{count} links, of which dead: {dead:#?}");
    }
}

/// Returns how many links to files the documents among these have, and those that lead to none of them. A file is found
/// by the path at which a user has it.
fn dead_links(files: &BTreeMap<PathBuf, PathBuf>) -> (usize, Vec<String>) {
    let (mut count, mut dead) = (0, Vec::new());
    for (place, source) in files.iter().filter(|(place, _)| place.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(source).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with('/'))
        {
            let mut path = place.parent().unwrap().to_owned();
            for part in Path::new(target).components() {
                if part.as_os_str() == ".." { assert!(path.pop()) } else { path.push(part) }
            }
            count += 1;
            // Of a folder it is enough that there is something in it.
            if !files.keys().any(|file| file.starts_with(&path)) {
                dead.push(format!("{}: {target}", place.display()));
            }
        }
    }
    (count, dead)
}

/// Runs a program to its good end. Gives what it printed.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
