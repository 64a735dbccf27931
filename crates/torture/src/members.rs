//! Members lose their role, their sessions or their membership while they work on every service, turn on two-step
//! sign-in, and sign in at a provider: what a member certainly may not do any more is never done, and nobody gets into
//! the account of another person.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::TotpSecret;
use intake_test_support::Response;
use serde_json::Value;

use crate::access_history::{AccessHistory, Answer, Known, Reason};
use crate::audit::Findings;
use crate::browser::{ACCOUNT, Browser, PASSWORD, between, cookie};
use crate::clock::now;
use crate::operations::{Operations, text};
use crate::random::Random;
use crate::test_bed::INSTANCES;

/// The random stream of what is done.
const STREAM: u64 = 14_000;
/// Between two organisations, in milliseconds: each costs a dozen Argon2 hashes.
const BETWEEN: (u64, u64) = (500, 2_000);
/// A right ends so soon after its use began, in milliseconds.
const LATER: (u64, u64) = (0, 80);
/// Sign-ins of one member on a service. Ten in one network are allowed at first.
const SIGN_INS: usize = 3;
const MEMBERS: &str = "/settings/members";
pub(crate) const POLICIES: &str = "/settings/policies";
pub(crate) const KEY_AGE: &str = "/settings/policies/key-age";
const SECOND_FACTOR: &str = "/settings/account/second-factor";

/// A change of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Demoted,
    SignedOut,
    Removed,
    SecondFactor,
    SingleSignOn,
}

impl Change {
    const ALL: [Self; 5] = [Self::Demoted, Self::SignedOut, Self::Removed, Self::SecondFactor, Self::SingleSignOn];
}

/// An organisation, and its administrator in a session that was confirmed.
pub(crate) struct Team<'a> {
    operations: &'a Operations<'a>,
    organisation: String,
    ada: Browser<'a>,
    session: String,
}

impl<'a> Operations<'a> {
    /// Changes members until all faults are over.
    pub(crate) fn change_members(&'a self) -> anyhow::Result<Findings> {
        let mut random = Random::new(self.seed, STREAM);
        let mut found = Findings::default();
        while !self.is_over() {
            let made = self.made(&["organisation", "create", "--name", "Members"])?;
            if let Some(team) = Team::gather(self, text(&made, "id")?, &mut random) {
                for change in Change::ALL {
                    // A fault in between ends it: the next change has another member.
                    let _ = team.carry_out(change, &mut random, &mut found, || Some(()));
                }
            }
            std::thread::sleep(random.milliseconds(BETWEEN.0, BETWEEN.1));
        }
        Ok(found)
    }
}

impl<'a> Team<'a> {
    pub(crate) fn gather(operations: &'a Operations<'a>, organisation: &str, random: &mut Random) -> Option<Self> {
        let ada = Browser::new(operations, organisation.to_owned(), random);
        let session = ada.confirm(&ada.join()?)?;
        Some(Self { operations, organisation: organisation.to_owned(), ada, session })
    }

    /// Makes a change to a new member, before which `prepare` is called. None: a fault kept it from being made, or its
    /// outcome is not known.
    pub(crate) fn carry_out(
        &self,
        change: Change,
        random: &mut Random,
        found: &mut Findings,
        prepare: impl FnOnce() -> Option<()>,
    ) -> Option<()> {
        let member = Browser::new(self.operations, self.organisation.clone(), random);
        let later = random.milliseconds(LATER.0, LATER.1);
        if change == Change::SingleSignOn {
            prepare()?;
            // Nobody proves the address of the other one.
            let unproved = Browser::new(self.operations, self.organisation.clone(), random);
            return self.sign_in_at_provider(&member, &unproved, later, found);
        }
        let session = member.confirm(&member.join()?)?;
        prepare()?;
        let (page, form) = match change {
            Change::Demoted => ("role", "role=auditor"),
            Change::SignedOut => ("end-sessions", ""),
            Change::Removed => ("remove", ""),
            Change::SecondFactor | Change::SingleSignOn => {
                return turn_on_second_factor(&member, &session, later, found);
            }
        };
        let (id, form_token) = (self.id_of(&member)?, member.form_token(&session)?);
        let limit_key_age = format!("form_token={form_token}&days=90");
        let act = |instance| {
            let answer = member.post(instance, KEY_AGE, &session, &limit_key_age)?;
            Some(answer.status == 303 && answer.header("location") == Some(POLICIES))
        };
        block(&format!("a member ({change:?})"), found, later, usize::MAX, act, || self.change(&id, page, form))
    }

    /// Changes a member on a page of the administrator, who has to see that it was done.
    fn change(&self, member: &str, page: &str, form: &str) -> Option<()> {
        let answer = self.ada.own_page(&self.session, &format!("{MEMBERS}/{member}/{page}"), form)?;
        (answer.status == 303 && answer.header("location") == Some(MEMBERS)).then_some(())
    }

    fn id_of(&self, member: &Browser<'_>) -> Option<String> {
        let list = ["member", "list", "--json", "--organisation", &self.organisation];
        let all: Vec<Value> = serde_json::from_str(&self.operations.command(&list).ok()?).ok()?;
        let found = all.iter().find(|one| text(one, "email").is_ok_and(|email| email == member.email))?;
        text(found, "id").ok().map(str::to_owned)
    }

    /// Signs in at the provider as the member, whose account it is, and as other people who come with the member's
    /// address there. Then the member is removed.
    fn sign_in_at_provider(
        &self,
        member: &Browser<'_>,
        unproved: &Browser<'_>,
        later: Duration,
        found: &mut Findings,
    ) -> Option<()> {
        let own = member.email.as_str();
        let other = format!("other-{own}");
        let invitation = member.link("invite")?;
        session(&at_provider(member, 0, &format!("{invitation}/provider"), own)?)?;
        unproved.join()?;
        for (account, subject) in [(member, other.as_str()), (unproved, own), (unproved, other.as_str())] {
            for instance in 0..INSTANCES {
                if opens(account, instance, subject) == Some(true) {
                    found.is_admitted("single sign-on opened the account of another person");
                }
            }
        }
        let id = self.id_of(member)?;
        let sign_in = |instance| opens(member, instance, own);
        let what = "a member who signs in at the provider";
        block(what, found, later, SIGN_INS, sign_in, || self.change(&id, "remove", ""))
    }
}

/// Turns on two-step sign-in: from then on the password alone opens nothing.
fn turn_on_second_factor(member: &Browser<'_>, session: &str, later: Duration, found: &mut Findings) -> Option<()> {
    let shown = between(&member.get(0, SECOND_FACTOR, session)?.text(), "class=\"setup-key\">", "<")?;
    let secret = TotpSecret::from_base32(&shown.replace(' ', ""))?;
    let sign_in = |instance| {
        let answer = member.sign_in(instance, PASSWORD)?;
        let Some(session) = cookie(&answer) else { return Some(false) };
        Some(member.get(instance, ACCOUNT, &session)?.status == 200)
    };
    block("a password without a second factor", found, later, SIGN_INS, sign_in, || {
        let answer = member.own_page(session, SECOND_FACTOR, &format!("code={}", secret.code_at(now())))?;
        (answer.status == 200).then_some(())
    })
}

/// Uses a right on every service, at most this many times on each, while it ends, and once when it has ended. `act`
/// says whether the use was accepted; none: that is not known.
fn block(
    what: &str,
    found: &mut Findings,
    later: Duration,
    times: usize,
    act: impl Fn(usize) -> Option<bool> + Sync,
    end: impl FnOnce() -> Option<()>,
) -> Option<()> {
    let (is_over, history) = (AtomicBool::new(false), Mutex::new(AccessHistory::default()));
    let note = |known| lock(&history).change(Reason::Ended, known, Instant::now());
    // A refusal has many reasons in a fault, and is never wrong.
    let act = |instance| {
        let asked = Instant::now();
        if act(instance) == Some(true) {
            lock(&history).answer(Answer { asked, answered: Instant::now(), status: 201 });
        }
    };
    let ended = std::thread::scope(|scope| {
        for instance in 0..INSTANCES {
            let (act, is_over) = (&act, &is_over);
            scope.spawn(move || (0..times).take_while(|_| !is_over.load(Ordering::SeqCst)).for_each(|_| act(instance)));
        }
        std::thread::sleep(later);
        note(Known::Changing);
        let ended = end();
        if ended.is_some() {
            note(Known::Blocked);
            (0..INSTANCES).for_each(act);
        }
        is_over.store(true, Ordering::SeqCst);
        ended
    });
    lock(&history).judge(what, found);
    ended
}

fn lock(history: &Mutex<AccessHistory>) -> MutexGuard<'_, AccessHistory> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signs in at the provider as this person, who has the address of an account there. Returns whether that opens the
/// account.
fn opens(account: &Browser<'_>, instance: usize, subject: &str) -> Option<bool> {
    let answer = at_provider(account, instance, "/sign-in/provider", subject)?;
    let Some(session) = session(&answer) else { return Some(false) };
    let page = account.get(instance, ACCOUNT, &session)?;
    Some(page.status == 200 && page.text().contains(&account.email))
}

/// Goes from a page to the provider and comes back as this person, who has the address of the browser's owner there.
fn at_provider(browser: &Browser<'_>, instance: usize, from: &str, subject: &str) -> Option<Response> {
    let provider = browser.operations.bed.provider.as_ref()?;
    let left = browser.get(instance, from, "")?;
    let (address, round) = (left.header("location")?, cookie(&left)?);
    let parameter = |name: &str| between(&format!("{address}&"), &format!("{name}="), "&");
    let code = provider.code(subject, &browser.email, &parameter("nonce")?);
    browser.get(instance, &format!("/sign-in/provider/return?code={code}&state={}", parameter("state")?), &round)
}

/// The session that an answer of single sign-on begins.
fn session(answer: &Response) -> Option<String> {
    let cookies = answer.all("set-cookie");
    let begun = cookies.iter().find(|cookie| cookie.starts_with("__Host-intake-session="))?;
    begun.split(';').next().map(str::to_owned)
}
