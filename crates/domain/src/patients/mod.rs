//! Patients: what was sent, the rules it keeps, and how it comes into the register.

#[cfg(feature = "access")]
pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod fault;
pub(crate) mod field;
pub(crate) mod field_fault;
#[cfg(feature = "json")]
pub(crate) mod json;
pub(crate) mod patient;
#[cfg(feature = "access")]
pub(crate) mod register;
#[cfg(feature = "access")]
pub(crate) mod rights;
pub(crate) mod rules;
#[cfg(feature = "access")]
pub(crate) mod safe_retry;
pub(crate) mod sent;
#[cfg(feature = "access")]
pub(crate) mod stored;

pub use draft::PatientDraft;
pub use fault::FaultKind;
pub use field::{ByField, Definition, Field, UnknownField};
pub use field_fault::{FieldFault, FieldFaults};
pub use patient::{NewPatient, Patient};
pub use rules::{Rule, Today};
pub use sent::Sent;

#[cfg(feature = "json")]
pub use json::{JsonError, JsonPatient};

#[cfg(feature = "access")]
pub use {
    create::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient, validate_patient},
    register::{PatientRegister, Registered, Registration, SafeRetry},
    rights::{Erasable, EraseOutcome, Lookup, PatientRights, StoredRecord},
    safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest},
    stored::StoredPatient,
};

#[cfg(feature = "mocks")]
pub use register::MockPatientRegister;
