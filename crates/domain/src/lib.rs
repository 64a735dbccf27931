#![doc = include_str!("../README.md")]
#![doc = include_str!("../README.md")]

mod api_key;
mod create_patient;
mod ids;
mod key_store;
mod manage_keys;
mod name;
mod patient;
mod patient_register;
mod rules;
mod safe_retry;
mod store_error;
mod timestamp;

pub use api_key::{
    ApiKey, Environment, KeyDigest, KeyFormat, KeyPrefix, KeyPrefixError, MalformedKey, UnknownEnvironment,
};
pub use create_patient::{CreatePatientError, CreatedPatient, PatientRequest, authenticate, create_patient};
pub use ids::{KeyId, OrganisationId, PatientId};
pub use key_store::{KeyHolder, KeyRecord, KeyRefusal, KeyStanding, KeyStore, NewKey, Organisation};
pub use manage_keys::{
    IssuedKey, KeyRequest, ManageKeysError, create_key, create_organisation, list_keys, list_organisations, revoke_key,
};
pub use name::{Name, NameError};
pub use patient::{FieldFault, NewPatient, Patient, PatientDraft, Sent};
pub use patient_register::{PatientRegister, Registered, Registration, SafeRetry};
pub use safe_retry::{IdempotencyKey, IdempotencyKeyError, RequestDigest};
pub use store_error::{Source, StoreError};
pub use timestamp::timestamp;

#[cfg(feature = "mocks")]
pub use key_store::MockKeyStore;
#[cfg(feature = "mocks")]
pub use patient_register::MockPatientRegister;
