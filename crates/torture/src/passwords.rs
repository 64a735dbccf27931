//! Members change and reset their passwords while others sign in with the old one: no session that began with the old
//! password outlives the change.

use intake_test_support::{Response, request};
use serde_json::Value;

use crate::audit::Findings;
use crate::operations::Operations;
use crate::random::Random;
use crate::test_bed::INSTANCES;

/// The random stream of what is done.
const STREAM: u64 = 13_000;
/// Sign-ins in flight while the password changes. Of one member in one network ten are allowed at first.
const SIGN_INS: usize = 4;
const OLD: &str = "correct horse battery staple";
const NEW: &str = "four herons at the jetty";
/// Between two members, in milliseconds: each costs a dozen Argon2 hashes.
const BETWEEN: (u64, u64) = (500, 2_000);
/// The password is changed so soon after sign-ins began, in milliseconds.
const LATER: (u64, u64) = (0, 80);

/// A browser behind a proxy, in a network of its own.
struct Browser<'a> {
    operations: &'a Operations<'a>,
    address: String,
    email: String,
}

impl Operations<'_> {
    /// Changes passwords until all faults are over.
    pub(crate) fn change_passwords(&self) -> anyhow::Result<Findings> {
        let mut random = Random::new(self.seed, STREAM);
        let mut found = Findings::default();
        while !self.is_over() {
            let [.., high, middle, low] = random.next().to_be_bytes();
            let address = format!("10.{high}.{middle}.{low}");
            let email = format!("member-{:x}@example.com", random.next());
            // A fault in between ends the round: the next one has another member.
            let _ = Browser { operations: self, address, email }.change_password(&mut random, &mut found);
            std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        }
        Ok(found)
    }
}

impl Browser<'_> {
    /// None: a fault kept something from being done, or its outcome is not known.
    fn change_password(&self, random: &mut Random, found: &mut Findings) -> Option<()> {
        let invitation = self.link("invite")?;
        let joined = self.post(0, &invitation, "", &format!("name=Ada&password={}", typed(OLD)))?;
        let mut own = cookie(&joined)?;
        let reset = if random.one_in(2) { Some(self.link("reset-password")?) } else { None };
        if reset.is_none() {
            // A password is changed by who has just confirmed who they are.
            own = cookie(&self.own_page(&own, "/settings/confirm", &format!("password={}", typed(OLD)))?)?;
        }
        let later = random.milliseconds(LATER.0, LATER.1);
        let (sessions, changed) = std::thread::scope(|scope| {
            let sign_ins: Vec<_> =
                (0..SIGN_INS).map(|number| scope.spawn(move || self.sign_in(number % INSTANCES, OLD))).collect();
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
                if self.get(instance, &session).is_some_and(|page| page.status == 200) {
                    found.is_wrong(format!("a session of the old password lives after the password was {how}"));
                }
            }
        }
        for instance in 0..INSTANCES {
            if self.sign_in(instance, OLD).is_some_and(|answer| answer.status == 303) {
                found.is_wrong(format!("the old password signs in after it was {how}"));
            }
            if self.sign_in(instance, NEW).is_some_and(|answer| answer.status == 401) {
                found.is_wrong(format!("the new password does not sign in after it was {how}"));
            }
        }
        Some(())
    }

    /// Sends a form of the member whose session this is.
    fn own_page(&self, cookie: &str, path: &str, form: &str) -> Option<Response> {
        let page = self.get(0, cookie)?.text();
        let form_token = page.split_once("name=\"form_token\" value=\"")?.1.split('"').next()?;
        self.post(0, path, cookie, &format!("form_token={form_token}&{form}"))
    }

    /// The path of a link that an operator makes for the member.
    fn link(&self, what: &str) -> Option<String> {
        let (clinic, _) = self.operations.bed.clinics.first()?;
        let organisation = clinic.organisation.to_string();
        let arguments = ["member", what, "--json", "--organisation", &organisation, "--email", &self.email];
        let made: Value = serde_json::from_str(&self.operations.command(&arguments).ok()?).ok()?;
        let (_, rest) = made.get("link")?.as_str()?.split_once("://")?;
        rest.find('/').and_then(|path| rest.get(path..)).map(str::to_owned)
    }

    fn sign_in(&self, instance: usize, password: &str) -> Option<Response> {
        let form = format!("email={}&password={}", self.email.replace('@', "%40"), typed(password));
        self.post(instance, "/sign-in", "", &form)
    }

    fn get(&self, instance: usize, cookie: &str) -> Option<Response> {
        self.send(instance, "GET", "/settings/account", &[("Cookie", cookie), ("Accept", "text/html")], "")
    }

    fn post(&self, instance: usize, path: &str, cookie: &str, form: &str) -> Option<Response> {
        let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Cookie", cookie)];
        self.send(instance, "POST", path, &headers, form)
    }

    /// None: no answer came, or one that says nothing.
    fn send(
        &self,
        instance: usize,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Response> {
        let headers = [headers, &[("X-Forwarded-For", self.address.as_str())]].concat();
        let bytes = request(method, path, &headers, body.as_bytes());
        let mut connection = self.operations.bed.client(instance).ok()?.try_connect().ok()?;
        let answer = connection.try_write(&bytes).and_then(|()| connection.try_read(true)).ok()?;
        (answer.status < 500).then_some(answer)
    }
}

fn typed(password: &str) -> String {
    password.replace(' ', "+")
}

/// The session that an answer begins.
fn cookie(answer: &Response) -> Option<String> {
    let cookie = answer.header("set-cookie").filter(|_| answer.status == 303)?.split(';').next()?;
    Some(cookie.to_owned()).filter(|cookie| !cookie.ends_with('='))
}
