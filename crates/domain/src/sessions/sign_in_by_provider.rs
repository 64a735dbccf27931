//! What follows from what the provider of single sign-on says: a sign-in or a confirmation. A person is
//! known by the provider's id of them, which is stored when they first come. Only then is an account found by its
//! address, and only if the address was proved. The provider takes the place of the password and of nothing else: a
//! second factor is asked for as after a password, because nothing tells what the provider has asked for.

use time::Duration;

use crate::accounts::confirmation::Renewal;
use crate::accounts::evidence::{Evidence, FirstStep};
use crate::accounts::holder::SignedIn;
use crate::accounts::identity_provider::Identity;
use crate::accounts::member::{Account, Membership};
use crate::accounts::member_store::{MemberStore, ProviderAccount, ProviderLink};
use crate::accounts::session_store::{ConfirmError, NewSession, SessionStore, SignIn};
use crate::audit::action::{Action, Actor};
use crate::audit::context::Origin;
use crate::ids::{MemberId, OrganisationId};
use crate::store_error::StoreError;
use crate::token::Token;

/// Greatest time since a person has proved to the provider who they are to confirm it here: the way back takes a
/// moment, and clocks differ.
const PROVIDER_PROOF_LIMIT: Duration = Duration::minutes(2);

/// Result of a sign-in at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderSignIn {
    /// The member is signed in under the token.
    Complete,
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
    /// Several accounts are the person's, in these organisations: one of them has to be chosen.
    SeveralAccounts(Vec<Membership>),
    /// No account is the person's.
    NoAccount,
    /// The account with the address is linked to another person at the provider.
    AnotherPerson,
}

/// Signs in to the person's account, or to the one of several that belongs to this organisation.
pub async fn sign_in_by_provider(
    members: &dyn MemberStore,
    sessions: &dyn SessionStore,
    Identity { subject, email, .. }: &Identity,
    organisation: Option<OrganisationId>,
    token: &Token,
    origin: Origin,
) -> Result<ProviderSignIn, StoreError> {
    let (own, others) = own_and_others(&members.provider_accounts(subject, email).await?);
    let mut found = Vec::new();
    for account in own {
        found.extend(sessions.memberships(account.id).await?.into_iter().map(|one| (account.clone(), one)));
    }
    let is_one = found.windows(2).all(|pair| matches!(pair, [(one, _), (other, _)] if one.id == other.id));
    let chosen = found.iter().find(|(_, one)| is_one || Some(one.organisation_id) == organisation);
    let account = match chosen {
        Some((account, _)) => account,
        None if !found.is_empty() => {
            return Ok(ProviderSignIn::SeveralAccounts(found.into_iter().map(|(_, one)| one).collect()));
        }
        None if others.is_empty() => return Ok(ProviderSignIn::NoAccount),
        None => {
            for account in others {
                sessions.note_failure(&account, Action::ProviderPersonRefused, &origin.by(Actor::Stranger)).await?;
            }
            return Ok(ProviderSignIn::AnotherPerson);
        }
    };
    let session = new_session(account.id, token, &origin);
    let first = FirstStep::Provider(subject.clone(), email.clone());
    Ok(match sessions.begin(&session, &first, &origin.by(account.actor())).await? {
        Some(SignIn::Complete) => ProviderSignIn::Complete,
        Some(SignIn::CodeNeeded) => ProviderSignIn::CodeNeeded,
        None => ProviderSignIn::NoAccount,
    })
}

/// The accounts that are the person's, and those that are another person's with the same address. An account that is
/// linked to the person goes before those that are linked to nobody.
pub(crate) fn own_and_others(found: &[ProviderAccount]) -> (Vec<Account>, Vec<Account>) {
    let with = |link| found.iter().filter(move |one| one.link == link).map(|one| one.account.clone());
    let mut own: Vec<_> = with(ProviderLink::ThisPerson).collect();
    if own.is_empty() {
        own = with(ProviderLink::Nobody).collect();
    }
    (own, with(ProviderLink::AnotherPerson).collect())
}

/// Confirms a member who has just signed in anew at the provider. [`ConfirmError::NotEnough`]: the member has a second
/// factor, whose proof is still to come. [`ConfirmError::WrongFactor`]: it is another person, or too long ago.
pub async fn confirm_by_provider(
    sessions: &dyn SessionStore,
    SignedIn { member, .. }: &SignedIn,
    renewal: Renewal<'_>,
    Identity { subject, authenticated_at, .. }: &Identity,
    origin: Origin,
) -> Result<(), ConfirmError> {
    if authenticated_at.is_none_or(|at| at <= origin.at - PROVIDER_PROOF_LIMIT) {
        return Err(ConfirmError::WrongFactor);
    }
    let evidence = Evidence::Provider(subject.clone());
    renewal.confirm(sessions, &evidence, &origin.by(member.actor())).await
}

pub(crate) fn new_session(member: MemberId, token: &Token, origin: &Origin) -> NewSession {
    NewSession { is_by_provider: true, ..NewSession::new(member, token, origin) }
}
