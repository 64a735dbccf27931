//! `intake backup`: what a restore needs, complete or not there, and tried. Patients come back by the printed command.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use intake_domain::Environment;
use intake_infra::prepare;
use intake_test_support::{Clinic, ServiceBuilder, patient, wait_for};
use serde_json::Value;
use tempfile::TempDir;

use crate::complaint;
use crate::database::embedded_database::NOBODY;
use crate::database::replication::{administer, restart};
use crate::database::restoring::{PostgresServer, command, create, json_of, production, run, with_program};
use crate::fixtures::demo_key;
use crate::service::clocks::Clock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_intake");

/// A folder that the account of PostgreSQL can reach.
fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|name| name.starts_with("intake-")).collect();
    names.sort();
    names
}

/// Everything in a folder that other accounts may read.
fn exposed(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
            let metadata = entry.metadata().unwrap();
            if metadata.mode() & 0o077 != 0 {
                found.push(entry.path());
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

fn in_folder(folder: &Path, arguments: &[&str]) -> std::process::Output {
    arguments.iter().fold(ServiceBuilder::in_folder(PROGRAM, folder), |all, one| all.argument(one)).run()
}

#[test]
fn an_embedded_database_comes_back_by_the_printed_command() {
    let (here, there) = (open_folder(), open_folder());
    let mut service = ServiceBuilder::in_folder(PROGRAM, here.path()).start();
    let key = demo_key(&fs::read_to_string(here.path().join("demo-key")).unwrap());
    for _ in 0..3 {
        assert_eq!(service.create(&key, &patient()).status, 201);
    }
    let backups = there.path().join("backups");
    let folder = backups.to_str().unwrap();
    let made = json_of(&in_folder(here.path(), &["backup", folder, "--json"]));
    assert_eq!(service.create(&key, &patient()).status, 201, "the service goes on");
    let backup = PathBuf::from(made["backup"].as_str().unwrap());
    assert_eq!(fs::metadata(&backups).unwrap().mode() & 0o777, 0o700);
    assert!(exposed(&backups).is_empty(), "{:?}", exposed(&backups));
    let readme = fs::read_to_string(backup.join("README")).unwrap();
    assert!(readme.contains("INTAKE_DATA_DIR") && !readme.contains(here.path().to_str().unwrap()), "{readme}");
    assert!(service.stop().success());
    // Without the database: on any machine.
    let elsewhere = open_folder();
    let checked = in_folder(elsewhere.path(), &["backup", folder, "--check"]);
    let report = String::from_utf8(checked.stdout).unwrap();
    assert!(report.contains("Restored after "), "{report}{}", String::from_utf8_lossy(&checked.stderr));

    let restored = there.path().join("restored");
    let printed = made["restoreCommand"].as_str().unwrap().replace("NEW_DATA_DIR", restored.to_str().unwrap());
    run(with_program(&mut Command::new("sh"), &there).args(["-c", &printed]).current_dir("/"));
    let service = ServiceBuilder::in_folder(PROGRAM, &restored).start();
    assert_eq!(service.create(&key, &patient()).status, 401, "every key was revoked");
    let organisations = json_of(&in_folder(&restored, &["organisation", "list", "--json"]));
    let organisation = organisations[0]["id"].as_str().unwrap().to_owned();
    let exported = in_folder(&restored, &["export", "--format", "jsonl", "--organisation", &organisation]);
    assert_eq!(String::from_utf8(exported.stdout).unwrap().lines().count(), 3);
    let again = Command::new("sh").args(["-c", &printed]).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}

/// The clock was a day ahead, and was then set back.
#[test]
fn the_backup_that_was_made_last_is_the_newest_whatever_the_clock_says() {
    let Some(clock) = Clock::set_to("+1d") else { return };
    let (here, there) = (open_folder(), open_folder());
    // Its database has the same clock.
    let service = ServiceBuilder::in_folder(PROGRAM, here.path());
    let mut service = clock.variables().iter().fold(service, |all, (name, value)| all.setting(name, value)).start();
    let key = demo_key(&fs::read_to_string(here.path().join("demo-key")).unwrap());
    let created = service.create(&key, &patient()).json()["data"]["id"].clone();
    let (backups, mark) = (there.path().join("backups"), there.path().join("intake-backup.prom"));
    let folder = backups.to_str().unwrap();
    let backup = |keep: &str| {
        let builder = ServiceBuilder::in_folder(PROGRAM, here.path()).setting("INTAKE_BACKUP_MARK", &mark);
        let arguments = ["backup", folder, "--json", "--keep", keep];
        json_of(&arguments.iter().fold(builder, |all, one| all.argument(one)).run())
    };
    let name = |made: &Value| made["backup"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let first = backup("2");
    let marked_at = || fs::metadata(&mark).unwrap().modified().unwrap();
    let first_marked_at = marked_at();
    clock.set("-1d");
    let organisations = json_of(&in_folder(here.path(), &["organisation", "list", "--json"]));
    let organisation = organisations[0]["id"].as_str().unwrap();
    let erasure = ["patient", "erase", "--organisation", organisation, "--patient", created.as_str().unwrap()];
    let erased = in_folder(here.path(), &[&erasure[..], &["--yes"]].concat());
    assert!(erased.status.success(), "{}", String::from_utf8_lossy(&erased.stderr));
    let second = backup("2");
    assert_ne!(marked_at(), first_marked_at);
    assert_eq!(names(&backups), [name(&first), name(&second)]);
    let checked = json_of(&in_folder(here.path(), &["backup", folder, "--check", "--json"]));
    assert_eq!(checked["backup"], second["backup"]);

    // The erasure is only in the second.
    let restored = there.path().join("restored");
    let printed = first["restoreCommand"].as_str().unwrap().replace("NEW_DATA_DIR", restored.to_str().unwrap());
    let said = run(with_program(&mut Command::new("sh"), &there).args(["-c", &printed]).current_dir("/"));
    assert!(said.contains("\nDone: intake patient erase "), "{said}");

    let third = backup("1");
    assert_eq!(names(&backups), [name(&third)]);
    assert!(service.stop().success());
}

#[test]
fn a_killed_backup_leaves_the_last_good_one_which_another_server_starts_from() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let mut service = production(&urls).start();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let (_, key) = clinic.key();
    for _ in 0..3 {
        assert_eq!(create(&service, &key).status, 201);
    }
    let there = open_folder();
    let backups = there.path().join("backups");
    let folder = backups.to_str().unwrap();
    let backup = |more: &[&str]| json_of(&command(&urls, &[&["backup", folder, "--json"], more].concat()));
    let good = backup(&[]);
    let readme = fs::read_to_string(Path::new(good["backup"].as_str().unwrap()).join("README")).unwrap();
    assert!(readme.contains("/etc/postgresql"), "{readme}");
    // Enough data that it cannot be copied at once.
    administer(
        &postgres.server,
        "CREATE TABLE filler AS SELECT repeat(md5(n::text), 60) FROM generate_series(1, 60000) n",
    );
    let mut killed = ["backup", folder].iter().fold(production(&urls), |all, one| all.argument(one)).spawn();
    wait_for("the copy", || names(&backups).len() == 2);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = names(&backups);
    assert!(left[1].ends_with(".unfinished"), "{left:?}");
    let script = good["restoreCommand"].as_str().unwrap();
    assert!(script.contains(&left[0]) && backups.join(&left[0]).join("data/PG_VERSION").exists());

    // The program that copies the data may still hold the folder.
    let mut last = Value::Null;
    wait_for("the lock", || {
        let output = command(&urls, &["backup", folder, "--json", "--keep", "2"]);
        last = serde_json::from_slice(&output.stdout).unwrap_or_default();
        output.status.success()
    });
    assert_eq!(names(&backups).len(), 2);
    assert_eq!(backup(&["--keep", "1"])["deleted"].as_array().unwrap().len(), 2);
    assert_eq!(names(&backups).len(), 1);
    assert!(service.stop().success());
    let start = starting(&postgres, there.path());
    postgres.stop();

    // In place of the data that was lost. PostgreSQL's account owns the empty folder.
    let account = fs::metadata(postgres.data()).unwrap();
    let data = postgres.data();
    fs::rename(&data, postgres.folder.path().join("lost")).unwrap();
    fs::create_dir(&data).unwrap();
    chown(&data, Some(account.uid()), Some(account.gid())).unwrap();
    let restore = backups.join(&names(&backups)[0]).join("restore");
    let output = with_program(&mut Command::new(&restore), &there)
        .arg(&data)
        .arg(&start)
        .env("INTAKE_ENVIRONMENT", "production")
        .env("DATABASE_URL", urls.service.expose())
        .env("INTAKE_MIGRATION_DATABASE_URL", urls.owner.expose())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(postgres.count("patients"), 3);
    let mut service = production(&urls).start();
    assert_eq!(create(&service, &key).status, 401, "every key was revoked");
    assert!(service.stop().success());
    postgres.stop();
}

/// A script that starts PostgreSQL on the data of this server, as its account.
fn starting(postgres: &PostgresServer, folder: &Path) -> PathBuf {
    let account = fs::metadata(postgres.data()).unwrap();
    let program = postgres.tool("pg_ctl");
    let other = format!("setpriv --reuid={} --regid={} --clear-groups", account.uid(), account.gid());
    let log = postgres.data().with_file_name("restored.log");
    let script = format!(
        "#!/bin/sh\ncd /\nexec {} '{}' --pgdata='{}' --log='{}' --options=\"-k '{}' -c listen_addresses=''\" start\n",
        if rustix::process::geteuid().is_root() { &other } else { "" },
        program.get_program().display(),
        postgres.data().display(),
        log.display(),
        postgres.data().with_file_name("socket").display(),
    );
    let path = folder.join("start");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// As an operator does, as root and as the account of the timer.
#[test]
fn backups_of_root_and_of_another_account_are_tried_and_deleted_by_either() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let there = open_folder();
    // Other accounts may not enter the folder of the build.
    let program = there.path().join("intake");
    fs::copy(PROGRAM, &program).unwrap();
    let database = &urls.owner;
    let builder = |account: u32| {
        let builder =
            ServiceBuilder::in_folder(program.to_str().unwrap(), there.path()).database_urls(database, database);
        builder.account(account)
    };
    let run = |account: u32, arguments: &[&str]| {
        let output = arguments.iter().fold(builder(account), |all, one| all.argument(one)).run();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    // Another account that can reach the socket.
    let server = fs::metadata(postgres.data()).unwrap().uid();
    for (owner, user) in [("root", 0), ("another", server)] {
        let folder = there.path().join(owner);
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        chown(&folder, Some(user), Some(user)).unwrap();
        let folder = folder.to_str().unwrap();
        // The second of them replaces root's.
        for account in [0, user] {
            let (is_made, said) = run(account, &["backup", folder, "--keep", "1"]);
            assert!(is_made, "{owner}, {account}: {said}");
            let (is_good, said) = run(user, &["backup", folder, "--check"]);
            assert!(is_good && said.contains("Restored after "), "{owner}, {account}: {said}");
        }
        assert_eq!(names(Path::new(folder)).len(), 1);
    }

    let root = there.path().join("root");
    for folder in [root.clone(), root.join("new")] {
        let (is_made, said) = run(NOBODY, &["backup", folder.to_str().unwrap()]);
        assert!(!is_made && said.contains("run the command as root or as the account that owns it"), "{said}");
    }
    let none = there.path().join("none");
    assert!(run(0, &["backup", none.to_str().unwrap(), "--check"]).1.contains("there is no complete backup"));
    assert!(!none.exists());
    let data = there.path().join("data");
    fs::create_dir(&data).unwrap();
    DirBuilder::new().mode(0o700).create(data.join("postgres")).unwrap();
    let embedded = ServiceBuilder::in_folder(program.to_str().unwrap(), &data).account(NOBODY);
    let refused =
        ["backup", there.path().join("no").to_str().unwrap()].iter().fold(embedded, |all, one| all.argument(one));
    let said = complaint(refused);
    assert!(said.contains("run the command as root or as the account of the service"), "{said}");
}

#[test]
fn backups_are_refused_where_others_can_read_them_and_an_archive_is_pointed_out() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let open = open_folder();
    let folder = open.path().to_str().unwrap();
    let refusal = complaint(["backup", folder].iter().fold(production(&urls), |all, one| all.argument(one)));
    assert!(refusal.contains("chmod 700"), "{refusal}");
    let empty = open.path().join("none");
    let refusal = complaint(
        ["backup", empty.to_str().unwrap(), "--check"].iter().fold(production(&urls), |all, one| all.argument(one)),
    );
    assert!(refusal.contains("no complete backup"), "{refusal}");
    let broken = open.path().join("broken");
    let origin = broken.join("intake-2026-11-28T000000.000Z/backup.json");
    let about_broken = || {
        let check = ["backup", broken.to_str().unwrap(), "--check"];
        complaint(check.iter().fold(production(&urls), |all, one| all.argument(one)))
    };
    DirBuilder::new().recursive(true).mode(0o700).create(origin.parent().unwrap()).unwrap();
    let refusal = about_broken();
    assert!(refusal.contains("backup.json: No such file or directory"), "{refusal}");
    fs::write(&origin, "{").unwrap();
    let refusal = about_broken();
    assert!(refusal.contains("backup.json: EOF while parsing"), "{refusal}");
    administer(&postgres.server, "CREATE ROLE powerless LOGIN");
    let powerless = postgres.server.url("powerless", "intake");
    let builder = production(&intake_infra::Prepared { service: urls.service.clone(), owner: powerless });
    let refusal = complaint(["backup", empty.to_str().unwrap()].iter().fold(builder, |all, one| all.argument(one)));
    assert!(refusal.contains("ALTER ROLE powerless REPLICATION"), "{refusal}");
    administer(&postgres.server, "ALTER SYSTEM SET archive_mode = 'on'");
    restart(&postgres.server, postgres.folder.path());
    let output = command(&urls, &["backup", empty.to_str().unwrap()]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("restoring.md"));
    assert_eq!(names(&empty).len(), 1, "what failed before is gone");
}
