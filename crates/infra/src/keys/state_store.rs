//! The state of keys, over Diesel.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use intake_domain::{
    AllowedNetworks, AuditContext, AuditEntryId, KeyId, KeyStateStore, KeyStop, ManageKeysError, OrganisationId,
    PauseOutcome, ResumeOutcome, RevokeOutcome, StoppedKey, StoreError,
};
use uuid::Uuid;

use crate::database::connecting::share::Share;
use crate::keys::PostgresKeyStore;
use crate::keys::allowed_networks::set_allowed_networks;
use crate::keys::pause::{pause, resume};
use crate::keys::revoke::revoke;
use crate::keys::stop::{self, stops};

#[async_trait]
impl KeyStateStore for PostgresKeyStore {
    async fn pause(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<PauseOutcome, ManageKeysError> {
        let (id, within, audit) = owned(key, within, audit);
        self.0.run(Share::within(within), move |connection| pause(connection, id, within, &audit)).await?
    }

    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, ManageKeysError> {
        let (id, within, audit) = owned(key, within, audit);
        self.0.run(Share::within(within), move |connection| resume(connection, id, within, &audit)).await?
    }

    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, ManageKeysError> {
        let (id, within, audit) = owned(key, within, audit);
        let revoked = self.0.run(Share::within(within), move |connection| revoke(connection, id, within, &audit));
        revoked.await?.ok_or(ManageKeysError::NoSuchKey(key))
    }

    async fn set_allowed_networks(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        networks: &AllowedNetworks,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError> {
        let ((id, within, audit), networks) = (owned(key, within, audit), networks.clone());
        let set = move |connection: &mut _| set_allowed_networks(connection, id, within, &networks, &audit);
        self.0.run(Share::within(within), set).await?
    }

    async fn stop_all(
        &self,
        organisation: OrganisationId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError> {
        let (id, audit) = (*organisation.as_uuid(), audit.clone());
        self.0.run(Share::Of(id), move |connection| stop::change(connection, id, &audit, true, stop::stop)).await?
    }

    async fn pause_together(
        &self,
        organisation: OrganisationId,
        keys: &[KeyId],
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError> {
        let (id, audit) = (*organisation.as_uuid(), audit.clone());
        let keys: Vec<_> = keys.iter().map(|key| *key.as_uuid()).collect();
        let pause = move |connection: &mut PgConnection, id, audit: &_| stop::pause(connection, id, &keys, audit);
        self.0.run(Share::Of(id), move |connection| stop::change(connection, id, &audit, false, &pause)).await?
    }

    async fn resume_stopped(
        &self,
        organisation: OrganisationId,
        stop: AuditEntryId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError> {
        let (id, stop, audit) = (*organisation.as_uuid(), *stop.as_uuid(), audit.clone());
        let resume = move |connection: &mut PgConnection, id, audit: &_| stop::resume(connection, id, stop, audit);
        let change = move |connection: &mut PgConnection| {
            let is_of_all = !stop::of_all(connection, id, &[stop])?.is_empty();
            stop::change(connection, id, &audit, is_of_all, resume)
        };
        self.0.run(Share::Of(id), change).await?
    }

    async fn stops(&self, organisation: OrganisationId) -> Result<Vec<KeyStop>, StoreError> {
        let id = *organisation.as_uuid();
        self.0.run(Share::Of(id), move |connection| stops(connection, id)).await
    }
}

fn owned(key: KeyId, within: Option<OrganisationId>, audit: &AuditContext) -> (Uuid, Option<Uuid>, AuditContext) {
    (*key.as_uuid(), within.map(|organisation| *organisation.as_uuid()), audit.clone())
}
