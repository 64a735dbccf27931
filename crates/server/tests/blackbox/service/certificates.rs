//! Certificates: faults are reported at the start, and a renewed one is read without an interruption.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use intake_test_support::{Client, ServiceBuilder, TestDatabase, request, wait_for};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use time::OffsetDateTime;

use crate::complaint;
use crate::fixtures::{OverWhenDropped, service};

/// RSA of 1,024 bits, which anybody can break and nobody uses.
const WEAK_KEY: &str = include_str!("weak-key.pem");

/// An authority, and the files of a certificate.
struct Files {
    folder: TempDir,
    authority: CertificateParams,
    authority_key: KeyPair,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("ca.pem"), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
        Self { folder, authority, authority_key }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a certificate that is valid for these days from today, and gives its key.
    fn issue(&self, from: i64, to: i64) -> KeyPair {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = today() + time::Duration::days(from);
        params.not_after = today() + time::Duration::days(to);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &Issuer::from_params(&self.authority, &self.authority_key)).unwrap();
        fs::write(self.path("cert.pem"), certificate.pem()).unwrap();
        fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
        key
    }

    fn service(&self, database: &TestDatabase) -> ServiceBuilder {
        with_files(database, &self.path("cert.pem"), &self.path("key.pem"))
    }

    fn complaint(&self, database: &TestDatabase) -> String {
        complaint(self.service(database))
    }
}

fn with_files(database: &TestDatabase, certificate: &Path, key: &Path) -> ServiceBuilder {
    service(database).setting("INTAKE_TLS_CERT", certificate).setting("INTAKE_TLS_KEY", key)
}

#[expect(clippy::disallowed_methods, reason = "certificates are of their day")]
fn today() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

#[test]
fn files_that_are_no_certificate_stop_the_start() {
    let (files, database) = (Files::new(), TestDatabase::new());
    let file = files.path("text.pem");
    fs::write(&file, "no certificate").unwrap();
    for (certificate, key) in [(files.path("none.pem"), file.clone()), (file.clone(), file.clone())] {
        let complaint = complaint(with_files(&database, &certificate, &key));
        assert!(complaint.starts_with("intake: INTAKE_TLS_CERT: "), "{complaint}");
    }
    files.issue(-1, 30);
    let complaint = complaint(with_files(&database, &files.path("cert.pem"), &files.path("none.pem")));
    assert!(complaint.starts_with("intake: INTAKE_TLS_KEY: "), "{complaint}");
}

#[test]
fn a_faulty_certificate_is_explained_in_one_line() {
    let (files, database) = (Files::new(), TestDatabase::new());
    files.issue(-30, -1);
    let expired = files.complaint(&database);
    assert!(expired.starts_with("intake: INTAKE_TLS_CERT: ") && expired.contains(" expired at"), "{expired}");
    files.issue(2, 30);
    let early = files.complaint(&database);
    assert!(early.starts_with("intake: INTAKE_TLS_CERT: ") && early.contains("is not valid before"), "{early}");
    files.issue(-1, 30);
    fs::write(files.path("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let other = files.complaint(&database);
    assert!(other.starts_with("intake: INTAKE_TLS_KEY: ") && other.contains("does not belong to"), "{other}");
    fs::write(files.path("key.pem"), WEAK_KEY).unwrap();
    let weak = files.complaint(&database);
    assert!(weak.starts_with("intake: INTAKE_TLS_KEY: ") && weak.contains("is too weak"), "{weak}");
}

#[test]
fn the_end_of_a_certificate_is_announced() {
    let (files, database) = (Files::new(), TestDatabase::new());
    files.issue(-1, 30);
    let service = files.service(&database).start();
    let end = || {
        let metrics = service.probe("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("intake_certificate_end_seconds ")).unwrap();
        OffsetDateTime::from_unix_timestamp(line.parse().unwrap()).unwrap()
    };
    let days_left = || (end() - today()).whole_hours() / 24;
    assert_eq!(days_left(), 29);
    assert!(!service.output().contains("ends soon"));
    files.issue(-1, 10);
    wait_for("the renewed one", || days_left() == 9);
    let service = files.service(&database).start();
    wait_for("the warning", || service.output().contains("the certificate expires soon"));
}

#[test]
fn a_certificate_is_renewed_under_load_and_a_broken_one_is_not_taken() {
    let (files, database) = (Files::new(), TestDatabase::new());
    files.issue(-1, 30);
    let service = files.service(&database).start();
    let client = Client::tls(service.https.unwrap(), &files.path("ca.pem"));
    let asks = request("GET", "/nothing", &[], b"");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        for _ in 0..4 {
            scope.spawn(|| {
                let mut lasting = client.connect();
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.send(&asks).status, 404);
                    assert_eq!(lasting.exchange(&asks).status, 404);
                }
            });
        }
        for renewals in 1..=3 {
            std::thread::sleep(Duration::from_millis(300));
            files.issue(-1, 30 + renewals);
            let count = || service.output().matches("the certificate was reloaded").count();
            wait_for("the renewal", || count() == usize::try_from(renewals).unwrap());
        }
        fs::write(files.path("cert.pem"), "no certificate").unwrap();
        wait_for("the complaint", || service.output().contains("the old one stays"));
        std::thread::sleep(Duration::from_millis(300));
        drop(over);
    });
}

#[test]
fn sighup_reads_the_certificate_at_once_and_never_ends_the_service() {
    let (files, database) = (Files::new(), TestDatabase::new());
    files.issue(-1, 30);
    let mut service = files.service(&database).start();
    assert_eq!(service.probe("/livez").status, 200);
    // The files have not changed: only the signal makes the service read them.
    service.signal("HUP");
    wait_for("the certificate", || service.output().contains("the certificate was reloaded"));
    files.issue(-1, 40);
    service.signal("HUP");
    let end = (today() + time::Duration::days(39)).unix_timestamp();
    let is_new = |line: &str| {
        let found = line.strip_prefix("intake_certificate_end_seconds ");
        found.is_some_and(|found| found.parse::<i64>().unwrap() > end)
    };
    wait_for("the new one", || service.probe("/metrics").text().lines().any(is_new));
    let client = Client::tls(service.https.unwrap(), &files.path("ca.pem"));
    assert_eq!(client.send(&request("GET", "/nothing", &[], b"")).status, 404);
    assert!(!service.has_ended());
}
