//! A service whose machine has a wrong clock: it says so, and what it stores agrees with the database's clock and with
//! every other instance.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, Service, TestDatabase, leave_out, patient, wait_for};
use tempfile::TempDir;

use crate::fixtures::{Member, TestApp, service};

const FAKETIME: Prerequisite = Prerequisite {
    subject: "wrong clocks",
    need: "libfaketime",
    packages: Packages {
        apt: "apt-get install faketime",
        dnf: "dnf install libfaketime",
        brew: "brew install libfaketime",
    },
};
const WARNING: &str = "this machine's clock differs from the database's";
const CORRECTED: &str = "this machine's clock agrees with the database's again";
/// More than every time that is looked at takes, and far less than a skew.
const NEARLY: &str = "interval '10 minutes'";

/// A clock that can be set, for a program of a test.
pub(crate) struct Clock {
    library: PathBuf,
    folder: TempDir,
}

impl Clock {
    /// None: this machine cannot have one.
    pub(crate) fn set_to(skew: &str) -> Option<Self> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
        let library = folders.chain([PathBuf::from("/usr/lib64"), PathBuf::from("/usr/lib")]);
        let library = library.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
        let Some(library) = library else {
            leave_out(&FAKETIME);
            return None;
        };
        let clock = Self { library, folder: tempfile::tempdir().unwrap() };
        // PostgreSQL has another account.
        std::fs::set_permissions(clock.folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        clock.set(skew);
        Some(clock)
    }

    pub(crate) fn set(&self, skew: &str) {
        let unfinished = self.folder.path().join("unfinished");
        std::fs::write(&unfinished, format!("{skew}\n")).unwrap();
        std::fs::rename(unfinished, self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }

    fn start(&self, database: &TestDatabase) -> Service {
        self.variables().iter().fold(service(database), |service, (name, value)| service.setting(name, value)).start()
    }

    /// Returns what a program that has this clock is started with.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }
}

fn skew(service: &Service) -> f64 {
    let metrics = service.probe("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("intake_clock_skew_seconds ")).unwrap().to_owned();
    line.parse().unwrap()
}

#[test]
fn a_wrong_clock_is_logged_once_and_ends_no_key_early_or_late() {
    for (setting, seconds) in [("+1d", 86_400.0), ("-399d", -34_473_600.0)] {
        let Some(clock) = Clock::set_to(setting) else { return };
        let app = TestApp::start();
        let skewed = clock.start(&app.database);
        assert!((skew(&skewed) - seconds).abs() < 60.0, "{}", skew(&skewed));
        assert!(skew(&app.service).abs() < 2.0);

        let ((old, old_key), (new, new_key)) = (app.clinic.key(), app.clinic.key());
        let replace =
            format!("UPDATE api_keys SET replaces = '{old}', replaced_ends_after = '1 hour' WHERE id = '{new}'");
        app.database.connect().batch_execute(&replace).unwrap();
        assert_eq!(skewed.create(&new_key, &patient()).status, 201);
        let ends = |condition: &str| format!("api_keys WHERE id = '{old}' AND expires_at {condition}");
        wait_for("the end of the old key", || app.database.count(&ends("IS NOT NULL")) == 1);
        let in_an_hour = format!("BETWEEN now() + interval '1 hour' - {NEARLY} AND now() + interval '1 hour'");
        assert_eq!(app.database.count(&ends(&in_an_hour)), 1, "{setting}");
        assert_eq!(skewed.create(&old_key, &patient()).status, 201);
        let used = format!("key_uses WHERE key_id = '{new}' AND last_used_at BETWEEN now() - {NEARLY} AND now()");
        assert_eq!(app.database.count(&used), 1, "{setting}");
        let stamped = format!("patients WHERE created_at BETWEEN now() - {NEARLY} AND now() + interval '1 second'");
        assert_eq!((app.patients(), app.database.count(&stamped)), (2, 2), "{setting}");
        assert_eq!(skewed.output().matches(WARNING).count(), 1, "{}", skewed.output());
        assert!(!app.service.output().contains(WARNING));
    }
}

#[test]
fn instances_with_different_clocks_agree_on_invitations_and_sessions() {
    for setting in ["+10d", "-10d"] {
        let Some(clock) = Clock::set_to(setting) else { return };
        let app = TestApp::start();
        let skewed = clock.start(&app.database);
        // An invitation is good for three days, a session for seven.
        let ada = Member::join(skewed.client(), &app.invite("ada@clinic.example"), "Ada");
        assert_eq!(ada.get("/settings/api-keys").status, 200, "{setting}");
        let elsewhere = Member { client: app.service.client(), ..ada };
        assert_eq!(elsewhere.get("/settings/api-keys").status, 200, "{setting}");
        let path = elsewhere.invite("grace@clinic.example");
        Member::join(skewed.client(), &path, "Grace");
        let ahead = format!("sessions WHERE started_at NOT BETWEEN now() - {NEARLY} AND now() + interval '1 second'");
        assert_eq!(app.database.count(&ahead), 0, "{setting}");
    }
}

#[test]
fn a_corrected_clock_is_logged_and_counts_again() {
    let Some(clock) = Clock::set_to("+1d") else { return };
    let app = TestApp::start();
    let skewed = clock.start(&app.database);
    clock.set("+0");
    wait_for("the next connection", || {
        let _ = (skewed.create(app.key(), &patient()), skewed.probe("/readyz"));
        skewed.output().contains(CORRECTED)
    });
    assert!(skew(&skewed).abs() < 2.0, "{}", skew(&skewed));
    let stamped = format!("patients WHERE created_at NOT BETWEEN now() - {NEARLY} AND now() + interval '1 second'");
    assert_eq!(app.database.count(&stamped), 0);
}

#[test]
fn a_clock_that_goes_wrong_while_its_connections_last_is_noticed_within_seconds() {
    let Some(clock) = Clock::set_to("+0") else { return };
    let app = TestApp::start();
    let skewed = clock.start(&app.database);
    skewed.wait_until_ready();
    for _ in 0..5 {
        assert_eq!(skewed.create(app.key(), &patient()).status, 201);
        assert!(skew(&skewed).abs() < 2.0);
        std::thread::sleep(Duration::from_millis(400));
    }
    clock.set("+1h");
    let since = Instant::now();
    wait_for("the warning", || (skew(&skewed) - 3_600.0).abs() < 60.0 && skewed.output().contains(WARNING));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert_eq!(skewed.create(app.key(), &patient()).status, 201);
    let ahead = "patients WHERE created_at > now() + interval '1 second'";
    assert_eq!(app.database.count(ahead), 0);
    clock.set("+0");
    wait_for("the end of it", || skew(&skewed).abs() < 2.0 && skewed.output().contains(CORRECTED));
}
