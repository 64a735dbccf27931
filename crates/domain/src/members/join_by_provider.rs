//! Joining an organisation by single sign-on.

use crate::accounts::evidence::FirstStep;
use crate::accounts::identity_provider::Identity;
use crate::accounts::member::Account;
use crate::accounts::member_store::MemberStore;
use crate::accounts::session_store::SignIn;
use crate::audit::context::Origin;
use crate::email_address::EmailAddress;
use crate::ids::MemberId;
use crate::members::invitation_store::{Guest, InvitationStore, JoinOutcome, NewCredential, NewMember};
use crate::name::Name;
use crate::sessions::sign_in_by_provider::{new_session, own_and_others};
use crate::store_error::StoreError;
use crate::token::Token;

/// Reason why a guest who signed in at the provider did not join.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
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

/// Makes the guest of an invitation a member and signs them in. A guest without an account gets one without a password,
/// under the name that the provider tells, or the address if that name cannot be had.
pub async fn join_by_provider(
    invitations: &dyn InvitationStore,
    members: &dyn MemberStore,
    Identity { subject, email, name, .. }: &Identity,
    invitation: &Token,
    id: MemberId,
    session: &Token,
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
