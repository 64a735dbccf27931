//! A key with its organisation, as operators are shown both.

use diesel::prelude::*;
use diesel::sql_types::{Text, Uuid as SqlUuid};
use intake_domain::{KeyId, OrganisationId};
use uuid::Uuid;

/// A key, and the organisation that owns it.
#[derive(Clone, Debug, QueryableByName)]
pub struct OwnedKey {
    #[diesel(sql_type = SqlUuid)]
    organisation: Uuid,
    /// The organisation's name.
    #[diesel(sql_type = Text)]
    pub organisation_name: String,
    #[diesel(sql_type = SqlUuid)]
    key: Uuid,
    /// The key's name.
    #[diesel(sql_type = Text)]
    pub name: String,
    /// The last characters of the key.
    #[diesel(sql_type = Text)]
    pub hint: String,
}

impl OwnedKey {
    /// The organisation that owns the key.
    #[must_use]
    pub fn organisation_id(&self) -> OrganisationId {
        self.organisation.into()
    }

    /// The key.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.key.into()
    }
}
