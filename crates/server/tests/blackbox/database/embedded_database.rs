//! The embedded database: survives the death of any process, is shared by programs that start later, and leaves no
//! process behind.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use intake_domain::ApiKey;
use intake_test_support::processes::send;
use intake_test_support::{Response, Service, ServiceBuilder, complaint_in, patient, wait_for, wait_for_end};

use rustix::process::{Pid, Signal, kill_process};

use crate::fixtures::demo_key;

const PROGRAM: &str = env!("CARGO_BIN_EXE_intake");

fn in_folder(folder: &Path) -> ServiceBuilder {
    ServiceBuilder::in_folder(PROGRAM, folder)
}

fn key(service: &Service) -> ApiKey {
    demo_key(&fs::read_to_string(service.data_dir().join("demo-key")).unwrap())
}

fn create(service: &Service, idempotency_key: &str) -> Response {
    let headers = [("Idempotency-Key", idempotency_key)];
    service.create_with(&key(service), &headers, patient().to_string().as_bytes())
}

/// The numbers of the processes that have this folder in their arguments: server and guard.
fn processes(folder: &Path) -> Vec<u32> {
    let folder = folder.join("postgres").to_string_lossy().into_owned();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let belongs = |number: &u32| {
        fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&folder))
    };
    numbers.filter(belongs).collect()
}

fn postmaster(folder: &Path) -> String {
    let file = fs::read_to_string(folder.join("postgres/data/postmaster.pid")).unwrap();
    file.lines().next().unwrap().to_owned()
}

fn kill(process: &str) {
    send("KILL", process);
}

#[test]
fn a_killed_service_leaves_no_process_behind_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    let first = create(&service, "kept");
    assert_eq!(first.status, 201);
    service.signal("KILL");
    service.wait();
    wait_for("the guard to stop the server", || processes(folder.path()).is_empty());

    let service = in_folder(folder.path()).start();
    let again = create(&service, "kept");
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &first.body));
}

#[test]
fn a_killed_service_can_be_started_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let mut service = in_folder(folder.path()).start();
        assert_eq!(create(&service, &format!("round-{round}")).status, 201);
        service.signal("KILL");
        service.wait();
    }
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

#[test]
fn a_killed_server_is_started_again_while_requests_wait() {
    let folder = tempfile::tempdir().unwrap();
    let service = in_folder(folder.path()).start();
    let first = create(&service, "kept");
    for round in 0..3 {
        kill(&postmaster(folder.path()));
        let during = create(&service, &format!("during-{round}"));
        assert_eq!(during.status, 201, "{}\n{}", during.text(), service.output());
    }
    assert_eq!(create(&service, "kept").body, first.body);
}

#[test]
fn both_killed_together_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    let first = create(&service, "kept");
    let server = postmaster(folder.path());
    service.signal("KILL");
    kill(&server);
    service.wait();
    let service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").body, first.body);
}

#[test]
fn a_folder_that_is_deleted_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let mut service = in_folder(&path).start();
    service.signal("KILL");
    drop(folder);
    service.wait();
    wait_for("the end of all", || processes(&path).is_empty());
}

#[test]
fn a_killed_guard_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    let guard = || {
        let is_guard =
            |number: &u32| fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| line.starts_with(b"/bin/sh"));
        processes(folder.path()).into_iter().find(is_guard)
    };
    let first = guard().unwrap();
    kill(&first.to_string());
    wait_for("another guard", || guard().is_some_and(|guard| guard != first));
    service.signal("KILL");
    service.wait();
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

#[test]
fn a_stale_pid_file_that_names_a_living_process_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    let first = create(&service, "kept");
    let server = postmaster(folder.path());
    let pid_file = folder.path().join("postgres/data/postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    service.signal("KILL");
    kill(&server);
    service.wait();
    wait_for("the end of all", || processes(folder.path()).is_empty());

    // A stranger of the same account, so that the server could not tell by its rights.
    let owner = fs::metadata(folder.path().join("postgres/data")).unwrap();
    let mut stranger = Command::new("sleep");
    stranger.arg("60").stdin(Stdio::null());
    if fs::metadata("/proc/self").unwrap().uid() != owner.uid() {
        stranger.uid(owner.uid()).gid(owner.gid());
    }
    let mut stranger = stranger.spawn().unwrap();
    fs::write(&pid_file, text.replacen(&server, &stranger.id().to_string(), 1)).unwrap();

    let mut service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").body, first.body);
    assert!(service.stop().success());
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was left alone");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn an_empty_pid_file_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    let first = create(&service, "kept");
    assert!(service.stop().success());
    // As after a power cut while the server started.
    fs::write(folder.path().join("postgres/data/postmaster.pid"), "").unwrap();
    let service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").body, first.body);
}

#[test]
fn two_services_and_a_command_share_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = in_folder(folder.path()).start();
    let mut second = in_folder(folder.path()).start();
    let created = create(&first, "shared");
    assert_eq!(create(&second, "shared").body, created.body);
    let list = in_folder(folder.path()).argument("organisation").argument("list").run();
    assert!(list.status.success());
    assert!(first.stop().success());
    assert_eq!(create(&second, "shared").body, created.body, "the other goes on");
    assert!(second.stop().success());
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

#[test]
fn twenty_commands_may_start_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..20 {
            let folder = folder.path();
            scope.spawn(move || {
                let arguments = ["organisation", "create", "--json", "--name"];
                let builder = arguments.iter().fold(in_folder(folder), |builder, argument| builder.argument(argument));
                let output = builder.argument(&format!("Clinic {number}")).run();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            });
        }
    });
    let list = in_folder(folder.path()).argument("organisation").argument("list").argument("--json").run();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 20);
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

#[test]
fn a_service_that_is_stopped_while_it_starts_ends_cleanly() {
    for stage in ["", "data/PG_VERSION", "data/postmaster.pid"] {
        let folder = tempfile::tempdir().unwrap();
        let mut service = in_folder(folder.path()).spawn();
        wait_for(stage, || folder.path().join("postgres").join(stage).exists());
        send("TERM", &service.id().to_string());
        assert_eq!(wait_for_end(&mut service).code(), Some(0), "when it has made postgres/{stage}");
        wait_for("the end of all", || processes(folder.path()).is_empty());
    }
}

/// The folder of the account that the database runs under, and everything below that a first start makes.
const STAGES: [&str; 9] = [
    "postgres/start.lock",
    "postgres/data.unfinished",
    "postgres/data.unfinished/base/1",
    "postgres/data.unfinished/base/5",
    "postgres/data/PG_VERSION",
    "postgres/data/postmaster.pid",
    "tls/ca-key.pem",
    "demo-key",
    "tls/cert.pem",
];

#[test]
fn a_first_start_that_is_killed_at_any_moment_does_not_harm_the_next() {
    for stage in STAGES {
        let folder = tempfile::tempdir().unwrap();
        let mut service = in_folder(folder.path()).spawn();
        wait_for(stage, || folder.path().join(stage).exists());
        service.kill().unwrap();
        service.wait().unwrap();
        let mut service = in_folder(folder.path()).start();
        assert_eq!(create(&service, "kept").status, 201, "killed when it had made {stage}");
        assert!(service.stop().success());
        assert!(!folder.path().join("postgres/data.unfinished").exists());
    }
}

#[test]
fn a_first_start_that_is_killed_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).spawn();
    wait_for("the program that makes the data", || folder.path().join("postgres/data.unfinished").exists());
    service.kill().unwrap();
    service.wait().unwrap();
    wait_for("the end of all", || processes(folder.path()).is_empty());
    assert!(!folder.path().join("postgres/data").exists(), "the guard ended it");
}

#[test]
fn a_command_that_finds_no_database_makes_none_and_says_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let id = uuid::Uuid::nil().to_string();
    let commands: [&[&str]; 5] = [
        &["organisation", "list"],
        &["key", "list", "--organisation", &id],
        &["key", "revoke", &id],
        &["member", "invite", "--organisation", &id, "--email", "ada@clinic.example"],
        &["migrate", "--check"],
    ];
    for arguments in commands {
        let builder = ServiceBuilder::in_folder(PROGRAM, Path::new(".intake")).working_folder(folder.path());
        let output = arguments.iter().fold(builder, |builder, argument| builder.argument(argument)).run();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let complaint = complaint_in(&output.stderr);
        let expected =
            "intake: no database in ./.intake: run this in the folder in which the service was started, or name";
        assert!(complaint.starts_with(expected), "{complaint}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    }
}

/// An account without rights.
pub(super) const NOBODY: u32 = 65_534;

/// The account under which a process runs.
fn account_of(process: u32) -> u32 {
    fs::metadata(format!("/proc/{process}")).unwrap().uid()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn root_becomes_the_owner_of_the_data_folder_so_two_accounts_share_its_database() {
    if !is_root() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = parent.path().join("data");
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut first = in_folder(&folder).account(NOBODY).start();
    let second = in_folder(&folder).start();
    let created = create(&first, "shared");
    assert_eq!(create(&second, "shared").body, created.body);
    let list = in_folder(&folder).argument("organisation").argument("list").run();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    assert!(first.stop().success());
    // Longer than the guard takes to look.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(create(&second, "shared").body, created.body);
    assert!(!second.output().contains("has died"), "{}", second.output());
    assert_eq!(account_of(second.process()), NOBODY);
}

#[test]
fn root_runs_and_writes_nothing_in_the_folder_of_the_databases_account() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let mut service = in_folder(folder.path()).start();
    let postgres = folder.path().join("postgres");
    let owner = fs::metadata(&postgres).unwrap().uid();
    assert_ne!(owner, 0);
    assert_eq!(account_of(service.process()), 0);
    for process in processes(folder.path()) {
        assert_eq!(account_of(process), owner, "server and guard");
    }
    for entry in
        fs::read_dir(&postgres).unwrap().flatten().chain(fs::read_dir(postgres.join("users")).unwrap().flatten())
    {
        assert_eq!(entry.metadata().unwrap().uid(), owner, "{:?}", entry.path());
    }
    assert!(!postgres.join("guard.sh").exists());
    assert!(service.stop().success());

    // What that account puts in place of its files.
    let target = folder.path().join("of-root");
    for name in ["start.lock", "guard.lock", "postgres.log", "users"] {
        fs::write(&target, "untouched").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        let (file, absent) = (postgres.join(name), folder.path().join("made-by-root"));
        for target in [&target, &absent] {
            wait_for("the end of all", || processes(folder.path()).is_empty());
            let _ = fs::remove_file(&file);
            std::os::unix::fs::symlink(target, &file).unwrap();
            lchown(&file, Some(owner), Some(owner)).unwrap();
            assert_eq!(in_folder(folder.path()).run().status.code(), Some(1), "{name}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "untouched", "{name}");
        assert_eq!(fs::metadata(&target).unwrap().uid(), 0, "{name}");
        assert!(!absent.exists(), "{name}");
        fs::remove_file(&file).unwrap();
    }
    let service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").status, 201);
}

#[test]
fn a_database_that_was_stopped_neither_keeps_the_service_nor_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").status, 201);
    let head = postmaster(folder.path());
    let children = fs::read_to_string(format!("/proc/{head}/task/{head}/children")).unwrap();
    for process in children.split_whitespace().chain([head.as_str()]) {
        send("STOP", process);
    }
    let asked = Instant::now();
    assert_eq!(service.stop().code(), Some(0), "{}", service.output());
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

/// Kills one process of the server, and stops the one that recovers from this.
fn hold_in_recovery(folder: &Path) {
    let head = postmaster(folder);
    let find = |title: &str| {
        let children = fs::read_to_string(format!("/proc/{head}/task/{head}/children")).unwrap();
        let is_it =
            |child: &&str| fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains(title));
        children.split_whitespace().find(is_it).map(str::to_owned)
    };
    let is_stopped = |process: &str| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    wait_for("a recovery that can be held", || {
        let Some(victim) = find("postgres: walwriter") else { return false };
        kill(&victim);
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until {
            let Some(startup) = find("postgres: startup") else { continue };
            let number = i32::try_from(startup.parse::<u32>().unwrap()).unwrap();
            let _ = kill_process(Pid::from_raw(number).unwrap(), Signal::STOP);
            std::thread::sleep(Duration::from_millis(20));
            return is_stopped(&startup);
        }
        false
    });
}

#[test]
fn a_database_that_recovers_is_stopped_with_the_service_or_after_it() {
    for how in ["TERM", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let mut service = in_folder(folder.path()).start();
        let first = create(&service, "kept");
        assert_eq!(first.status, 201);
        hold_in_recovery(folder.path());
        service.signal(how);
        service.wait();
        wait_for("the end of all", || processes(folder.path()).is_empty());
        let service = in_folder(folder.path()).start();
        assert_eq!(create(&service, "kept").body, first.body);
    }
}

#[test]
fn ctrl_c_reaches_the_service_and_not_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").status, 201);
    // As a terminal does: to every process of the group.
    let group = format!("-{}", service.process());
    send("INT", &group);
    assert_eq!(service.wait().code(), Some(0), "{}", service.output());
    wait_for("the end of all", || processes(folder.path()).is_empty());
    let log = fs::read_to_string(folder.path().join("postgres/postgres.log")).unwrap();
    assert!(log.contains("database system is shut down"), "a clean end: {log}");
}

#[test]
fn without_postgresql_one_line_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = in_folder(folder.path()).setting("INTAKE_POSTGRES_BIN", empty.path()).run();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr.split(|byte| *byte == b'\n').count(), 2, "one line");
    let complaint = complaint_in(&output.stderr);
    assert!(complaint.starts_with("intake: INTAKE_POSTGRES_BIN: "), "{complaint}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    assert!(complaint.contains("install") && complaint.contains("DATABASE_URL"), "{complaint}");
}

#[test]
fn data_of_a_version_that_is_not_installed_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    assert!(service.stop().success());
    let version = folder.path().join("postgres/data/PG_VERSION");
    fs::write(&version, "9\n").unwrap();
    let output = in_folder(folder.path()).run();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("made by PostgreSQL 9, which is not installed"), "{complaint}");
}

#[test]
fn a_database_that_does_not_start_says_why_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    assert!(service.stop().success());
    for entry in fs::read_dir(folder.path().join("postgres/data/pg_wal")).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let output = in_folder(folder.path()).run();
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("the database does not start: "), "{complaint}");
    assert!(complaint.contains("could not locate a valid checkpoint record"), "{complaint}");
    wait_for("the end of all", || processes(folder.path()).is_empty());
}

#[test]
fn folders_with_odd_or_long_names_will_do() {
    let parent = tempfile::tempdir().unwrap();
    for name in ["it's a \"folder\", ünïcode", "a,b", &"long".repeat(40)] {
        let folder = parent.path().join(name);
        let mut service = in_folder(&folder).start();
        assert_eq!(create(&service, "kept").status, 201);
        assert!(service.stop().success());
    }
}

#[test]
fn a_folder_reached_by_a_link_is_the_same_folder() {
    let parent = tempfile::tempdir().unwrap();
    let (real, link) = (parent.path().join("real"), parent.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let service = in_folder(&real).start();
    let first = create(&service, "kept");
    let list = in_folder(&link).argument("organisation").argument("list").run();
    assert!(list.status.success(), "{}", String::from_utf8_lossy(&list.stderr));
    assert_eq!(create(&service, "kept").body, first.body);
    assert!(!service.output().contains("has died"), "{}", service.output());
}

#[test]
fn a_stale_user_whose_number_a_stranger_has_keeps_nothing_alive() {
    let folder = tempfile::tempdir().unwrap();
    let mut service = in_folder(folder.path()).start();
    // As after a power cut: a user's file is left, and this very process has got its number.
    let stale = folder.path().join("postgres/users").join(std::process::id().to_string());
    fs::write(&stale, "1\n").unwrap();
    service.signal("KILL");
    service.wait();
    wait_for("the end of all", || processes(folder.path()).is_empty());
    assert!(!stale.exists());
}

#[test]
fn only_its_own_account_can_reach_it_and_only_by_socket() {
    let folder = tempfile::tempdir().unwrap();
    let service = in_folder(folder.path()).start();
    assert_eq!(create(&service, "kept").status, 201);
    for name in ["postgres", "postgres/data", "postgres/socket"] {
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().mode() & 0o077, 0, "{name}");
    }
    let file = fs::read_to_string(folder.path().join("postgres/data/postmaster.pid")).unwrap();
    let lines: Vec<_> = file.lines().collect();
    assert_eq!(lines[5], "", "no address is listened on");
}
