//! What a supervisor such as systemd relies on: it learns the state of the service, its watchdog learns of a thread
//! that is stuck, and sockets that it holds keep clients waiting through a restart instead of refusing them.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use intake_test_support::{Client, TestDatabase, create_request, patient, wait_for};

use crate::complaint;
use crate::fixtures::{OverWhenDropped, TestApp, program, service};

/// Time after which a message that has not come never does.
const PATIENCE: Duration = Duration::from_secs(120);

/// Stands in for systemd at the end of `NOTIFY_SOCKET`.
struct Supervisor {
    socket: UnixDatagram,
    path: String,
    _folder: tempfile::TempDir,
}

impl Supervisor {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path: path.to_str().unwrap().to_owned(), _folder: folder }
    }

    /// The next message that is no sign of life.
    fn next(&self) -> String {
        loop {
            let message = self.any().unwrap();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn any(&self) -> Option<String> {
        let mut buffer = [0; 256];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).trim().to_owned())
    }

    /// Returns whether a sign of life comes within this time, not counting those that have come before.
    fn hears_a_sign_of_life(&self, within: Duration) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        while self.any().is_some() {}
        self.socket.set_nonblocking(false).unwrap();
        self.socket.set_read_timeout(Some(within)).unwrap();
        self.any().is_some()
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_hangup_while_the_settings_are_read_ends_nothing() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let pipe = folder.path().join("address");
    make_pipe(&pipe);
    let builder = program()
        .setting("INTAKE_DURABILITY", "none")
        .setting("DATABASE_URL_FILE", &pipe)
        .setting("INTAKE_MIGRATION_DATABASE_URL", database.owner.expose());
    let hang_up = std::thread::spawn(move || {
        // Waits until the service reads, which waits for us.
        let mut writer = OpenOptions::new().write(true).open(&pipe).unwrap();
        let reader = processes_that_have_open(&pipe);
        assert_eq!(reader.len(), 1, "{reader:?}");
        let sent = Command::new("sh").args(["-c", "kill -s HUP -- \"$0\"", &reader[0]]).status().unwrap();
        assert!(sent.success());
        std::thread::sleep(Duration::from_millis(200));
        writer.write_all(database.service.expose().as_bytes()).unwrap();
        drop(writer);
        database
    });
    let running = builder.start();
    assert_eq!(running.probe("/livez").status, 200);
    drop(hang_up.join().unwrap());
}

/// Except this one.
fn processes_that_have_open(file: &Path) -> Vec<String> {
    let own = std::process::id().to_string();
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let has_open = |process: &String| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.filter_map(|found| fs::read_link(found.path()).ok()).any(|target| target == file)
    };
    names.filter(|name| name.parse::<u32>().is_ok() && *name != own).filter(has_open).collect()
}

#[test]
fn systemd_learns_when_the_service_is_ready_reloads_and_stops() {
    let supervisor = Supervisor::new();
    let mut app = TestApp::start_with(|builder| builder.setting("NOTIFY_SOCKET", &supervisor.path));
    assert_eq!(supervisor.next(), "READY=1");
    app.service.signal("HUP");
    let reloading = supervisor.next();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(supervisor.next(), "READY=1");
    app.service.signal("TERM");
    assert_eq!(supervisor.next(), "STOPPING=1");
    assert_eq!(app.service.wait().code(), Some(0));
}

#[test]
fn a_supervisor_that_does_not_listen_delays_nothing() {
    let supervisor = Supervisor::new();
    let full = UnixDatagram::unbound().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.send_to(b"full", &supervisor.path).is_ok() {}
    let mut app = TestApp::start_with(|builder| {
        builder.setting("NOTIFY_SOCKET", &supervisor.path).setting("WATCHDOG_USEC", "100000")
    });
    for signal in ["HUP", "HUP", "HUP"] {
        app.service.signal(signal);
        assert_eq!(app.create(&patient()).status, 201);
    }
    assert_eq!(app.service.stop().code(), Some(0), "{}", app.service.output());
}

#[test]
fn an_embedded_database_does_not_speak_for_the_service() {
    let supervisor = Supervisor::new();
    let mut running = program().setting("NOTIFY_SOCKET", &supervisor.path).start();
    assert_eq!(supervisor.next(), "READY=1");
    assert!(running.stop().success());
    assert_eq!(supervisor.next(), "STOPPING=1");
}

#[test]
fn a_thread_that_is_stuck_fails_the_probe_and_silences_the_watchdog() {
    let supervisor = Supervisor::new();
    let app = TestApp::start_with(|builder| {
        builder.setting("NOTIFY_SOCKET", &supervisor.path).setting("WATCHDOG_USEC", "1000000")
    });
    assert_eq!(supervisor.next(), "READY=1");
    assert!(supervisor.hears_a_sign_of_life(PATIENCE));
    assert_eq!(app.service.probe("/livez").text(), "ok\n");
    // Reading this waits for a writer, as reading from a file server that has gone.
    let certificate = app.service.data_dir().join("tls/cert.pem");
    fs::remove_file(&certificate).unwrap();
    make_pipe(&certificate);
    wait_for("a probe that fails", || {
        let probe = app.service.probe("/livez");
        (probe.status, probe.text().as_str()) == (503, "stuck: certificates\n")
    });
    let ready = app.service.probe("/readyz");
    assert_eq!((ready.status, ready.text().as_str()), (503, r#"{"ready":false,"reason":"stuck"}"#));
    let metrics = app.service.probe("/metrics").text();
    assert!(metrics.contains("\nintake_alive 0\n") && metrics.contains("\nintake_ready 0\n"), "{metrics}");
    // Some were on their way.
    wait_for("silence", || !supervisor.hears_a_sign_of_life(Duration::from_secs(2)));
    assert!(app.service.output().contains("the systemd watchdog will restart it"), "{}", app.service.output());
    assert_eq!(app.create(&patient()).status, 201, "the old certificate still serves");
}

#[test]
fn a_restart_with_passed_sockets_refuses_nobody() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let https = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = || {
        let builder = service(&database).data_folder(folder.path()).setting("INTAKE_HTTPS_ADDR", "127.0.0.1:1");
        builder.sockets([("https", &https), ("http", &http)]).start()
    };
    let mut running = start();
    assert_eq!(running.https, https.local_addr().ok());
    assert_eq!(running.http, http.local_addr().ok());
    let app_key = intake_test_support::Clinic::open(&database.service, intake_domain::Environment::Development).key().1;
    let client = Client::tls(https.local_addr().unwrap(), &folder.path().join("tls/ca.pem"));
    let (is_over, created) = (AtomicBool::new(false), AtomicU32::new(0));
    let request = create_request(&app_key, &[], patient().to_string().as_bytes());
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        let traffic = || {
            while !is_over.load(Ordering::SeqCst) {
                // A connection for each: none may be refused, reset or left without an answer.
                assert_eq!(client.send(&request).status, 201);
                created.fetch_add(1, Ordering::SeqCst);
            }
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(traffic)).collect();
        for _ in 0..3 {
            let before = created.load(Ordering::SeqCst);
            wait_for("some requests", || created.load(Ordering::SeqCst) > before + 10);
            assert_eq!(running.stop().code(), Some(0), "{}", running.output());
            running = start();
        }
        let before = created.load(Ordering::SeqCst);
        wait_for("some requests", || created.load(Ordering::SeqCst) > before + 10);
        drop(over);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    assert_eq!(database.count("patients"), i64::from(created.load(Ordering::SeqCst)));
}

#[test]
fn sockets_that_fit_no_listener_are_refused_by_name() {
    let database = TestDatabase::new();
    let (one, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let with = |names: [&str; 2]| service(&database).sockets([(names[0], &one), (names[1], &other)]);
    for names in [["https", "intake.socket"], ["https", "https"]] {
        let complaint = complaint(with(names));
        assert!(complaint.starts_with("intake: LISTEN_FDNAMES: each socket must be called"), "{complaint}");
    }
    let off = complaint(with(["https", "http"]).setting("INTAKE_HTTP_ADDR", "off"));
    assert_eq!(off, "intake: LISTEN_FDNAMES: a socket was passed for http, which the settings turn off");
}

#[test]
fn without_a_watchdog_or_systemd_nothing_is_reported() {
    let supervisor = Supervisor::new();
    supervisor.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let started = Instant::now();
    let mut app = TestApp::start();
    assert!(app.service.stop().success());
    assert_eq!(supervisor.any(), None);
    assert!(started.elapsed() > Duration::from_secs(1));
    assert!(!app.service.output().contains("systemd"), "{}", app.service.output());
}
