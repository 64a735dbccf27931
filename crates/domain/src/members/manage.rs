//! How people become members: one is invited, and the guest joins.

use time::{Duration, OffsetDateTime};

use crate::accounts::evidence::FirstStep;
use crate::accounts::guessable::PasswordOwner;
use crate::accounts::hasher::{HasherError, PasswordHasher, Requester};
use crate::accounts::member::{Account, Invitation, LinkDelivery};
use crate::accounts::member_store::MemberStore;
use crate::accounts::password::{Password, PasswordError};
use crate::accounts::presented::PresentedPassword;
use crate::accounts::role::Role;
use crate::accounts::salt::salt_of;
use crate::accounts::session_store::NewSession;
use crate::accounts::session_store::SignIn;
use crate::audit::context::{AuditContext, Origin};
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::invitation_store::{
    Guest, InvitationStore, InviteError, JoinOutcome, NewCredential, NewInvitation, NewMember,
};
use crate::name::{Name, NameError};
use crate::store_error::StoreError;
use crate::token::Token;

/// Time for which an invitation is open. It is sent by hand, and must outlast a long weekend.
pub const INVITATION_LIFE: Duration = Duration::hours(72);

/// An invitation that was just made: the only time that its token is shown.
#[derive(Debug)]
pub struct IssuedInvitation {
    /// The guest's address.
    pub email: EmailAddress,
    /// The secret of the invitation link.
    pub token: Token,
    /// Time at which the link stops working.
    pub expires_at: OffsetDateTime,
}

/// The form that a guest fills in, with the id and the random bits that the service adds.
#[derive(Debug)]
pub struct JoinRequest<'a> {
    /// The secret of the invitation link.
    pub invitation: &'a Token,
    /// The guest's name, as typed.
    pub name: &'a str,
    /// The password that the guest chose, or that of the guest's account, as typed.
    pub password: &'a PresentedPassword,
    /// The id of the guest's account, if one is made.
    pub id: MemberId,
    /// Random bytes for the password's hash.
    pub salt: [u8; 16],
    /// The token of the session, or of the sign-in that waits for a code.
    pub session: &'a Token,
}

/// Reason why a guest could not join.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum JoinError {
    /// The form has faults.
    #[error("the form has faults")]
    Invalid {
        /// The fault of the name, if it has one.
        name: Option<NameError>,
        /// The fault of the password, if it has one.
        password: Option<PasswordError>,
    },
    /// The invitation is unknown, has expired or was used.
    #[error("there is no such invitation")]
    NoInvitation,
    /// The guest has proved an address that has an account, and the password is not its own: for
    /// [`crate::note_failed_sign_in`].
    #[error("the password is not that of the guest's account")]
    WrongPassword(Vec<Account>),
    /// Another member of the organisation has the name of the guest's account.
    #[error("the name of the guest's account is taken")]
    AccountNameTaken,
    /// The guest's account was made or changed at this moment.
    #[error("the guest's account was made or changed at this moment")]
    AccountChanged,
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes an invitation, which is open for [`INVITATION_LIFE`].
pub async fn invite_member(
    invitations: &dyn InvitationStore,
    organisation_id: OrganisationId,
    email: EmailAddress,
    role: Role,
    token: Token,
    delivery: LinkDelivery,
    audit: &AuditContext,
) -> Result<IssuedInvitation, InviteError> {
    let expires_at = audit.at + INVITATION_LIFE;
    let invitation =
        NewInvitation { token: token.digest(), organisation_id, email: email.clone(), role, delivery, expires_at };
    invitations.invite(&invitation, audit).await?;
    Ok(IssuedInvitation { email, token, expires_at })
}

/// Makes a guest a member and signs them in. The invitation is used up, at once or after the second factor of the
/// guest's account. A guest without an account gets one. So does a guest who types another password than that of the
/// account, unless the link was mailed and the account's address was proved, too: neither the answer nor its time
/// reveals who has an account to those who merely saw the link, and an account that a stranger made under the
/// address keeps nobody out. Returns the id of the account.
pub async fn join(
    invitations: &dyn InvitationStore,
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    request: JoinRequest<'_>,
    origin: Origin,
) -> Result<(MemberId, SignIn), JoinError> {
    let JoinRequest { invitation, name, password, id, salt, session } = request;
    let (name, chosen) = match (Name::of_member(name), Password::of_anybody(password.expose())) {
        (Ok(name), Ok(password)) => (name, password),
        (name, password) => return Err(JoinError::Invalid { name: name.err(), password: password.err() }),
    };
    // A stranger must not make the service hash.
    let Invitation { email, delivery, organisation_name, .. } =
        invitations.invitation(&invitation.digest(), origin.at).await?.ok_or(JoinError::NoInvitation)?;
    let known = members.credentials(&email, None).await?;
    let salt = salt_of(&known, salt);
    let hash = hasher.hash(Requester::Guest(invitation.digest()), &chosen, salt).await?;
    let (account, guest) = match known.iter().find(|known| known.password.as_ref() == Some(&hash)) {
        Some(own) => (own.account.clone(), Guest::Known(own.account.clone(), FirstStep::Password(hash))),
        None if delivery == LinkDelivery::Mailed && known.iter().any(|known| known.is_address_proved) => {
            return Err(JoinError::WrongPassword(known.into_iter().map(|known| known.account).collect()));
        }
        None => {
            // Only a password that is chosen: that of an account may hold the name of another organisation.
            let owner =
                PasswordOwner { email: email.as_str(), name: name.as_str(), organisations: &[organisation_name] };
            if let Some(fault) = owner.fault_of(chosen.expose()) {
                return Err(JoinError::Invalid { name: None, password: Some(fault.into()) });
            }
            let guest = NewMember { id, name: name.clone(), credential: NewCredential::Password(hash) };
            (Account { id, name, email }, Guest::New(guest))
        }
    };
    let id = account.id;
    let session = NewSession::new(id, session, &origin);
    match invitations.join(&invitation.digest(), &guest, &session, &origin.by(account.actor())).await? {
        JoinOutcome::Joined => Ok((id, SignIn::Complete)),
        JoinOutcome::CodeNeeded => Ok((id, SignIn::CodeNeeded)),
        JoinOutcome::NoInvitation => Err(JoinError::NoInvitation),
        JoinOutcome::AccountChanged => Err(JoinError::AccountChanged),
        JoinOutcome::NameTaken if matches!(guest, Guest::Known(..)) => Err(JoinError::AccountNameTaken),
        JoinOutcome::NameTaken => Err(JoinError::Invalid { name: Some(NameError::Taken), password: None }),
    }
}
