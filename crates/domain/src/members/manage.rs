//! How people become members: one is invited, and the guest joins.

use time::{Duration, OffsetDateTime};

use crate::audit::action::{Actor, Deed, Origin};
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::hasher::{PasswordHasher, Waiter};
use crate::members::password::{Password, PasswordError};
use crate::members::presented::PresentedPassword;
use crate::members::role::Role;
use crate::members::store::{InviteOutcome, JoinOutcome, MemberStore, NewInvitation, NewMember, PEOPLE_MAX};
use crate::name::{Name, NameError};
use crate::sessions::store::NewSession;
use crate::sessions::token::Token;
use crate::store_error::StoreError;

/// How long an invitation is open. It is sent by hand, and must outlast a long weekend.
pub const INVITATION_LIFE: Duration = Duration::hours(72);

/// An invitation that was just made: the only time that its token is shown.
#[derive(Debug)]
pub struct IssuedInvitation {
    /// The guest's address.
    pub email: EmailAddress,
    /// The secret of the invitation link.
    pub token: Token,
    /// When the link stops working.
    pub expires_at: OffsetDateTime,
}

/// The form that a guest fills in, with the id and the random bits that the service adds.
#[derive(Debug)]
pub struct JoinRequest<'a> {
    /// The secret of the invitation link.
    pub invitation: &'a Token,
    /// The guest's name, as typed.
    pub name: &'a str,
    /// The password the guest chose, as typed.
    pub password: &'a PresentedPassword,
    /// The id the member will have.
    pub id: MemberId,
    /// Random bytes for the password's hash.
    pub salt: [u8; 16],
    /// The token of the member's first session.
    pub session: &'a Token,
}

/// Why a guest could not join.
#[derive(Debug, thiserror::Error)]
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
    /// A member already signs in with this email address.
    #[error("the email address is taken")]
    EmailTaken,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an invitation was not made.
#[derive(Debug, thiserror::Error)]
pub enum InviteError {
    /// No organisation has this id.
    #[error("there is no organisation {0}")]
    NoSuchOrganisation(OrganisationId),
    /// The inviting member is no administrator, or was removed in the meantime.
    #[error("only administrators invite people")]
    NotAdministrator,
    /// The organisation has [`PEOPLE_MAX`] members and open invitations, which is the limit.
    #[error("the organisation has {PEOPLE_MAX} members and open invitations: remove or withdraw one first")]
    TooMany,
    /// The guest is a member already.
    #[error("{0} is a member already")]
    AlreadyMember(EmailAddress),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes an invitation, which is open for [`INVITATION_LIFE`].
pub async fn invite_member(
    members: &dyn MemberStore,
    organisation_id: OrganisationId,
    email: EmailAddress,
    role: Role,
    token: Token,
    deed: &Deed,
) -> Result<IssuedInvitation, InviteError> {
    let expires_at = deed.at + INVITATION_LIFE;
    let invitation = NewInvitation { token: token.digest(), organisation_id, email: email.clone(), role, expires_at };
    match members.invite(&invitation, deed).await? {
        InviteOutcome::Invited => Ok(IssuedInvitation { email, token, expires_at }),
        InviteOutcome::NoSuchOrganisation => Err(InviteError::NoSuchOrganisation(organisation_id)),
        InviteOutcome::NotAdministrator => Err(InviteError::NotAdministrator),
        InviteOutcome::TooMany => Err(InviteError::TooMany),
        InviteOutcome::AlreadyMember => Err(InviteError::AlreadyMember(email)),
    }
}

/// Makes a guest a member and signs them in. The invitation is used up.
pub async fn join(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    request: JoinRequest<'_>,
    origin: Origin,
) -> Result<(), JoinError> {
    let JoinRequest { invitation, name, password, id, salt, session } = request;
    let (name, password) = match (Name::new(name), Password::new(password.expose())) {
        (Ok(name), Ok(password)) => (name, password),
        (name, password) => return Err(JoinError::Invalid { name: name.err(), password: password.err() }),
    };
    // A stranger must not make the service hash.
    if members.invitation(&invitation.digest(), origin.at).await?.is_none() {
        return Err(JoinError::NoInvitation);
    }
    let waiter = Waiter::Guest(invitation.digest());
    let password = hasher.hash(waiter, &password, salt).await.map_err(StoreError::from)?;
    let deed = origin.by(Actor::Member(id, name.to_string()));
    let member = NewMember { id, name, password };
    let session = NewSession { token: session.digest(), member_id: id, started_at: deed.at, browser: origin.browser };
    match members.join(&invitation.digest(), &member, &session, &deed).await? {
        JoinOutcome::Joined => Ok(()),
        JoinOutcome::NoInvitation => Err(JoinError::NoInvitation),
        JoinOutcome::EmailTaken => Err(JoinError::EmailTaken),
    }
}
