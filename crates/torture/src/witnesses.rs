//! Keys that are blocked, and a patient who is erased, after the moment to which the register is restored: when
//! `intake restored --apply` has repeated it, no key works and the patient stays erased.

use diesel::RunQueryDsl;
use intake_domain::{ApiKey, KeyFormat};
use intake_test_support::Clinic;
use serde_json::Value;
use uuid::Uuid;

use crate::audit::Findings;
use crate::journal::Kind;
use crate::operations::command;
use crate::run::{Fault, Run};
use crate::test_bed::{INSTANCES, TestBed};
use crate::traffic::{Sender, Traffic, id_of, safe_request};

/// The random stream of the client that uses the keys.
const STREAM: u64 = 12_000;
/// Number of times that something is tried which a service that is still busy with the last fault keeps from an answer.
const TRIES: usize = 20;

/// A way to block a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Revoked,
    Paused,
    Limited,
    Replaced,
    Suspended,
    Closed,
}

struct Witness {
    block: Block,
    organisation: Uuid,
    id: String,
    key: ApiKey,
}

struct Erased {
    number: u64,
    request: Vec<u8>,
}

/// All of them.
pub(crate) struct Witnesses {
    keys: Vec<Witness>,
    erased: Option<Erased>,
}

impl Witnesses {
    /// Makes the keys, before the moment.
    pub(crate) fn make(bed: &TestBed) -> Self {
        let [shared, suspended, closed] = [(); 3].map(|()| Clinic::open(&bed.urls.service, bed.environment));
        let of = |clinic: &Clinic, block: Block| {
            let (id, key) = clinic.key();
            Witness { block, organisation: *clinic.organisation.as_uuid(), id: id.to_string(), key }
        };
        let blocks = [Block::Revoked, Block::Paused, Block::Limited, Block::Replaced];
        let mut keys: Vec<_> = blocks.into_iter().map(|block| of(&shared, block)).collect();
        keys.extend([of(&suspended, Block::Suspended), of(&closed, Block::Closed)]);
        Self { keys, erased: None }
    }

    /// Blocks the keys and erases the patient, after the moment.
    pub(crate) fn block(&mut self, run: &Run<'_>, fault: &Fault<'_>) -> anyhow::Result<()> {
        let done = |arguments: &[&str]| {
            command(run.program, fault.bed, arguments).map_err(|why| anyhow::anyhow!("{arguments:?}: {why}"))
        };
        let mut sender = Sender::new(fault.traffic, STREAM);
        for Witness { block, organisation, id, key } in &self.keys {
            let of = organisation.to_string();
            let made = done(&match block {
                Block::Revoked => vec!["key", "revoke", id],
                Block::Paused => vec!["key", "pause", id],
                Block::Limited => vec!["key", "networks", id, "--allow", "203.0.113.7"],
                Block::Replaced => vec!["key", "replace", id, "--ends-after", "now", "--json"],
                Block::Suspended => vec!["organisation", "suspend", &of],
                Block::Closed => vec!["organisation", "close", &of, "--yes"],
            })?;
            if *block == Block::Replaced {
                let made: Value = serde_json::from_str(&made)?;
                let next = made.get("key").and_then(Value::as_str).unwrap_or_default();
                let next = KeyFormat::new(&"intake".parse()?, fault.bed.environment).parse(next)?;
                until(|| sender.send_with_ending_key(*organisation, &next, 0) == Some(201))?;
                until(|| sender.send_with_ending_key(*organisation, key, 1) == Some(401))?;
            }
        }
        let Some((clinic, keys)) = fault.bed.clinics.first() else { return Ok(()) };
        let (number, organisation) = (fault.traffic.next_number(), *clinic.organisation.as_uuid());
        fault.journal.sent(number, organisation, Kind::Safe);
        let created = fault.traffic.send_until_acknowledged(STREAM, number, std::time::Instant::now())?;
        let (Some(created), Some(key)) = (created, keys.first()) else { return Ok(()) };
        let id = id_of(&created);
        fault.journal.erasing(number, &id);
        done(&["patient", "erase", "--organisation", &organisation.to_string(), "--patient", &id])?;
        fault.journal.erased(number, &id);
        self.erased = Some(Erased { number, request: safe_request(key, number) });
        Ok(())
    }

    /// Uses the keys on every service, and sends the erased patient again.
    pub(crate) fn must_stay(&self, traffic: &Traffic<'_>, found: &mut Findings) {
        let mut sender = Sender::new(traffic, STREAM);
        for Witness { block, organisation, key, .. } in &self.keys {
            for instance in 0..INSTANCES {
                if sender.send_with_ending_key(*organisation, key, instance) == Some(201) {
                    found.is_admitted(format!("after a restore a key works that was {block:?} before"));
                }
            }
        }
        if let Some(Erased { number, request }) = &self.erased {
            match sender.send_again(request) {
                None | Some(410) => {}
                Some(status) => found.is_wrong(format!("{number} was erased before the restore, and got {status}")),
            }
        }
    }

    /// Undoes, behind the back of the services, what `intake restored` has repeated of the replaced key and the erased
    /// patient.
    pub(crate) fn bring_back(&self, bed: &TestBed) -> anyhow::Result<()> {
        let replaced = self.keys.iter().find(|witness| witness.block == Block::Replaced);
        let replaced = replaced.map(|witness| witness.id.as_str()).unwrap_or_default();
        let mut register = bed.register()?;
        let revived = diesel::sql_query(format!("UPDATE api_keys SET revoked_at = NULL WHERE id = '{replaced}'"));
        let forgotten = diesel::sql_query("DELETE FROM erasures WHERE idempotency_digest IS NOT NULL");
        anyhow::ensure!(revived.execute(&mut register)? == 1, "the replaced key is not in the register");
        anyhow::ensure!(forgotten.execute(&mut register)? > 0, "no erasure is in the register");
        Ok(())
    }
}

fn until(mut is_done: impl FnMut() -> bool) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        if is_done() {
            return Ok(());
        }
        std::thread::sleep(crate::operations::PAUSE);
    }
    anyhow::bail!("a replaced key does not end")
}
