//! A trial of `intake deliver`: a webhook and a FHIR server that fail get the patients of a register while the
//! deliveries are killed, the database is away, and patients are erased. `just deliver-trial` does it with 100,000.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

use intake_domain::{ApiKey, Environment, OrganisationId};
use intake_infra::{DatabaseUrl, Prepared, prepare};
use intake_test_support::{Clinic, Connection, Service, ServiceBuilder, create_request, patient, wait_for};

use crate::commands::deliver::{Answer, Delivery, Sent, Target};
use crate::database::replication::administer;
use crate::database::restoring::{PostgresServer, urls_of};
use crate::fixtures::{OverWhenDropped, in_time, program};

/// Clients that create patients at a time.
const CLIENTS: usize = 4;
/// One patient in this number may be erased.
const ERASABLE: usize = 20;
/// Time in which a receiver must have taken something, unless it has everything.
const PATIENCE: Duration = Duration::from_secs(120);
/// Promised for 99 of 100 patients, from the answer to the integration until the receiver has them.
const DELAY_MAX: Duration = Duration::from_secs(2);
/// Share of the lost requests that hang: one in this number.
const HANGING: u64 = 100;
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BROKEN_OFF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{";

struct Plan {
    patients: usize,
    /// Time after which the deliveries are killed, again and again.
    life: Duration,
    /// Time for which the database is away.
    away: Duration,
    /// Pause of each client after each patient.
    pause: Duration,
    /// Patients that are created in the end, when nothing fails.
    timed: usize,
}

#[test]
fn under_faults_every_patient_arrives_and_no_erased_one_stays() {
    let second = Duration::from_secs(1);
    try_out(&Plan { patients: 300, life: second, away: second, pause: second / 20, timed: 100 });
}

#[test]
#[ignore = "just deliver-trial"]
fn under_faults_each_of_very_many_patients_arrives_and_no_erased_one_stays() {
    let patients = std::env::var("INTAKE_TEST_PATIENTS").map_or(100_000, |count| count.parse().unwrap());
    let (life, away) = (Duration::from_secs(5), Duration::from_secs(10));
    try_out(&Plan { patients, life, away, pause: Duration::ZERO, timed: 2_000 });
}

#[expect(clippy::print_stdout, reason = "the table is the result of the trial")]
fn try_out(plan: &Plan) {
    let register = Register::start();
    let receivers =
        [Receiver::start(&register, "webhook", "", webhook), Receiver::start(&register, "fhir", "fhir+", fhir)];
    let started = Instant::now();
    let kills = deliver_under_faults(&register, &receivers, plan);
    let took = started.elapsed().as_secs();
    let erased = register.erased.lock().unwrap().len();
    let counts = receivers.each_ref().map(|receiver| receiver.counts(&register));
    let mut delays = <[Vec<Duration>; 2]>::default();
    in_time(DELAY_MAX, || {
        delays = delays_without_faults(&register, &receivers, plan.timed);
        delays.iter().map(|delays| share(delays, 99)).max().unwrap()
    });
    let mut table = format!(
        "{} patients, {erased} of them erased, {kills} kills, database away for {:?}: {took} s\n\
         | receiver | requests | failed | taken again | lost | doubled | back after erasure | refused | delay: 50 % | 99 % | 100 % |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        plan.patients, plan.away,
    );
    for ((receiver, counts), delays) in receivers.iter().zip(&counts).zip(&delays) {
        let Counts { requests, failed, again, lost, doubled, back, refused } = counts;
        let [half, most, all] = [50, 99, 100].map(|percentage| share(delays, percentage).as_millis());
        let name = receiver.name;
        writeln!(table, "| {name} | {requests} | {failed} | {again} | {lost} | {doubled} | {back} | {refused} | {half} ms | {most} ms | {all} ms |")
            .unwrap();
    }
    println!("{table}");
    let wrong = counts.iter().map(|counts| counts.lost + counts.doubled + counts.back + counts.refused).sum::<usize>();
    assert_eq!(wrong, 0, "{table}");
    assert!(erased > 0 && kills > 0 && counts.iter().all(|counts| 4 * counts.failed > counts.requests), "{table}");
    let stored = usize::try_from(register.postgres.count("patients")).unwrap();
    assert_eq!(stored, register.created.lock().unwrap().len() - erased, "nothing was created twice");
}

/// The register is another one for the delivery, which must not guess what its target has.
#[test]
fn after_a_restore_everything_is_delivered_again_under_the_same_names() {
    let register = Register::start();
    let target = Target::start(|_| Answer::Status(202));
    let mut delivery = Delivery::over(register.reader("webhook"), register.organisation, &target.url);
    let mut connection = register.service.client().connect();
    let mut create = || {
        let id = register.create(&mut connection);
        wait_for("the patient", || target.of(&id).len() == 1);
        id
    };
    let running = delivery.start(&[]);
    let kept = [create(), create()];
    let backup = register.postgres.base_backup(&[]);
    let lost = create();
    running.stop();
    register.postgres.stop();
    let restored = PostgresServer::start_in(backup);
    delivery.database = restored.server.url("webhook", "intake");
    let output = delivery.run(&["--organisation", &register.organisation.to_string(), "--to", &target.url]);
    let said = String::from_utf8(output.stderr).unwrap();
    let token = format!("{}/token", delivery.state());
    assert!(said.contains("does not know the token") && said.contains(&format!("after removing {token}")), "{said}");
    std::fs::remove_file(token).unwrap();
    let running = delivery.start(&[]);
    wait_for("both again", || kept.iter().all(|id| target.of(id).len() == 2));
    running.stop();
    assert_eq!(target.of(&lost), ["patient.created"], "only the target has them");
    let names: HashSet<_> = target.taken().iter().map(|sent| sent.headers["webhook-id"].clone()).collect();
    assert_eq!((target.taken().len(), names.len()), (5, 3));
}

/// The time in which this percentage has arrived.
fn share(delays: &[Duration], percentage: usize) -> Duration {
    delays[(delays.len() * percentage).div_ceil(100) - 1]
}

/// A service over a database of its own, and what it has acknowledged.
struct Register {
    service: Service,
    urls: Prepared,
    postgres: PostgresServer,
    organisation: OrganisationId,
    key: ApiKey,
    /// Ids, and the time of each answer.
    created: Mutex<HashMap<String, Instant>>,
    erased: Mutex<HashSet<String>>,
    begun: AtomicUsize,
}

impl Register {
    fn start() -> Self {
        let postgres = PostgresServer::start();
        prepare(&postgres.server, "intake").unwrap();
        let urls = urls_of(&postgres);
        let service = program().database_urls(&urls.service, &urls.owner).setting("INTAKE_RATE_LIMIT", "off").start();
        let clinic = Clinic::open(&urls.service, Environment::Development);
        let (organisation, key) = (clinic.organisation, clinic.key().1);
        let (created, erased, begun) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        Self { service, urls, postgres, organisation, key, created, erased, begun }
    }

    /// Makes a role that reads the organisation's patients.
    fn reader(&self, name: &str) -> DatabaseUrl {
        administer(&self.postgres.server, &format!("CREATE ROLE {name} LOGIN"));
        let command = self.command("migrate").argument("--reader-role").argument(name);
        let output = command.argument("--organisation").argument(&self.organisation.to_string()).run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.postgres.server.url(name, "intake")
    }

    fn command(&self, name: &str) -> ServiceBuilder {
        program().database_urls(&self.urls.service, &self.urls.owner).argument(name)
    }

    /// Creates a patient, and repeats that until it is acknowledged.
    fn create(&self, connection: &mut Connection) -> String {
        let number = self.begun.fetch_add(1, Ordering::SeqCst);
        let headers = [("Idempotency-Key", &*format!("trial-{number}"))];
        let request = create_request(&self.key, &headers, patient().to_string().as_bytes());
        let answer = loop {
            match connection.try_write(&request).and_then(|()| connection.try_read(true)) {
                Ok(answer) if answer.status == 201 => break answer,
                Ok(_) => sleep(Duration::from_millis(50)),
                Err(_) => *connection = self.service.client().connect(),
            }
        };
        let answered_at = Instant::now();
        let id = answer.json()["data"]["id"].as_str().unwrap().to_owned();
        self.created.lock().unwrap().insert(id.clone(), answered_at);
        id
    }

    /// Erases a patient, and repeats that until it is acknowledged.
    fn erase(&self, id: &str) {
        let organisation = self.organisation.to_string();
        let arguments = ["erase", "--organisation", &organisation, "--patient", id];
        let erase = || arguments.iter().fold(self.command("patient"), |all, one| all.argument(one)).run();
        wait_for("the erasure", || erase().status.success());
        self.erased.lock().unwrap().insert(id.to_owned());
    }
}

/// A program of a clinic, and a delivery to it.
struct Receiver {
    name: &'static str,
    seen: Arc<Seen>,
    delivery: Delivery<'static>,
    // Serves for as long as the test runs.
    _target: Target,
}

#[derive(Default)]
struct Seen {
    requests: AtomicUsize,
    failed: AtomicUsize,
    has_no_faults: AtomicBool,
    patients: Mutex<Patients>,
}

/// Patients as a receiver has them.
#[derive(Default)]
struct Patients {
    /// Number of copies of each.
    copies: HashMap<String, usize>,
    erased: HashSet<String>,
    /// Time at which each arrived first.
    arrived: HashMap<String, Instant>,
    taken: usize,
    again: usize,
    /// Patients that were taken after their erasure.
    back: usize,
}

struct Counts {
    requests: usize,
    failed: usize,
    again: usize,
    lost: usize,
    doubled: usize,
    back: usize,
    refused: usize,
}

impl Receiver {
    fn start(register: &Register, name: &'static str, scheme: &str, take: fn(&Sent, &mut Patients)) -> Self {
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let target = Target::start(move |sent| shared.answer(sent, take));
        let delivery = Delivery::over(register.reader(name), register.organisation, &format!("{scheme}{}", target.url));
        Self { name, seen, delivery, _target: target }
    }

    /// Number of acknowledged patients and erasures that did not arrive, and number of patients that are there twice.
    fn lost_and_doubled(&self, register: &Register) -> (usize, usize) {
        let (created, erased) = (register.created.lock().unwrap(), register.erased.lock().unwrap());
        let patients = self.seen.patients.lock().unwrap();
        let copies = |id: &String| patients.copies.get(id).copied().unwrap_or_default();
        let is_right = |id: &String| match erased.contains(id) {
            true => copies(id) == 0 && patients.erased.contains(id),
            false => copies(id) > 0,
        };
        let lost = created.keys().filter(|id| !is_right(id)).count();
        (lost, patients.copies.values().filter(|copies| **copies > 1).count())
    }

    /// Number of requests that were taken.
    fn taken(&self) -> usize {
        self.seen.patients.lock().unwrap().taken
    }

    fn arrived(&self, id: &str) -> Option<Instant> {
        self.seen.patients.lock().unwrap().arrived.get(id).copied()
    }

    fn counts(&self, register: &Register) -> Counts {
        let (lost, doubled) = self.lost_and_doubled(register);
        let patients = self.seen.patients.lock().unwrap();
        let [requests, failed] = [&self.seen.requests, &self.seen.failed].map(|count| count.load(Ordering::SeqCst));
        let refused = self.delivery.letters().len();
        Counts { requests, failed, again: patients.again, lost, doubled, back: patients.back, refused }
    }
}

impl Seen {
    /// Three of ten requests fail: before they are taken, or after that.
    fn answer(&self, sent: &Sent, take: impl Fn(&Sent, &mut Patients)) -> Answer {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) as u64;
        let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let fault = if self.has_no_faults.load(Ordering::SeqCst) { 9 } else { random % 10 };
        if fault < 3 {
            self.failed.fetch_add(1, Ordering::SeqCst);
        }
        if fault == 0 {
            return Answer::Status(503);
        }
        if fault == 1 {
            let hangs = (random / 10).is_multiple_of(HANGING);
            return if hangs { Answer::Silence } else { Answer::Bytes(BROKEN_OFF.to_vec()) };
        }
        take(sent, &mut self.patients.lock().unwrap());
        Answer::Bytes(if fault == 2 { BROKEN_OFF } else { TAKEN }.to_vec())
    }
}

impl Patients {
    fn take(&mut self, id: &str) {
        self.taken += 1;
        self.back += usize::from(self.erased.contains(id));
        let before = self.arrived.len();
        self.arrived.entry(id.to_owned()).or_insert_with(Instant::now);
        self.again += usize::from(self.arrived.len() == before);
    }

    fn erase(&mut self, id: &str) {
        self.taken += 1;
        self.copies.remove(id);
        self.erased.insert(id.to_owned());
    }
}

/// Keeps patients by their id.
fn webhook(sent: &Sent, patients: &mut Patients) {
    match sent.event() {
        (kind, id) if kind == "patient.created" => {
            patients.copies.insert(id.clone(), 1);
            patients.take(&id);
        }
        (_, id) => patients.erase(&id),
    }
}

/// Updates the patient whom the identifier of the address finds, or keeps another one, as FHIR R4 says.
fn fhir(sent: &Sent, patients: &mut Patients) {
    let (_, searched) = sent.line.split_once("urn%3Auuid%3A").unwrap();
    let searched = searched.strip_suffix(" HTTP/1.1").unwrap();
    if sent.line.starts_with("DELETE ") {
        return patients.erase(searched);
    }
    let resource = sent.json();
    let id = resource["identifier"][0]["value"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
    if !patients.copies.contains_key(searched) {
        *patients.copies.entry(id.to_owned()).or_default() += 1;
    }
    patients.take(id);
}

/// Creates and erases patients, and kills the deliveries, until everything has arrived; returns the number of kills.
fn deliver_under_faults(register: &Register, receivers: &[Receiver; 2], plan: &Plan) -> usize {
    let (is_over, erasable) = (AtomicBool::new(false), Mutex::new(VecDeque::new()));
    let create = || {
        let mut connection = register.service.client().connect();
        for number in 0..plan.patients / CLIENTS {
            let id = register.create(&mut connection);
            if number % ERASABLE == 0 {
                erasable.lock().unwrap().push_back(id);
            }
            sleep(plan.pause);
        }
    };
    let erase = || {
        let mut is_newest = false;
        while !is_over.load(Ordering::SeqCst) {
            is_newest = !is_newest;
            let mut erasable = erasable.lock().unwrap();
            let next = if is_newest { erasable.pop_back() } else { erasable.pop_front() };
            drop(erasable);
            next.map_or_else(|| sleep(Duration::from_millis(10)), |id| register.erase(&id));
        }
    };
    thread::scope(|threads| {
        let mut end = Some(OverWhenDropped(&is_over));
        let clients: Vec<_> = (0..CLIENTS).map(|_| threads.spawn(create)).collect();
        let eraser = threads.spawn(erase);
        let (mut kills, mut database_back_at) = (0, None);
        let (mut taken, mut taken_at) = (0, Instant::now());
        loop {
            let running = receivers.each_ref().map(|receiver| receiver.delivery.start(&[]));
            sleep(plan.life);
            drop(running);
            kills += receivers.len();
            if register.created.lock().unwrap().len() >= plan.patients / 2 && database_back_at.is_none() {
                register.postgres.stop();
                database_back_at = Some(Instant::now() + plan.away);
            } else if database_back_at.is_some_and(|at| at <= Instant::now()) {
                register.postgres.server.ensure_running().unwrap();
            }
            if clients.iter().all(ScopedJoinHandle::is_finished) {
                drop(end.take());
            }
            let taken_now = receivers.iter().map(Receiver::taken).sum();
            if taken_now > taken {
                (taken, taken_at) = (taken_now, Instant::now());
            }
            let is_settled = eraser.is_finished() && receivers.iter().all(|one| one.lost_and_doubled(register).0 == 0);
            if is_settled || taken_at.elapsed() > PATIENCE {
                return kills;
            }
        }
    })
}

/// Creates patients while nothing fails; returns the times until each receiver had them, the shortest first.
fn delays_without_faults(register: &Register, receivers: &[Receiver; 2], count: usize) -> [Vec<Duration>; 2] {
    receivers.iter().for_each(|receiver| receiver.seen.has_no_faults.store(true, Ordering::SeqCst));
    let _running = receivers.each_ref().map(|receiver| receiver.delivery.start(&[]));
    let mut connection = register.service.client().connect();
    let first = register.create(&mut connection);
    wait_for("the first patient", || receivers.iter().all(|receiver| receiver.arrived(&first).is_some()));
    let create = |_| {
        sleep(Duration::from_millis(10));
        register.create(&mut connection)
    };
    let ids: Vec<_> = (0..count).map(create).collect();
    receivers.each_ref().map(|receiver| {
        wait_for("the others", || ids.iter().all(|id| receiver.arrived(id).is_some()));
        let created = register.created.lock().unwrap();
        let mut delays: Vec<_> =
            ids.iter().map(|id| receiver.arrived(id).unwrap().saturating_duration_since(created[id])).collect();
        delays.sort_unstable();
        delays
    })
}
