//! The faults that end nothing: PostgreSQL is frozen, as a whole or only the process that a writer talks to, or a
//! transaction holds a row. No connection breaks and no error comes, so the services must know when to stop waiting.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use intake_test_support::{HeldRow, freeze_writer};

use crate::audit::Findings;
use crate::journal::Kind;
use crate::people::patient;
use crate::postgres_server::PostgresServer;
use crate::random::Random;
use crate::run::{Fault, Refusals, Run, SHORT_DEADLINE};
use crate::test_bed::{INSTANCES, TestBed, application_name};
use crate::traffic::retry_key;

/// Time until the services must work again after the fault is over.
pub(crate) const RECOVERY: Duration = Duration::from_secs(2);
/// Time that PostgreSQL takes to notice that one of its processes died.
const NOTICED: Duration = Duration::from_millis(200);
/// Clients that send the key of the locked row at the same time, to either service.
const CLIENTS_OF_ONE_KEY: u64 = 3;
/// The first of their random streams.
const STREAM: u64 = 7_000;

/// A time that is either well below the short deadline or well beyond it.
pub(crate) fn around_deadline(random: &mut Random, is_short: bool) -> Duration {
    around(SHORT_DEADLINE, random, is_short)
}

fn around(deadline: Duration, random: &mut Random, is_short: bool) -> Duration {
    let deadline = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    if is_short {
        random.milliseconds(deadline / 10, deadline * 8 / 10)
    } else {
        random.milliseconds(deadline * 12 / 10, deadline * 2)
    }
}

impl Run<'_> {
    /// Freezes all of PostgreSQL, in turns for less and for more than the deadline.
    pub(crate) fn stop_database(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.impatient_plan("stop_database"))?;
        self.run_fault_in(&bed, Refusals::Expected, |fault| {
            for time in 0..times {
                fault.rest();
                let frozen = server.freeze()?;
                std::thread::sleep(around_deadline(&mut fault.random, time.is_multiple_of(2)));
                drop(frozen);
                fault.must_serve(Instant::now(), RECOVERY, "PostgreSQL went on");
            }
            Ok(times)
        })
    }

    /// Freezes the process that one service's writer talks to, for longer than the deadline. The services must continue
    /// without it, and nothing may be stored twice when it wakes or is killed.
    pub(crate) fn stop_backend(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.impatient_plan("stop_backend"))?;
        self.run_fault_in(&bed, Refusals::Expected, |fault| {
            for time in 0..times {
                fault.rest();
                let instance = usize::try_from(time)? % INSTANCES;
                let writer =
                    freeze_writer(&fault.bed.urls.owner, &application_name(instance)).map_err(|why| anyhow!(why))?;
                let since = Instant::now();
                fault.must_serve(since, SHORT_DEADLINE + RECOVERY, "a writer's backend stood still");
                // It stays frozen while the services work without it.
                let asleep = around_deadline(&mut fault.random, false);
                std::thread::sleep(asleep.saturating_sub(since.elapsed()));
                if fault.random.one_in(3) {
                    writer.kill();
                    // Its death makes all of PostgreSQL restart.
                    std::thread::sleep(NOTICED);
                    server.restart()?;
                } else {
                    drop(writer);
                }
                fault.must_serve(Instant::now(), RECOVERY, "a writer's backend went on, or died");
            }
            Ok(times)
        })
    }

    /// A transaction holds the row of an `Idempotency-Key` that clients send, in turns for less and for more than the
    /// deadline, and then commits or rolls back. No other request may be refused because of it.
    pub(crate) fn lock_rows(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        // No request may be refused here, so that the deadline must be longer on a busy machine, and the faults with
        // it.
        let deadline = SHORT_DEADLINE * self.slowness;
        let bed = TestBed::open(server, &self.plan_with("lock_rows", deadline, &[]))?;
        self.run_fault_in(&bed, Refusals::Wrong, |fault| {
            for time in 0..times {
                fault.rest();
                let hold = around(deadline, &mut fault.random, time.is_multiple_of(2));
                hold_row(fault, hold)?;
            }
            fault.found.away = Some(fault.traffic.pulse.longest());
            Ok(times)
        })
    }
}

/// Holds a row while clients send its key.
fn hold_row(fault: &mut Fault<'_>, hold: Duration) -> anyhow::Result<()> {
    let Some((clinic, _)) = fault.bed.clinics.first() else { return Ok(()) };
    let number = fault.traffic.next_number();
    let owner = &fault.bed.urls.owner;
    let held = HeldRow::insert(owner, clinic.organisation, &retry_key(number), &patient(number));
    let held = held.map_err(|why| anyhow!(why))?;
    fault.journal.sent(number, clinic.organisation.to_string().parse()?, Kind::Safe);
    let (traffic, released) = (fault.traffic, Instant::now() + hold);
    let answers = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS_OF_ONE_KEY)
            .map(|client| scope.spawn(move || traffic.send_until_acknowledged(STREAM + client, number, released)))
            .collect();
        std::thread::sleep(hold);
        // Nobody can know yet whether the row will be committed.
        if clients.iter().any(std::thread::ScopedJoinHandle::is_finished) {
            fault.found.is_wrong(format!("number {number} was settled while its row was held"));
        }
        let ended = if fault.random.one_in(2) { held.commit() } else { held.roll_back() };
        let answers = clients.into_iter().map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?);
        let answers = answers.collect::<anyhow::Result<Vec<_>>>()?;
        ended.map_err(|why| anyhow!(why)).map(|()| answers)
    })?;
    let mut bodies = answers.iter().flatten().map(|answer| &answer.body);
    if let Some(first) = bodies.next()
        && !bodies.all(|body| body == first)
    {
        fault.found.is_wrong(format!("number {number}: clients of one Idempotency-Key got different answers"));
    }
    Ok(())
}
