//! One mock for each of the dashboard's wide ports.

use intake_domain::{
    Account, AccountStore, AdministerError, AllowedNetworks, AuditContext, AuditEntryId, ChangeEmailError,
    ChangeNameError, ConfirmEmailError, Credentials, EmailAddress, EmailChangeStore, Guest, Invitation,
    InvitationStore, InviteError, IssuePasswordResetError, JoinOutcome, KeyAge, KeyDescriptionStore, KeyId, KeyList,
    KeyPage, KeyPlace, KeyRecord, KeySearch, KeyStateStore, KeyStop, KeyStore, KeyText, LinkDelivery, ManageKeysError,
    Member, MemberId, MemberRecord, MemberStore, Name, Network, NewInvitation, NewKey, NewMemberLink, NewSecondFactor,
    NewSession, OpenInvitation, OpenReset, OrganisationId, PasskeysAtReset, PasswordHash, PasswordResetStore,
    PauseOutcome, ProviderAccount, RequestEmailError, ResetPasswordError, ResumeOutcome, RevokeOutcome, Role,
    RulesStore, SecondFactorError, SecondFactorStore, StoppedKey, StoreError, Subject, TokenDigest, TotpSecret, Zone,
};
use mockall::mock;
use time::OffsetDateTime;

mock! {
    pub Keys {}

    #[async_trait::async_trait]
    impl KeyStore for Keys {
        async fn place(&self, organisation: OrganisationId) -> Result<KeyPlace, StoreError>;
        async fn add_key(&self, key: &NewKey, audit: &AuditContext) -> Result<(), ManageKeysError>;
    }

    #[async_trait::async_trait]
    impl KeyList for Keys {
        async fn keys(&self, organisation: OrganisationId) -> Result<Option<Vec<KeyRecord>>, StoreError>;
        async fn search(
            &self,
            organisation: OrganisationId,
            search: &KeySearch,
            now: OffsetDateTime,
        ) -> Result<KeyPage, StoreError>;
        async fn key(&self, organisation: OrganisationId, key: KeyId) -> Result<Option<KeyRecord>, StoreError>;
        async fn made_by(&self, organisation: OrganisationId, member: MemberId) -> Result<Vec<KeyId>, StoreError>;
    }

    #[async_trait::async_trait]
    impl KeyDescriptionStore for Keys {
        async fn describe(
            &self,
            organisation: OrganisationId,
            key: KeyId,
            text: KeyText,
            audit: &AuditContext,
        ) -> Result<bool, ManageKeysError>;
        async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<bool, ManageKeysError>;
    }

    #[async_trait::async_trait]
    impl KeyStateStore for Keys {
        async fn pause(
            &self,
            key: KeyId,
            within: Option<OrganisationId>,
            audit: &AuditContext,
        ) -> Result<PauseOutcome, ManageKeysError>;
        async fn resume(
            &self,
            key: KeyId,
            within: Option<OrganisationId>,
            audit: &AuditContext,
        ) -> Result<ResumeOutcome, ManageKeysError>;
        async fn stop_all(
            &self,
            organisation: OrganisationId,
            audit: &AuditContext,
        ) -> Result<Vec<StoppedKey>, ManageKeysError>;
        async fn pause_together(
            &self,
            organisation: OrganisationId,
            keys: &[KeyId],
            audit: &AuditContext,
        ) -> Result<Vec<StoppedKey>, ManageKeysError>;
        async fn resume_stopped(
            &self,
            organisation: OrganisationId,
            stop: AuditEntryId,
            audit: &AuditContext,
        ) -> Result<Vec<StoppedKey>, ManageKeysError>;
        async fn stops(&self, organisation: OrganisationId) -> Result<Vec<KeyStop>, StoreError>;
        async fn revoke(
            &self,
            key: KeyId,
            within: Option<OrganisationId>,
            audit: &AuditContext,
        ) -> Result<RevokeOutcome, ManageKeysError>;
        async fn set_allowed_networks(
            &self,
            key: KeyId,
            within: Option<OrganisationId>,
            networks: &AllowedNetworks,
            audit: &AuditContext,
        ) -> Result<bool, ManageKeysError>;
    }
}

mock! {
    pub Members {}

    #[async_trait::async_trait]
    impl MemberStore for Members {
        async fn credentials(&self, email: &EmailAddress, from: Option<Network>) -> Result<Vec<Credentials>, StoreError>;
        async fn provider_accounts(
            &self,
            subject: &Subject,
            email: &EmailAddress,
        ) -> Result<Vec<ProviderAccount>, StoreError>;
        async fn member(&self, organisation: OrganisationId, email: &EmailAddress) -> Result<Option<Member>, StoreError>;
        async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError>;
        async fn remove(
            &self,
            organisation: OrganisationId,
            member: MemberId,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn change_role(
            &self,
            organisation: OrganisationId,
            member: MemberId,
            role: Role,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn end_sessions(
            &self,
            organisation: OrganisationId,
            member: MemberId,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn require_second_factor(
            &self,
            organisation: OrganisationId,
            is_required: bool,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
    }

    #[async_trait::async_trait]
    impl InvitationStore for Members {
        async fn invite(&self, invitation: &NewInvitation, audit: &AuditContext) -> Result<(), InviteError>;
        async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError>;
        async fn open_invitations(
            &self,
            organisation: OrganisationId,
            now: OffsetDateTime,
        ) -> Result<Vec<OpenInvitation>, StoreError>;
        async fn withdraw(
            &self,
            organisation: OrganisationId,
            token: &TokenDigest,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn join(
            &self,
            token: &TokenDigest,
            guest: &Guest,
            session: &NewSession,
            audit: &AuditContext,
        ) -> Result<JoinOutcome, StoreError>;
    }

    #[async_trait::async_trait]
    impl AccountStore for Members {
        async fn change_name(&self, member: &Member, name: &Name, audit: &AuditContext) -> Result<(), ChangeNameError>;
        async fn change_email(
            &self,
            member: &Member,
            email: &EmailAddress,
            seen: &PasswordHash,
            new: &PasswordHash,
            audit: &AuditContext,
        ) -> Result<(), ChangeEmailError>;
        async fn link_to_provider(
            &self,
            member: &Member,
            subject: &Subject,
            audit: &AuditContext,
        ) -> Result<(), StoreError>;
        async fn confirm_address(&self, member: &Member, audit: &AuditContext) -> Result<(), StoreError>;
        async fn change_password(
            &self,
            member: &Member,
            password: &PasswordHash,
            audit: &AuditContext,
        ) -> Result<(), StoreError>;
    }

    #[async_trait::async_trait]
    impl EmailChangeStore for Members {
        async fn request_email_change(
            &self,
            member: &Member,
            email: &EmailAddress,
            link: &NewMemberLink,
            audit: &AuditContext,
        ) -> Result<(), RequestEmailError>;
        async fn email_change(
            &self,
            token: &TokenDigest,
            now: OffsetDateTime,
        ) -> Result<Option<(Account, EmailAddress)>, StoreError>;
        async fn confirm_email_change(
            &self,
            token: &TokenDigest,
            account: &Account,
            email: &EmailAddress,
            audit: &AuditContext,
        ) -> Result<(), ConfirmEmailError>;
    }

    #[async_trait::async_trait]
    impl PasswordResetStore for Members {
        async fn issue_password_reset(
            &self,
            member: &Member,
            reset: &NewMemberLink,
            delivery: LinkDelivery,
            audit: &AuditContext,
        ) -> Result<(), IssuePasswordResetError>;
        async fn request_password_reset(
            &self,
            member: MemberId,
            reset: &NewMemberLink,
            audit: &AuditContext,
        ) -> Result<Option<Account>, StoreError>;
        async fn password_reset(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<OpenReset>, StoreError>;
        async fn reset_password(
            &self,
            token: &TokenDigest,
            account: &Account,
            password: &PasswordHash,
            passkeys: PasskeysAtReset,
            audit: &AuditContext,
        ) -> Result<(), ResetPasswordError>;
    }

    #[async_trait::async_trait]
    impl SecondFactorStore for Members {
        async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError>;
        async fn offer(
            &self,
            member: MemberId,
            session: &TokenDigest,
            secret: &TotpSecret,
        ) -> Result<Option<TotpSecret>, StoreError>;
        async fn turn_on(
            &self,
            member: &Member,
            factor: &NewSecondFactor,
            audit: &AuditContext,
        ) -> Result<(), SecondFactorError>;
        async fn turn_off(&self, member: &Member, audit: &AuditContext) -> Result<(), SecondFactorError>;
        async fn replace_recovery_codes(
            &self,
            member: &Member,
            codes: &[TokenDigest],
            audit: &AuditContext,
        ) -> Result<(), SecondFactorError>;
    }

    #[async_trait::async_trait]
    impl RulesStore for Members {
        async fn limit_key_age(
            &self,
            organisation: OrganisationId,
            age: Option<KeyAge>,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn change_zone(
            &self,
            organisation: OrganisationId,
            zone: Zone,
            audit: &AuditContext,
        ) -> Result<(), AdministerError>;
        async fn zone_of(&self, person: MemberId) -> Result<Zone, StoreError>;
    }
}
