//! Patients: what was sent, the rules it keeps, and how it comes into the register.

#[cfg(feature = "access")]
pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod fault;
pub(crate) mod field;
pub(crate) mod field_fault;
#[cfg(feature = "json")]
pub(crate) mod json;
#[cfg(feature = "json")]
pub(crate) mod json_error;
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
pub(crate) mod unknown_field;

pub use draft::PatientDraft;
pub use fault::FaultKind;
pub use field::{ByField, Definition, Field};
pub use field_fault::{FieldFault, FieldFaults};
pub use patient::{NewPatient, Patient};
pub use rules::{Rule, Today};
pub use sent::Sent;
pub use unknown_field::UnknownField;

#[cfg(feature = "json")]
pub use json::JsonPatient;
#[cfg(feature = "json")]
pub use json_error::{JsonCause, JsonError};

#[cfg(feature = "access")]
pub use {
    create::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient, validate_patient},
    register::{PatientRegister, Registered, Registration, SafeRetry},
    rights::{Erasable, EraseOutcome, Lookup, PatientRights, Presence, StoredRecord},
    safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest},
    stored::StoredPatient,
};

#[cfg(feature = "mocks")]
pub use register::MockPatientRegister;
