//! Safe retry: the caller's idempotency key, and a digest that tells whether a repeated request carries the same
//! patient.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::ids::PatientId;
use crate::patients::field::Field;
use crate::patients::patient::NewPatient;

/// The caller's own name for one creation: 1 to 255 visible ASCII characters, unique within the organisation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    const MAX_CHARACTERS: usize = 255;

    /// The key as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = IdempotencyKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_visible && (1..=Self::MAX_CHARACTERS).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdempotencyKeyError)
        }
    }
}

impl fmt::Debug for IdempotencyKey {
    /// Callers may put what they like into it, a patient's name included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(…)")
    }
}

/// No idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {} visible ASCII characters", IdempotencyKey::MAX_CHARACTERS)]
pub struct IdempotencyKeyError;

/// Tells whether two requests carry the same patient. Salted with the patient's id, so that equal patients cannot be
/// found by comparing stored digests. A field that later versions add changes no digest of a patient without it, so a
/// request can be repeated across upgrades.
///
/// ```
/// use intake_domain::{Field, PatientDraft, PatientId, RequestDigest};
/// use time::macros::datetime;
///
/// let now = datetime!(2025-12-03 10:30 UTC);
/// let sent = |first_name| {
///     let fields =
///         [(Field::LastName, "Hopper"), (Field::PhoneNumber, "+61498765432"), (Field::DateOfBirth, "1985-03-21")];
///     PatientDraft::from_iter(fields).with(Field::FirstName, first_name).validate(now)
/// };
/// let id = PatientId::new(now, [7; 10]); // 10 random bytes, in a program
/// let first = RequestDigest::new(id, &sent("Grace")?);
/// assert_eq!(RequestDigest::new(id, &sent("Grace")?), first);
/// assert_ne!(RequestDigest::new(id, &sent("Mary")?), first);
/// # Ok::<(), intake_domain::FieldFaults>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// The digest of these details under that id.
    #[must_use]
    pub fn new(id: PatientId, patient: &NewPatient) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(id.as_uuid().as_bytes());
        for &field in Field::ALL {
            let Some(value) = patient.get(field) else { continue };
            hasher.update(field.number().to_be_bytes());
            // The length before each value keeps the fields apart.
            hasher.update((value.len() as u64).to_be_bytes());
            hasher.update(value);
        }
        Self(hasher.finalize().into())
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestDigest(…)")
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::patients::draft::PatientDraft;

    fn digest(draft: &PatientDraft<'_>) -> String {
        let patient = draft.clone().validate(datetime!(2025-12-03 10:30 UTC)).unwrap();
        let id = PatientId::from(uuid::Uuid::from_u128(7));
        RequestDigest::new(id, &patient).as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn required() -> PatientDraft<'static> {
        PatientDraft::default()
            .with(Field::FirstName, "Zoë")
            .with(Field::LastName, "O'Brien")
            .with(Field::PhoneNumber, "+61412345678")
            .with(Field::DateOfBirth, "2000-02-29")
    }

    /// Computed by another program from the rule in words: requests that were stored years ago must be known again.
    #[test]
    fn digests_of_known_patients_never_change() {
        assert_eq!(digest(&required()), "83291904d4131e88f97ae2fe9a573789544cdb330915fa0e082b65af264b0bb4");
        let whole = required()
            .with(Field::Email, "zoe@example.com")
            .with(Field::AddressLine1, "1 High Street")
            .with(Field::AddressLine2, "")
            .with(Field::Suburb, "Carlton")
            .with(Field::State, "VIC")
            .with(Field::Postcode, "3053")
            .with(Field::Country, "AU");
        assert_eq!(digest(&whole), "df8282f5001304ab874083d379248cd5d76912f2d38bfa28c8bdf387023848ca");
    }
}
