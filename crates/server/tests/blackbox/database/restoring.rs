//! Restoring, as docs/operations/restoring.md says, with PostgreSQL's own tools: to a moment, from a dump, and what is
//! no restore, a promotion. A service in production starts on a restored database only when an operator has said so.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment};
use intake_infra::embedded::EmbeddedPostgres;
use intake_infra::{DatabaseUrl, Prepared, SERVICE_ROLE, prepare};
use intake_test_support::processes::send as signal;
use intake_test_support::{Clinic, Response, Service, ServiceBuilder, WithCount, create_request, patient, wait_for};
use serde_json::Value;
use tempfile::TempDir;

use crate::complaint;
use crate::database::full_disk::SmallDisk;
use crate::database::replication::{administer, restart, server};
use crate::fixtures::{TestApp, in_production, program};

const OWNER: &str = "intake_owner";

/// A member, the session of a thief, and a reset link.
const SIGNED_IN: &str = "INSERT INTO members (id, email, email_folded, name, password_hash)
        VALUES (gen_random_uuid(), 'ada@clinic.example', 'ada@clinic.example', 'Ada', 'a hash');
    INSERT INTO sessions SELECT sha256('stolen'), id, now(), now() FROM members;
    INSERT INTO password_resets (member_id, token_digest, expires_at, is_asked_by_stranger, is_mailed)
        SELECT id, sha256('stolen'), now() + interval '1 day', false, true FROM members";

/// A PostgreSQL in a folder of its own.
pub(crate) struct PostgresServer {
    // Ends before its folder.
    pub(crate) server: EmbeddedPostgres,
    pub(super) folder: TempDir,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { server: server(folder.path()), folder }
    }

    /// On data that is there already.
    pub(crate) fn start_in(folder: TempDir) -> Self {
        Self { server: server(folder.path()), folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("postgres/socket")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.path().join("postgres/data")
    }

    /// One of PostgreSQL's programs, for this server, as its account.
    pub(super) fn tool(&self, name: &str) -> Command {
        let options = fs::read_to_string(self.data().join("postmaster.opts")).unwrap();
        let mut command = Command::new(Path::new(options.split_whitespace().next().unwrap()).with_file_name(name));
        let account = fs::metadata(self.data()).unwrap();
        if rustix::process::geteuid().is_root() {
            command.uid(account.uid()).gid(account.gid());
        }
        command.current_dir("/").env("PGHOST", self.socket()).env("PGUSER", OWNER);
        command
    }

    /// A folder that the server's account may write.
    fn own_folder(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let account = fs::metadata(self.data()).unwrap();
        chown(folder, Some(account.uid()), Some(account.gid())).unwrap();
    }

    pub(crate) fn count(&self, from: &str) -> i64 {
        let mut connection = PgConnection::establish(self.server.owner_url("intake").expose()).unwrap();
        let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {from}"));
        query.get_result::<WithCount>(&mut connection).unwrap().count
    }

    pub(crate) fn stop(&self) {
        let pid_file = self.data().join("postmaster.pid");
        signal("INT", fs::read_to_string(&pid_file).unwrap().lines().next().unwrap());
        wait_for("PostgreSQL to stop", || !pid_file.exists());
    }

    /// A copy of this server's files, taken while it runs, in a folder for another server.
    pub(crate) fn base_backup(&self, options: &[&str]) -> TempDir {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
        self.own_folder(&folder.path().join("postgres"));
        let data = folder.path().join("postgres/data");
        run(self.tool("pg_basebackup").arg("--pgdata").arg(&data).arg("--checkpoint=fast").args(options));
        folder
    }
}

/// A script of the package.
fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

/// A script that finds the program on its path, by a link in this folder.
pub(super) fn with_program<'a>(script: &'a mut Command, folder: &TempDir) -> &'a mut Command {
    let link = folder.path().join("intake");
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_intake"), link).unwrap();
    }
    script.env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()))
}

/// The files with copies of the audit log, the oldest first.
fn copies_in(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_copy = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("audit-");
    let mut copies: Vec<_> = found.filter(is_copy).collect();
    copies.sort();
    copies
}

pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn production(urls: &Prepared) -> ServiceBuilder {
    in_production(program().database_urls(&urls.service, &urls.owner)).setting("INTAKE_HTTP_ADDR", "127.0.0.1:0")
}

pub(crate) fn urls_of(postgres: &PostgresServer) -> Prepared {
    Prepared { owner: postgres.server.owner_url("intake"), service: postgres.server.url(SERVICE_ROLE, "intake") }
}

pub(super) fn create(service: &Service, key: &ApiKey) -> Response {
    let headers = [("X-Forwarded-Proto", "https")];
    service.plain_client().send(&create_request(key, &headers, patient().to_string().as_bytes()))
}

pub(super) fn command(urls: &Prepared, arguments: &[&str]) -> std::process::Output {
    arguments.iter().fold(production(urls), |all, one| all.argument(one)).run()
}

#[track_caller]
pub(super) fn json_of(output: &std::process::Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Exports everything, or what came since a token, as the owner. Gives the ids and the next token, or the refusal.
fn export(urls: &Prepared, clinic: &Clinic, since: Option<&str>) -> Result<(usize, String), String> {
    let organisation = clinic.organisation.to_string();
    let owners = Prepared { service: urls.owner.clone(), owner: urls.owner.clone() };
    let mut arguments = vec!["export", "--format", "jsonl", "--organisation", &organisation];
    arguments.extend(since.iter().flat_map(|token| ["--since", token]));
    let output = command(&owners, &arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    let token = said.lines().last().and_then(|line| line.strip_prefix("next: ")).map(str::to_owned);
    token.map(|token| (String::from_utf8(output.stdout).unwrap().lines().count(), token)).ok_or(said)
}

#[test]
fn a_file_of_the_log_is_archived_once_whole_and_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let archive = |file: &str| {
        let mut script = Command::new(packaged("archive"));
        script.arg(path(file)).arg(path("copy"));
        script
    };
    let unpacked = || run(Command::new("zcat").arg("--force").arg(path("copy")));
    fs::write(path("file"), "a file of the log\n".repeat(100_000)).unwrap();
    fs::write(path("other"), "another").unwrap();
    // What a run that was killed leaves.
    fs::write(path("copy.gz.part"), "half").unwrap();
    for _ in 0..2 {
        run(&mut archive("file"));
        assert_eq!(unpacked(), fs::read_to_string(path("file")).unwrap());
    }
    let size = |name: &str| fs::metadata(path(name)).unwrap().len();
    assert!(size("copy.gz") < size("file") / 10 && !path("copy").exists() && !path("copy.gz.part").exists());
    assert_eq!(fs::metadata(path("copy.gz")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!archive("other").output().unwrap().status.success(), "the file of another database");
    assert_eq!(unpacked(), fs::read_to_string(path("file")).unwrap());
    // Copies of the program before.
    fs::rename(path("file"), path("copy")).unwrap();
    fs::remove_file(path("copy.gz")).unwrap();
    fs::write(path("file"), unpacked()).unwrap();
    run(&mut archive("file"));
    assert!(!archive("other").output().unwrap().status.success() && !path("copy.gz").exists());
    assert_eq!(unpacked(), fs::read_to_string(path("file")).unwrap());
}

#[test]
fn archiving_that_is_killed_leaves_no_half_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, copy) = (folder.path().join("file"), folder.path().join("copy"));
    let compressed = copy.with_extension("gz");
    let content: Vec<u8> =
        (0..1_000_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    fs::write(&file, &content).unwrap();
    let mut killed = 0;
    for delay in (0..400).step_by(20) {
        let mut script = Command::new(packaged("archive")).arg(&file).arg(&copy).process_group(0).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        if script.try_wait().unwrap().is_none() {
            killed += 1;
            // The shell and what it runs.
            signal("KILL", &format!("-{}", script.id()));
            script.wait().unwrap();
        }
        if compressed.exists() {
            let unpacked = Command::new("zcat").arg(&compressed).output().unwrap();
            assert!(unpacked.status.success() && unpacked.stdout == content);
            fs::remove_file(&compressed).unwrap();
        }
    }
    assert!(killed > 3, "{killed}");
}

#[test]
fn a_service_refuses_a_restored_register_until_an_operator_accepts_it() {
    let postgres = PostgresServer::start();
    let archive = postgres.folder.path().join("archive");
    postgres.own_folder(&archive);
    administer(&postgres.server, "ALTER SYSTEM SET archive_mode = 'on'");
    let script = packaged("archive");
    let archiving = format!("ALTER SYSTEM SET archive_command = '{} %p {}/%f'", script.display(), archive.display());
    administer(&postgres.server, &archiving);
    restart(&postgres.server, postgres.folder.path());
    let urls = prepare(&postgres.server, "intake").unwrap();
    let mut service = production(&urls).start();
    let restored = postgres.base_backup(&[]);

    let clinic = Clinic::open(&urls.service, Environment::Production);
    let (leaked_id, leaked) = clinic.key();
    let (_, kept) = clinic.key();
    assert_eq!(create(&service, &kept).status, 201);
    let early = export(&urls, &clinic, None).unwrap();
    let mut as_service = PgConnection::establish(urls.service.expose()).unwrap();
    as_service.batch_execute(SIGNED_IN).unwrap();
    administer(&postgres.server, "SELECT pg_create_restore_point('before')");
    clinic.revoke(leaked_id);
    as_service.batch_execute("DELETE FROM sessions; DELETE FROM password_resets").unwrap();
    drop(as_service);
    assert_eq!(create(&service, &leaked).status, 401);
    assert_eq!(create(&service, &kept).status, 201);
    let late = export(&urls, &clinic, Some(&early.1)).unwrap();
    assert_eq!((early.0, late.0), (1, 1));
    let copies = tempfile::tempdir().unwrap();
    run(with_program(&mut Command::new(packaged("audit-copy")), &copies)
        .arg(copies.path())
        .env("INTAKE_ENVIRONMENT", "production")
        .env("DATABASE_URL", urls.service.expose()));
    let [copy] = &copies_in(copies.path())[..] else { panic!("{copies:?}") };
    administer(&postgres.server, "SELECT pg_switch_wal()");
    wait_for("the archive", || {
        postgres.count("pg_stat_archiver WHERE last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1)") > 0
            || postgres.count("pg_stat_archiver WHERE archived_count >= 2 AND failed_count = 0") > 0
    });
    assert!(service.stop().success());
    postgres.stop();
    let names: Vec<_> = fs::read_dir(&archive).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name.to_str().unwrap().ends_with(".gz")), "{names:?}");

    let data = restored.path().join("postgres/data");
    let settings = data.join("postgresql.auto.conf");
    let with_port = fs::read_to_string(&settings).unwrap() + "port = 5433\n";
    fs::write(&settings, with_port).unwrap();
    // A drill with the whole log finds nothing missing; without it, what was done since the backup.
    let empty = postgres.folder.path().join("empty");
    postgres.own_folder(&empty);
    for (log, is_missing) in [(&archive, false), (&empty, true)] {
        let mut drill = Command::new(packaged("drill"));
        let report = run(with_program(&mut drill, &copies).args([&data, log, copy]).env("PGUSER", OWNER));
        assert!(report.starts_with("Restored after "), "{report}");
        assert_eq!(report.contains("key revoked: Test key"), is_missing, "{report}");
        assert!(!report.contains("signed out"), "what holds for a restored service alone: {report}");
    }
    assert!(!data.join("recovery.signal").exists(), "the backup is as it was");
    let target = format!(
        "restore_command = 'zcat --force {}/%f > %p'\nrecovery_target_name = 'before'\nrecovery_target_action = 'promote'\n",
        archive.display()
    );
    fs::write(settings, target).unwrap();
    fs::write(data.join("recovery.signal"), "").unwrap();
    let again = PostgresServer::start_in(restored);
    let urls = urls_of(&again);
    wait_for("the end of the recovery", || again.count("pg_stat_activity WHERE NOT pg_is_in_recovery()") > 0);

    let refusal = complaint(production(&urls));
    assert!(
        refusal.contains("keys that were revoked may work again") && refusal.contains("intake restored"),
        "{refusal}"
    );
    let let_in = "(SELECT member_id FROM sessions UNION ALL SELECT member_id FROM password_resets) AS come_back";
    assert_eq!(again.count(let_in), 2);
    let arguments = ["restored", "--audit", copy.to_str().unwrap()];
    let report = command(&urls, &[&arguments[..], &["--json"]].concat());
    let report = json_of(&report);
    assert_eq!((report["lost"].as_array().unwrap().len(), &report["revokedKeys"]), (1, &Value::from(0)), "{report}");
    assert_eq!(
        (&report["lost"][0]["action"], &report["lost"][0]["subject"]),
        (&"key_revoked".into(), &"Test key".into())
    );
    let revoke = format!("intake key revoke {leaked_id}");
    assert_eq!(
        (&report["lost"][0]["keyId"], &report["lost"][0]["command"]),
        (&leaked_id.to_string().into(), &revoke.clone().into())
    );
    assert_eq!(again.count(let_in), 0, "a session and a link that had ended let nobody in");
    let newest = &report["newestPatients"][0];
    assert_eq!(newest["organisationId"], clinic.organisation.to_string());
    assert_eq!(
        again.count(&format!("patients WHERE created_at = {}", newest["createdAt"].to_string().replace('"', "'"))),
        1
    );
    let service = production(&urls).start();
    assert_eq!(create(&service, &leaked).status, 201, "it works again: nobody has revoked it here");
    // Marks tell what history a reader has seen.
    assert_eq!(export(&urls, &clinic, Some(&early.1)).unwrap().0, 1);
    assert!(export(&urls, &clinic, Some(&late.1)).unwrap_err().contains("does not know the token"));

    let text = command(&urls, &[&arguments[..], &["--revoke-keys"]].concat());
    assert!(text.status.success());
    let text = String::from_utf8(text.stdout).unwrap();
    let hint = &leaked.expose()[leaked.expose().len() - 4..];
    let named = format!("key revoked: Test key (…{hint}, id {leaked_id})");
    let newest = format!("Z  (organisation {}, ", clinic.organisation);
    for part in ["These actions were lost", &named, &newest, "Revoked 2 keys", "starts on this database again"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(&revoke), "it was revoked with the others: {text}");
    assert_eq!([&leaked, &kept].map(|key| create(&service, key).status), [401, 401]);
}

#[test]
fn a_copy_of_the_audit_log_grows_by_what_is_new_and_old_ones_are_compressed_and_pruned() {
    let app = TestApp::start();
    let (copies, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = |url: &str| {
        let mut script = Command::new(packaged("audit-copy"));
        with_program(&mut script, &path).arg(copies.path()).arg("3").env("INTAKE_DURABILITY", "none");
        script.env("DATABASE_URL", url);
        script
    };
    let copy = || {
        run(&mut script(app.database.service.expose()));
        copies_in(copies.path())
    };
    let entries = |file: &Path| -> Vec<Value> {
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let [first] = &copy()[..] else { panic!("{copies:?}") };
    let before = fs::read(first).unwrap();
    assert_eq!(entries(first).len() as i64, app.database.count("audit_entries"));
    copy();
    assert_eq!(fs::read(first).unwrap(), before, "nothing is new");
    // What monitoring and `intake doctor` read.
    let marks = [copies.path().join("copied"), path.path().join("intake-audit-copy.prom")];
    let long_ago = SystemTime::UNIX_EPOCH;
    marks.iter().for_each(|mark| File::create(mark).unwrap().set_modified(long_ago).unwrap());
    let marked = || marks.each_ref().map(|mark| fs::metadata(mark).unwrap().modified().unwrap() > long_ago);
    assert!(!script("postgres://nobody@127.0.0.1:1/none").arg(&marks[1]).status().unwrap().success());
    assert_eq!(marked(), [false, false], "a run that fails is no copy");
    copy();
    assert_eq!(marked(), [true, false], "without a third argument");
    run(script(app.database.service.expose()).arg(&marks[1]));
    assert_eq!(marked(), [true, true], "nothing is new, and the run was whole");
    // What a killed run leaves.
    fs::write(first, [&before[..], b"{\"id\": \"0"].concat()).unwrap();
    app.clinic.revoke(app.clinic.key().0);
    copy();
    assert!(fs::read(first).unwrap().starts_with(&before));
    let all = entries(first);
    assert_eq!(all.len() as i64, app.database.count("audit_entries"));
    assert_eq!(all.last().unwrap()["action"], "key_revoked");

    // Files of before they were numbered.
    let name = |number: &str, month: &str| copies.path().join(format!("audit-{number}{month}-01T000000Z.jsonl"));
    let old = name("000000-", "2020-03");
    fs::rename(first, name("", "2020-03")).unwrap();
    for month in ["2020-01", "2020-02"] {
        fs::write(name("", month), "").unwrap();
    }
    app.clinic.revoke(app.clinic.key().0);
    let [second, third, newest] = &copy()[..] else { panic!("{copies:?}") };
    let compressed = |path: &Path| PathBuf::from(format!("{}.gz", path.display()));
    assert_eq!((second, third), (&compressed(&name("000000-", "2020-02")), &compressed(&old)));
    assert_eq!(entries(newest).len(), 2, "a key that was made and revoked");
    let kept = run(Command::new("zcat").arg("--force").args([third, newest]));
    assert_eq!(kept.lines().count() as i64, app.database.count("audit_entries"));

    let date = path.path().join("date");
    fs::write(&date, "#!/bin/sh\necho 2019-12-31T000000Z\n").unwrap();
    fs::set_permissions(&date, fs::Permissions::from_mode(0o755)).unwrap();
    for revoked in 1..=4 {
        app.clinic.revoke(app.clinic.key().0);
        let newest = copy().pop().unwrap();
        assert_eq!(entries(&newest).len(), 2 * revoked, "a clock that was set back deletes nothing that is new");
    }
}

#[test]
fn a_copy_of_the_audit_log_that_fails_names_its_folder_and_the_cause() {
    let app = TestApp::start();
    let path = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(path.path(), "64k") else { return };
    let copy = || {
        let mut script = Command::new(packaged("audit-copy"));
        with_program(&mut script, &path).arg(disk.tables()).env("INTAKE_DURABILITY", "none");
        script.env("DATABASE_URL", app.database.service.expose()).output().unwrap()
    };
    assert!(copy().status.success());
    disk.fill();
    (0..20).for_each(|_| app.clinic.revoke(app.clinic.key().0));
    let output = copy();
    let said = String::from_utf8_lossy(&output.stderr);
    let folder = format!("audit-copy: {}: the audit log was not copied", disk.tables().display());
    assert!(!output.status.success() && said.contains("No space left on device") && said.contains(&folder), "{said}");
    disk.empty();
    assert!(copy().status.success());
    let [file] = &copies_in(&disk.tables())[..] else { panic!("one file") };
    let lines =
        fs::read_to_string(file).unwrap().lines().map(serde_json::from_str::<Value>).filter(Result::is_ok).count();
    assert!(lines as i64 >= app.database.count("audit_entries"), "{lines}");
}

#[test]
fn a_promoted_standby_that_has_everything_needs_no_operator() {
    let primary = PostgresServer::start();
    let urls = prepare(&primary.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let (_, key) = clinic.key();
    let standby = PostgresServer::start_in(primary.base_backup(&["--write-recovery-conf"]));
    administer(&primary.server, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    administer(&primary.server, "SELECT pg_reload_conf()");
    wait_for("the standby", || primary.count("pg_stat_replication WHERE sync_state = 'sync'") == 1);
    let refusal = export(&urls_of(&standby), &clinic, None).unwrap_err();
    assert!(refusal.contains("is a standby: export from the primary"), "{refusal}");
    let refusal = complaint(production(&urls_of(&standby)));
    assert!(
        refusal.contains("the database is a standby, which cannot be changed: connect to the primary"),
        "{refusal}"
    );
    let (_, token) = export(&urls, &clinic, None).unwrap();

    let hosts = format!("{},{}", primary.socket().display(), standby.socket().display());
    let either = |role: &str| -> DatabaseUrl {
        let url = format!("host='{hosts}' user={role} dbname=intake target_session_attrs=read-write");
        url.parse().map_err(|_| url).unwrap()
    };
    let either = Prepared { service: either(SERVICE_ROLE), owner: either(OWNER) };
    let service = production(&either).start();
    let asleep = production(&either);
    assert_eq!(create(&service, &key).status, 201);
    // The service looks after the key was made, and takes in what it has seen.
    let look = "pg_stat_activity WHERE query LIKE 'SELECT %audit_entries%' AND pid <> pg_backend_pid()
        AND query_start > (SELECT max(at) FROM audit_entries)";
    wait_for("a look", || primary.count(look) > 0);
    std::thread::sleep(std::time::Duration::from_secs(1));
    primary.stop();
    administer(&standby.server, "SELECT pg_promote()");
    wait_for("the service to go on", || create(&service, &key).status == 201);
    wait_for("the service to know the standby", || service.output().contains("its audit log is complete"));
    // A service that starts later trusts what it saw.
    asleep.start().wait_until_ready();
    assert_eq!(export(&urls_of(&standby), &clinic, Some(&token)).unwrap().0 as i64, standby.count("patients"));
    drop(service);

    // The same without a service that was running: nobody knows what was lost.
    let unseen = PostgresServer::start_in(standby.base_backup(&["--write-recovery-conf"]));
    administer(&unseen.server, "SELECT pg_promote()");
    assert!(complaint(production(&urls_of(&unseen))).contains("intake restored"));
}

#[test]
fn a_service_that_finds_itself_on_a_restored_database_ends() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    drop(clinic.key());
    let mut service = production(&urls).start();
    std::thread::sleep(std::time::Duration::from_secs(2));
    // What it has seen is gone, and the timeline is another one.
    let mut owner = PgConnection::establish(urls.owner.expose()).unwrap();
    owner.batch_execute("DELETE FROM audit_entries; UPDATE origin SET timeline = '0000000A'").unwrap();
    assert_eq!(service.wait().code(), Some(1));
    assert!(service.output().contains("intake restored"), "{}", service.output());
    // In development it is nobody's life.
    owner.batch_execute("UPDATE environment_stamp SET environment = 'development'").unwrap();
    program().database_urls(&urls.service, &urls.owner).start().wait_until_ready();
}

/// A copy of the files has the cluster and the timeline of the original: only who was there knows that something is
/// missing.
#[test]
fn an_earlier_copy_of_the_files_is_noticed_by_a_service_that_was_running_and_a_crash_is_none() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let ((leaked_id, leaked), (other_id, _), (_, kept)) = (clinic.key(), clinic.key(), clinic.key());
    let second_look = || std::thread::sleep(std::time::Duration::from_secs(3));
    postgres.stop();
    let copy = postgres.folder.path().join("postgres/copy");
    run(Command::new("cp").arg("-a").arg(postgres.data()).arg(&copy));
    postgres.server.ensure_running().unwrap();
    let mut services = [production(&urls).start(), production(&urls).start()];
    clinic.revoke(leaked_id);
    assert_eq!(create(&services[0], &leaked).status, 401);
    second_look();
    clinic.revoke(other_id);
    let postmaster = fs::read_to_string(postgres.data().join("postmaster.pid")).unwrap();
    signal("KILL", postmaster.lines().next().unwrap());
    wait_for("the end of the recovery", || {
        // Its process can be there for a moment after the signal, so that one look is not enough.
        postgres.server.ensure_running().is_ok() && services.iter().all(|service| create(service, &kept).status == 201)
    });
    second_look();
    assert_eq!(
        services.each_ref().map(|service| create(service, &kept).status),
        [201, 201],
        "a crash takes nothing: {}",
        services[0].output()
    );

    postgres.stop();
    fs::remove_dir_all(postgres.data()).unwrap();
    fs::rename(&copy, postgres.data()).unwrap();
    postgres.server.ensure_running().unwrap();
    for service in &mut services {
        assert_eq!(service.wait().code(), Some(1));
        assert!(service.output().contains("intake restored"), "{}", service.output());
    }
    let refused = complaint(production(&urls));
    assert!(refused.contains("keys that were revoked may work again"), "nor does it start: {refused}");
    assert!(command(&urls, &["restored", "--revoke-keys"]).status.success());
    let service = production(&urls).start();
    assert_eq!([&leaked, &kept].map(|key| create(&service, key).status), [401, 401]);
    second_look();
    assert_eq!(service.probe("/readyz").status, 200);
}

#[test]
fn an_accepted_restore_is_not_refused_again() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let (_, key) = clinic.key();
    let service = production(&urls).start();
    std::thread::sleep(std::time::Duration::from_secs(2));
    // While the service cannot look, what it has seen goes, and an operator says that this is right.
    service.signal("STOP");
    let mut owner = PgConnection::establish(urls.owner.expose()).unwrap();
    owner.batch_execute("DELETE FROM audit_entries; INSERT INTO key_watches VALUES (0, now(), now())").unwrap();
    assert!(command(&urls, &["restored"]).status.success());
    // No key that is not back yet has fallen silent.
    assert_eq!(diesel::sql_query("SELECT FROM key_watches").execute(&mut owner).unwrap(), 0);
    service.signal("CONT");
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(create(&service, &key).status, 201);
    assert_eq!(service.probe("/readyz").status, 200);
}

/// A refusal that a service has begun to write at that moment must not undo it.
#[test]
fn a_restore_that_is_accepted_while_a_service_refuses_it_stays_accepted() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let (_, key) = Clinic::open(&urls.service, Environment::Production).key();
    let service = production(&urls).start();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let connect = || PgConnection::establish(urls.owner.expose()).unwrap();
    let (mut accepting, mut restoring) = (connect(), connect());
    let accept = "BEGIN; UPDATE origin SET acceptances = acceptances || gen_random_uuid()";
    accepting.batch_execute(accept).unwrap();
    restoring.batch_execute("DELETE FROM audit_entries").unwrap();
    let waiting = "pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE origin%'";
    wait_for("the service to refuse it", || postgres.count(waiting) > 0);
    accepting.batch_execute("COMMIT").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(postgres.count("origin WHERE timeline = 'restored'"), 0);
    assert_eq!(create(&service, &key).status, 201, "{}", service.output());
}

#[test]
fn a_dump_in_another_cluster_is_taken_over_and_feeds_go_on_from_there() {
    let (old, new) = (PostgresServer::start(), PostgresServer::start());
    let urls = prepare(&old.server, "intake").unwrap();
    // The old cluster has counted further than the new one will for long.
    let count = "DO $$ BEGIN FOR n IN 1..5000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$";
    administer(&old.server, count);
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let (_, key) = clinic.key();
    let mut service = production(&urls).start();
    assert_eq!(create(&service, &key).status, 201);
    let (_, before) = export(&urls, &clinic, None).unwrap();
    assert!(service.stop().success());

    let roles = run(old.tool("pg_dumpall").arg("--roles-only"));
    // The owner is there already.
    let roles: String = roles.lines().filter(|line| !line.contains(OWNER)).map(|line| format!("{line}\n")).collect();
    let file = old.folder.path().join("roles.sql");
    fs::write(&file, roles).unwrap();
    let options = ["--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres"];
    run(new.tool("psql").args(options).stdin(File::open(file).unwrap()));
    administer(&new.server, "CREATE DATABASE intake");
    let dump = old.folder.path().join("postgres/intake.dump");
    run(old.tool("pg_dump").args(["--format=custom", "--dbname=intake", "--file"]).arg(&dump));
    run(new.tool("pg_restore").args(["--exit-on-error", "--dbname=intake"]).arg(&dump));

    let urls = urls_of(&new);
    assert!(complaint(production(&urls)).contains("intake restored"));
    assert!(export(&urls, &clinic, None).unwrap_err().contains("intake restored"));
    let report = json_of(&command(&urls, &["restored", "--json"]));
    assert!(report["lost"].is_null() && report["newestAuditEntryAt"].is_string(), "{report}");
    let service = production(&urls).start();
    assert!(export(&urls, &clinic, Some(&before)).unwrap_err().contains("made in another database"));
    let (everything, token) = export(&urls, &clinic, None).unwrap();
    assert_eq!(everything, 1);
    assert_eq!(export(&urls, &clinic, Some(&token)).unwrap().0, 0, "what came along is not exported again");
    assert_eq!(create(&service, &key).status, 201);
    assert_eq!(export(&urls, &clinic, Some(&token)).unwrap().0, 1);
    let make = ["key", "create", "--organisation", &clinic.organisation.to_string(), "--name", "Later", "--json"];
    let later = json_of(&command(&urls, &make))["id"].as_str().unwrap().to_owned();
    let newest = "audit_entries WHERE recorded_in = (SELECT max(recorded_in) FROM audit_entries)";
    assert_eq!(new.count(&format!("{newest} AND key_id = '{later}'")), 1, "the numbers go on from those of the dump");
    // Once more is harmless.
    assert!(command(&urls, &["restored"]).status.success());
    assert_eq!(export(&urls, &clinic, Some(&token)).unwrap().0, 1);
}

#[test]
fn a_dump_in_the_same_postgresql_is_noticed_too() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    let ((leaked_id, leaked), (_, kept)) = (clinic.key(), clinic.key());
    let dump = postgres.folder.path().join("postgres/intake.dump");
    run(postgres.tool("pg_dump").args(["--format=custom", "--dbname=intake", "--file"]).arg(&dump));
    clinic.revoke(leaked_id);

    // In place of the tables, under a running service.
    let mut service = production(&urls).start();
    assert_eq!(create(&service, &leaked).status, 401);
    run(postgres.tool("pg_restore").args(["--clean", "--if-exists", "--exit-on-error", "--dbname=intake"]).arg(&dump));
    assert_eq!(service.wait().code(), Some(1));
    assert!(service.output().contains("intake restored"), "{}", service.output());

    // As a new database, while none runs.
    administer(&postgres.server, "DROP DATABASE intake WITH (FORCE)");
    administer(&postgres.server, "CREATE DATABASE intake");
    run(postgres.tool("pg_restore").args(["--exit-on-error", "--dbname=intake"]).arg(&dump));
    assert!(complaint(production(&urls)).contains("keys that were revoked may work again"));
    assert!(command(&urls, &["restored", "--revoke-keys"]).status.success());
    let service = production(&urls).start();
    assert_eq!([&leaked, &kept].map(|key| create(&service, key).status), [401, 401]);
}

#[test]
fn a_transaction_that_was_prepared_before_the_backup_is_named() {
    let postgres = PostgresServer::start();
    administer(&postgres.server, "ALTER SYSTEM SET max_prepared_transactions = 2");
    restart(&postgres.server, postgres.folder.path());
    let urls = prepare(&postgres.server, "intake").unwrap();
    let mut connection = PgConnection::establish(urls.owner.expose()).unwrap();
    let left =
        "BEGIN; LOCK TABLE patients IN ROW EXCLUSIVE MODE; SELECT txid_current(); PREPARE TRANSACTION 'left behind'";
    connection.batch_execute(left).unwrap();
    let failed = command(&urls, &["restored"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8(failed.stderr).unwrap();
    for part in ["ROLLBACK PREPARED 'left behind'", "prepared at 2", OWNER] {
        assert!(said.contains(part), "{part}: {said}");
    }
    connection.batch_execute("ROLLBACK PREPARED 'left behind'").unwrap();
    assert!(command(&urls, &["restored"]).status.success());
}
