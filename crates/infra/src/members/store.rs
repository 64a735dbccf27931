//! Members and invitations, over Diesel.

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{
    Credentials, Deed, EmailAddress, EmailOutcome, Invitation, InviteOutcome, IssueOutcome, JoinOutcome, Member,
    MemberId, MemberRecord, MemberStore, Name, Network, NewInvitation, NewMember, NewPasswordReset, NewSecondFactor,
    NewSession, OpenInvitation, OrganisationId, PasswordHash, PasswordResetOutcome, RemoveOutcome, RequireOutcome,
    Role, RoleOutcome, SecondFactorOutcome, StoreError, TokenDigest, WithdrawOutcome,
};
use time::OffsetDateTime;

use crate::database::pool::Database;
use crate::members::invitations::OpenRow;
use crate::members::row::{ListedMember, MemberRow, has_second_factor, unreadable};
use crate::members::{account, administer, invitations, password_resets, second_factor};
use crate::schema::{familiar_networks, members};

/// The port [`MemberStore`] over PostgreSQL.
pub struct PostgresMemberStore(Database);

impl PostgresMemberStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl MemberStore for PostgresMemberStore {
    async fn invite(&self, invitation: &NewInvitation, deed: &Deed) -> Result<InviteOutcome, StoreError> {
        let (invitation, deed) = (invitation.clone(), deed.clone());
        self.0.run(move |connection| invitations::invite(connection, &invitation, &deed)).await
    }

    async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError> {
        let token = *token;
        let found = self.0.run(move |connection| invitations::open(connection, &token, now));
        let invitation = found.await?.map(|(email, organisation, organisation_name)| {
            let email = email.parse().map_err(unreadable)?;
            Ok(Invitation { organisation_id: organisation.into(), email, organisation_name })
        });
        invitation.transpose()
    }

    async fn open_invitations(
        &self,
        organisation: OrganisationId,
        now: OffsetDateTime,
    ) -> Result<Vec<OpenInvitation>, StoreError> {
        let organisation = *organisation.as_uuid();
        let found = self.0.run(move |connection| invitations::all_open(connection, organisation, now)).await?;
        let invitation = |(token, email, role, expires_at, invited_by): OpenRow| {
            let token = TokenDigest::from_bytes(&token)?;
            let role = role.parse().map_err(unreadable);
            Some(role.map(|role| OpenInvitation { token, email, role, invited_by, expires_at }))
        };
        found.into_iter().filter_map(invitation).collect()
    }

    async fn withdraw(
        &self,
        organisation: OrganisationId,
        token: &TokenDigest,
        deed: &Deed,
    ) -> Result<WithdrawOutcome, StoreError> {
        let (organisation, token, deed) = (*organisation.as_uuid(), *token, deed.clone());
        self.0.run(move |connection| invitations::withdraw(connection, organisation, &token, &deed)).await
    }

    async fn join(
        &self,
        token: &TokenDigest,
        member: &NewMember,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<JoinOutcome, StoreError> {
        let (token, member, session, deed) = (*token, member.clone(), session.clone(), deed.clone());
        self.0.run(move |connection| invitations::join(connection, &token, &member, &session, &deed)).await
    }

    async fn credentials(
        &self,
        email: &EmailAddress,
        from: Option<Network>,
    ) -> Result<Option<Credentials>, StoreError> {
        let (folded, network) = (email.folded(), from.map(|network| network.to_string()));
        let found = self.0.run(move |connection| {
            let member = members::table.filter(members::email_folded.eq(&folded));
            let familiar = familiar_networks::table
                .filter(familiar_networks::member_id.eq(members::id))
                .filter(familiar_networks::network.nullable().eq(&network));
            let columns =
                (MemberRow::as_select(), members::password_hash, has_second_factor(), diesel::dsl::exists(familiar));
            member.select(columns).first(connection).optional()
        });
        let found: Option<(MemberRow, String, bool, bool)> = found.await?;
        let credentials = found.map(|(member, hash, has_second_factor, is_familiar)| {
            let (member, password) = (member.try_into()?, PasswordHash::new(hash));
            Ok(Credentials { member, password, has_second_factor, is_familiar })
        });
        credentials.transpose()
    }

    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError> {
        let id = *organisation.as_uuid();
        let found = self.0.run(move |connection| {
            let oldest_first =
                members::table.filter(members::organisation_id.eq(id)).order((members::joined_at, members::id));
            oldest_first.select(ListedMember::as_select()).load(connection)
        });
        found.await?.into_iter().map(MemberRecord::try_from).collect()
    }

    async fn remove(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        deed: &Deed,
    ) -> Result<RemoveOutcome, StoreError> {
        let (organisation, member, deed) = (*organisation.as_uuid(), *member.as_uuid(), deed.clone());
        self.0.run(move |connection| administer::remove(connection, organisation, member, &deed)).await
    }

    async fn change_role(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        role: Role,
        deed: &Deed,
    ) -> Result<RoleOutcome, StoreError> {
        let (organisation, member, deed) = (*organisation.as_uuid(), *member.as_uuid(), deed.clone());
        self.0.run(move |connection| administer::change_role(connection, organisation, member, role, &deed)).await
    }

    async fn require_second_factor(
        &self,
        organisation: OrganisationId,
        is_required: bool,
        deed: &Deed,
    ) -> Result<RequireOutcome, StoreError> {
        let (organisation, deed) = (*organisation.as_uuid(), deed.clone());
        let decided = self
            .0
            .run(move |connection| administer::require_second_factor(connection, organisation, is_required, &deed));
        decided.await
    }

    async fn change_name(&self, member: &Member, name: &Name, deed: &Deed) -> Result<(), StoreError> {
        let (member, name, deed) = (member.clone(), name.clone(), deed.clone());
        self.0.run(move |connection| account::change_name(connection, &member, &name, &deed)).await
    }

    async fn change_email(
        &self,
        member: &Member,
        email: &EmailAddress,
        kept: &TokenDigest,
        deed: &Deed,
    ) -> Result<EmailOutcome, StoreError> {
        let (member, email, kept, deed) = (member.clone(), email.clone(), *kept, deed.clone());
        self.0.run(move |connection| account::change_email(connection, &member, &email, &kept, &deed)).await
    }

    async fn change_password(
        &self,
        member: &Member,
        password: &PasswordHash,
        kept: &TokenDigest,
        deed: &Deed,
    ) -> Result<(), StoreError> {
        let (member, password, kept, deed) = (member.clone(), password.clone(), *kept, deed.clone());
        self.0.run(move |connection| account::change_password(connection, &member, &password, &kept, &deed)).await
    }

    async fn issue_password_reset(
        &self,
        member: &Member,
        reset: &NewPasswordReset,
        deed: &Deed,
    ) -> Result<IssueOutcome, StoreError> {
        let (member, reset, deed) = (member.clone(), reset.clone(), deed.clone());
        self.0.run(move |connection| password_resets::issue(connection, &member, &reset, &deed)).await
    }

    async fn password_reset(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Member>, StoreError> {
        let token = *token;
        let found = self.0.run(move |connection| password_resets::open(connection, &token, now)).await?;
        found.map(Member::try_from).transpose()
    }

    async fn reset_password(
        &self,
        token: &TokenDigest,
        member: &Member,
        password: &PasswordHash,
        deed: &Deed,
    ) -> Result<PasswordResetOutcome, StoreError> {
        let (token, member, password, deed) = (*token, member.clone(), password.clone(), deed.clone());
        self.0.run(move |connection| password_resets::reset(connection, &token, &member, &password, &deed)).await
    }

    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError> {
        let id = *member.as_uuid();
        self.0.run(move |connection| second_factor::recovery_codes_left(connection, id)).await
    }

    async fn turn_on(
        &self,
        member: &Member,
        factor: &NewSecondFactor,
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError> {
        let (member, factor, deed) = (member.clone(), factor.clone(), deed.clone());
        self.0.run(move |connection| second_factor::turn_on(connection, &member, &factor, &deed)).await
    }

    async fn turn_off(&self, member: &Member, deed: &Deed) -> Result<SecondFactorOutcome, StoreError> {
        let (member, deed) = (member.clone(), deed.clone());
        self.0.run(move |connection| second_factor::turn_off(connection, &member, &deed)).await
    }

    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        deed: &Deed,
    ) -> Result<SecondFactorOutcome, StoreError> {
        let (member, codes, deed) = (member.clone(), codes.to_vec(), deed.clone());
        self.0.run(move |connection| second_factor::replace_recovery_codes(connection, &member, &codes, &deed)).await
    }
}
