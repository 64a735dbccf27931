//! Creating a patient: the use case of integrations.

use std::sync::Arc;

use time::OffsetDateTime;

use crate::ids::{OrganisationId, PatientId};
use crate::keys::check::{Caller, CheckedFor, KeyCheck, KeyHolder, KeyRefusal};
use crate::patients::draft::PatientDraft;
use crate::patients::field_fault::FieldFaults;
use crate::patients::patient::Patient;
use crate::patients::register::{PatientRegister, Registered, Registration, SafeRetry};
use crate::patients::safe_retry::{IdempotencyKey, RequestDigest};
use crate::store_error::StoreError;

/// A request to create a patient, with the id and the moment that the service gives it.
#[derive(Debug)]
pub struct PatientRequest<'a> {
    /// The key, and where the request came from.
    pub caller: Caller,
    /// The patient as the client sent it.
    pub draft: PatientDraft<'a>,
    /// Present if the caller asked for safe retry.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Id of the patient, if it is created.
    pub id: PatientId,
    /// The moment of the request.
    pub now: OffsetDateTime,
}

/// A patient that exists, created by this request or by an earlier one with the same idempotency key.
#[derive(Debug)]
pub struct CreatedPatient {
    registration: Arc<Registration>,
    id: PatientId,
    organisation_id: OrganisationId,
    created_at: OffsetDateTime,
    replayed: bool,
}

impl CreatedPatient {
    /// The patient, with the details that were sent.
    #[must_use]
    pub fn patient(&self) -> Patient<'_> {
        Patient {
            id: self.id,
            organisation_id: self.organisation_id,
            details: &self.registration.patient,
            created_at: self.created_at,
            updated_at: self.created_at,
        }
    }

    /// Returns whether an earlier request created the patient.
    #[must_use]
    pub fn replayed(&self) -> bool {
        self.replayed
    }
}

/// Reason why no patient was created.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum CreatePatientError {
    /// The key is not active. Reported before any fault of the patient, so that a stranger learns nothing.
    #[error("{0}")]
    KeyRefused(KeyRefusal),
    /// The patient breaks rules.
    #[error("{0}")]
    Invalid(FieldFaults),
    /// The idempotency key belongs to a different patient.
    #[error("the idempotency key was used for a different patient")]
    DifferentPatient,
    /// The patient that was created with the idempotency key was erased, and is not created again.
    #[error("the patient of the idempotency key was erased")]
    Erased,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creates a patient in the organisation that owns the key. A valid draft costs one call of the register. So does a
/// faulty one, to check the key: a refused key is reported before faults.
///
/// With the feature `mocks` a test needs no register:
///
/// ```
/// use futures_util::FutureExt;
/// use intake_domain::*;
/// use time::macros::datetime;
///
/// let mut register = MockPatientRegister::new();
/// let refused = KeyCheck::Refused(KeyRefusal::Revoked);
/// register.expect_check_key().return_once(move |_, _| Ok(refused));
///
/// let now = datetime!(2025-12-03 10:30 UTC);
/// let key = KeyFormat::new(&"intake".parse()?, Environment::Development).mint([7; 32]).digest();
/// let caller = Caller { key, address: None };
/// let draft = PatientDraft::default().with(Field::FirstName, "Ada");
/// let request = PatientRequest { caller, draft, idempotency_key: None, id: PatientId::new(now, [7; 10]), now };
/// let error = create_patient(&register, request).now_or_never().expect("mocks answer at once").unwrap_err();
/// assert!(matches!(error, CreatePatientError::KeyRefused(KeyRefusal::Revoked)));
/// # Ok::<(), KeyPrefixError>(())
/// ```
pub async fn create_patient(
    register: &dyn PatientRegister,
    request: PatientRequest<'_>,
) -> Result<CreatedPatient, CreatePatientError> {
    let PatientRequest { caller, draft, idempotency_key, id, now } = request;
    let patient = match draft.validate(now) {
        Ok(patient) => patient,
        Err(faults) => {
            authenticate(register, &caller).await?;
            return Err(CreatePatientError::Invalid(faults));
        }
    };
    let retry = idempotency_key.map(|key| SafeRetry { key, digest: RequestDigest::new(id, &patient) });
    let created_at = in_milliseconds(now);
    let registration = Arc::new(Registration { caller, id, patient, created_at, retry });
    match register.create(Arc::clone(&registration)).await? {
        Registered::Created(organisation_id) => {
            Ok(CreatedPatient { registration, id, organisation_id, created_at, replayed: false })
        }
        Registered::Before { organisation_id, id, created_at, digest } => {
            if RequestDigest::new(id, &registration.patient).as_bytes() != &digest {
                return Err(CreatePatientError::DifferentPatient);
            }
            Ok(CreatedPatient { registration, id, organisation_id, created_at, replayed: true })
        }
        Registered::Erased => Err(CreatePatientError::Erased),
        Registered::Refused(refusal) => Err(CreatePatientError::KeyRefused(refusal)),
    }
}

/// Checks a draft as [`create_patient`] does, and creates nothing.
pub async fn validate_patient(
    register: &dyn PatientRegister,
    caller: &Caller,
    draft: PatientDraft<'_>,
    now: OffsetDateTime,
) -> Result<(), CreatePatientError> {
    let validated = draft.validate(now);
    let checked_for = if validated.is_ok() { CheckedFor::Use } else { CheckedFor::Answer };
    check(register, caller, checked_for).await?;
    validated.map(drop).map_err(CreatePatientError::Invalid)
}

/// Finds the holder of a key, for requests that fail before there is a patient to create.
pub async fn authenticate(register: &dyn PatientRegister, caller: &Caller) -> Result<KeyHolder, CreatePatientError> {
    check(register, caller, CheckedFor::Answer).await
}

async fn check(
    register: &dyn PatientRegister,
    caller: &Caller,
    checked_for: CheckedFor,
) -> Result<KeyHolder, CreatePatientError> {
    match register.check_key(caller, checked_for).await? {
        KeyCheck::Active(holder) => Ok(holder),
        KeyCheck::Refused(refusal) => Err(CreatePatientError::KeyRefused(refusal)),
    }
}

/// Both the answer and the register have milliseconds, so they are equal.
fn in_milliseconds(now: OffsetDateTime) -> OffsetDateTime {
    now.replace_millisecond(now.millisecond()).unwrap_or(now)
}
