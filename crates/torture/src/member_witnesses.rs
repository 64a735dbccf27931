//! Members who lose what they may do after the moment to which the register is restored: when `intake restored --apply`
//! has repeated it, none of them gets it back.

use anyhow::Context;
use diesel::RunQueryDsl;
use intake_test_support::Response;

use crate::audit::Findings;
use crate::browser::{ACCOUNT, Browser, PASSWORD, cookie, typed};
use crate::members::{KEY_AGE, POLICIES};
use crate::operations::{Operations, PAUSE, text};
use crate::random::Random;
use crate::test_bed::INSTANCES;

/// The random stream of the members' networks and addresses.
const STREAM: u64 = 15_000;
/// Number of times that something is tried which a service that is still busy keeps from an answer.
const TRIES: usize = 20;

/// A loss of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Demoted,
    Removed,
    /// After the member has changed the address.
    RemovedElsewhere,
    /// The invitation was withdrawn.
    Uninvited,
}

/// A member before the moment, or a guest.
struct Witness {
    loss: Loss,
    email: String,
    address: String,
    /// The session of before, or the path of the invitation.
    secret: String,
}

/// All of them, in an organisation of their own.
pub(crate) struct MemberWitnesses {
    organisation: String,
    all: Vec<Witness>,
}

impl MemberWitnesses {
    /// Lets them join, before the moment.
    pub(crate) fn make(operations: &Operations<'_>) -> anyhow::Result<Self> {
        let made = operations.made(&["organisation", "create", "--name", "Witnesses"])?;
        let organisation = text(&made, "id")?.to_owned();
        let mut random = Random::new(operations.seed, STREAM);
        // One stays, because the last administrator cannot be removed.
        until(|| Browser::new(operations, organisation.clone(), &mut random).join()).context("nobody joins")?;
        let mut all = Vec::new();
        for loss in [Loss::Demoted, Loss::Removed, Loss::RemovedElsewhere, Loss::Uninvited] {
            let found = until(|| {
                let person = Browser::new(operations, organisation.clone(), &mut random);
                let secret = if loss == Loss::Uninvited { person.link("invite")? } else { person.join()? };
                Some(Witness { loss, email: person.email.clone(), address: person.address, secret })
            });
            all.push(found.with_context(|| format!("nobody can be {loss:?}"))?);
        }
        Ok(Self { organisation, all })
    }

    /// Takes the rights away, after the moment.
    pub(crate) fn take_away(&self, operations: &Operations<'_>) -> anyhow::Result<()> {
        for witness in &self.all {
            let mut email = witness.email.clone();
            if witness.loss == Loss::RemovedElsewhere {
                email = format!("other-{email}");
                until(|| change_email(&self.browser(operations, witness), &email)).context("no address changes")?;
            }
            let (command, more) = match witness.loss {
                Loss::Demoted => ("change-role", &["--role", "auditor"][..]),
                Loss::Removed | Loss::RemovedElsewhere => ("remove", &[][..]),
                Loss::Uninvited => ("withdraw-invitation", &[][..]),
            };
            let arguments = ["member", command, "--organisation", &self.organisation, "--email", &email];
            let done = operations.command(&[&arguments[..], more].concat());
            done.map_err(|why| anyhow::anyhow!("{:?}: {why}", witness.loss))?;
        }
        Ok(())
    }

    /// Tries on every service what they may not do any more.
    pub(crate) fn must_stay(&self, operations: &Operations<'_>, found: &mut Findings) {
        for witness in &self.all {
            let browser = self.browser(operations, witness);
            for instance in 0..INSTANCES {
                match until(|| gets_in(&browser, instance, witness)) {
                    Some(true) => {
                        found.is_admitted(format!("after a restore a member gets in who was {:?}", witness.loss));
                    }
                    Some(false) => {}
                    None => found.is_wrong(format!("nobody knows whether a member gets in who was {:?}", witness.loss)),
                }
            }
        }
    }

    /// Gives a role back behind the back of the services.
    pub(crate) fn bring_back(&self, operations: &Operations<'_>) -> anyhow::Result<()> {
        let email = self.all.iter().find(|witness| witness.loss == Loss::Demoted).map(|witness| &witness.email);
        let email = email.context("nobody was demoted")?;
        let promote = format!(
            "UPDATE memberships SET role = 'administrator' FROM members
             WHERE members.id = member_id AND email = '{email}'"
        );
        let promoted = diesel::sql_query(promote).execute(&mut operations.bed.register()?)?;
        anyhow::ensure!(promoted == 1, "the member who was demoted is not in the register");
        Ok(())
    }

    fn browser<'a>(&self, operations: &'a Operations<'a>, witness: &Witness) -> Browser<'a> {
        let (organisation, Witness { email, address, .. }) = (self.organisation.clone(), witness);
        Browser { operations, organisation, address: address.clone(), email: email.clone() }
    }
}

/// Gives the member another address.
fn change_email(member: &Browser<'_>, email: &str) -> Option<()> {
    let session = member.confirm(&cookie(&member.sign_in(0, PASSWORD)?)?)?;
    let form = format!("email={}&password={}", email.replace('@', "%40"), typed(PASSWORD));
    let changed = member.own_page(&session, "/settings/account/email", &form)?;
    (changed.status == 303 && changed.header("location") == Some(ACCOUNT)).then_some(())
}

/// Returns whether a person has what was taken away.
fn gets_in(person: &Browser<'_>, instance: usize, witness: &Witness) -> Option<bool> {
    let is_open = |session: &str| Some(person.get(instance, ACCOUNT, session)?.status == 200);
    let opens = |answer: Response| cookie(&answer).map_or(Some(false), |session| is_open(&session));
    if witness.loss == Loss::Uninvited {
        let form = format!("name=Guest&password={}", typed(PASSWORD));
        return opens(person.post(instance, &witness.secret, "", &form)?);
    }
    // Everyone was signed out.
    if is_open(&witness.secret)? {
        return Some(true);
    }
    if witness.loss != Loss::Demoted {
        return opens(person.sign_in(instance, PASSWORD)?);
    }
    let session = person.confirm(&cookie(&person.sign_in(instance, PASSWORD)?)?)?;
    let form = format!("form_token={}&days=90", person.form_token(&session)?);
    let answer = person.post(instance, KEY_AGE, &session, &form)?;
    Some(answer.status == 303 && answer.header("location") == Some(POLICIES))
}

fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    (0..TRIES).find_map(|tried| {
        if tried > 0 {
            std::thread::sleep(PAUSE);
        }
        attempt()
    })
}
