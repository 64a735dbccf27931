//! `intake deliver`: whatever the target and the machine do, each patient and each erasure arrives, in order.

mod cluster;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use intake_domain::OrganisationId;
use intake_infra::DatabaseUrl;
use intake_test_support::processes::send as signal;
use intake_test_support::{Client, Response, free_port, patient, request, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::commands::erasure;
use crate::commands::export::id_of;
use crate::commands::readers::ReaderRole;
use crate::deployment::operations::{folder, metrics_in};
use crate::fixtures::TestApp;
use crate::patient_with;

const SECRETS: &str =
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLswMfKQ9r8GKYqo=\nwhsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0IG9sZA==\n";

/// A request that a target got.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Sent {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Type and patient of a message.
    pub(super) fn event(&self) -> (String, String) {
        let message = self.json();
        (message["type"].as_str().unwrap().to_owned(), message["data"]["id"].as_str().unwrap_or_default().to_owned())
    }
}

/// Reaction of a target to a request.
pub(super) enum Answer {
    Status(u16),
    Bytes(Vec<u8>),
    Silence,
}

/// A target that other programs would run.
pub(super) struct Target {
    pub(super) url: String,
    taken: Arc<Mutex<Vec<Sent>>>,
}

impl Target {
    /// Keeps those requests that it answers with success.
    pub(super) fn start(answer: impl Fn(&Sent) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (taken, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let kept = Arc::clone(&taken);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { url, taken }
    }

    fn taken(&self) -> Vec<Sent> {
        self.taken.lock().unwrap().clone()
    }

    /// The types of a patient's messages, in their order.
    fn of(&self, id: &str) -> Vec<String> {
        self.taken().iter().map(Sent::event).filter(|(_, of)| of == id).map(|(kind, _)| kind).collect()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Sent>>, answer: &dyn Fn(&Sent) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some(sent) = read(&mut reader) {
        let bytes = match answer(&sent) {
            Answer::Silence => {
                thread::sleep(Duration::from_secs(30));
                return;
            }
            Answer::Bytes(bytes) => bytes,
            Answer::Status(status) => {
                if (200..300).contains(&status) {
                    kept.lock().unwrap().push(sent);
                }
                format!("HTTP/1.1 {status} Answer\r\ncontent-length: 2\r\n\r\n{{}}").into_bytes()
            }
        };
        if writer.write_all(&bytes).is_err() || bytes.ends_with(b"\r\n\r\n{") {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Sent> {
    let mut lines = reader.by_ref().lines().map_while(Result::ok);
    let line = lines.next()?;
    let headers: BTreeMap<_, _> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Sent { line, headers, body: String::from_utf8(body).unwrap() })
}

/// A delivery, with its folder.
pub(super) struct Delivery<'a> {
    database: DatabaseUrl,
    /// Dropped with the delivery.
    _reader: Option<ReaderRole<'a>>,
    organisation: String,
    to: String,
    folder: TempDir,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(app: &'a TestApp, to: &str) -> Self {
        let reader = ReaderRole::make(&app.database, "deliverer", Some(app.clinic.organisation));
        let delivery = Self::over(reader.url.clone(), app.clinic.organisation, to);
        Self { _reader: Some(reader), ..delivery }
    }

    /// A delivery over the address of a reader.
    fn over(database: DatabaseUrl, organisation: OrganisationId, to: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secrets"), SECRETS).unwrap();
        Self { database, _reader: None, organisation: organisation.to_string(), to: to.to_owned(), folder }
    }

    fn state(&self) -> String {
        self.folder.path().join("state").to_str().unwrap().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intake"));
        command.arg("deliver").args(arguments).env("DATABASE_URL", self.database.expose());
        command.env("INTAKE_DURABILITY", "none");
        command
    }

    pub(super) fn start(&self, more: &[&str]) -> Running {
        let state = self.state();
        let arguments = ["--organisation", &self.organisation, "--to", &self.to, "--state", &state];
        let timeout: &[&str] = if more.contains(&"--timeout") { &[] } else { &["--timeout", "1"] };
        let child = self.command(&[&arguments[..], timeout, more].concat()).stderr(Stdio::piped()).spawn().unwrap();
        Running(child)
    }

    fn start_signed(&self) -> Running {
        self.start(&["--secrets", self.folder.path().join("secrets").to_str().unwrap()])
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(&[arguments, &["--state", &self.state()]].concat()).output().unwrap()
    }

    fn status(&self) -> (Option<i32>, Value) {
        let output = self.run(&["status", "--json"]);
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    fn refused_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(Path::new(&self.state()).join("refused")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Those that are complete.
    pub(super) fn letters(&self) -> Vec<Value> {
        let complete = self.refused_files().into_iter().filter(|path| path.extension().unwrap() == "json");
        complete.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
    }
}

/// Address of a delivery's probes, and a client for them.
pub(crate) fn monitor() -> (String, Client) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    (address.to_string(), Client::plain(address))
}

pub(crate) fn probe(monitor: &Client, path: &str) -> Response {
    monitor.send(&request("GET", path, &[], b""))
}

pub(super) struct Running(Child);

impl Running {
    /// Ends it in good order; returns what it said.
    pub(super) fn stop(mut self) -> String {
        signal("TERM", &self.0.id().to_string());
        let said = std::io::read_to_string(self.0.stderr.take().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn erase(app: &TestApp, id: &str) {
    assert!(erasure::run(app, "erase", id, &[]).status.success());
}

/// Checks the signatures of Standard Webhooks with a program that is not ours. It needs one for each secret.
fn signatures_hold(sent: &Sent, secrets: &str) -> bool {
    let check = "import base64, hashlib, hmac, sys\n\
                 signed, signatures, secrets = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()\n\
                 for secret, signature in zip(secrets, signatures, strict=True):\n    \
                 key = base64.b64decode(secret.removeprefix('whsec_'))\n    \
                 digest = hmac.new(key, signed.encode(), hashlib.sha256).digest()\n    \
                 assert signature == 'v1,' + base64.b64encode(digest).decode(), signature\n";
    let header = |name: &str| sent.headers[name].as_str();
    let signed = format!("{}.{}.{}", header("webhook-id"), header("webhook-timestamp"), sent.body);
    let signatures = header("webhook-signature");
    Command::new("python3").args(["-c", check, &signed, signatures, secrets]).output().unwrap().status.success()
}

#[test]
fn a_webhook_gets_each_patient_and_each_erasure_signed_and_once() {
    let app = TestApp::start();
    let target = Target::start(|_| Answer::Status(204));
    let delivery = Delivery::new(&app, &target.url);
    let (first, gone) = (id_of(&app, &patient()), id_of(&app, &patient_with("lastName", "Gone")));
    let running = delivery.start_signed();
    wait_for("both patients", || target.taken().len() == 2);
    let answer = app.create(&patient_with("firstName", "Zoë")).json()["data"].clone();
    erase(&app, &gone);
    wait_for("what came later", || target.taken().len() == 4);
    assert_eq!(running.stop(), "");
    let taken = target.taken();
    assert!(taken.iter().all(|sent| signatures_hold(sent, SECRETS)));
    let last = taken.iter().find(|sent| sent.json()["data"]["firstName"] == "Zoë").unwrap();
    assert_eq!((last.json()["data"].clone(), last.line.as_str()), (answer, "POST /hook HTTP/1.1"));
    assert_eq!(target.of(&gone), ["patient.created", "patient.erased"]);
    let ids: BTreeSet<_> = taken.iter().map(|sent| &sent.headers["webhook-id"]).collect();
    assert_eq!(ids.len(), 4, "each event has a name of its own");

    // The next run goes on, and sends nothing twice.
    let running = delivery.start(&["--thin"]);
    let later = id_of(&app, &patient());
    wait_for("the patient in between", || target.of(&later).len() == 1);
    assert_eq!(target.taken()[4].json()["data"], json!({ "id": later }));
    let (code, status) = delivery.status();
    assert_eq!((code, &status["isRunning"], &status["refused"]), (Some(0), &json!(true), &json!(0)), "{status}");
    let mut second = delivery.start(&[]);
    let said = std::io::read_to_string(second.0.stderr.take().unwrap()).unwrap();
    assert!(said.contains("another delivery uses this folder"), "{said}");
    running.stop();
    assert_eq!((delivery.status().0, target.taken().len(), target.of(&first).len()), (Some(1), 5, 1));
}

#[test]
fn refused_events_are_kept_for_the_operator_and_hold_nothing_up() {
    let app = TestApp::start();
    let is_lenient = Arc::new(AtomicUsize::new(0));
    let lenient = Arc::clone(&is_lenient);
    let target = Target::start(move |sent| {
        let is_odd = sent.body.contains("Odd") && lenient.load(Ordering::SeqCst) == 0;
        Answer::Status(if is_odd { 422 } else { 200 })
    });
    let delivery = Delivery::new(&app, &target.url);
    let (address, monitor) = monitor();
    let running = delivery.start(&["--monitor", &address]);
    let odd = ["Odd-a", "Odd-b"].map(|name| id_of(&app, &patient_with("lastName", name)));
    let even = id_of(&app, &patient());
    wait_for("the other patient", || target.of(&even).len() == 1);
    wait_for("both letters", || delivery.letters().len() == 2);
    let letter = delivery.letters().into_iter().find(|letter| letter["id"] == odd[0]).unwrap();
    assert_eq!(letter["reason"], "the target answered 422");
    assert!(!letter.to_string().contains("Odd-a"), "{letter}");
    let path = Path::new(&delivery.state()).join(format!("refused/{}.json", odd[0]));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    wait_for("the state", || delivery.status().1["refused"] == 2);
    let metrics = probe(&monitor, "/metrics").text();
    let named = |text: &str| {
        let names = metrics_in(text).into_iter().filter(|name| name.starts_with("intake_deliver_"));
        names.collect::<BTreeSet<_>>()
    };
    let read = |file: &str| fs::read_to_string(folder().join(file)).unwrap();
    assert_eq!(named(&read("monitoring.md")), named(&metrics));
    assert!(named(&read("alerts.yml")).is_subset(&named(&metrics)));
    assert!(metrics.contains("\nintake_deliver_refused 2\n"), "{metrics}");
    assert!(metrics.contains("\nintake_deliver_taken_total{kind=\"patient\"} 1\n"), "{metrics}");
    assert_eq!(delivery.status().0, Some(1));

    // Nothing of a patient stays after their erasure.
    erase(&app, &odd[1]);
    wait_for("the erasure", || target.of(&odd[1]) == ["patient.erased"]);
    assert_eq!(delivery.letters().len(), 1);
    is_lenient.store(1, Ordering::SeqCst);
    let said = delivery.run(&["retry"]);
    assert!(String::from_utf8_lossy(&said.stdout).starts_with("1 refused events will be sent again"));
    wait_for("the letter", || target.of(&odd[0]).len() == 1);
    wait_for("a state without refusals", || delivery.status().0 == Some(0));
    running.stop();
    assert_eq!(delivery.refused_files(), [""; 0].map(PathBuf::from), "nothing stays, nor half of it");
    assert_eq!(target.of(&odd[1]), ["patient.erased"]);
}

#[test]
fn a_slow_target_shows_in_the_state_and_in_the_metrics() {
    let app = TestApp::start();
    let target = Target::start(|_| {
        thread::sleep(Duration::from_millis(400));
        Answer::Status(200)
    });
    let delivery = Delivery::new(&app, &target.url);
    let created = [(); 12].map(|()| id_of(&app, &patient()));
    let (address, monitor) = monitor();
    let running = delivery.start(&["--in-flight", "1", "--monitor", &address]);
    let value = |name: &str| {
        let text = probe(&monitor, "/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        value.unwrap()
    };
    wait_for("the backlog", || delivery.status().1["answerMs"].as_u64().is_some());
    let (_, status) = delivery.status();
    let (backlog, answer) = (status["backlog"].as_u64().unwrap(), status["answerMs"].as_u64().unwrap());
    assert!((4..=12).contains(&backlog) && (400..4_000).contains(&answer), "{status}");
    let oldest = app
        .database
        .texts("SELECT to_char(min(created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM patients");
    assert!(status["oldestAt"].as_str().unwrap() >= oldest[0].as_str(), "{status} {oldest:?}");
    let text = String::from_utf8(delivery.run(&["status"]).stdout).unwrap();
    assert!(
        text.contains("\n  to be sent: ") && text.contains(", the oldest of 20") && text.contains(" ms\n"),
        "{text}"
    );
    assert!(value("intake_deliver_backlog") >= 4.0 && value("intake_deliver_answer_seconds") >= 0.4);
    assert!((0.0..600.0).contains(&value("intake_deliver_oldest_age_seconds")));
    wait_for("all patients", || created.iter().all(|id| !target.of(id).is_empty()));
    wait_for("the end of the backlog", || {
        delivery.status().1["backlog"] == 0 && delivery.status().1["oldestAt"].is_null()
    });
    assert!(value("intake_deliver_backlog") + value("intake_deliver_oldest_age_seconds") < 0.5);
    running.stop();
}

#[test]
fn events_that_wait_are_shown_and_sent_again_without_a_database() {
    let app = TestApp::start();
    let status = Arc::new(AtomicU16::new(422));
    let answered = Arc::clone(&status);
    let target = Target::start(move |_| Answer::Status(answered.load(Ordering::SeqCst)));
    let delivery = Delivery::new(&app, &target.url);
    let running = delivery.start(&[]);
    let id = id_of(&app, &patient());
    wait_for("the letter", || delivery.letters().len() == 1);
    running.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let state = delivery.state();
    let without = |action: &str, setting: (&str, &str)| {
        let mut command = delivery.command(&[action, "--state", &state]);
        command.current_dir(&elsewhere).env_remove("DATABASE_URL").env(setting.0, setting.1).output().unwrap()
    };
    let settings = [
        ("INTAKE_ENVIRONMENT", "development"),
        ("INTAKE_ENVIRONMENT", "production"),
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none"),
        ("DATABASE_URL_FILE", "/nowhere/at/all"),
    ];
    for setting in settings {
        let output = without("status", setting);
        let [text, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(text.contains("refused: 1\n") && text.contains(&target.url), "{setting:?}: {text}");
        assert_eq!((output.status.code(), said.as_ref()), (Some(1), "intake: no delivery runs\n"), "{setting:?}");
    }
    for (setting, count) in settings.into_iter().zip([1, 0, 0, 0]) {
        let said = without("retry", setting);
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(text.starts_with(&format!("{count} refused events will be sent again")), "{setting:?}: {text}");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "no data folder is made");
    status.store(200, Ordering::SeqCst);
    let running = delivery.start(&[]);
    wait_for("the second attempt", || target.of(&id).len() == 1);
    running.stop();
}

#[test]
fn probes_are_answered_while_the_database_is_away() {
    let organisation = "01a1fced-567a-70c8-8fd6-60195f06c180".parse().unwrap();
    let inbox = tempfile::tempdir().unwrap();
    let database = "postgres://nobody@127.0.0.1:1/none".parse().unwrap();
    let delivery = Delivery::over(database, organisation, inbox.path().to_str().unwrap());
    let (address, monitor) = monitor();
    let running = delivery.start(&["--monitor", &address]);
    wait_for("the monitor", || TcpStream::connect(&address).is_ok());
    let said = ["/livez", "/readyz", "/metrics"].map(|path| probe(&monitor, path));
    assert_eq!(said.each_ref().map(|answer| answer.status), [200, 503, 200]);
    assert_eq!(said[1].json()["reason"], "the database was not read yet");
    for metric in ["\nintake_deliver_ready 0\n", "\nintake_deliver_up_to_date_seconds 1"] {
        assert!(said[2].text().contains(metric), "{}", said[2].text());
    }
    drop(running);
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_cause() {
    let app = TestApp::start();
    let inbox = tempfile::tempdir().unwrap();
    let target = inbox.path().join("inbox");
    fs::create_dir(&target).unwrap();
    let delivery = Delivery::new(&app, target.to_str().unwrap());
    let running = delivery.start(&[]);
    wait_for("the delivery", || delivery.status().1["upToDateAt"].is_string());
    fs::remove_dir_all(&target).unwrap();
    let id = id_of(&app, &patient());
    wait_for("a fault", || delivery.status().1["fault"].is_string());
    let fault = delivery.status().1["fault"].as_str().unwrap().to_owned();
    let file = format!("inbox/.{id}.unfinished: No such file or directory");
    assert!(fault.contains(&file), "{fault}");
    fs::create_dir(&target).unwrap();
    wait_for("the file", || target.join(format!("{id}.json")).is_file());
    running.stop();

    let state = PathBuf::from(delivery.state());
    let letter = |part: &str, text: &str| fs::write(state.join(part).join(format!("{id}.json")), text).unwrap();
    let said = |mut child: Running| std::io::read_to_string(child.0.stderr.take().unwrap()).unwrap();
    letter("again", r#"{"id":"nobody","isErased":false,"reason":"","at":""}"#);
    let ended = said(delivery.start(&[]));
    assert!(ended.contains(&format!("again/{id}.json: ")), "{ended}");
    letter("refused", "{}");
    fs::remove_dir_all(state.join("again")).unwrap();
    fs::write(state.join("again"), "").unwrap();
    let retried = delivery.run(&["retry"]);
    let retried = String::from_utf8_lossy(&retried.stderr);
    assert!(retried.contains(&format!("again/{id}.json: Not a directory")), "{retried}");
}

#[test]
fn a_target_that_hangs_lies_floods_or_leads_away_is_waited_for() {
    let app = TestApp::start();
    let elsewhere = Target::start(|_| Answer::Status(200));
    let (away, asked) = (elsewhere.url.clone(), AtomicUsize::new(0));
    let target = Target::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::Silence,
        1 => Answer::Bytes(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
        2 => Answer::Bytes(format!("HTTP/1.1 307 Away\r\nlocation: {away}\r\ncontent-length: 0\r\n\r\n").into_bytes()),
        3 => Answer::Bytes([&b"HTTP/1.1 500 Flood\r\ncontent-length: 99999999\r\n\r\n"[..], &[b'x'; 300_000]].concat()),
        4 => Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        5 => Answer::Status(401),
        6 => Answer::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\nconnection: close\r\n\r\n{".to_vec()),
        _ => Answer::Status(200),
    });
    let delivery = Delivery::new(&app, &target.url);
    let running = delivery.start(&[]);
    let id = id_of(&app, &patient());
    wait_for("a fault", || delivery.status().1["fault"].is_string());
    assert_eq!(delivery.status().0, Some(1));
    wait_for("the patient", || target.of(&id).len() == 1);
    let said = running.stop();
    assert!(said.starts_with("nothing is delivered at present, trying again: "), "{said}");
    assert!(said.ends_with("delivering again\n") && !said.contains("Lovelace"), "{said}");
    assert!(elsewhere.taken().is_empty() && delivery.letters().is_empty());
}

#[test]
fn a_folder_gets_a_file_for_each_patient_and_loses_it_with_an_erasure() {
    let app = TestApp::start();
    let target = tempfile::tempdir().unwrap();
    let delivery = Delivery::new(&app, target.path().to_str().unwrap());
    let running = delivery.start(&[]);
    let answer = app.create(&patient()).json()["data"].clone();
    let (kept, gone) = (answer["id"].as_str().unwrap(), id_of(&app, &patient()));
    let names = || {
        let names = fs::read_dir(target.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    wait_for("two files", || names().len() == 2 && names().iter().all(|name| name.ends_with(".json")));
    // Left behind by a run that was killed while it wrote.
    fs::write(target.path().join(format!(".{gone}.unfinished")), "{}").unwrap();
    fs::write(Path::new(&delivery.state()).join(format!("refused/{gone}.json.unfinished")), "{}").unwrap();
    let path = target.path().join(format!("{kept}.json"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640, "its group reads it");
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap(), answer);
    erase(&app, &gone);
    wait_for("the erasure", || names() == BTreeSet::from([format!("{kept}.json")]));
    running.stop();
    assert_eq!(delivery.refused_files(), [""; 0].map(PathBuf::from));
}

/// A register of years, and a target that takes one patient after the other.
#[test]
fn a_first_run_that_is_killed_goes_on_where_it_was() {
    let app = TestApp::start();
    let target = Target::start(|_| {
        thread::sleep(Duration::from_millis(50));
        Answer::Status(200)
    });
    let delivery = Delivery::new(&app, &target.url);
    let ids: Vec<_> = (0..100).map(|_| id_of(&app, &patient())).collect();
    let one = ["--in-flight", "1"];
    let running = delivery.start(&one);
    wait_for("most of them", || target.taken().len() >= 80);
    drop(running);
    let before = target.taken().len();
    let running = delivery.start(&one);
    wait_for("the rest", || ids.iter().all(|id| !target.of(id).is_empty()));
    running.stop();
    let again = target.taken().len() - ids.len();
    assert!(again < before / 2, "{again} of {before} were sent again");
}

#[test]
fn a_patient_who_is_erased_while_the_target_is_away_is_never_sent() {
    let app = TestApp::start();
    let is_away = Arc::new(AtomicUsize::new(1));
    let (away, asked) = (Arc::clone(&is_away), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&asked);
    let target = Target::start(move |sent| {
        seen.lock().unwrap().push(sent.event());
        Answer::Status(if away.load(Ordering::SeqCst) == 1 { 503 } else { 200 })
    });
    let delivery = Delivery::new(&app, &target.url);
    let (address, monitor) = monitor();
    let running = delivery.start(&["--in-flight", "1", "--monitor", &address]);
    // The first is tried again and again, the second waits behind it.
    let gone = [id_of(&app, &patient()), id_of(&app, &patient())];
    // What was read more than a second ago is read again. Five pauses take longer.
    wait_for("tries", || asked.lock().unwrap().len() > 5);
    let answer = probe(&monitor, "/readyz");
    assert_eq!((answer.status, &answer.json()["reason"]), (503, &json!("the target answered 503")));
    gone.iter().for_each(|id| erase(&app, id));
    let erased_at = asked.lock().unwrap().len();
    let kept = id_of(&app, &patient());
    is_away.store(0, Ordering::SeqCst);
    wait_for("who is left", || target.of(&kept).len() == 1);
    wait_for("readiness", || probe(&monitor, "/readyz").status == 200);
    wait_for("the erasures", || gone.iter().all(|id| target.of(id) == ["patient.erased"]));
    running.stop();
    // One may have been on its way.
    let later =
        asked.lock().unwrap()[erased_at..].iter().filter(|(kind, id)| kind == "patient.created" && *id != kept).count();
    assert!(later <= 1, "{later} were sent after their erasure");
}

/// The second patient was read with the first, and waits behind it for less than a second.
#[test]
fn a_patient_who_was_erased_a_moment_ago_is_not_sent() {
    let app = TestApp::start();
    let (begin, begun) = channel();
    let (end, ended) = channel::<()>();
    let gates = Mutex::new(Some((begin, ended)));
    let target = Target::start(move |sent| {
        if let Some((begin, ended)) = gates.lock().unwrap().take() {
            begin.send(sent.event().1).unwrap();
            ended.recv().unwrap();
        }
        Answer::Status(200)
    });
    let delivery = Delivery::new(&app, &target.url);
    let ids = [id_of(&app, &patient()), id_of(&app, &patient())];
    let running = delivery.start(&["--in-flight", "1", "--timeout", "30"]);
    let first = begun.recv().unwrap();
    let gone = ids.iter().find(|id| **id != first).unwrap();
    erase(&app, gone);
    end.send(()).unwrap();
    wait_for("the erasure", || target.of(gone).last().is_some_and(|kind| kind == "patient.erased"));
    running.stop();
    assert_eq!(target.of(gone), ["patient.erased"]);
}

#[test]
fn events_that_always_fail_hold_up_no_other() {
    let app = TestApp::start();
    let is_mended = Arc::new(AtomicUsize::new(0));
    let (mended, tries) = (Arc::clone(&is_mended), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&tries);
    let target = Target::start(move |sent| {
        if !sent.body.contains("Bad") || mended.load(Ordering::SeqCst) == 1 {
            return Answer::Status(200);
        }
        match count.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => Answer::Status(500),
            _ => Answer::Silence,
        }
    });
    let delivery = Delivery::new(&app, &target.url);
    let running = delivery.start(&["--in-flight", "2"]);
    let bad: Vec<_> = (0..3).map(|_| id_of(&app, &patient_with("lastName", "Bad"))).collect();
    wait_for("attempts", || tries.load(Ordering::SeqCst) >= 3);
    for round in 0..3 {
        let good: Vec<_> = (0..50).map(|_| id_of(&app, &patient())).collect();
        wait_for("the others", || good.iter().all(|id| target.of(id).len() == 1));
        wait_for("their position", || delivery.status().1["delivered"] == 50 * (round + 1));
    }
    assert_eq!(delivery.status().1["waiting"], 3);
    // Neither is one lost with the process.
    drop(running);
    is_mended.store(1, Ordering::SeqCst);
    let running = delivery.start(&[]);
    wait_for("the rest", || bad.iter().all(|id| target.of(id).len() == 1));
    wait_for("a state in order", || delivery.status().1["waiting"] == 0);
    running.stop();
    assert_eq!(target.taken().len(), 153, "nothing came twice");
}

#[test]
fn secrets_are_replaced_while_a_delivery_runs() {
    let app = TestApp::start();
    let target = Target::start(|_| Answer::Status(200));
    let delivery = Delivery::new(&app, &target.url);
    let [secrets, headers] = ["secrets", "headers"].map(|name| delivery.folder.path().join(name));
    let [old, new] = [0, 1].map(|line| SECRETS.lines().nth(line).unwrap());
    fs::write(&secrets, old).unwrap();
    fs::write(&headers, "Authorization: Bearer old\n").unwrap();
    let options = ["--secrets", secrets.to_str().unwrap(), "--headers", headers.to_str().unwrap()];
    let running = delivery.start(&options);
    let signed_by = |secrets: &str, token: &str| {
        wait_for("a message with the secret", || {
            let id = id_of(&app, &patient());
            wait_for("the patient", || target.of(&id).len() == 1);
            let last = target.taken().pop().unwrap();
            last.headers["authorization"] == token && signatures_hold(&last, secrets)
        });
    };
    signed_by(old, "Bearer old");
    fs::write(&secrets, format!("{new}\n{old}\n")).unwrap();
    signed_by(&format!("{new}\n{old}"), "Bearer old");
    // A file that is being written, or wrong, changes nothing.
    fs::write(&secrets, "").unwrap();
    fs::write(&headers, "Authorization: Bearer new\n").unwrap();
    thread::sleep(Duration::from_millis(1500));
    signed_by(&format!("{new}\n{old}"), "Bearer old");
    fs::write(&secrets, new).unwrap();
    signed_by(new, "Bearer new");
    let said = running.stop();
    assert!(said.starts_with("the secrets from before are used: ") && said.ends_with("secrets is empty\n"), "{said}");
}

/// Resources of a FHIR server, by their identifier.
type Resources = Arc<Mutex<BTreeMap<String, Value>>>;

/// Carries out a conditional update or deletion as FHIR R4 describes them; returns the status.
fn carry_out(sent: &Sent, patients: &Resources) -> u16 {
    let (method, path) = sent.line.split_once(' ').unwrap();
    let identifier = path.strip_prefix("/hook/Patient?identifier=urn%3Aietf%3Arfc%3A3986%7C").unwrap();
    let identifier = identifier.strip_suffix(" HTTP/1.1").unwrap().replace("%3A", ":");
    let mut patients = patients.lock().unwrap();
    if method == "DELETE" {
        return if patients.remove(&identifier).is_some() { 204 } else { 404 };
    }
    let resource = sent.json();
    assert_eq!((method, resource["identifier"][0]["value"].as_str().unwrap()), ("PUT", &*identifier));
    assert!(resource["id"].is_null() && resource["managingOrganization"]["reference"].is_null());
    if patients.insert(identifier, resource).is_some() { 200 } else { 201 }
}

#[test]
fn a_fhir_server_has_each_patient_once_and_no_erased_one() {
    let app = TestApp::start();
    let patients = Resources::default();
    let (kept, count) = (Arc::clone(&patients), AtomicUsize::new(0));
    let target = Target::start(move |sent| {
        if count.fetch_add(1, Ordering::SeqCst) % 3 == 0 {
            return Answer::Status(502);
        }
        assert_eq!(sent.headers["authorization"], "Bearer of-the-server");
        Answer::Status(carry_out(sent, &kept))
    });
    let delivery = Delivery::new(&app, &format!("fhir+{}", target.url));
    let headers = delivery.folder.path().join("headers");
    fs::write(&headers, "Authorization: Bearer of-the-server\n").unwrap();
    let start = || delivery.start(&["--headers", headers.to_str().unwrap()]);
    let mut running = start();
    let ids: Vec<_> = (0..10).map(|_| id_of(&app, &patient())).collect();
    running = {
        drop(running);
        start()
    };
    erase(&app, &ids[0]);
    let expected: BTreeSet<_> = ids[1..].iter().map(|id| format!("urn:uuid:{id}")).collect();
    wait_for("nine patients", || patients.lock().unwrap().keys().cloned().collect::<BTreeSet<_>>() == expected);
    running.stop();
}

/// The server carries out an update two seconds after nobody waits for its answer, and all else at once. A delivery
/// that is killed waits for no answer, either.
#[test]
fn a_patient_whom_a_fhir_server_stores_after_their_erasure_is_erased_again() {
    for is_killed in [false, true] {
        let app = TestApp::start();
        let patients = Resources::default();
        let (begin, begun) = channel();
        let (end, ended) = channel();
        let (kept, gates) = (Arc::clone(&patients), Mutex::new(Some((begin, end))));
        let target = Target::start(move |sent| {
            let gates = gates.lock().unwrap().take();
            if let Some((begin, _)) = &gates {
                begin.send(()).unwrap();
                thread::sleep(Duration::from_secs(3));
            }
            let status = carry_out(sent, &kept);
            if let Some((_, end)) = gates {
                end.send(status).unwrap();
            }
            Answer::Status(status)
        });
        let delivery = Delivery::new(&app, &format!("fhir+{}", target.url));
        let mut running = delivery.start(&[]);
        let id = id_of(&app, &patient());
        begun.recv().unwrap();
        if is_killed {
            drop(running);
            running = delivery.start(&[]);
        }
        erase(&app, &id);
        assert_eq!(ended.recv().unwrap(), 201, "it is stored too late");
        wait_for("the end of its erasure", || {
            let status = delivery.status().1;
            status["erased"] == 1 && status["waiting"] == 0
        });
        assert_eq!(*patients.lock().unwrap(), BTreeMap::new());
        running.stop();
    }
}

#[test]
fn a_target_gets_the_time_that_it_asks_for() {
    let app = TestApp::start();
    let asked_at = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked_at);
    let target = Target::start(move |_| {
        let mut seen = seen.lock().unwrap();
        seen.push(Instant::now());
        let busy = b"HTTP/1.1 429 Busy\r\nretry-after: 4\r\ncontent-length: 0\r\n\r\n";
        if seen.len() == 1 { Answer::Bytes(busy.to_vec()) } else { Answer::Status(200) }
    });
    let running = Delivery::new(&app, &target.url);
    let running = running.start(&[]);
    let id = id_of(&app, &patient());
    wait_for("the patient", || target.of(&id).len() == 1);
    running.stop();
    let asked_at = asked_at.lock().unwrap();
    assert!(asked_at[1] - asked_at[0] >= Duration::from_secs(4));
}

#[test]
fn a_target_is_tried_with_nobody_and_a_wrong_one_is_refused() {
    let app = TestApp::start();
    let target = Target::start(|_| Answer::Status(202));
    let delivery = Delivery::new(&app, &target.url);
    let secrets = delivery.folder.path().join("secrets");
    let tried =
        delivery.command(&["test", "--to", &target.url, "--secrets", secrets.to_str().unwrap()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "the target answered 202\n");
    let sent = &target.taken()[0];
    assert!(signatures_hold(sent, SECRETS));
    let slash = format!("{}/", target.url);
    assert!(delivery.command(&["test", "--to", &slash]).status().unwrap().success());
    assert_eq!(target.taken()[1].line, "POST /hook/ HTTP/1.1");
    assert_eq!((sent.json()["type"].as_str(), &sent.json()["data"]), (Some("test"), &json!({})));

    let refused = |arguments: &[&str]| {
        let state = delivery.state();
        let all = [&["--organisation", &delivery.organisation, "--state", &state][..], arguments].concat();
        let output = delivery.command(&all).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--to", "http://clinic.example/hook"]).contains("patients do not travel in the clear"));
    assert!(refused(&["--to", "https://me:secret@clinic.example/hook"]).contains("--headers"));
    assert!(refused(&["--to", "/nowhere/at/all"]).contains("/nowhere/at/all is not a folder"));
    assert!(refused(&["--to", "fhir+https://localhost:1/", "--thin"]).contains("only a webhook"));
    fs::write(&secrets, "secret\n").unwrap();
    let weak = ["--to", &target.url, "--secrets", secrets.to_str().unwrap()];
    assert!(refused(&weak).contains("a line must be whsec_"));
    // A folder keeps the position of one target.
    let running = delivery.start(&[]);
    wait_for("the delivery", || delivery.status().1["upToDateAt"].is_string());
    running.stop();
    let other = tempfile::tempdir().unwrap();
    assert!(refused(&["--to", other.path().to_str().unwrap()]).contains("another target needs another folder"));
}
