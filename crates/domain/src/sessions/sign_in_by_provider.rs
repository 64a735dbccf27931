//! What follows from what the provider of single sign-on says: a sign-in, a membership, or a confirmation. A person is
//! known by the provider's id of them, which is stored when they first come. Only then is an account found by its
//! address, and only if the address was proved. The provider takes the place of the password and of nothing else: a
//! second factor is asked for as after a password, because nothing tells what the provider has asked for.

use time::Duration;

use crate::audit::action::{Action, Actor};
use crate::audit::context::Origin;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::confirmation::{ConfirmError, Renewal, confirmed};
use crate::members::invitation_store::{Guest, InvitationStore, JoinOutcome, NewCredential, NewMember};
use crate::members::member::{Account, Membership};
use crate::members::member_store::{MemberStore, ProviderAccount, ProviderLink};
use crate::name::Name;
use crate::sessions::evidence::{Evidence, FirstStep};
use crate::sessions::holder::SignedIn;
use crate::sessions::identity_provider::Identity;
use crate::sessions::sign_in::SignIn;
use crate::sessions::store::{BeginOutcome, NewSession, SessionStore};
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

/// Reason why a guest who signed in at the provider did not join.
#[derive(Debug, thiserror::Error)]
pub enum ProviderJoinError {
    /// The invitation is unknown, has expired or was used.
    #[error("there is no such invitation")]
    NoInvitation,
    /// The invitation is for this address, and the guest has another one at the provider.
    #[error("the invitation is for another address")]
    OtherAddress(EmailAddress),
    /// Other members of the organisation have the name of the guest's account.
    #[error("the name is taken")]
    NameTaken,
    /// The guest's account was made or changed at this moment.
    #[error("the guest's account was made or changed at this moment")]
    AccountChanged,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Signs in to the person's account, or to the one of several that belongs to this organisation.
pub async fn sign_in_by_provider(
    (members, sessions): (&dyn MemberStore, &dyn SessionStore),
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
    match sessions.begin(&session, &first, &origin.by(account.actor())).await? {
        BeginOutcome::SignedIn => Ok(ProviderSignIn::Complete),
        BeginOutcome::CodeNeeded => Ok(ProviderSignIn::CodeNeeded),
        BeginOutcome::AccountChanged => Ok(ProviderSignIn::NoAccount),
    }
}

/// The accounts that are the person's, and those that are another person's with the same address. An account that is
/// linked to the person goes before those that are linked to nobody.
fn own_and_others(found: &[ProviderAccount]) -> (Vec<Account>, Vec<Account>) {
    let with = |link| found.iter().filter(move |one| one.link == link).map(|one| one.account.clone());
    let mut own: Vec<_> = with(ProviderLink::ThisPerson).collect();
    if own.is_empty() {
        own = with(ProviderLink::Nobody).collect();
    }
    (own, with(ProviderLink::AnotherPerson).collect())
}

/// Makes the guest of an invitation a member and signs them in. A guest without an account gets one without a password,
/// under the name that the provider tells, or the address if that name cannot be had.
pub async fn join_by_provider(
    (invitations, members): (&dyn InvitationStore, &dyn MemberStore),
    Identity { subject, email, name, .. }: &Identity,
    invitation: &Token,
    (id, session): (MemberId, &Token),
    origin: Origin,
) -> Result<(MemberId, SignIn), ProviderJoinError> {
    let invitation = invitation.digest();
    let open = invitations.invitation(&invitation, origin.at).await?.ok_or(ProviderJoinError::NoInvitation)?;
    if open.email.folded() != email.folded() {
        return Err(ProviderJoinError::OtherAddress(open.email));
    }
    // The organisation invited the address: it gets no member with another one.
    let (own, _) = own_and_others(&members.provider_accounts(subject, email).await?);
    let guests = match own.into_iter().find(|own| own.email.folded() == email.folded()) {
        Some(own) => {
            let first = FirstStep::Provider(subject.clone(), email.clone());
            vec![(own.clone(), Guest::Known(own, first))]
        }
        None => {
            let names = [name.as_deref().map(str::trim), Some(email.as_str())].into_iter().flatten();
            let guest = |name: Name| {
                let account = Account { id, name: name.clone(), email: open.email.clone() };
                let credential = NewCredential::Provider(subject.clone());
                (account, Guest::New(NewMember { id, name, credential }))
            };
            names.filter_map(|name| Name::of_member(name).ok()).map(guest).collect()
        }
    };
    for (account, guest) in guests {
        let session = new_session(account.id, session, &origin);
        return match invitations.join(&invitation, &guest, &session, &origin.by(account.actor())).await? {
            JoinOutcome::Joined => Ok((account.id, SignIn::Complete)),
            JoinOutcome::CodeNeeded => Ok((account.id, SignIn::CodeNeeded)),
            JoinOutcome::NoInvitation => Err(ProviderJoinError::NoInvitation),
            JoinOutcome::AccountChanged => Err(ProviderJoinError::AccountChanged),
            JoinOutcome::NameTaken => continue,
        };
    }
    Err(ProviderJoinError::NameTaken)
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
    confirmed(renewal.confirm(sessions, &evidence, &origin.by(member.actor())).await?)
}

fn new_session(member: MemberId, token: &Token, origin: &Origin) -> NewSession {
    NewSession { is_by_provider: true, ..NewSession::new(member, token, origin) }
}
