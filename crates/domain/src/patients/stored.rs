//! A patient as it is stored, for readers of the register.

use std::fmt;

use time::OffsetDateTime;

use crate::ids::{KeyId, OrganisationId, PatientId};
use crate::patients::field::ByField;

/// A patient as it is stored. Prints none of its values.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredPatient {
    /// Given by the service.
    pub id: PatientId,
    /// The organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// The text of each field.
    pub values: ByField<Option<String>>,
    /// Time at which it was created.
    pub created_at: OffsetDateTime,
    /// Time at which it was last changed.
    pub updated_at: OffsetDateTime,
    /// The API key by which it came. None: it was stored before this was kept.
    pub key_id: Option<KeyId>,
}

impl fmt::Debug for StoredPatient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredPatient({}, …)", self.id)
    }
}
