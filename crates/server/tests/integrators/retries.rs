//! The guide's programs repeat what may be repeated, with one idempotency key, as late as they are told, and until a deadline;
//! what may not be repeated they do not. The service here is a false one, which fails as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::fixtures::Integration;
use crate::{guide, tools};

const CREATED: &str = r#"{"data":{"id":"01a1fced-5fed-735b-985b-55afb2dd9693"},"meta":{}}"#;

/// Whoever repeats does so for a minute.
const AT_ONCE: Duration = Duration::from_secs(45);

/// How the false service answers.
#[derive(Clone, Copy)]
enum Answer {
    /// Not at all.
    LostConnection,
    /// With this status, and so many seconds to wait if it is not 0.
    Status(u16, u32),
}

/// What the false service was sent, and when.
struct Try {
    at: Instant,
    idempotency_key: String,
    body: String,
}

/// Runs one of the guide's programs against a service that answers so, once for each try.
fn try_against(name: &str, answers: &[Answer]) -> (Output, Vec<Try>) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = answers.to_vec();
    let service = thread::spawn(move || answers.into_iter().map(|answer| take_one(&listener, answer)).collect());
    let output = command(name, folder.path(), &url).output().unwrap();
    (output, service.join().unwrap())
}

/// The command that runs one of the guide's programs in this folder.
fn command(name: &str, folder: &Path, url: &str) -> Command {
    std::fs::write(folder.join(name), guide::program(name)).unwrap();
    let interpreter = match Path::new(name).extension().unwrap().to_str().unwrap() {
        "py" => tools::python().unwrap().join("bin/python"),
        "php" => "php".into(),
        _ => "node".into(),
    };
    let mut program = Command::new(interpreter);
    program.arg(name).current_dir(folder).env("INTAKE_URL", url).env("NO_PROXY", "127.0.0.1,localhost");
    // A line feed behind the key, as files of secrets have it.
    program.env("INTAKE_KEY", "a-key\n").env_remove("SSL_CERT_FILE").env_remove("NODE_EXTRA_CA_CERTS");
    program
}

/// Takes one request, on a connection of its own.
fn take_one(listener: &TcpListener, answer: Answer) -> Try {
    let (mut stream, _) = listener.accept().unwrap();
    let at = Instant::now();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut idempotency_key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        match name.to_lowercase().as_str() {
            "idempotency-key" => value.clone_into(&mut idempotency_key),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if let Answer::Status(status, wait) = answer {
        let wait = if wait > 0 { format!("Retry-After: {wait}\r\n") } else { String::new() };
        let length = CREATED.len();
        let head = format!("HTTP/1.1 {status} So\r\n{wait}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{CREATED}").as_bytes()).unwrap();
    }
    Try { at, idempotency_key, body: String::from_utf8(body).unwrap() }
}

/// Does the same with each program that can be run here, at once.
fn with_each_program(check: impl Fn(&str) + Sync) {
    let check = &check;
    let python = tools::python().map(|_| "create_patient.py");
    let node = tools::node().map(|_| "create-patient.mjs");
    let php = tools::php().map(|_| "create_patient.php");
    thread::scope(|scope| {
        for program in python.into_iter().chain(node).chain(php) {
            scope.spawn(move || check(program));
        }
    });
}

#[test]
fn what_may_be_repeated_is_repeated_until_it_is_answered() {
    with_each_program(|program| {
        let answers = [
            Answer::LostConnection,
            Answer::Status(503, 2),
            Answer::Status(429, 1),
            Answer::Status(408, 0),
            Answer::Status(500, 0),
            Answer::Status(201, 0),
        ];
        let (output, tries) = try_against(program, &answers);
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("01a1fced"), "{program}");
        assert!(tries[0].idempotency_key.starts_with("acme-booking-"), "{program}");
        for again in &tries[1..] {
            assert_eq!((&again.idempotency_key, &again.body), (&tries[0].idempotency_key, &tries[0].body), "{program}");
        }
        let waited = |number: usize| tries[number + 1].at.duration_since(tries[number].at);
        assert!(waited(1) >= Duration::from_secs(2), "{program}: {:?}", waited(1));
        assert!(waited(2) >= Duration::from_secs(1), "{program}: {:?}", waited(2));
    });
}

#[test]
fn what_may_not_be_repeated_is_sent_once() {
    with_each_program(|program| {
        for status in [400, 401, 413, 415, 422, 426] {
            // A second try would find nobody, and would be repeated for a minute.
            let started = Instant::now();
            let (output, _) = try_against(program, &[Answer::Status(status, 0)]);
            assert!(!output.status.success(), "{program}: {status}");
            assert!(started.elapsed() < AT_ONCE, "{program}: {status}");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(complaint.contains(&format!("refused with {status}")), "{program}: {complaint}");
        }
    });
}

#[test]
fn whoever_is_told_to_come_after_the_deadline_gives_up_at_once() {
    with_each_program(|program| {
        let started = Instant::now();
        let (output, _) = try_against(program, &[Answer::Status(503, 3_600)]);
        assert!(!output.status.success(), "{program}");
        assert!(started.elapsed() < AT_ONCE, "{program}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("try again later with the same key"), "{program}: {complaint}");
    });
}

#[test]
fn a_wrong_setting_is_told_at_once_and_never_with_the_key() {
    let app = Integration::start();
    with_each_program(|program| {
        // curl takes a word for a host.
        let no_address = if program.ends_with(".php") { "htps://localhost" } else { "nonsense" };
        // Without the variables for certificates, the authority of the service is unknown.
        for url in [no_address, &app.url()] {
            let folder = tempfile::tempdir().unwrap();
            let started = Instant::now();
            let output = command(program, folder.path(), url).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success(), "{program}: {url}");
            assert!(started.elapsed() < AT_ONCE, "{program}: {url}: {said}");
            assert!(!said.contains("a-key") && !said.contains("try again"), "{program}: {url}: {said}");
        }
    });
}
