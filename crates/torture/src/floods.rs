//! Floods beside the usual clients: these must be served as before, and the memory of the services stays bounded.

use std::time::Duration;

use intake_test_support::flood::{
    Flood, Flooded, Manner, NextRequest, replays, style_sheet, with_key, with_unknown_keys, wrong_sign_ins,
};
use intake_test_support::{Client, create_request};

use crate::audit::Findings;
use crate::journal::Kind;
use crate::people::patient;
use crate::postgres_server::PostgresServer;
use crate::run::{Fault, Refusals, Run};
use crate::test_bed::{INSTANCES, TestBed};
use crate::traffic::{acknowledge, retry_key};

/// The most memory that a service may use.
const MEMORY_MAX: u64 = 256 * 1024 * 1024;
/// Connections of a flood to each service, more than twice as many as the usual clients have.
const CONNECTIONS: usize = 32;

/// Content of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloodKind {
    UnknownKeys,
    RevokedKey,
    Replays,
    SignIns,
    Unread,
}

impl FloodKind {
    pub(crate) const ALL: [Self; 5] = [Self::UnknownKeys, Self::RevokedKey, Self::Replays, Self::SignIns, Self::Unread];

    /// Its name in the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::UnknownKeys => "flood: unknown keys",
            Self::RevokedKey => "flood: a revoked key",
            Self::Replays => "flood: replays of one Idempotency-Key",
            Self::SignIns => "flood: sign-ins with wrong passwords",
            Self::Unread => "flood: answers that are never read",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::UnknownKeys => "flood_unknown",
            Self::RevokedKey => "flood_revoked",
            Self::Replays => "flood_replays",
            Self::SignIns => "flood_sign_ins",
            Self::Unread => "flood_unread",
        }
    }

    /// Returns whether the clients of the flood may get this answer. They may always get 503, or be disconnected.
    fn may_be_answered(self, status: u16) -> bool {
        let fair = match self {
            Self::UnknownKeys | Self::RevokedKey => &[401, 429][..],
            Self::Replays => &[201, 429],
            Self::SignIns => &[401, 429],
            Self::Unread => &[],
        };
        matches!(status, 0 | 503) || fair.contains(&status)
    }
}

impl Run<'_> {
    /// Runs one flood for this long. Returns how many requests it sent.
    pub(crate) fn flood(
        &self,
        server: &PostgresServer,
        kind: FloodKind,
        time: Duration,
    ) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.plan(kind.name(), &[]))?;
        self.run_fault_in(&bed, Refusals::Wrong, |fault| {
            fault.rest();
            let asked = flood(fault, kind, time)?;
            fault.rest();
            if asked == 0 {
                fault.found.is_wrong(format!("{}: nothing was asked", kind.title()));
            }
            fault.found.away = Some(fault.traffic.pulse.longest());
            bound_memory(fault);
            Ok(asked)
        })
    }
}

/// Floods for this long, and checks the answers.
pub(crate) fn flood(fault: &mut Fault<'_>, kind: FloodKind, time: Duration) -> anyhow::Result<u64> {
    let services = (0..INSTANCES).map(|instance| fault.bed.client(instance)).collect::<anyhow::Result<Vec<_>>>()?;
    let Some(next) = requests(fault, kind, &services)? else { return Ok(0) };
    let manner = if kind == FloodKind::Unread { Manner::Deaf } else { Manner::Eager };
    let flood = Flood::start(&services, CONNECTIONS, manner, &next);
    std::thread::sleep(time);
    let Flooded { asked, answers } = flood.stop();
    for (status, count) in &answers {
        if !kind.may_be_answered(*status) {
            fault.found.is_wrong(format!("{}: {status} was answered {count} times", kind.title()));
        }
    }
    Ok(asked)
}

/// Notes how much memory the services use, and whether it is too much.
pub(crate) fn bound_memory(fault: &mut Fault<'_>) {
    let memory = fault.bed.peak_memory();
    fault.found.memory = fault.found.memory.max(Some(memory));
    if memory > MEMORY_MAX {
        fault.found.is_wrong(format!("a service held {} MiB of memory", memory / 1024 / 1024));
    }
}

/// The requests of a flood. None: there is no clinic or service for it.
fn requests(fault: &Fault<'_>, kind: FloodKind, services: &[Client]) -> anyhow::Result<Option<NextRequest>> {
    let Some((clinic, keys)) = fault.bed.clinics.first() else { return Ok(None) };
    Ok(match kind {
        FloodKind::UnknownKeys => Some(with_unknown_keys(clinic, &[])),
        FloodKind::RevokedKey => Some(with_key(&fault.bed.revoked_key, &[])),
        FloodKind::Replays => {
            let (Some(key), Some(service)) = (keys.first(), services.first()) else { return Ok(None) };
            let number = fault.traffic.next_number();
            let (retry_key, body) = (retry_key(number), patient(number).to_string());
            fault.journal.sent(number, clinic.organisation.to_string().parse()?, Kind::Safe);
            let request = create_request(key, &[("Idempotency-Key", &retry_key)], body.as_bytes());
            let first = service.try_connect().and_then(|mut connection| {
                connection.try_write(&request)?;
                connection.try_read(true)
            });
            match first {
                Ok(answer) if answer.status == 201 && acknowledge(fault.journal, number, &answer) => {}
                _ => fault.journal.unknown(number, "before a flood"),
            }
            Some(replays(key, &retry_key, body.as_bytes(), &[]))
        }
        FloodKind::SignIns => Some(wrong_sign_ins(&[])),
        FloodKind::Unread => Some(style_sheet()),
    })
}
