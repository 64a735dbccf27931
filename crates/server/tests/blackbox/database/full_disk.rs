//! A full disk: the service is not ready until something could be stored, and says that the database is back only then.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;
use intake_infra::prepare;
use intake_test_support::{Clinic, Service, wait_for};
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::doctor::examine;
use crate::database::causes::causes;
use crate::database::replication::server;
use crate::fixtures::program;
use crate::patient_with;

const BACK: &str = "the database is back";
const REFUSES: &str = "the database refuses to store patients";

/// A filesystem of its own, unmounted when dropped.
pub(super) struct SmallDisk(TempDir);

impl SmallDisk {
    /// None: this account cannot mount anything.
    #[expect(clippy::print_stderr, reason = "a person who runs the tests should see what was left out")]
    pub(super) fn mount(account_of: &Path, size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        if !mount.is_ok_and(|mount| mount.status.success()) {
            eprintln!("left out: a test of a full disk needs the right to mount one");
            return None;
        }
        let account = fs::metadata(account_of).unwrap();
        let disk = Self(folder);
        fs::create_dir(disk.tables()).unwrap();
        fs::set_permissions(disk.0.path(), Permissions::from_mode(0o711)).unwrap();
        chown(disk.tables(), Some(account.uid()), Some(account.gid())).unwrap();
        Some(disk)
    }

    /// A folder there, of the same account.
    pub(super) fn tables(&self) -> PathBuf {
        self.0.path().join("tables")
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    pub(super) fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4_096]).is_ok() {}
    }

    pub(super) fn empty(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

fn reason(service: &Service) -> Option<Value> {
    let probe = service.probe("/readyz");
    (probe.status != 200).then(|| probe.json()["reason"].clone())
}

#[test]
fn a_service_is_not_ready_while_the_disk_is_full_and_ready_as_soon_as_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = server(folder.path());
    let urls = prepare(&postgres, "intake").unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path().join("postgres/data"), "2m") else { return };
    // The log is elsewhere: PostgreSQL ends itself when it cannot write that.
    let place = disk.tables();
    let mut owner = PgConnection::establish(urls.owner.expose()).unwrap();
    owner.batch_execute(&format!("CREATE TABLESPACE small LOCATION '{}'", place.display())).unwrap();
    owner.batch_execute("ALTER TABLE patients SET TABLESPACE small").unwrap();
    let key = Clinic::open(&urls.service, Environment::Development).key().1;
    let service = program().database_urls(&urls.service, &urls.owner).setting("INTAKE_DEADLINE", "1s").start();
    let create = || service.create(&key, &patient_with("addressLine1", "x".repeat(255))).status;
    assert_eq!(create(), 201);
    service.wait_until_ready();

    for round in 1..=2 {
        disk.fill();
        wait_for("the first page to be full", || create() == 503 && reason(&service).is_some());
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            assert_eq!((create(), reason(&service)), (503, Some("writer".into())), "{}", service.output());
        }
        let admin = service.admin_address().to_string();
        let (code, parts, _) =
            examine(program().database_urls(&urls.service, &urls.owner).setting("INTAKE_ADMIN_ADDR", admin));
        let wrong: Vec<_> = parts.iter().filter(|(_, is_in_order, _)| *is_in_order == Some(false)).collect();
        assert_eq!((code, wrong.len()), (Some(1), 2), "{parts:?}");
        assert!(wrong[0].0 == "service" && wrong[0].2.contains("writer"), "{wrong:?}");
        assert!(wrong[1].0 == "storing" && wrong[1].2.contains("No space left on device"), "{wrong:?}");
        // What stores nothing works, and says nothing about the disk.
        // A look-up can share its batch with a probe that fails, and is refused with it.
        wait_for("a refusal", || service.create_with(&key, &[], b"{}").status == 422);
        assert_eq!(reason(&service), Some("writer".into()));
        let said = |words: &str| service.output().matches(words).count();
        // The log has a thread of its own.
        wait_for("the refusal in the log", || (said(REFUSES), said(BACK)) == (round, round - 1));
        let lines = causes(&service);
        let cause = lines.last().unwrap()["cause"].as_str().unwrap();
        assert!(
            cause.starts_with("the last error of the database: ") && cause.contains("No space left on device"),
            "{cause}"
        );
        disk.empty();
        if round == 1 {
            assert_eq!(create(), 201);
        }
        // Without a create, too.
        service.wait_until_ready();
        wait_for("the end of it in the log", || (said(REFUSES), said(BACK)) == (round, round));
    }
    assert_eq!(create(), 201);
}
