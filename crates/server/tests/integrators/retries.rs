//! The guide's programs repeat what may be repeated, with one idempotency key, as late as the answers say, and until a
//! deadline; what may not be repeated they do not. The service here is a false one, which fails on order.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::fixtures::Integration;
use crate::{guide, tools};

const CREATED: &str = r#"{"data":{"id":"01a1fced-5fed-735b-985b-55afb2dd9693"},"meta":{}}"#;
const EMPTY_DAY: &str = r#"{"data":{"created":0,"erased":0,"digest":"e3b0c442"},"meta":{}}"#;

/// A key of the right form that does not exist.
const KEY: &str = "intake_demo_abcdefghijklmnopqrstuvwxyz0123456789";

/// Behaviour of the false service.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// Not at all.
    LostConnection,
    /// With this status, and this many seconds to wait if it is not 0.
    Status(u16, u32),
    /// With a day of which nothing is left.
    Day,
}

/// Request to the false service, and its time.
pub(crate) struct Try {
    pub(crate) at: Instant,
    idempotency_key: String,
    body: String,
}

/// A service that fails on order.
pub(crate) struct FalseService {
    pub(crate) url: String,
    address: SocketAddr,
    answering: JoinHandle<Vec<Try>>,
}

impl FalseService {
    /// A service that gives these answers, one for each try.
    pub(crate) fn start(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = answers.to_vec();
        let tries = move || answers.into_iter().map_while(|answer| take_one(&listener, answer)).collect();
        Self { url: format!("http://{address}"), address, answering: thread::spawn(tries) }
    }

    /// Runs a program against it, to the end of both.
    pub(crate) fn run(self, name: &str, text: &str) -> (Output, Vec<Try>) {
        let folder = tempfile::tempdir().unwrap();
        let output = command(name, text, folder.path(), &self.url).output().unwrap();
        (output, self.tries())
    }

    /// The requests of a program that has ended.
    pub(crate) fn tries(self) -> Vec<Try> {
        // A connection without a request ends the service, if it still waits for one.
        drop(TcpStream::connect(self.address));
        self.answering.join().unwrap()
    }
}

/// Runs one of the guide's programs against a service that answers so, once for each try.
fn try_against(name: &str, answers: &[Answer]) -> (Output, Vec<Try>) {
    FalseService::start(answers).run(name, &guide::program(name))
}

/// The command that runs one of the guide's programs in this folder.
pub(crate) fn command(name: &str, text: &str, folder: &Path, url: &str) -> Command {
    let command = guide::run_program(folder, name, text).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = tools::python().map_or(path.clone(), |python| format!("{}:{path}", python.join("bin").display()));
    let mut program = Command::new("bash");
    program.args(["-c", &command]).current_dir(folder).env("PATH", path);
    program.env("INTAKE_URL", url).env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
    // A line feed behind the key, as files of secrets have it.
    program.env("INTAKE_KEY", format!("{KEY}\n"));
    for variable in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "JDK_JAVA_OPTIONS"] {
        program.env_remove(variable);
    }
    program
}

/// Takes one request, on a connection of its own.
fn take_one(listener: &TcpListener, answer: Answer) -> Option<Try> {
    let (mut stream, _) = listener.accept().unwrap();
    let at = Instant::now();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut idempotency_key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() == 0 {
            return None;
        }
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
    let sent = match answer {
        Answer::LostConnection => None,
        Answer::Status(status, wait) => Some((status, wait, CREATED)),
        Answer::Day => Some((200, 0, EMPTY_DAY)),
    };
    if let Some((status, wait, sent)) = sent {
        let wait = if wait > 0 { format!("Retry-After: {wait}\r\n") } else { String::new() };
        let length = sent.len();
        let head = format!("HTTP/1.1 {status} So\r\n{wait}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{sent}").as_bytes()).unwrap();
    }
    Some(Try { at, idempotency_key, body: String::from_utf8(body).unwrap() })
}

/// Does the same with each program that can be run here, at once.
fn with_each_program(check: impl Fn(&str) + Sync) {
    let check = &check;
    let languages = [
        ("ruby", "create_patient.rb"),
        ("go", "create_patient.go"),
        ("java", "CreatePatient.java"),
        ("mcs", "CreatePatient.cs"),
    ];
    let languages = languages.into_iter().filter_map(|(program, name)| tools::language(program).map(|()| name));
    let python = tools::python().map(|_| "create_patient.py");
    let node = tools::node().map(|_| "create-patient.mjs");
    let php = tools::php().map(|_| "create_patient.php");
    let programs: Vec<_> = languages.chain(python).chain(node).chain(php).chain(["create_patient.sh"]).collect();
    thread::scope(|scope| {
        for program in programs {
            scope.spawn(move || check(program));
        }
    });
}

#[test]
fn safe_requests_are_repeated_until_they_are_answered() {
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
fn unsafe_requests_are_sent_once() {
    with_each_program(|program| {
        for status in [307, 401, 422] {
            // After a second try, which would find nobody, it would complain of that.
            let (output, _) = try_against(program, &[Answer::Status(status, 0)]);
            assert!(!output.status.success(), "{program}: {status}");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(complaint.contains(&format!("refused with {status}")), "{program}: {complaint}");
        }
    });
}

#[test]
fn a_client_gives_up_at_once_when_retry_after_exceeds_its_deadline() {
    with_each_program(|program| {
        let (output, _) = try_against(program, &[Answer::Status(503, 3_600)]);
        assert!(!output.status.success(), "{program}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        // After a second try, which would find nobody, it would complain of that.
        assert!(complaint.contains("try again later with the same key: status 503"), "{program}: {complaint}");
    });
}

#[test]
fn a_wrong_setting_is_reported_at_once_without_the_key() {
    let app = Integration::start();
    with_each_program(|program| {
        // curl takes a word for a host.
        let no_address =
            if program.ends_with(".php") || program.ends_with(".sh") { "htps://localhost" } else { "nonsense" };
        // Without the variables for certificates, the authority of the service is unknown.
        for url in [no_address, &app.url()] {
            let folder = tempfile::tempdir().unwrap();
            let output = command(program, &guide::program(program), folder.path(), url).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success(), "{program}: {url}");
            assert!(!said.contains(&KEY[..20]) && !said.contains("try again"), "{program}: {url}: {said}");
        }
    });
}

#[test]
fn a_key_that_was_not_copied_whole_is_reported_at_once_and_not_printed() {
    with_each_program(|program| {
        for key in [&KEY[..40], &format!("{}\n{}", &KEY[..30], &KEY[30..]), &format!("{}…", &KEY[..47])] {
            let folder = tempfile::tempdir().unwrap();
            let mut command = command(program, &guide::program(program), folder.path(), "http://127.0.0.1:9");
            let output = command.env("INTAKE_KEY", key).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success() && said.contains("INTAKE_KEY is not an API key"), "{program}: {said}");
            assert!(!said.contains(&KEY[..20]), "{program}: {said}");
        }
    });
}
