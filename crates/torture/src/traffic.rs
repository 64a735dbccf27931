//! The clients: each sends patients to both services over connections of its own, writes the journal, and repeats
//! requests where that is safe until their outcome is known.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use intake_domain::ApiKey;
use intake_test_support::{Connection, Response, create_request};
use serde_json::{Value, json};

use crate::arena::{Arena, INSTANCES};
use crate::journal::{Journal, Kind};
use crate::people::patient;
use crate::pulse::Pulse;
use crate::random::Random;

/// Between two tries, in milliseconds.
const PAUSE: (u64, u64) = (5, 30);
/// How soon every outcome must be known when all faults are over, on a calm machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// One acknowledged patient in this many is sent once more, which must give the same answer.
const REPLAY_ONE_IN: u64 = 10;

/// Clients at work.
pub(crate) struct Traffic<'a> {
    arena: &'a Arena,
    journal: &'a Journal,
    seed: u64,
    /// How soon every outcome must be known when all faults are over.
    patience: Duration,
    numbers: AtomicU64,
    /// Whether 503 is wrong, because the fault concerns neither the database nor the services.
    are_refusals_wrong: bool,
    pub(crate) pulse: Pulse,
    is_over: AtomicBool,
    /// The fault itself has failed, so there is no use in waiting for outcomes.
    is_abandoned: AtomicBool,
}

/// The idempotency key of a number.
pub(crate) fn retry_key(number: u64) -> String {
    format!("torture-{number}")
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(arena: &'a Arena, journal: &'a Journal, seed: u64, slowness: u32) -> Self {
        let (numbers, is_over, is_abandoned) = (AtomicU64::new(1), AtomicBool::new(false), AtomicBool::new(false));
        let (are_refusals_wrong, pulse) = (false, Pulse::start());
        let patience = PATIENCE * slowness;
        Self { arena, journal, seed, patience, numbers, are_refusals_wrong, pulse, is_over, is_abandoned }
    }

    /// Traffic in which no request may be refused with 503.
    pub(crate) fn served_throughout(arena: &'a Arena, journal: &'a Journal, seed: u64, slowness: u32) -> Self {
        Self { are_refusals_wrong: true, ..Self::new(arena, journal, seed, slowness) }
    }

    /// A number that no other patient has.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// One more client, whose requests may be refused with 503: sends this patient of the first clinic with its
    /// idempotency key until it is acknowledged, which must be soon after `released`.
    pub(crate) fn send_until_acknowledged(
        &self,
        stream: u64,
        number: u64,
        released: Instant,
    ) -> anyhow::Result<Option<Response>> {
        let Some(key) = self.arena.clinics.first().and_then(|(_, keys)| keys.first()) else { return Ok(None) };
        let gives_up = Some(released + self.patience);
        let mut sender = Sender { may_be_refused: true, gives_up, ..Sender::new(self, stream) };
        sender.see_through(number, Kind::Safe, &request(key, number, Kind::Safe))
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
struct Sender<'a> {
    traffic: &'a Traffic<'a>,
    random: Random,
    lanes: [Option<Connection>; INSTANCES],
    may_be_refused: bool,
    gives_up: Option<Instant>,
}

impl<'a> Sender<'a> {
    fn new(traffic: &'a Traffic<'a>, stream: u64) -> Self {
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
        let clinics = &self.traffic.arena.clinics;
        let choice = usize::try_from(self.random.below(clinics.len() as u64))?;
        let Some((clinic, keys)) = clinics.get(choice) else { return Ok(()) };
        let key = keys.get(usize::try_from(self.random.below(keys.len() as u64))?);
        let unknown_key = clinic.unknown_key();
        let key = if kind == Kind::Stranger { Some(&unknown_key) } else { key };
        let Some(request) = key.map(|key| request(key, number, kind)) else { return Ok(()) };
        self.traffic.journal.sent(number, clinic.organisation.to_string().parse()?, kind);
        if let Some(acknowledged) = self.see_through(number, kind, &request)?
            && kind == Kind::Safe
        {
            self.replay(number, &request, &acknowledged);
        }
        Ok(())
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
            Kind::Once | Kind::Safe => 201,
            Kind::Faulty => 422,
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
        let Some(lane) = self.lanes.get_mut(instance) else { return Err(std::io::ErrorKind::NotFound.into()) };
        let connection = match lane {
            Some(connection) => connection,
            None => {
                let client = self.traffic.arena.client(instance).map_err(std::io::Error::other)?;
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
    journal.created(number, &text("id"), &text("createdAt"));
    let sent = patient(number);
    sent.as_object().is_some_and(|sent| sent.iter().all(|(member, value)| data(member) == Some(value)))
}
