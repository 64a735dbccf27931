//! Races: many clients with one idempotency key, and clients whose API key is being revoked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_test_support::{Clinic, Connection, Response, create_request};

use crate::audit::Findings;
use crate::journal::{Journal, Kind};
use crate::people::patient;
use crate::random::Random;
use crate::test_bed::{INSTANCES, TestBed};
use crate::traffic::{acknowledge, retry_key};

/// Clients that race with one idempotency key.
const RACERS: usize = 64;
/// Keys that are revoked at the same time.
const REVOCATIONS_AT_ONCE: u64 = 4;
/// A revoked key that is still accepted after this time always is.
const REFUSED_SOON: Duration = Duration::from_secs(120);

/// In each round 64 clients send one patient with one idempotency key at once: all must get the same answer.
pub(crate) fn for_one_key(bed: &TestBed, journal: &Journal, rounds: u64) -> anyhow::Result<Findings> {
    let start = Barrier::new(RACERS);
    let answers: Mutex<Vec<Response>> = Mutex::default();
    let found = Mutex::new(Findings::default());
    let Some((clinic, keys)) = bed.clinics.first() else { return Ok(Findings::default()) };
    let Some(key) = keys.first() else { return Ok(Findings::default()) };
    let race = |racer: usize, mut connection: Connection| -> anyhow::Result<()> {
        for number in 1..=rounds {
            let retry_key = retry_key(number);
            let body = patient(number).to_string();
            let request = create_request(key, &[("Idempotency-Key", &retry_key)], body.as_bytes());
            if racer == 0 {
                journal.sent(number, clinic.organisation.to_string().parse()?, Kind::Safe);
            }
            start.wait();
            let answer = connection.try_write(&request).and_then(|()| connection.try_read(true));
            answers.lock().unwrap_or_else(PoisonError::into_inner).extend(answer);
            if start.wait().is_leader() {
                let answers = std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner));
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                judge(&mut found, journal, number, &answers);
            }
            start.wait();
        }
        Ok(())
    };
    // All connect before the first round, because the rounds wait for all.
    let connect = |racer: usize| Ok(bed.client(racer % INSTANCES)?.try_connect()?);
    let connections = (0..RACERS).map(connect).collect::<anyhow::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let race = &race;
        let racers: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(racer, connection)| scope.spawn(move || race(racer, connection)))
            .collect();
        racers.into_iter().try_for_each(|racer| racer.join().map_err(|_| anyhow::anyhow!("a client panicked"))?)
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn judge(found: &mut Findings, journal: &Journal, number: u64, answers: &[Response]) {
    let is_replayed = |answer: &&Response| answer.header("idempotent-replayed") == Some("true");
    let first = answers.iter().find(|answer| answer.status == 201 && !is_replayed(answer));
    let same = |answer: &Response| first.is_some_and(|first| answer.status == 201 && answer.body == first.body);
    let replayed = answers.iter().filter(is_replayed).count();
    if !answers.iter().all(same) || answers.len() != RACERS || replayed + 1 != RACERS {
        found.wrong += 1;
        found.complain(format!("race {number}: not one patient and the same answer for everyone"));
    }
    if !first.is_some_and(|first| acknowledge(journal, number, first)) {
        found.wrong += 1;
    }
}

/// Revokes this many keys while clients use them on every service: a request that starts after the revoking call has
/// returned must create nothing.
pub(crate) fn of_revocation(bed: &TestBed, seed: u64, count: u64) -> anyhow::Result<Findings> {
    let left = AtomicU64::new(count);
    let found = Mutex::new(Findings::default());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..REVOCATIONS_AT_ONCE)
            .map(|index| {
                let (left, found) = (&left, &found);
                scope.spawn(move || revoke_over_and_over(bed, Random::new(seed, 3_000 + index), left, found))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?)
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn revoke_over_and_over(
    bed: &TestBed,
    mut random: Random,
    left: &AtomicU64,
    found: &Mutex<Findings>,
) -> anyhow::Result<()> {
    let clinic = Clinic::open(&bed.urls.service, intake_domain::Environment::Development);
    let mut lanes = (0..INSTANCES)
        .map(|instance| Ok(bed.client(instance)?.try_connect()?))
        .collect::<anyhow::Result<Vec<Connection>>>()?;
    let body = patient(random.next() % 1_000_000).to_string();
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let (id, key) = clinic.key();
        let request = create_request(&key, &[], body.as_bytes());
        let is_revoked = AtomicBool::new(false);
        let pause = Duration::from_micros(random.below(4_000));
        let mut one = Findings::default();
        std::thread::scope(|scope| {
            let users: Vec<_> = lanes
                .iter_mut()
                .map(|lane| {
                    let (request, is_revoked) = (&request, &is_revoked);
                    scope.spawn(move || use_until_refused(lane, request, is_revoked))
                })
                .collect();
            std::thread::sleep(pause);
            clinic.revoke(id);
            is_revoked.store(true, Ordering::SeqCst);
            for user in users {
                match user.join() {
                    Ok(Ok(created)) => one.acknowledged += created,
                    Ok(Err(what)) => {
                        one.wrong += 1;
                        one.complain(what);
                    }
                    Err(_) => one.wrong += 1,
                }
            }
        });
        *found.lock().unwrap_or_else(PoisonError::into_inner) += one;
    }
    Ok(())
}

/// Returns how many patients were created before the key was refused.
fn use_until_refused(lane: &mut Connection, request: &[u8], is_revoked: &AtomicBool) -> Result<u64, String> {
    let started = Instant::now();
    let mut created = 0;
    loop {
        let was_revoked = is_revoked.load(Ordering::SeqCst);
        let answer = lane.try_write(request).and_then(|()| lane.try_read(true)).map_err(|error| error.to_string())?;
        match answer.status {
            201 if was_revoked => return Err("201 for a request that started after the revoke had returned".to_owned()),
            201 => created += 1,
            401 if was_revoked => return Ok(created),
            // Refused a moment before the revoking call has returned: allowed, but not what is waited for.
            401 => {}
            503 => {}
            other => return Err(format!("{other} while a key was revoked: {}", answer.text())),
        }
        if started.elapsed() > REFUSED_SOON {
            return Err("the key was never refused".to_owned());
        }
    }
}
