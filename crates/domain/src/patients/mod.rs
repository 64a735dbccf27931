//! Patients: what was sent, the rules it keeps, and how it comes into the register.

pub(crate) mod create;
pub(crate) mod draft;
pub(crate) mod field;
pub(crate) mod patient;
pub(crate) mod register;
pub(crate) mod rules;
pub(crate) mod safe_retry;
pub(crate) mod sent;

pub use create::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient, validate_patient};
pub use draft::{FieldFault, FieldFaults, PatientDraft};
pub use field::{ByField, Definition, Field, Rule};
pub use patient::{NewPatient, Patient};
pub use register::{PatientRegister, Registered, Registration, SafeRetry};
pub use rules::Today;
pub use safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest};
pub use sent::Sent;

#[cfg(feature = "mocks")]
pub use register::MockPatientRegister;
