//! The port to invitations, by which people become members.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::accounts::email_change_store::EMAIL_CHANGES_PER_HOUR_MAX;
use crate::accounts::evidence::FirstStep;
use crate::accounts::member::{Account, Invitation, LinkDelivery};
use crate::accounts::member_store::AdministerError;
use crate::accounts::password::PasswordHash;
use crate::accounts::role::Role;
use crate::accounts::session_store::NewSession;
use crate::accounts::subject::Subject;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::name::Name;
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// An invitation to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInvitation {
    /// The SHA-256 of the secret in the invitation link.
    pub token: TokenDigest,
    /// The organisation that the guest will join.
    pub organisation_id: OrganisationId,
    /// The guest's address, with which they will sign in.
    pub email: EmailAddress,
    /// Role of the guest as a member.
    pub role: Role,
    /// Way in which the link gets to the guest: a mailed one proves the address.
    pub delivery: LinkDelivery,
    /// Time at which the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Members and open invitations that an organisation may have, taken together: far more than are needed to look after
/// keys, and few enough for one page. Invitations made at the same moment may exceed it by a few.
pub const PEOPLE_MAX: u32 = 500;

/// Invitations that the administrators of an organisation may make within an hour: a whole practice in a morning, and
/// too few to trouble a mail server with.
pub const INVITATIONS_PER_HOUR_MAX: u32 = EMAIL_CHANGES_PER_HOUR_MAX;

/// Invitations that they may make for one address within a day: the first went to spam, the second was overlooked.
pub const INVITATIONS_TO_ONE_MAX: u32 = 3;

/// Reason why an invitation was not made.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum InviteError {
    /// No organisation has this id.
    #[error("there is no organisation {0}")]
    NoSuchOrganisation(OrganisationId),
    /// The organisation is closed.
    #[error("the organisation {0} is closed")]
    OrganisationClosed(OrganisationId),
    /// The inviting member is no administrator, or was removed in the meantime.
    #[error("only administrators invite people")]
    NotAdministrator,
    /// The organisation has [`PEOPLE_MAX`] members and open invitations, which is the limit.
    #[error("the organisation has {PEOPLE_MAX} members and open invitations: remove or revoke one first")]
    TooMany,
    /// The organisation made too many invitations lately, or too many to this address.
    #[error(
        "the organisation makes at most {INVITATIONS_PER_HOUR_MAX} invitations an hour, and {INVITATIONS_TO_ONE_MAX} a day to one person"
    )]
    TooManyLately,
    /// The guest is a member already.
    #[error("{0} is a member already")]
    AlreadyMember(EmailAddress),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An open invitation, as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInvitation {
    /// The SHA-256 of the secret in the link: it identifies the invitation, and nobody can join with it.
    pub token: TokenDigest,
    /// The guest's address.
    pub email: String,
    /// Role of the guest as a member.
    pub role: Role,
    /// The name of the member who made it; none: an operator did.
    pub invited_by: Option<String>,
    /// Time at which the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Who accepts an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guest {
    /// A person without an account, who gets one.
    New(NewMember),
    /// A person who has an account and typed its password, or came by single sign-on.
    Known(Account, FirstStep),
}

/// A guest about to get an account. Organisation and address come from the invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// The id that the account will have.
    pub id: MemberId,
    /// The name that other members will see.
    pub name: Name,
    /// Credential with which the guest will sign in.
    pub credential: NewCredential,
}

/// Credential of a guest who gets an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewCredential {
    /// The password of this hash.
    Password(PasswordHash),
    /// Single sign-on, as this person, whose address the provider has proved.
    Provider(Subject),
}

/// Outcome of an attempt to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum JoinOutcome {
    /// The guest is a member, and signed in.
    Joined,
    /// The guest's account has a second factor: the sign-in waits for it, and then accepts the invitation.
    CodeNeeded,
    /// The invitation is unknown, has expired or was used.
    NoInvitation,
    /// An account with this address was made, or the guest's changed, while the password was hashed.
    AccountChanged,
    /// Another member of the organisation has the name.
    NameTaken,
}

/// Invitations. Every change is recorded in the same transaction. What only administrators may do is refused
/// unless an operator does it, or a member who is an administrator at that moment.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait InvitationStore: Send + Sync {
    /// Stores an invitation, as an administrator, unless the guest is a member of the organisation already. Whether the
    /// guest has an account makes no difference. Earlier open invitations of the organisation to the address end. The
    /// invitation ends when the member who made it is removed, or no longer an administrator.
    async fn invite(&self, invitation: &NewInvitation, audit: &AuditContext) -> Result<(), InviteError>;

    /// The invitation, if it is still open at that moment.
    async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError>;

    /// The organisation's invitations that are open at that moment, in the order in which they end.
    async fn open_invitations(
        &self,
        organisation: OrganisationId,
        now: OffsetDateTime,
    ) -> Result<Vec<OpenInvitation>, StoreError>;

    /// Withdraws an invitation of the organisation, as an administrator, unless it was accepted.
    async fn withdraw(
        &self,
        organisation: OrganisationId,
        token: &TokenDigest,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

    /// Uses up an invitation, makes its guest a member and starts a session of theirs in the organisation. Other open
    /// invitations of the organisation to the guest's address end. If the guest's account has a second factor, the
    /// invitation is used up once the sign-in, which waits under the token of the session, has been finished. A mailed
    /// invitation proves the address; what was open in an account whose address nobody had proved ends.
    async fn join(
        &self,
        token: &TokenDigest,
        guest: &Guest,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<JoinOutcome, StoreError>;
}
