//! Safe retry: the caller's idempotency key, and a digest that tells whether a repeated request carries the same patient.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::ids::PatientId;
use crate::patient::NewPatient;

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
/// found by comparing stored digests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestDigest([u8; 32]);

impl RequestDigest {
    /// The digest of these details under that id.
    #[must_use]
    pub fn new(id: PatientId, patient: &NewPatient) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(id.as_uuid().as_bytes());
        hasher.update(patient.date_of_birth().to_julian_day().to_be_bytes());
        let fields = [
            Some(patient.first_name()),
            Some(patient.last_name()),
            Some(patient.phone_number()),
            patient.email(),
            patient.address_line1(),
            patient.address_line2(),
            patient.suburb(),
            patient.state(),
            patient.postcode(),
            patient.country(),
        ];
        for field in fields {
            // The length before each value keeps the fields apart; none has that of an impossible value.
            let length = field.map_or(u64::MAX, |text| text.len() as u64);
            hasher.update(length.to_be_bytes());
            hasher.update(field.unwrap_or_default());
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
