//! The clients: each sends patients to both services over connections of its own, writes the journal, and repeats
//! requests where that is safe until their outcome is known.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::ApiKey;
use intake_test_support::{Connection, Response, create_request};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::journal::{Journal, Kind};
use crate::people::patient;
use crate::pulse::Pulse;
use crate::random::Random;
use crate::test_bed::{INSTANCES, TestBed};

/// Between two tries, in milliseconds.
const PAUSE: (u64, u64) = (5, 30);
/// Time until every outcome must be known when all faults are over, on a calm machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// One acknowledged patient in this many is sent once more, which must give the same answer.
const REPLAY_ONE_IN: u64 = 10;
/// After one acknowledgement in this many, another patient is sent with the same idempotency key, which must be
/// refused.
const OTHER_ONE_IN: u64 = 20;
/// One acknowledged patient in this many may be erased, and each whose answer took so long that its statement may have
/// hung: nothing may store such a patient once more when the statement wakes.
const ERASE_ONE_IN: u64 = 50;
const SUSPICIOUSLY_LONG: Duration = Duration::from_millis(700);
/// Patients that wait to be erased.
const TO_ERASE_MAX: usize = 200;

/// Clients at work.
pub(crate) struct Traffic<'a> {
    bed: &'a TestBed,
    journal: &'a Journal,
    seed: u64,
    /// Time until every outcome must be known when all faults are over.
    patience: Duration,
    numbers: AtomicU64,
    /// True if 503 is wrong, because the fault concerns neither the database nor the services.
    are_refusals_wrong: bool,
    pub(crate) pulse: Pulse,
    is_over: AtomicBool,
    /// The fault itself has failed, so there is no use in waiting for outcomes.
    is_abandoned: AtomicBool,
    to_erase: Mutex<VecDeque<Acknowledged>>,
}

/// A patient that no client sends again.
pub(crate) struct Acknowledged {
    pub(crate) number: u64,
    pub(crate) organisation: Uuid,
    pub(crate) id: String,
    /// The request, if it may be sent again.
    pub(crate) request: Option<Vec<u8>>,
}

/// The idempotency key of a number.
pub(crate) fn retry_key(number: u64) -> String {
    format!("torture-{number}")
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(bed: &'a TestBed, journal: &'a Journal, seed: u64, slowness: u32) -> Self {
        let (numbers, is_over, is_abandoned) = (AtomicU64::new(1), AtomicBool::new(false), AtomicBool::new(false));
        let (are_refusals_wrong, pulse) = (false, Pulse::start());
        let (patience, to_erase) = (PATIENCE * slowness, Mutex::default());
        Self { bed, journal, seed, patience, numbers, are_refusals_wrong, pulse, is_over, is_abandoned, to_erase }
    }

    /// Traffic in which no request may be refused with 503.
    pub(crate) fn served_throughout(bed: &'a TestBed, journal: &'a Journal, seed: u64, slowness: u32) -> Self {
        Self { are_refusals_wrong: true, ..Self::new(bed, journal, seed, slowness) }
    }

    /// The same clients, whose patients have numbers from this one on.
    pub(crate) fn with_numbers_from(self, number: u64) -> Self {
        Self { numbers: AtomicU64::new(number), ..self }
    }

    /// A number that no other patient has.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns how soon every outcome must be known when all faults are over.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// The next patient to be erased.
    pub(crate) fn next_to_erase(&self) -> Option<Acknowledged> {
        self.to_erase.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn may_be_erased(&self, patient: Acknowledged) {
        let mut waiting = self.to_erase.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < TO_ERASE_MAX {
            waiting.push_back(patient);
        }
    }

    /// One more client, whose requests may be refused with 503: sends this patient of the first clinic with its
    /// idempotency key until it is acknowledged, which must be soon after `released`.
    pub(crate) fn send_until_acknowledged(
        &self,
        stream: u64,
        number: u64,
        released: Instant,
    ) -> anyhow::Result<Option<Response>> {
        let Some(key) = self.bed.clinics.first().and_then(|(_, keys)| keys.first()) else { return Ok(None) };
        let gives_up = Some(released + self.patience);
        let mut sender = Sender { may_be_refused: true, gives_up, ..Sender::new(self, stream) };
        sender.see_through(number, Kind::Safe, &request(key, number, Kind::Safe))
    }

    /// Sends an acknowledged patient with its idempotency key once more, after the register may have lost it.
    pub(crate) fn send_again_until_acknowledged(
        &self,
        number: u64,
        organisation: Uuid,
        until: Instant,
    ) -> anyhow::Result<()> {
        let mut clinics = self.bed.clinics.iter();
        let keys = clinics.find(|(clinic, _)| *clinic.organisation.as_uuid() == organisation).map(|(_, keys)| keys);
        let Some(key) = keys.and_then(|keys| keys.first()) else { return Ok(()) };
        let mut sender = Sender { gives_up: Some(until), ..Sender::new(self, number) };
        sender.see_through(number, Kind::Safe, &request(key, number, Kind::Safe)).map(|_| ())
    }

    /// Runs this many clients while the faults strike, and until every outcome is known.
    pub(crate) fn during<T>(&self, clients: u64, faults: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..clients).map(|client| scope.spawn(move || self.work(client))).collect();
            let struck = faults();
            self.is_abandoned.store(struck.is_err(), Ordering::Relaxed);
            self.is_over.store(true, Ordering::Relaxed);
            for client in all {
                client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            }
            struck
        })
    }

    fn work(&self, client: u64) -> anyhow::Result<()> {
        let mut sender = Sender::new(self, client);
        while !self.is_over.load(Ordering::Relaxed) {
            sender.send_one()?;
        }
        Ok(())
    }
}

/// One client.
pub(crate) struct Sender<'a> {
    traffic: &'a Traffic<'a>,
    random: Random,
    lanes: [Option<Connection>; INSTANCES],
    may_be_refused: bool,
    gives_up: Option<Instant>,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(traffic: &'a Traffic<'a>, stream: u64) -> Self {
        let may_be_refused = !traffic.are_refusals_wrong;
        let random = Random::new(traffic.seed, stream);
        Self { traffic, random, lanes: Default::default(), may_be_refused, gives_up: None }
    }

    fn send_one(&mut self) -> anyhow::Result<()> {
        let number = self.traffic.next_number();
        let kind = match self.random.below(20) {
            0 => Kind::Faulty,
            1 => Kind::Stranger,
            2..=10 => Kind::Once,
            _ => Kind::Safe,
        };
        let clinics = &self.traffic.bed.clinics;
        let choice = usize::try_from(self.random.below(clinics.len() as u64))?;
        let Some((clinic, keys)) = clinics.get(choice) else { return Ok(()) };
        let key = keys.get(usize::try_from(self.random.below(keys.len() as u64))?);
        let unknown_key = clinic.unknown_key();
        let key = if kind == Kind::Stranger { Some(&unknown_key) } else { key };
        let Some(request) = key.map(|key| request(key, number, kind)) else { return Ok(()) };
        let organisation = *clinic.organisation.as_uuid();
        self.traffic.journal.sent(number, organisation, kind);
        let since = Instant::now();
        let Some(acknowledged) = self.see_through(number, kind, &request)? else { return Ok(()) };
        if kind == Kind::Safe {
            self.replay(number, &request, &acknowledged);
            if let Some(key) = key.filter(|_| self.random.one_in(OTHER_ONE_IN)) {
                self.send_other_patient(number, organisation, key);
            }
        }
        if since.elapsed() > SUSPICIOUSLY_LONG || self.random.one_in(ERASE_ONE_IN) {
            let id = id_of(&acknowledged);
            let request = (kind == Kind::Safe).then_some(request);
            self.traffic.may_be_erased(Acknowledged { number, organisation, id, request });
        }
        Ok(())
    }

    /// Sends another patient with the idempotency key of this number.
    fn send_other_patient(&mut self, number: u64, organisation: Uuid, key: &ApiKey) {
        let other = self.traffic.next_number();
        self.traffic.journal.sent(other, organisation, Kind::OtherPatient);
        let headers = [("Idempotency-Key", retry_key(number))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let answer = self.try_once(&create_request(key, &headers, patient(other).to_string().as_bytes()));
        let _ = self.settle(other, Kind::OtherPatient, answer);
    }

    /// Sends a patient with an API key that may end at any moment. Returns the status; none: the outcome is open.
    pub(crate) fn send_with_ending_key(&mut self, organisation: Uuid, key: &ApiKey, instance: usize) -> Option<u16> {
        let number = self.traffic.next_number();
        let journal = self.traffic.journal;
        journal.sent(number, organisation, Kind::EndingKey);
        match self.try_at(instance, &request(key, number, Kind::EndingKey)) {
            Ok(answer) if answer.status == 201 => {
                if !acknowledge(journal, number, &answer) {
                    journal.wrong(number, "the answer holds another patient");
                }
                Some(201)
            }
            Ok(answer) if answer.status == 401 => {
                journal.refused(number, 401);
                Some(401)
            }
            Ok(answer) if answer.status == 503 => {
                journal.unknown(number, "503");
                None
            }
            Ok(answer) => {
                journal.wrong(number, &format!("{}: {}", answer.status, answer.text()));
                None
            }
            Err(error) => {
                journal.unknown(number, &format!("{:?}", error.kind()));
                None
            }
        }
    }

    /// Sends a request once more. Returns the status; none: the outcome is open.
    pub(crate) fn send_again(&mut self, request: &[u8]) -> Option<u16> {
        self.try_once(request).ok().map(|answer| answer.status).filter(|status| *status != 503)
    }

    /// Sends a request until its outcome is known, or once if repeating is not safe. Returns the acknowledgement, if
    /// any.
    fn see_through(&mut self, number: u64, kind: Kind, request: &[u8]) -> anyhow::Result<Option<Response>> {
        loop {
            let answer = self.try_once(request);
            let Some(answer) = self.settle(number, kind, answer) else { return Ok(None) };
            if answer.is_some() || kind != Kind::Safe || self.traffic.is_abandoned.load(Ordering::Relaxed) {
                return Ok(answer);
            }
            if self.traffic.is_over.load(Ordering::Relaxed) {
                self.gives_up.get_or_insert_with(|| Instant::now() + self.traffic.patience);
            }
            if self.gives_up.is_some_and(|gives_up| Instant::now() > gives_up) {
                self.traffic.journal.wrong(number, "all faults are over, and it is still not known");
                return Ok(None);
            }
            std::thread::sleep(self.random.milliseconds(PAUSE.0, PAUSE.1));
        }
    }

    /// Writes what an answer says into the journal. None if it is final and no acknowledgement; else the
    /// acknowledgement, if it is one.
    fn settle(&self, number: u64, kind: Kind, answer: std::io::Result<Response>) -> Option<Option<Response>> {
        let journal = self.traffic.journal;
        let expected = match kind {
            Kind::Once | Kind::Safe | Kind::EndingKey | Kind::Imported => 201,
            Kind::Faulty | Kind::OtherPatient => 422,
            Kind::Stranger => 401,
        };
        match answer {
            Err(error) => journal.unknown(number, &format!("{:?}", error.kind())),
            // The database was away for too long; the patient may be stored when it is back.
            Ok(answer) if answer.status == 503 => {
                journal.unknown(number, "503");
                if !self.may_be_refused {
                    journal.wrong(number, &format!("refused over others' troubles: 503 {}", answer.text()));
                }
            }
            Ok(answer) if answer.status != expected => {
                journal.wrong(number, &format!("{} instead of {expected}: {}", answer.status, answer.text()));
                return None;
            }
            Ok(answer) if expected == 201 => {
                if !acknowledge(journal, number, &answer) {
                    journal.wrong(number, "the answer holds another patient");
                }
                return Some(Some(answer));
            }
            Ok(answer) => {
                journal.refused(number, answer.status);
                return None;
            }
        }
        Some(None)
    }

    /// Sometimes sends the same request again, to either service, which must give the same answer.
    fn replay(&mut self, number: u64, request: &[u8], acknowledged: &Response) {
        if !self.random.one_in(REPLAY_ONE_IN) {
            return;
        }
        if let Ok(again) = self.try_once(request)
            && again.status != 503
            && (again.status != 201
                || again.body != acknowledged.body
                || again.header("idempotent-replayed") != Some("true"))
        {
            self.traffic.journal.wrong(number, &format!("sent again: {} {}", again.status, again.text()));
        }
    }

    fn try_once(&mut self, request: &[u8]) -> std::io::Result<Response> {
        let instance = usize::from(self.random.one_in(2));
        self.try_at(instance, request)
    }

    fn try_at(&mut self, instance: usize, request: &[u8]) -> std::io::Result<Response> {
        let Some(lane) = self.lanes.get_mut(instance) else { return Err(std::io::ErrorKind::NotFound.into()) };
        let connection = match lane {
            Some(connection) => connection,
            None => {
                let client = self.traffic.bed.client(instance).map_err(std::io::Error::other)?;
                lane.insert(client.try_connect()?)
            }
        };
        let asked = Instant::now();
        let answer = connection.try_write(request).and_then(|()| connection.try_read(true));
        if answer.as_ref().is_ok_and(|answer| answer.status == 201) {
            self.traffic.pulse.beat(instance, asked);
        }
        if answer.as_ref().map_or(true, |answer| answer.header("connection") == Some("close")) {
            *lane = None;
        }
        answer
    }
}

/// A request that can be sent again with its idempotency key.
pub(crate) fn safe_request(key: &ApiKey, number: u64) -> Vec<u8> {
    request(key, number, Kind::Safe)
}

fn request(key: &ApiKey, number: u64, kind: Kind) -> Vec<u8> {
    let mut body = patient(number);
    if kind == Kind::Faulty
        && let Some(phone) = body.get_mut("phoneNumber")
    {
        *phone = json!("0412 345 678");
    }
    let retry_key = retry_key(number);
    let retry = [("Idempotency-Key", retry_key.as_str())];
    let headers = if kind == Kind::Safe { &retry[..] } else { &[] };
    create_request(key, headers, body.to_string().as_bytes())
}

/// Writes an acknowledgement into the journal. Returns whether it holds the patient that was sent.
pub(crate) fn acknowledge(journal: &Journal, number: u64, answer: &Response) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let data = |member: &str| body.get("data")?.get(member);
    let text = |member: &str| data(member).and_then(Value::as_str).unwrap_or("?").to_owned();
    let organisation = text("organisationId").parse().unwrap_or_default();
    journal.created(number, organisation, &text("id"), &text("createdAt"));
    let sent = patient(number);
    sent.as_object().is_some_and(|sent| sent.iter().all(|(member, value)| data(member) == Some(value)))
}

/// The id of the patient in an answer.
pub(crate) fn id_of(answer: &Response) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    body.pointer("/data/id").and_then(Value::as_str).unwrap_or_default().to_owned()
}
