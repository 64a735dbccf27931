//! `just bench --crowd`, noisy neighbours: what the others notice of one tenant's trouble, in an open loop at a rate that is
//! easily reached when all is calm. The trouble itself is bounded, and comes in at a rate that is told: on one machine it must
//! not be the generator that takes the cores.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, anyhow};
use intake_test_support::flood::{
    Answers, Flood, Manner, NextRequest, replays, with_key, with_unknown_keys, wrong_sign_ins,
};
use intake_test_support::processes::Frozen;
use intake_test_support::{Client, Clinic, HeldRow, create_request, freeze_writer, patient};

use crate::open_loop::Outcome;
use crate::report::median;
use crate::stage::{Neighbour, Stage};

/// What two cores manage with ease that are shared by all.
const RATE: f64 = 500.0;
/// Of the open loop: enough that none waits for another.
const CONNECTIONS: usize = 64;
/// Of those who disturb, and how often they ask, all together. Sign-ins cost most: they keep their line full.
const NOISY_CONNECTIONS: usize = 16;
const NOISY_RATE: f64 = 300.0;
const SIGN_IN_CONNECTIONS: usize = 64;
const SIGN_IN_RATE: f64 = 50.0;
/// Of the row that is held: each waits for its answer before it asks again.
const CLIENTS_OF_ONE_KEY: usize = 4;
const IDEMPOTENCY_KEY: &str = "noisy-neighbour";
const PROXIED: (&str, &str) = ("X-Forwarded-Proto", "https");
/// What others may notice at most, and how much memory a service may hold.
const RATIO_MAX: f64 = 2.0;
const MEMORY_MAX: u64 = 256;

/// What goes on beside the creates that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    HeldRow,
    HungBackend,
    SignIns,
    UnknownKeys,
    RevokedKey,
    Replays,
}

impl Trouble {
    const ALL: [Self; 6] =
        [Self::HeldRow, Self::HungBackend, Self::SignIns, Self::UnknownKeys, Self::RevokedKey, Self::Replays];

    /// As the table tells it, with what was done.
    fn title(self) -> String {
        match self {
            Self::HeldRow => "a row is held that another client asks for".to_owned(),
            Self::HungBackend => "the backend of another instance's writer is stopped".to_owned(),
            Self::SignIns => {
                format!("{SIGN_IN_RATE:.0} wrong sign-ins a second from as many addresses, usual throttle")
            }
            Self::UnknownKeys => format!("{NOISY_RATE:.0} requests a second with unknown keys, usual rate limit"),
            Self::RevokedKey => format!("{NOISY_RATE:.0} requests a second with one revoked key, usual rate limit"),
            Self::Replays => {
                format!("{NOISY_RATE:.0} replays a second of one Idempotency-Key, INTAKE_RATE_LIMIT=off")
            }
        }
    }

    /// Which of the services is tried: replays of a key are what its rate limit would stop.
    fn needs_no_limit(self) -> bool {
        self == Self::Replays
    }
}

/// The open loops beside one trouble.
#[derive(Default)]
struct Runs {
    calm: Vec<f64>,
    noisy: Vec<f64>,
    /// How many requests were not answered 201, of the valid ones.
    refused: u64,
    answers: Answers,
}

/// Adds its rows to the table.
pub(crate) fn measure(
    limited: &Stage<'_>,
    unlimited: &Stage<'_>,
    rounds: usize,
    time: Duration,
    table: &mut String,
) -> anyhow::Result<()> {
    for trouble in Trouble::ALL {
        let stage = if trouble.needs_no_limit() { unlimited } else { limited };
        let mut runs = Runs::default();
        for round in 1..=rounds {
            eprintln!("round {round}, noisy neighbours: {}", trouble.title());
            measure_once(stage, trouble, time, &mut runs)?;
        }
        write_row(table, trouble, runs);
    }
    let memory = limited.peak_memory()?.max(unlimited.peak_memory()?) / 1024 / 1024;
    let _ = writeln!(table, "| most memory of the service in any of these | {memory} MiB | {MEMORY_MAX} MiB |");
    Ok(())
}

/// Once in calm, once in trouble: side by side, because a machine is not the same a minute later.
fn measure_once(stage: &Stage<'_>, trouble: Trouble, time: Duration, runs: &mut Runs) -> anyhow::Result<()> {
    stage.settle()?;
    let calm = stage.beside(RATE, CONNECTIONS, time)?;
    runs.calm.push(calm.tail.p99);
    // Before the trouble: a checkpoint may wait for a process that stands still.
    stage.settle()?;
    let noise = Noise::begin(stage, trouble)?;
    let outcome = stage.beside(RATE, CONNECTIONS, time);
    for (status, count) in noise.end()? {
        *runs.answers.entry(status).or_default() += count;
    }
    let Outcome { tail, refused, .. } = outcome?;
    runs.noisy.push(tail.p99);
    runs.refused += refused;
    Ok(())
}

fn write_row(table: &mut String, trouble: Trouble, Runs { calm, noisy, refused, answers }: Runs) {
    let (calm, noisy) = (median(calm), median(noisy));
    let is_served = if refused == 0 { "all 201".to_owned() } else { format!("{refused} not 201") };
    let told: Vec<String> = answers.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    let told = if told.is_empty() { String::new() } else { format!(" (answered {})", told.join(", ")) };
    let _ = writeln!(
        table,
        "| p99 at {RATE:.0} creates a second while {}{told} ÷ calm | {noisy:.2} ms ÷ {calm:.2} ms = {:.2}; {is_served} | {RATIO_MAX:.1}; all 201 |",
        trouble.title(),
        noisy / calm,
    );
}

/// A trouble under way.
struct Noise {
    what: What,
    /// Keeps its database pool, with which a key was made or revoked.
    _clinic: Clinic,
}

enum What {
    Flood(Flood),
    /// With the client that asks for the row.
    Row(HeldRow, Flood),
    /// Another instance, with clients of its own.
    Backend(Box<Neighbour>, Frozen, Flood),
}

impl Noise {
    fn begin(stage: &Stage<'_>, trouble: Trouble) -> anyhow::Result<Self> {
        let clinic = stage.clinic();
        let service = Client::plain(stage.plain()?);
        let (id, key) = clinic.key();
        let body = patient().to_string();
        let services = std::slice::from_ref(&service);
        let flood = |next: &NextRequest| Flood::start(services, NOISY_CONNECTIONS, Manner::Paced(NOISY_RATE), next);
        let what = match trouble {
            Trouble::HeldRow => {
                let held = HeldRow::insert(stage.owner(), clinic.organisation, IDEMPOTENCY_KEY, &patient());
                let held = held.map_err(|why| anyhow!(why))?;
                let next = replays(&key, IDEMPOTENCY_KEY, body.as_bytes(), &[PROXIED]);
                What::Row(held, Flood::start(services, CLIENTS_OF_ONE_KEY, Manner::Eager, &next))
            }
            Trouble::HungBackend => {
                let neighbour = stage.neighbour()?;
                let clients = [neighbour.client()?];
                let next = with_key(&key, &[PROXIED]);
                let work = Flood::start(&clients, NOISY_CONNECTIONS, Manner::Paced(NOISY_RATE), &next);
                let frozen = freeze_writer(stage.owner(), neighbour.application_name()).map_err(|why| anyhow!(why))?;
                What::Backend(Box::new(neighbour), frozen, work)
            }
            Trouble::SignIns => {
                let manner = Manner::Paced(SIGN_IN_RATE);
                What::Flood(Flood::start(services, SIGN_IN_CONNECTIONS, manner, &wrong_sign_ins(&[PROXIED])))
            }
            Trouble::UnknownKeys => What::Flood(flood(&with_unknown_keys(&clinic, &[PROXIED]))),
            Trouble::RevokedKey => {
                clinic.revoke(id);
                What::Flood(flood(&with_key(&key, &[PROXIED])))
            }
            Trouble::Replays => {
                let first = create_request(&key, &[PROXIED, ("Idempotency-Key", IDEMPOTENCY_KEY)], body.as_bytes());
                let answer = service.send(&first);
                anyhow::ensure!(answer.status == 201, "a patient that is to be replayed: {}", answer.text());
                What::Flood(flood(&replays(&key, IDEMPOTENCY_KEY, body.as_bytes(), &[PROXIED])))
            }
        };
        // Whoever makes noise has begun.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Self { what, _clinic: clinic })
    }

    /// Gives what those were answered who made it.
    fn end(self) -> anyhow::Result<Answers> {
        Ok(match self.what {
            What::Flood(flood) => flood.stop().answers,
            What::Row(held, flood) => {
                held.roll_back().map_err(|why| anyhow!(why))?;
                flood.stop().answers
            }
            What::Backend(neighbour, frozen, flood) => {
                drop(frozen);
                let answers = flood.stop().answers;
                neighbour.stop().context("another instance")?;
                answers
            }
        })
    }
}
