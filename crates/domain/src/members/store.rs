//! The port to members and the invitations by which they join.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::deed::Deed;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::member::Member;
use crate::members::password::PasswordHash;
use crate::members::second_factor::TotpSecret;
use crate::network::Network;
use crate::sessions::store::NewSession;
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// An invitation to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInvitation {
    /// Finds it again.
    pub token: TokenDigest,
    /// Where the guest will belong.
    pub organisation_id: OrganisationId,
    /// Whom it is for, and by what the guest will sign in.
    pub email: EmailAddress,
    /// From when on it is worth nothing.
    pub expires_at: OffsetDateTime,
}

/// Members and open invitations that an organisation may have, taken together: far more than look after keys, and few
/// enough for one page. Invitations made in the same instant may go a few beyond it.
pub const PEOPLE_MAX: u32 = 500;

/// What became of an attempt to invite somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteOutcome {
    /// The invitation is open.
    Invited,
    /// There is no such organisation, or the member who invites was removed meanwhile.
    NoSuchOrganisation,
    /// The organisation has [`PEOPLE_MAX`] members and open invitations.
    TooMany,
}

/// An invitation that is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Whom it is for.
    pub email: EmailAddress,
    /// The name of the inviting organisation.
    pub organisation_name: String,
}

/// An open invitation as the organisation sees it that it was made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInvitation {
    /// The SHA-256 of its token, which names it and opens nothing.
    pub token: TokenDigest,
    /// Whom it is for.
    pub email: String,
    /// The name of the member who made it; none: an operator.
    pub invited_by: Option<String>,
    /// From when on it is worth nothing.
    pub expires_at: OffsetDateTime,
}

/// What became of an attempt to withdraw an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawOutcome {
    /// It opens nothing any more.
    Withdrawn,
    /// The organisation has no such invitation, or it was accepted.
    NoSuchInvitation,
}

/// A guest about to join; where and by which address, the invitation says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its id.
    pub id: MemberId,
    /// As others will see it.
    pub name: crate::name::Name,
    /// Of the password that the guest chose.
    pub password: PasswordHash,
}

/// What became of an attempt to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// The guest is a member, and signed in.
    Joined,
    /// The invitation is unknown, has expired or was used.
    NoInvitation,
    /// Somebody signs in by this email address already.
    EmailTaken,
}

/// What became of an attempt to remove a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// Gone, and signed out everywhere.
    Removed,
    /// Without it nobody could look after the organisation.
    LastMember,
    /// The organisation has no such member.
    NoSuchMember,
}

/// What is needed to sign in as a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Who it would be.
    pub member: Member,
    /// Of its password.
    pub password: PasswordHash,
    /// Whether a code is needed besides.
    pub has_second_factor: bool,
    /// Whether the member has signed in from the network that was asked about.
    pub is_familiar: bool,
}

/// A second factor to be turned on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecondFactor {
    /// Shared with the member's app.
    pub secret: TotpSecret,
    /// Of the code by which the member showed that its app has the secret: used up.
    pub used_step: i64,
    /// Of the recovery codes.
    pub recovery_codes: Vec<TokenDigest>,
}

/// What became of a change to a member's second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondFactorOutcome {
    /// The change was made.
    Changed,
    /// There was nothing to change: the second factor is on already, or off already.
    Unchanged,
}

/// A member as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Its id.
    pub id: MemberId,
    /// Its name.
    pub name: String,
    /// By which it signs in.
    pub email: String,
    /// When it joined.
    pub joined_at: OffsetDateTime,
    /// Whether it signs in with a code besides the password.
    pub has_second_factor: bool,
}

/// Members and invitations. Whatever changes something records the deed in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait MemberStore: Send + Sync {
    /// Stores an invitation, which ends with the member who makes it.
    async fn invite(&self, invitation: &NewInvitation, deed: &Deed) -> Result<InviteOutcome, StoreError>;

    /// The invitation, if it is still open at that moment.
    async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError>;

    /// The organisation's invitations that are open at that moment, the first to end first.
    async fn open_invitations(
        &self,
        organisation: OrganisationId,
        now: OffsetDateTime,
    ) -> Result<Vec<OpenInvitation>, StoreError>;

    /// Takes back an invitation of the organisation that nobody has accepted.
    async fn withdraw(
        &self,
        organisation: OrganisationId,
        token: &TokenDigest,
        deed: &Deed,
    ) -> Result<WithdrawOutcome, StoreError>;

    /// Uses up an invitation, makes its guest a member and starts its first session.
    async fn join(
        &self,
        token: &TokenDigest,
        member: &NewMember,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<JoinOutcome, StoreError>;

    /// The member who signs in by this address, and whether it did so from this network before. One query, whether or
    /// not there is such a member: how long it takes must not tell.
    async fn credentials(&self, email: &EmailAddress, from: Option<Network>)
    -> Result<Option<Credentials>, StoreError>;

    /// The organisation's members, the oldest first.
    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError>;

    /// Removes a member of the organisation. Its sessions end at once, and so does every invitation by which it could
    /// come back: those it made, and those to its address.
    async fn remove(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        deed: &Deed,
    ) -> Result<RemoveOutcome, StoreError>;

    /// How many recovery codes the member has left. None: it has no second factor.
    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError>;

    /// Gives the member a second factor, unless it has one.
    async fn turn_on(
        &self,
        member: &Member,
        factor: &NewSecondFactor,
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError>;

    /// Takes the member's second factor away, if it has one.
    async fn turn_off(&self, member: &Member, deed: &Deed) -> Result<SecondFactorOutcome, StoreError>;

    /// Replaces the member's recovery codes by these, if it has a second factor.
    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError>;
}
