//! Members change and reset their passwords while others sign in with the old one: no session that began with the old
//! password outlives the change.

use crate::audit::Findings;
use crate::browser::{ACCOUNT, Browser, PASSWORD, cookie, typed};
use crate::operations::Operations;
use crate::random::Random;
use crate::test_bed::INSTANCES;

/// The random stream of what is done.
const STREAM: u64 = 13_000;
/// Sign-ins in flight while the password changes. Of one member in one network ten are allowed at first.
const SIGN_INS: usize = 4;
const NEW: &str = "four herons at the jetty";
/// Between two members, in milliseconds: each costs a dozen Argon2 hashes.
const BETWEEN: (u64, u64) = (500, 2_000);
/// The password is changed so soon after sign-ins began, in milliseconds.
const LATER: (u64, u64) = (0, 80);

impl Operations<'_> {
    /// Changes passwords until all faults are over.
    pub(crate) fn change_passwords(&self) -> anyhow::Result<Findings> {
        let mut random = Random::new(self.seed, STREAM);
        let mut found = Findings::default();
        while !self.is_over() {
            let Some((clinic, _)) = self.bed.clinics.first() else { break };
            let browser = Browser::new(self, clinic.organisation.to_string(), &mut random);
            // A fault in between ends the round: the next one has another member.
            let _ = browser.change_password(&mut random, &mut found);
            std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        }
        Ok(found)
    }
}

impl Browser<'_> {
    /// None: a fault kept something from being done, or its outcome is not known.
    pub(crate) fn change_password(&self, random: &mut Random, found: &mut Findings) -> Option<()> {
        let mut own = self.join()?;
        let reset = if random.one_in(2) { Some(self.link("reset-password")?) } else { None };
        if reset.is_none() {
            // A password is changed by who has just confirmed who they are.
            own = self.confirm(&own)?;
        }
        let later = random.milliseconds(LATER.0, LATER.1);
        let (sessions, changed) = std::thread::scope(|scope| {
            let sign_ins: Vec<_> =
                (0..SIGN_INS).map(|number| scope.spawn(move || self.sign_in(number % INSTANCES, PASSWORD))).collect();
            std::thread::sleep(later);
            let changed = match &reset {
                Some(link) => self.post(0, link, "", &format!("password={}", typed(NEW))),
                None => self.own_page(&own, "/settings/account/password", &format!("new_password={}", typed(NEW))),
            };
            let answers: Vec<_> = sign_ins.into_iter().filter_map(|sign_in| sign_in.join().ok().flatten()).collect();
            (answers, changed)
        });
        // A restore in between may have forgotten the confirmation.
        let is_unconfirmed = |path: &str| path.starts_with("/settings/confirm");
        changed.filter(|answer| answer.status == 303 && !answer.header("location").is_some_and(is_unconfirmed))?;
        let how = if reset.is_some() { "reset" } else { "changed" };
        let began = sessions.iter().filter_map(cookie).chain(reset.is_some().then_some(own));
        for session in began {
            for instance in 0..INSTANCES {
                if self.get(instance, ACCOUNT, &session).is_some_and(|page| page.status == 200) {
                    found.is_wrong(format!("a session of the old password lives after the password was {how}"));
                }
            }
        }
        for instance in 0..INSTANCES {
            if self.sign_in(instance, PASSWORD).is_some_and(|answer| answer.status == 303) {
                found.is_wrong(format!("the old password signs in after it was {how}"));
            }
            if self.sign_in(instance, NEW).is_some_and(|answer| answer.status == 401) {
                found.is_wrong(format!("the new password does not sign in after it was {how}"));
            }
        }
        Some(())
    }
}
