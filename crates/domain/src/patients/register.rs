//! The port to the register of patients: one door, through which patients go in and nothing comes out.

use std::sync::Arc;

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::ids::{OrganisationId, PatientId};
use crate::keys::check::{Caller, CheckedFor, KeyCheck, KeyRefusal};
use crate::patients::patient::NewPatient;
use crate::patients::safe_retry::{IdempotencyKey, RequestDigest};
use crate::store_error::StoreError;

/// Everything the register needs to create one patient. The id is part of it: a registration whose outcome is unknown
/// is registered again, and still creates one patient.
#[derive(Debug)]
pub struct Registration {
    /// The caller, whose key decides the organisation.
    pub caller: Caller,
    /// The patient's id to be.
    pub id: PatientId,
    /// The valid patient.
    pub patient: NewPatient,
    /// The moment of creation, in milliseconds.
    pub created_at: OffsetDateTime,
    /// Present if the caller asked for safe retry.
    pub retry: Option<SafeRetry>,
}

/// Key and digest by which a request is recognised when it comes again.
#[derive(Debug)]
pub struct SafeRetry {
    /// The caller's name for this creation.
    pub key: IdempotencyKey,
    /// Digest of the patient's details, under the id of the registration.
    pub digest: RequestDigest,
}

/// Outcome of a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum Registered {
    /// The patient was created in this organisation.
    Created(OrganisationId),
    /// The organisation has created a patient under this idempotency key before.
    Before {
        /// The organisation of the calling key.
        organisation_id: OrganisationId,
        /// The id of the patient that was created.
        id: PatientId,
        /// Time at which it was created.
        created_at: OffsetDateTime,
        /// Digest of the stored patient's details, under its own id.
        digest: [u8; 32],
    },
    /// The patient that the organisation created under this idempotency key was erased.
    Erased,
    /// The key may not create anything.
    Refused(KeyRefusal),
}

/// The register of patients.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PatientRegister: Send + Sync {
    /// Creates the patient if the caller's key is active at that moment, decided in one step with the creation itself.
    /// When this returns [`Registered::Created`], the patient survives any crash.
    async fn create(&self, registration: Arc<Registration>) -> Result<Registered, StoreError>;

    /// Checks if the caller's key is active at this moment, for a request that creates nothing. Never answered from
    /// memory: a revoked key is refused at once.
    async fn check_key(&self, caller: &Caller, checked_for: CheckedFor) -> Result<KeyCheck, StoreError>;
}
