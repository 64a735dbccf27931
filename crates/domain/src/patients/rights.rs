//! The port to what people may ask of a register that holds their details: to see them, and to have them erased. For
//! the owner of the database; the service cannot do it.

use std::fmt;

use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::idempotency_digest::IdempotencyDigest;
use crate::ids::{KeyId, OrganisationId, PatientId};
use crate::patients::stored::StoredPatient;
use crate::store_error::StoreError;

/// Everything that is stored about a patient. Prints none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The details.
    pub patient: StoredPatient,
    /// The caller's name for the creation.
    pub idempotency_key: Option<String>,
    /// The name of the API key by which the patient came.
    pub key_name: Option<String>,
}

impl fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredRecord({}, …)", self.patient.id)
    }
}

/// Result of looking for a patient's id.
#[derive(Debug)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum Lookup {
    /// A patient.
    Patient(Box<StoredRecord>),
    /// Only that the patient was erased.
    Erased {
        /// Time of the event.
        at: OffsetDateTime,
    },
    /// Nothing.
    Nothing,
}

/// State of a patient's id, without the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum Presence {
    /// A patient is stored under it.
    Stored {
        /// Time at which it was created.
        created_at: OffsetDateTime,
        /// API key that created it, if that is known.
        key_id: Option<KeyId>,
    },
    /// The patient was erased.
    Erased {
        /// Time of the event.
        at: OffsetDateTime,
    },
    /// Nothing.
    Nothing,
}

/// Outcome of erasing a patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum EraseOutcome {
    /// The patient is gone.
    Erased {
        /// Since when, by the database's clock.
        at: OffsetDateTime,
    },
    /// The patient was erased before; nothing was changed or recorded.
    AlreadyErased {
        /// Time of the event.
        at: OffsetDateTime,
    },
}

/// A patient to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasable {
    /// One that is in the register.
    Stored(PatientId),
    /// One that a restore of the register may have lost after the first erasure. Readers see the erasure even then.
    PerhapsLost(PatientId, Option<IdempotencyDigest>),
}

/// Shows what is stored about a patient, and erases it.
pub trait PatientRights {
    /// Returns what is held under this id. If it is a patient, an entry that names only its id is recorded before this
    /// returns.
    fn show(
        &mut self,
        organisation: OrganisationId,
        patient: PatientId,
        audit: &AuditContext,
    ) -> Result<Lookup, StoreError>;

    /// Returns whether a patient is stored under this id. Nothing is recorded.
    fn find(&mut self, organisation: OrganisationId, patient: PatientId) -> Result<Presence, StoreError>;

    /// Erases the patient for good, and records an entry that names only its id. Once this has returned, no
    /// repetition of the creation with its idempotency key brings the patient back. None: there is
    /// no such patient.
    fn erase(
        &mut self,
        organisation: OrganisationId,
        patient: Erasable,
        audit: &AuditContext,
    ) -> Result<Option<EraseOutcome>, StoreError>;

    /// The patient whose idempotency key has this digest: one who was erased, lost by a restore, and sent again.
    fn sent_again(
        &mut self,
        organisation: OrganisationId,
        digest: &IdempotencyDigest,
    ) -> Result<Option<PatientId>, StoreError>;
}
