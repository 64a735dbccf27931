//! Floods: clients that send requests over and over until they are stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use intake_domain::ApiKey;

use crate::client::{Client, Connection, request};
use crate::clinic::{Clinic, patient, random};
use crate::service::create_request;

/// Between two tries to connect to a service that is gone, or to send more to one that does not read.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of requests that a client sends in one piece if it reads no answer.
const DEAF_REQUESTS: usize = 256;

/// Makes the next request.
pub type NextRequest = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// Number of answers with each status; 0 stands for connections that broke.
pub type Answers = BTreeMap<u16, u64>;

/// Behaviour of each client of a flood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Manner {
    /// Sends the next request as soon as it is answered.
    Eager,
    /// Waits for its answer, too; all clients together send at most this many requests a second.
    Paced(f64),
    /// Sends without end, and never reads an answer.
    Deaf,
}

/// The result of a flood.
#[derive(Debug, Default)]
pub struct Flooded {
    /// Number of requests that were sent.
    pub asked: u64,
    /// The answers that were read.
    pub answers: Answers,
}

/// A flood in progress.
pub struct Flood {
    is_over: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Answers>>,
}

impl Flood {
    /// Begins a flood over this many connections to each service.
    #[must_use]
    pub fn start(services: &[Client], connections: usize, manner: Manner, next: &NextRequest) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::new(AtomicU64::new(0));
        let all = services.len() * connections;
        let client = |(index, service): (usize, &Client)| {
            let (service, next) = (service.clone(), Arc::clone(next));
            let (is_over, asked) = (Arc::clone(&is_over), Arc::clone(&asked));
            let work = move || match manner {
                Manner::Eager => ask(&service, &next, Duration::ZERO, &asked, &is_over),
                Manner::Paced(rate) => {
                    let pause = Duration::from_secs_f64(all as f64 / rate);
                    // Spread over time, as independent clients are.
                    std::thread::sleep(pause.mul_f64(index as f64 / all as f64));
                    ask(&service, &next, pause, &asked, &is_over)
                }
                Manner::Deaf => send_only(&service, &next, &asked, &is_over),
            };
            std::thread::Builder::new().stack_size(256 * 1024).spawn(work).expect("a thread")
        };
        let clients = services.iter().cycle().take(all).enumerate().map(client).collect();
        Self { is_over, asked, clients }
    }

    /// Ends the flood.
    #[must_use]
    pub fn stop(self) -> Flooded {
        self.is_over.store(true, Ordering::Relaxed);
        let mut answers = Answers::new();
        for client in self.clients {
            for (status, count) in client.join().expect("a client does not panic") {
                *answers.entry(status).or_default() += count;
            }
        }
        Flooded { asked: self.asked.load(Ordering::Relaxed), answers }
    }
}

/// Headers that come with every request: what a proxy adds.
pub type Headers = &'static [(&'static str, &'static str)];

/// Patients with well-formed unknown keys, a new one each time.
#[must_use]
pub fn with_unknown_keys(clinic: &Clinic, headers: Headers) -> NextRequest {
    let (format, body) = (clinic.format().clone(), patient().to_string());
    Arc::new(move || create_request(&format.mint(random()), headers, body.as_bytes()))
}

/// Patients with one key, which may be revoked.
#[must_use]
pub fn with_key(key: &ApiKey, headers: Headers) -> NextRequest {
    let request = create_request(key, headers, patient().to_string().as_bytes());
    Arc::new(move || request.clone())
}

/// One patient with one `Idempotency-Key`, again and again.
#[must_use]
pub fn replays(key: &ApiKey, idempotency_key: &str, body: &[u8], headers: Headers) -> NextRequest {
    let headers = [headers, &[("Idempotency-Key", idempotency_key)]].concat();
    let request = create_request(key, &headers, body);
    Arc::new(move || request.clone())
}

/// Sign-ins with wrong passwords, each to another account and, for a service that trusts a proxy, from another address:
/// otherwise the service would refuse them without checking the password.
#[must_use]
pub fn wrong_sign_ins(headers: Headers) -> NextRequest {
    Arc::new(move || {
        let [a, b, c, d, ..] = random::<8>();
        let address = format!("10.{a}.{b}.{c}");
        let own = [("Content-Type", "application/x-www-form-urlencoded"), ("X-Forwarded-For", address.as_str())];
        let headers = [headers, &own].concat();
        let form = format!("email=somebody.{a}.{b}.{d}%40clinic.example&password=a+guess+that+is+wrong+{d}");
        request("POST", "/sign-in", &headers, form.as_bytes())
    })
}

/// A file of the dashboard: the largest answer that needs no key.
#[must_use]
pub fn style_sheet() -> NextRequest {
    Arc::new(|| request("GET", "/assets/style.css", &[], b""))
}

fn ask(service: &Client, next: &NextRequest, pause: Duration, asked: &AtomicU64, is_over: &AtomicBool) -> Answers {
    let mut answers = Answers::new();
    let mut connection: Option<Connection> = None;
    let mut due = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let answer = match &mut connection {
            Some(open) => open.try_write(&next()).and_then(|()| open.try_read(true)),
            None => {
                connection = service.try_connect().ok();
                if connection.is_none() {
                    std::thread::sleep(PAUSE);
                }
                continue;
            }
        };
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        asked.fetch_add(1, Ordering::Relaxed);
        *answers.entry(status).or_default() += 1;
        if answer.map_or(true, |answer| answer.header("connection") == Some("close")) {
            connection = None;
        }
        due = (due + pause).max(Instant::now().checked_sub(pause).unwrap_or(due));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    answers
}

/// Opens a new connection when the service closes one.
fn send_only(service: &Client, next: &NextRequest, asked: &AtomicU64, is_over: &AtomicBool) -> Answers {
    let one = next();
    let many = one.repeat(DEAF_REQUESTS);
    let mut broken = 0;
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(mut connection) = service.try_connect() {
            // Continues where the last write ended, so that the requests stay well formed.
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed)
                && let Ok(length) = connection.write_within(many.get(sent..).unwrap_or_default(), PAUSE)
            {
                let whole = (sent % one.len() + length) / one.len();
                asked.fetch_add(whole as u64, Ordering::Relaxed);
                sent = (sent + length) % many.len();
            }
            broken += u64::from(!is_over.load(Ordering::Relaxed));
        }
        std::thread::sleep(PAUSE);
    }
    Answers::from([(0, broken)])
}
