//! The use case against mocked ports: what is asked of them, how often, and what comes of each answer.

use std::sync::{Arc, Mutex};

use intake_domain::{
    ApiKey, Caller, CheckedFor, CreatePatientError, CreatedPatient, Environment, Field, KeyCheck, KeyFormat, KeyHolder,
    KeyId, KeyRefusal, MockPatientRegister, PatientDraft, PatientId, PatientRequest, Registered, RequestDigest,
    StoreError, create_patient,
};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::fixtures::{organisation, run};

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30:00.123456 UTC);

fn key() -> ApiKey {
    KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).mint([5; 32])
}

fn caller() -> Caller {
    Caller { key: key().digest(), address: Some([203, 0, 113, 9].into()) }
}

fn draft(first_name: &str) -> PatientDraft<'_> {
    PatientDraft::default()
        .with(Field::FirstName, first_name)
        .with(Field::LastName, "Hopper")
        .with(Field::PhoneNumber, "+61498765432")
        .with(Field::DateOfBirth, "1985-03-21")
}

fn create(
    register: &MockPatientRegister,
    draft: PatientDraft<'_>,
    retry: Option<&str>,
) -> Result<CreatedPatient, CreatePatientError> {
    let idempotency_key = retry.map(|key| key.parse().unwrap());
    let request =
        PatientRequest { caller: caller(), draft, idempotency_key, id: PatientId::new(NOW, [1; 10]), now: NOW };
    run(create_patient(register, request))
}

#[test]
fn a_valid_draft_costs_one_step_and_no_lookup() {
    let mut register = MockPatientRegister::new();
    register.expect_create().times(1).returning(|registration| {
        assert_eq!(registration.caller, caller());
        assert_eq!(registration.patient.get(Field::FirstName), Some("Ada"));
        assert!(registration.retry.is_none());
        Ok(Registered::Created(organisation()))
    });
    let created = create(&register, draft("Ada"), None).unwrap();
    let patient = created.patient();
    assert_eq!(patient.organisation_id, organisation());
    assert_eq!(patient.id, PatientId::new(NOW, [1; 10]));
    assert_eq!(patient.created_at, datetime!(2025-12-03 10:30:00.123 UTC), "cut to milliseconds");
    assert_eq!(patient.updated_at, patient.created_at);
    assert_eq!(patient.details.get(Field::LastName), Some("Hopper"));
    assert!(!created.replayed());
}

#[test]
fn a_faulty_draft_never_reaches_the_register() {
    let mut register = MockPatientRegister::new();
    let holder = KeyHolder { key_id: KeyId::new(NOW, [0; 10]), organisation_id: organisation() };
    register
        .expect_check_key()
        .times(1)
        .withf(|asked, checked_for| *asked == caller() && *checked_for == CheckedFor::Answer)
        .returning(move |_, _| Ok(KeyCheck::Active(holder)));
    match create(&register, draft(""), None) {
        Err(CreatePatientError::Invalid(faults)) => assert_eq!(faults.as_slice()[0].field, Some(Field::FirstName)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stranger_with_a_faulty_draft_learns_only_that_the_key_is_refused() {
    for refusal in [KeyRefusal::Unknown, KeyRefusal::Revoked, KeyRefusal::Expired, KeyRefusal::Elsewhere] {
        let mut register = MockPatientRegister::new();
        register.expect_check_key().times(1).returning(move |_, _| Ok(KeyCheck::Refused(refusal)));
        match create(&register, draft(""), None) {
            Err(CreatePatientError::KeyRefused(seen)) => assert_eq!(seen, refusal),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_register_refuses_a_key_that_is_not_active() {
    let mut register = MockPatientRegister::new();
    register.expect_create().returning(|_| Ok(Registered::Refused(KeyRefusal::Revoked)));
    let result = create(&register, draft("Ada"), None);
    assert!(matches!(result, Err(CreatePatientError::KeyRefused(KeyRefusal::Revoked))));
}

#[test]
fn a_failing_store_is_passed_on() {
    let mut register = MockPatientRegister::new();
    register.expect_create().returning(|_| Err(StoreError::Overloaded));
    let result = create(&register, draft("Ada"), None);
    assert!(matches!(result, Err(CreatePatientError::Store(StoreError::Overloaded))));

    let mut register = MockPatientRegister::new();
    register.expect_check_key().returning(|_, _| Err(StoreError::Unavailable("gone".into())));
    let result = create(&register, draft(""), None);
    assert!(matches!(result, Err(CreatePatientError::Store(StoreError::Unavailable(_)))));
}

/// A register that has created one patient under an idempotency key before.
fn register_with_a_past(id: PatientId, digest: [u8; 32]) -> MockPatientRegister {
    let created_at = datetime!(2024-01-01 0:00 UTC);
    let mut register = MockPatientRegister::new();
    register
        .expect_create()
        .returning(move |_| Ok(Registered::Before { organisation_id: organisation(), id, created_at, digest }));
    register
}

#[test]
fn a_repeated_request_gets_the_first_patient() {
    let first_id = PatientId::new(NOW, [9; 10]);
    let digest = RequestDigest::new(first_id, &draft("Ada").validate(NOW).unwrap());
    let register = register_with_a_past(first_id, *digest.as_bytes());
    let created = create(&register, draft("Ada"), Some("order-7")).unwrap();
    assert!(created.replayed());
    assert_eq!(created.patient().id, first_id);
    assert_eq!(created.patient().created_at, datetime!(2024-01-01 0:00 UTC));
    assert_eq!(created.patient().details.get(Field::FirstName), Some("Ada"));
}

#[test]
fn another_patient_under_the_same_idempotency_key_is_refused() {
    let first_id = PatientId::new(NOW, [9; 10]);
    let digest = RequestDigest::new(first_id, &draft("Ada").validate(NOW).unwrap());
    let register = register_with_a_past(first_id, *digest.as_bytes());
    let result = create(&register, draft("Grace"), Some("order-7"));
    assert!(matches!(result, Err(CreatePatientError::DifferentPatient)));
}

#[test]
fn the_stored_digest_depends_on_every_field() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let grace = || draft("Grace");
    let mut drafts: Vec<_> =
        Field::ALL.iter().copied().map(|field| grace().with(field, field.definition().example)).collect();
    drafts.extend([
        grace(),
        grace().with(Field::Suburb, ""),
        grace().with(Field::Suburb, "A").with(Field::State, "U"),
        grace().with(Field::Suburb, "AU"),
    ]);
    for draft in drafts {
        let seen = Arc::clone(&seen);
        let mut register = MockPatientRegister::new();
        register.expect_create().returning(move |registration| {
            let retry = registration.retry.as_ref().expect("asked for");
            assert_eq!(retry.key.as_str(), "order-7");
            let mut seen = seen.lock().unwrap();
            assert!(!seen.contains(retry.digest.as_bytes()));
            seen.push(*retry.digest.as_bytes());
            Ok(Registered::Created(organisation()))
        });
        create(&register, draft, Some("order-7")).unwrap();
    }
}
