//! Organisations and keys for tests, made by the use cases that the command line uses.

use std::time::Duration;

use intake_domain::{
    Actor, ApiKey, Deed, Environment, KeyFormat, KeyId, KeyRequest, KeySecret, KeyStore, Name, Organisation,
    OrganisationId, create_key, revoke_key,
};
use intake_infra::{Database, DatabaseUrl, KeyUses, PostgresKeyStore};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// An organisation with keys.
pub struct Clinic {
    keys: PostgresKeyStore,
    runtime: tokio::runtime::Runtime,
    format: KeyFormat,
    /// The organisation's id.
    pub organisation: OrganisationId,
}

impl Clinic {
    /// Makes an organisation in this database, with keys of this environment.
    #[must_use]
    pub fn open(database: &DatabaseUrl, environment: Environment) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let keys = PostgresKeyStore::new(Database::new(database, Duration::from_secs(60)), KeyUses::default());
        let organisation = OrganisationId::from(Uuid::from_bytes(random()));
        let name = Name::new("Test Clinic").expect("a name");
        let made = Organisation { id: organisation, name };
        runtime.block_on(keys.add_organisation(&made)).expect("the organisation is made");
        let format = KeyFormat::new(&"intake".parse().expect("a prefix"), environment);
        Self { keys, runtime, format, organisation }
    }

    /// Makes a key.
    #[must_use]
    pub fn key(&self) -> (KeyId, ApiKey) {
        self.key_until(None)
    }

    /// Makes a key that may expire.
    #[must_use]
    pub fn key_until(&self, expires_at: Option<OffsetDateTime>) -> (KeyId, ApiKey) {
        let request = KeyRequest {
            organisation_id: self.organisation,
            name: Name::new("Test key").expect("a name"),
            expires_at,
            replaces: None,
            id: Uuid::from_bytes(random()).into(),
            secret: KeySecret::new(random()),
        };
        let made =
            self.runtime.block_on(create_key(&self.keys, &self.format, request, &deed())).expect("the key is made");
        (made.id, made.key)
    }

    /// The format of the clinic's keys.
    pub(crate) fn format(&self) -> &KeyFormat {
        &self.format
    }

    /// Revokes a key.
    pub fn revoke(&self, key: KeyId) {
        let revoked = self.runtime.block_on(revoke_key(&self.keys, key, None, &deed()));
        revoked.expect("the key is revoked");
    }

    /// A well-formed key that is not stored.
    #[must_use]
    pub fn unknown_key(&self) -> ApiKey {
        self.format.mint(random())
    }
}

/// A valid patient with only the required fields.
#[must_use]
pub fn patient() -> Value {
    json!({
        "firstName": "Ada",
        "lastName": "Lovelace",
        "phoneNumber": "+61412345678",
        "dateOfBirth": "1985-03-21",
    })
}

fn deed() -> Deed {
    let entry_id = Uuid::from_bytes(random()).into();
    Deed { entry_id, actor: Actor::Operator, address: None, at: OffsetDateTime::UNIX_EPOCH }
}

#[expect(clippy::disallowed_methods, reason = "tests draw their own random bytes")]
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("random bytes");
    bytes
}
