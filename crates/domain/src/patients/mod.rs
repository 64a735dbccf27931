//! Patients: what was sent, the rules it keeps, and how it comes into the register.

pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod patient;
pub(crate) mod register;
pub(crate) mod rules;
pub(crate) mod safe_retry;

pub use create::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient};
pub use draft::{FieldFault, PatientDraft, Sent};
pub use patient::{NewPatient, Patient};
pub use register::{PatientRegister, Registered, Registration, SafeRetry};
pub use safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest};

#[cfg(feature = "mocks")]
pub use register::MockPatientRegister;
