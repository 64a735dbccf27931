//! API keys end while they are used: they are revoked, they expire, or the key that replaces them is used for the first
//! time. No request that starts after that creates anything, and none that starts before is refused.

use std::time::Instant;

use intake_domain::{ApiKey, KeyId, Replacement};
use intake_test_support::Clinic;
use time::{Duration, OffsetDateTime};

use crate::audit::Findings;
use crate::operations::{Operations, PAUSE};
use crate::random::Random;
use crate::test_bed::INSTANCES;
use crate::traffic::Sender;

/// The random stream of the client that uses the keys.
const STREAM: u64 = 11_000;
/// Time for which a key that expires is valid.
const VALID: Duration = Duration::milliseconds(1_500);
/// Time for which a replaced key works after the first use of the next one.
const ENDS_AFTER: Duration = Duration::milliseconds(500);

/// A client that uses keys on every service.
struct User<'a, 'b> {
    clinic: &'b Clinic,
    sender: Sender<'a>,
    found: Findings,
}

impl Operations<'_> {
    /// Makes keys and sees them end, until all faults are over.
    pub(crate) fn end_keys(&self, clinic: &Clinic) -> anyhow::Result<Findings> {
        let mut random = Random::new(self.seed, STREAM);
        let mut user = User { clinic, sender: Sender::new(self.traffic, STREAM), found: Findings::default() };
        while !self.is_over() {
            match random.below(3) {
                0 => self.revoke(&mut user)?,
                1 => self.expire(&mut user)?,
                _ => self.replace(&mut user)?,
            }
            std::thread::sleep(random.milliseconds(50, 500));
        }
        Ok(user.found)
    }

    fn make(
        &self,
        user: &User<'_, '_>,
        expires_at: Option<OffsetDateTime>,
        replaces: Option<Replacement>,
    ) -> anyhow::Result<(KeyId, ApiKey)> {
        self.until_done("making a key", || user.clinic.try_key(expires_at, replaces))
    }

    fn revoke(&self, user: &mut User<'_, '_>) -> anyhow::Result<()> {
        let (id, key) = self.make(user, None, None)?;
        user.must_work(&key, "before it is revoked");
        self.until_done("revoking a key", || user.clinic.try_revoke(id))?;
        user.must_be_refused(&key, "after it was revoked");
        Ok(())
    }

    fn expire(&self, user: &mut User<'_, '_>) -> anyhow::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "a key expires at a time of the clock that PostgreSQL has, too")]
        let now = OffsetDateTime::now_utc;
        let end = now() + VALID;
        let (_, key) = self.make(user, Some(end), None)?;
        user.send(&key);
        std::thread::sleep((end - now()).try_into().unwrap_or_default());
        user.must_be_refused(&key, "after it has expired");
        Ok(())
    }

    fn replace(&self, user: &mut User<'_, '_>) -> anyhow::Result<()> {
        let (old_id, old) = self.make(user, None, None)?;
        let (_, new) = self.make(user, None, Some(Replacement { key: old_id, ends_after: ENDS_AFTER }))?;
        user.must_work(&old, "before its replacement is used");
        let mut gives_up = None;
        // What a service that is killed had not written is written at the next use.
        loop {
            user.must_work(&new, "which replaces another");
            let answers = user.send(&old);
            if !answers.is_empty() && answers.iter().all(|status| *status == 401) {
                break;
            }
            if self.is_over() {
                let gives_up = gives_up.get_or_insert_with(|| Instant::now() + self.traffic.patience());
                if Instant::now() > *gives_up {
                    user.found.is_wrong("a replaced key does not end");
                    return Ok(());
                }
            }
            std::thread::sleep(PAUSE);
        }
        user.must_be_refused(&old, "after it has ended");
        Ok(())
    }
}

impl User<'_, '_> {
    /// Uses a key on every service. Returns the answers that came.
    fn send(&mut self, key: &ApiKey) -> Vec<u16> {
        let organisation = *self.clinic.organisation.as_uuid();
        let answer = |instance| self.sender.send_with_ending_key(organisation, key, instance);
        (0..INSTANCES).filter_map(answer).collect()
    }

    fn must_work(&mut self, key: &ApiKey, when: &str) {
        if self.send(key).contains(&401) {
            self.found.is_wrong(format!("a key was refused {when}"));
        }
    }

    fn must_be_refused(&mut self, key: &ApiKey, when: &str) {
        if self.send(key).contains(&201) {
            self.found.is_wrong(format!("a key was accepted {when}"));
        }
    }
}
