//! What follows from what the provider of single sign-on says: a sign-in, a membership, or a confirmation. Accounts are
//! found by the address. The provider takes the place of the password and of nothing else: a second factor is asked for
//! as after a password, because nothing tells what the provider has asked for.

use time::Duration;

use crate::audit::action::Origin;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::confirmation::{ConfirmError, confirmed};
use crate::members::invitation_store::{Guest, InvitationStore, JoinOutcome, NewMember};
use crate::members::member::{Account, Membership};
use crate::members::member_store::MemberStore;
use crate::name::Name;
use crate::sessions::evidence::{Evidence, FirstStep};
use crate::sessions::holder::SignedIn;
use crate::sessions::identity_provider::Identity;
use crate::sessions::passwords::Passwords;
use crate::sessions::sign_in::SignIn;
use crate::sessions::store::{BeginOutcome, NewSession, SessionStore};
use crate::store_error::StoreError;
use crate::token::Token;

/// How long ago a person may have proved to the provider who they are to confirm it here: the way back takes a moment,
/// and clocks differ.
const PROVIDER_PROOF_LIMIT: Duration = Duration::minutes(2);

/// What a sign-in at the provider leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderSignIn {
    /// The member is signed in under the token.
    Complete,
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
    /// Several accounts have the address, in these organisations: one of them has to be chosen.
    SeveralAccounts(Vec<Membership>),
    /// No account has the address.
    NoAccount,
}

/// Why a guest who signed in at the provider did not join.
#[derive(Debug, thiserror::Error)]
pub enum ProviderJoinError {
    /// The invitation is unknown, has expired or was used.
    #[error("there is no such invitation")]
    NoInvitation,
    /// The invitation is for this address, and the guest has another one at the provider.
    #[error("the invitation is for another address")]
    OtherAddress(EmailAddress),
    /// The address has an account with a password, which someone else may know: a guest who joins with it types it.
    #[error("the account of the address has a password")]
    PasswordNeeded,
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

/// Signs in to the account with the address, or to the one of several that belongs to this organisation.
pub async fn sign_in_by_provider(
    (members, sessions): (&dyn MemberStore, &dyn SessionStore),
    Identity { email, .. }: &Identity,
    organisation: Option<OrganisationId>,
    token: &Token,
    origin: Origin,
) -> Result<ProviderSignIn, StoreError> {
    let mut found = Vec::new();
    for credentials in members.credentials(email, None).await? {
        let account = credentials.account;
        found.extend(sessions.memberships(account.id).await?.into_iter().map(|one| (account.clone(), one)));
    }
    let is_one = found.windows(2).all(|pair| matches!(pair, [(one, _), (other, _)] if one.id == other.id));
    let chosen = found.iter().find(|(_, one)| is_one || Some(one.organisation_id) == organisation);
    let account = match chosen {
        Some((account, _)) => account,
        None if found.is_empty() => return Ok(ProviderSignIn::NoAccount),
        None => return Ok(ProviderSignIn::SeveralAccounts(found.into_iter().map(|(_, one)| one).collect())),
    };
    let session = new_session(account.id, token, &origin);
    let first = FirstStep::Provider(email.clone());
    match sessions.begin(&session, &first, &origin.by(account.actor())).await? {
        BeginOutcome::SignedIn => Ok(ProviderSignIn::Complete),
        BeginOutcome::CodeNeeded => Ok(ProviderSignIn::CodeNeeded),
        BeginOutcome::AccountChanged => Ok(ProviderSignIn::NoAccount),
    }
}

/// Makes the guest of an invitation a member and signs them in. A guest without an account gets one without a password,
/// under the name that the provider tells, or the address if that name cannot be had. An account with a password is not
/// joined with: where nobody proves an address, its password may be someone else's, who would get in, too. Where
/// passwords are turned off, it is, and loses its password.
pub async fn join_by_provider(
    (invitations, members): (&dyn InvitationStore, &dyn MemberStore),
    (Identity { email, name, .. }, passwords): (&Identity, Passwords),
    invitation: &Token,
    (id, session): (MemberId, &Token),
    origin: Origin,
) -> Result<(MemberId, SignIn), ProviderJoinError> {
    let invitation = invitation.digest();
    let open = invitations.invitation(&invitation, origin.at).await?.ok_or(ProviderJoinError::NoInvitation)?;
    if open.email.folded() != email.folded() {
        return Err(ProviderJoinError::OtherAddress(open.email));
    }
    let known = members.credentials(email, None).await?;
    let (first, any) = match passwords {
        Passwords::On => (FirstStep::Provider(email.clone()), None),
        Passwords::Off => (FirstStep::ProviderAlone(email.clone()), known.first()),
    };
    let own = known.iter().find(|known| known.password.is_none()).or(any);
    let guests = match own {
        Some(own) => vec![(own.account.clone(), Guest::Known(own.account.clone(), first))],
        None if !known.is_empty() => return Err(ProviderJoinError::PasswordNeeded),
        None => {
            let names = [name.as_deref().map(str::trim), Some(email.as_str())].into_iter().flatten();
            let guest = |name: Name| {
                let account = Account { id, name: name.clone(), email: open.email.clone() };
                (account, Guest::New(NewMember { id, name, password: None }))
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
    session: &Token,
    Identity { email, authenticated_at, .. }: &Identity,
    origin: Origin,
) -> Result<(), ConfirmError> {
    let is_recent = authenticated_at.is_some_and(|at| at > origin.at - PROVIDER_PROOF_LIMIT);
    if !is_recent || email.folded() != member.email.folded() {
        return Err(ConfirmError::WrongFactor);
    }
    let evidence = Evidence::Provider(email.clone());
    confirmed(sessions.confirm(&session.digest(), &evidence, &origin.by(member.actor())).await?)
}

fn new_session(member: MemberId, token: &Token, origin: &Origin) -> NewSession {
    NewSession { is_by_provider: true, ..NewSession::new(member, token, origin) }
}
