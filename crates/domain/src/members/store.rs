//! The port to members and the invitations by which they join.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::action::Deed;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::member::Member;
use crate::members::password::PasswordHash;
use crate::members::role::Role;
use crate::members::second_factor::TotpSecret;
use crate::name::Name;
use crate::network::Network;
use crate::sessions::store::NewSession;
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// An invitation to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInvitation {
    /// The SHA-256 of the secret in the invitation link.
    pub token: TokenDigest,
    /// The organisation that the guest will join.
    pub organisation_id: OrganisationId,
    /// The guest's address, with which they will sign in.
    pub email: EmailAddress,
    /// What the guest may do as a member.
    pub role: Role,
    /// When the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Members and open invitations that an organisation may have, taken together: far more than are needed to look after
/// keys, and few enough for one page. Invitations made at the same moment may exceed it by a few.
pub const PEOPLE_MAX: u32 = 500;

/// What became of an attempt to store an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteOutcome {
    /// The invitation is open.
    Invited,
    /// There is no such organisation.
    NoSuchOrganisation,
    /// The inviting member is no administrator, or was removed in the meantime.
    NotAdministrator,
    /// The organisation has [`PEOPLE_MAX`] members and open invitations.
    TooMany,
    /// The guest is a member already: of this organisation or, if an operator asks, of any.
    AlreadyMember,
}

/// An open invitation, as its guest sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The organisation that the guest will join.
    pub organisation_id: OrganisationId,
    /// The guest's address.
    pub email: EmailAddress,
    /// The name of the organisation that the guest will join.
    pub organisation_name: String,
}

/// An open invitation, as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInvitation {
    /// The SHA-256 of the secret in the link: it identifies the invitation, and nobody can join with it.
    pub token: TokenDigest,
    /// The guest's address.
    pub email: String,
    /// What the guest may do as a member.
    pub role: Role,
    /// The name of the member who made it; none: an operator did.
    pub invited_by: Option<String>,
    /// When the link stops working.
    pub expires_at: OffsetDateTime,
}

/// What became of an attempt to withdraw an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawOutcome {
    /// The link no longer works.
    Withdrawn,
    /// The organisation has no such invitation, or it was accepted.
    NoSuchInvitation,
    /// The acting member is no administrator.
    NotAdministrator,
}

/// A guest about to become a member. Organisation and address come from the invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// A UUID version 7: sorts by when the member joined.
    pub id: MemberId,
    /// The name that other members will see.
    pub name: Name,
    /// The hash of the password that the guest chose.
    pub password: PasswordHash,
}

/// What became of an attempt to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// The guest is a member, and signed in.
    Joined,
    /// The invitation is unknown, has expired or was used.
    NoInvitation,
    /// A member already signs in with this email address.
    EmailTaken,
}

/// What became of an attempt to remove a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// The member is gone, and signed out everywhere.
    Removed,
    /// The member is the last administrator: nobody could look after members without them.
    LastAdministrator,
    /// The organisation has no such member.
    NoSuchMember,
    /// The acting member is no administrator, or was removed in the meantime.
    NotAdministrator,
}

/// What became of an attempt to change a member's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleOutcome {
    /// The member has that role.
    Changed,
    /// The member is the last administrator: nobody could look after members without them.
    LastAdministrator,
    /// The organisation has no such member.
    NoSuchMember,
    /// The acting member is no administrator, or was removed in the meantime.
    NotAdministrator,
}

/// What became of an attempt to decide whether every member must use two-step sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequireOutcome {
    /// It is so.
    Decided,
    /// The acting member does not use it themselves.
    OwnSecondFactorMissing,
    /// The acting member is no administrator, or was removed in the meantime.
    NotAdministrator,
}

/// What is needed to sign in as a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The member who would be signed in.
    pub member: Member,
    /// The hash of the member's password.
    pub password: PasswordHash,
    /// Whether a code is needed as well as the password.
    pub has_second_factor: bool,
    /// Whether the member has signed in from the network that was asked about.
    pub is_familiar: bool,
}

/// A second factor to be turned on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecondFactor {
    /// The secret that the member's app was shown.
    pub secret: TotpSecret,
    /// The half minute of the code by which the member proved that the app has the secret: that code is used up.
    pub used_step: i64,
    /// The digests of the recovery codes.
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

/// A reset link to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPasswordReset {
    /// The SHA-256 of the secret in the reset link.
    pub token: TokenDigest,
    /// When the link stops working.
    pub expires_at: OffsetDateTime,
}

/// What became of an attempt to change a member's email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmailOutcome {
    /// The member signs in with it.
    Changed,
    /// Another member already signs in with it.
    Taken,
}

/// What became of an attempt to make a reset link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueOutcome {
    /// The link works.
    Issued,
    /// There is no such member.
    NoSuchMember,
    /// The acting member is no administrator, or was removed in the meantime.
    NotAdministrator,
}

/// What became of an attempt to use a reset link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordResetOutcome {
    /// The password was changed by it.
    Done,
    /// The link has expired, or was used or replaced.
    Gone,
}

/// A member as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// A UUID version 7: sorts by when the member joined.
    pub id: MemberId,
    /// The name that other members see.
    pub name: String,
    /// The address that the member signs in with.
    pub email: String,
    /// When the member accepted the invitation.
    pub joined_at: OffsetDateTime,
    /// What the member may do.
    pub role: Role,
    /// Whether the member signs in with a code as well as the password.
    pub has_second_factor: bool,
}

/// Members and invitations. Every change records its deed in the same transaction. What only administrators may do is
/// refused unless the deed is an operator's, or of a member who is one at that moment.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait MemberStore: Send + Sync {
    /// Stores an invitation, as an administrator, unless the guest is a member of the organisation already. That somebody is
    /// a member of another one is told to operators alone. The invitation ends when the member who made it is removed, or no
    /// longer an administrator.
    async fn invite(&self, invitation: &NewInvitation, deed: &Deed) -> Result<InviteOutcome, StoreError>;

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
        deed: &Deed,
    ) -> Result<WithdrawOutcome, StoreError>;

    /// Uses up an invitation, makes its guest a member and starts its first session. Other open invitations of the
    /// organisation to the guest's address end.
    async fn join(
        &self,
        token: &TokenDigest,
        member: &NewMember,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<JoinOutcome, StoreError>;

    /// The member who signs in with this address, and whether they have signed in from this network before. One query,
    /// whether or not there is such a member: the time it takes must not reveal that.
    async fn credentials(&self, email: &EmailAddress, from: Option<Network>)
    -> Result<Option<Credentials>, StoreError>;

    /// The organisation's members, the oldest first.
    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError>;

    /// Removes a member of the organisation, as an administrator. Their sessions end at once, and so does every invitation
    /// by which they could come back: those they made, and those to their address. The last administrator stays.
    async fn remove(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        deed: &Deed,
    ) -> Result<RemoveOutcome, StoreError>;

    /// Gives a member of the organisation another role, as an administrator. The last administrator stays one. What a
    /// former administrator made for others ends: open invitations and reset links.
    async fn change_role(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        role: Role,
        deed: &Deed,
    ) -> Result<RoleOutcome, StoreError>;

    /// Decides, as an administrator, whether every member of the organisation must use two-step sign-in. Only who uses it
    /// can require it of others.
    async fn require_second_factor(
        &self,
        organisation: OrganisationId,
        is_required: bool,
        deed: &Deed,
    ) -> Result<RequireOutcome, StoreError>;

    /// Gives the member another name.
    async fn change_name(&self, member: &Member, name: &Name, deed: &Deed) -> Result<(), StoreError>;

    /// Gives the member another email address, unless another member has it. Ends every session of the member but this one,
    /// every waiting sign-in and an open reset link.
    async fn change_email(
        &self,
        member: &Member,
        email: &EmailAddress,
        kept: &TokenDigest,
        deed: &Deed,
    ) -> Result<EmailOutcome, StoreError>;

    /// Gives the member another password. Ends every session of the member but this one, every waiting sign-in and an
    /// open reset link.
    async fn change_password(
        &self,
        member: &Member,
        password: &PasswordHash,
        kept: &TokenDigest,
        deed: &Deed,
    ) -> Result<(), StoreError>;

    /// Stores a reset link, as an administrator, in place of the member's earlier one. It ends when the member is removed,
    /// or whoever made it is removed or no longer an administrator.
    async fn issue_password_reset(
        &self,
        member: &Member,
        reset: &NewPasswordReset,
        deed: &Deed,
    ) -> Result<IssueOutcome, StoreError>;

    /// The member whose reset link this is, if it is still open at that moment.
    async fn password_reset(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Member>, StoreError>;

    /// Uses up the member's reset link and gives them another password. Ends every session of the member and every
    /// waiting sign-in; the second factor stays as it is.
    async fn reset_password(
        &self,
        token: &TokenDigest,
        member: &Member,
        password: &PasswordHash,
        deed: &Deed,
    ) -> Result<PasswordResetOutcome, StoreError>;

    /// How many recovery codes the member has left. None: the second factor is off.
    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError>;

    /// Turns on the member's second factor, unless one is on already.
    async fn turn_on(
        &self,
        member: &Member,
        factor: &NewSecondFactor,
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError>;

    /// Turns off the member's second factor, if it is on.
    async fn turn_off(&self, member: &Member, deed: &Deed) -> Result<SecondFactorOutcome, StoreError>;

    /// Replaces the member's recovery codes with these, if the second factor is on.
    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError>;
}
