//! `just bench --crowd`, noisy neighbours: how one tenant's trouble affects the others, in an open loop at a rate that
//! is easily reached without it. The trouble has a fixed rate, because its generator shares the machine and must not
//! take the cores.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, anyhow};
use intake_test_support::flood::{
    Answers, Flood, Manner, NextRequest, replays, with_key, with_unknown_keys, wrong_sign_ins,
};
use intake_test_support::processes::Frozen;
use intake_test_support::{Client, Clinic, HeldRow, create_request, freeze_writer, patient};

use crate::median::median;
use crate::open_loop::Outcome;
use crate::stage::{Neighbour, Stage};

/// Requests a second that two shared cores handle with ease.
const RATE: f64 = 500.0;
/// Connections of the open loop: enough that no request waits for a free one.
const CONNECTIONS: usize = 64;
/// Connections of the noisy tenant, and its requests a second in all. Sign-ins cost most: they keep their queue full.
const NOISY_CONNECTIONS: usize = 16;
const NOISY_RATE: f64 = 300.0;
const SIGN_IN_CONNECTIONS: usize = 64;
const SIGN_IN_RATE: f64 = 50.0;
/// Clients that send the key of the locked row; each waits for its answer before it sends again.
const CLIENTS_OF_ONE_KEY: usize = 4;
const IDEMPOTENCY_KEY: &str = "noisy-neighbour";
const PROXIED: (&str, &str) = ("X-Forwarded-Proto", "https");
/// The largest growth of the others' p99, and the most memory of a service in MiB.
const RATIO_MAX: f64 = 2.0;
const MEMORY_MAX: u64 = 256;

/// The trouble beside the creates that are measured.
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

    /// Its description in the table.
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

    /// Returns whether the service needs to be without a rate limit, which would stop this trouble.
    fn needs_no_limit(self) -> bool {
        self == Self::Replays
    }
}

/// The results of the open loops without and with one trouble.
#[derive(Default)]
struct Runs {
    calm: Vec<f64>,
    noisy: Vec<f64>,
    /// Number of valid requests that were not answered 201.
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

/// Measures once without and once with the trouble, directly after each other because the machine's speed varies.
fn measure_once(stage: &Stage<'_>, trouble: Trouble, time: Duration, runs: &mut Runs) -> anyhow::Result<()> {
    stage.settle()?;
    let calm = stage.beside(RATE, CONNECTIONS, time)?;
    runs.calm.push(calm.tail.p99);
    // Before the trouble begins, because a checkpoint may wait for a frozen process.
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
    let counts: Vec<String> = answers.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    let answered = if counts.is_empty() { String::new() } else { format!(" (answered {})", counts.join(", ")) };
    let _ = writeln!(
        table,
        "| p99 at {RATE:.0} creates a second while {}{answered} ÷ calm | {noisy:.2} ms ÷ {calm:.2} ms = {:.2}; {is_served} | {RATIO_MAX:.1}; all 201 |",
        trouble.title(),
        noisy / calm,
    );
}

/// Trouble in progress.
struct Noise {
    kind: NoiseKind,
    /// Keeps the clinic's database pool open.
    _clinic: Clinic,
}

enum NoiseKind {
    Flood(Flood),
    /// With the clients that send the row's key.
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
        let kind = match trouble {
            Trouble::HeldRow => {
                let held = HeldRow::insert(stage.owner(), clinic.organisation, IDEMPOTENCY_KEY, &patient());
                let held = held.map_err(|why| anyhow!(why))?;
                let next = replays(&key, IDEMPOTENCY_KEY, body.as_bytes(), &[PROXIED]);
                NoiseKind::Row(held, Flood::start(services, CLIENTS_OF_ONE_KEY, Manner::Eager, &next))
            }
            Trouble::HungBackend => {
                let neighbour = stage.neighbour()?;
                let clients = [neighbour.client()?];
                let next = with_key(&key, &[PROXIED]);
                let work = Flood::start(&clients, NOISY_CONNECTIONS, Manner::Paced(NOISY_RATE), &next);
                let frozen = freeze_writer(stage.owner(), neighbour.application_name()).map_err(|why| anyhow!(why))?;
                NoiseKind::Backend(Box::new(neighbour), frozen, work)
            }
            Trouble::SignIns => {
                let manner = Manner::Paced(SIGN_IN_RATE);
                NoiseKind::Flood(Flood::start(services, SIGN_IN_CONNECTIONS, manner, &wrong_sign_ins(&[PROXIED])))
            }
            Trouble::UnknownKeys => NoiseKind::Flood(flood(&with_unknown_keys(&clinic, &[PROXIED]))),
            Trouble::RevokedKey => {
                clinic.revoke(id);
                NoiseKind::Flood(flood(&with_key(&key, &[PROXIED])))
            }
            Trouble::Replays => {
                let first = create_request(&key, &[PROXIED, ("Idempotency-Key", IDEMPOTENCY_KEY)], body.as_bytes());
                let answer = service.send(&first);
                anyhow::ensure!(answer.status == 201, "a patient that is to be replayed: {}", answer.text());
                NoiseKind::Flood(flood(&replays(&key, IDEMPOTENCY_KEY, body.as_bytes(), &[PROXIED])))
            }
        };
        // Lets the noise begin.
        std::thread::sleep(Duration::from_millis(300));
        Ok(Self { kind, _clinic: clinic })
    }

    /// Returns how the requests of the noisy tenant were answered.
    fn end(self) -> anyhow::Result<Answers> {
        Ok(match self.kind {
            NoiseKind::Flood(flood) => flood.stop().answers,
            NoiseKind::Row(held, flood) => {
                held.roll_back().map_err(|why| anyhow!(why))?;
                flood.stop().answers
            }
            NoiseKind::Backend(neighbour, frozen, flood) => {
                drop(frozen);
                let answers = flood.stop().answers;
                neighbour.stop().context("another instance")?;
                answers
            }
        })
    }
}
