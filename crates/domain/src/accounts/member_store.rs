//! The port to the members of an organisation.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::accounts::member::{Account, Member};
use crate::accounts::password::PasswordHash;
use crate::accounts::role::Role;
use crate::accounts::subject::Subject;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::network::Network;
use crate::store_error::StoreError;

/// Reason why what only administrators do was not done.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AdministerError {
    /// The acting member is no administrator, or was removed in the meantime.
    #[error("only administrators can do this")]
    NotAdministrator,
    /// The organisation has no such member.
    #[error("there is no such member")]
    NoSuchMember,
    /// The organisation has no such invitation, or it was accepted.
    #[error("there is no such open invitation")]
    NoSuchInvitation,
    /// The member is the last administrator: nobody could look after members without them.
    #[error("the member is the last administrator")]
    LastAdministrator,
    /// The acting member does not use the two-step sign-in that others would have to use.
    #[error("the administrator does not use two-step sign-in")]
    OwnSecondFactorMissing,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Credentials needed to sign in as a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The account that would be signed in to.
    pub account: Account,
    /// The hash of the member's password. None: the member joined by single sign-on, and has none.
    pub password: Option<PasswordHash>,
    /// Condition that the address was proved to be the member's.
    pub is_address_proved: bool,
    /// True if the member has signed in from the network that was asked about.
    pub is_familiar: bool,
}

/// An account to which single sign-on may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAccount {
    /// The account.
    pub account: Account,
    /// Whom at the provider it is linked to.
    pub link: ProviderLink,
}

/// Whom at the provider of single sign-on an account is linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderLink {
    /// The person who was asked about.
    ThisPerson,
    /// Another person, who had the address before or has it at another provider.
    AnotherPerson,
    /// Nobody yet.
    Nobody,
}

/// A member as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The id of the member's account.
    pub id: MemberId,
    /// The name that other members see.
    pub name: String,
    /// The address that the member signs in with.
    pub email: String,
    /// Time at which the member accepted the invitation.
    pub joined_at: OffsetDateTime,
    /// Role of the member.
    pub role: Role,
    /// True if the member signs in with a code as well as the password.
    pub has_second_factor: bool,
    /// True if the account is linked to a person at the provider of single sign-on.
    pub is_linked_to_provider: bool,
}

/// Members. Every change is recorded in the same transaction. What only administrators may do is refused
/// unless an operator does it, or a member who is an administrator at that moment.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait MemberStore: Send + Sync {
    /// The accounts with this address, and whether they were signed in to from this network before. One query, however
    /// many there are: the time it takes must not reveal that. No organisation has two of them.
    async fn credentials(&self, email: &EmailAddress, from: Option<Network>) -> Result<Vec<Credentials>, StoreError>;

    /// The accounts that are linked to this person at the provider, and those with this address if it was proved. An
    /// address that nobody has proved may be anybody's, and is not found.
    async fn provider_accounts(
        &self,
        subject: &Subject,
        email: &EmailAddress,
    ) -> Result<Vec<ProviderAccount>, StoreError>;

    /// The organisation's member with this address.
    async fn member(&self, organisation: OrganisationId, email: &EmailAddress) -> Result<Option<Member>, StoreError>;

    /// The organisation's members, the oldest first.
    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError>;

    /// Removes a member of the organisation, as an administrator. Their sessions in it end at once, and so does every
    /// invitation of it by which they could come back: those they made, and those to their address. Their account is
    /// deleted unless they belong to another organisation. The last administrator stays.
    async fn remove(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

    /// Gives a member of the organisation another role, as an administrator. The last administrator stays one. What a
    /// former administrator made for others ends: open invitations and reset links.
    async fn change_role(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        role: Role,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

    /// Ends a member's sessions in the organisation, as an administrator, and sign-ins that wait for their code. Of a
    /// member of several organisations, sessions that stand in another one go on there, because no organisation
    /// controls the account: they cannot switch to this one without a new sign-in.
    async fn end_sessions(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

    /// Decides, as an administrator, whether every member of the organisation must use two-step sign-in. Only who uses
    /// it can require it of others.
    async fn require_second_factor(
        &self,
        organisation: OrganisationId,
        is_required: bool,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;
}
