//! Organisations and keys for tests, made by the use cases that the command line uses.

use std::time::Duration;

use intake_domain::{
    Actor, AllowedNetworks, ApiKey, AuditContext, Environment, KeyContact, KeyFormat, KeyId, KeyRequest, KeySecret,
    KeyStateStore, KeyStore, Name, Organisation, OrganisationId, Replacement, create_key,
};
use intake_infra::{Database, DatabaseUrl, PostgresKeyStore, PostgresOrganisations};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::TestDatabase;

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
        let database = Database::new(database, Duration::from_secs(60));
        let keys = PostgresKeyStore::new(database.clone());
        let organisation = OrganisationId::from(Uuid::from_bytes(random()));
        let name = Name::new("Test Clinic").expect("a name");
        let made = Organisation { id: organisation, name };
        runtime.block_on(PostgresOrganisations::new(database).add(&made)).expect("the organisation is made");
        let format = KeyFormat::new(&"intake".parse().expect("a prefix"), environment);
        Self { keys, runtime, format, organisation }
    }

    /// Makes an organisation whose patients this node of the cluster holds.
    #[must_use]
    pub fn open_on(database: &TestDatabase, node: usize, environment: Environment) -> Self {
        let lies_there = |clinic: &Self| database.citus().node_of(database.name(), clinic.organisation) == node;
        let mut clinics = std::iter::repeat_with(|| Self::open(&database.service, environment)).take(50);
        clinics.find(lies_there).expect("one of fifty lies there")
    }

    /// Makes a key.
    #[must_use]
    pub fn key(&self) -> (KeyId, ApiKey) {
        self.key_until(None)
    }

    /// Makes a key that may expire.
    #[must_use]
    pub fn key_until(&self, expires_at: Option<OffsetDateTime>) -> (KeyId, ApiKey) {
        self.try_key(expires_at, None).expect("the key is made")
    }

    /// Makes a key that may expire, or replace another, unless the database is away.
    pub fn try_key(
        &self,
        expires_at: Option<OffsetDateTime>,
        replaces: Option<Replacement>,
    ) -> Result<(KeyId, ApiKey), String> {
        let request = KeyRequest {
            organisation_id: self.organisation,
            name: Name::new("Test key").expect("a name"),
            expires_at,
            allowed_networks: AllowedNetworks::default(),
            contact: KeyContact::default(),
            replaces,
            id: Uuid::from_bytes(random()).into(),
            secret: KeySecret::new(random()),
        };
        let made = self.runtime.block_on(create_key(&self.keys, &self.format, request, &audit()));
        made.map(|made| (made.id, made.key)).map_err(|error| error.to_string())
    }

    /// The format of the clinic's keys.
    pub(crate) fn format(&self) -> &KeyFormat {
        &self.format
    }

    /// Revokes a key.
    pub fn revoke(&self, key: KeyId) {
        self.try_revoke(key).expect("the key is revoked");
    }

    /// Revokes a key, unless the database is away.
    pub fn try_revoke(&self, key: KeyId) -> Result<(), String> {
        let revoked = self.runtime.block_on(self.keys.revoke(key, None, &audit()));
        revoked.map(|_| ()).map_err(|error| error.to_string())
    }

    /// A well-formed key that is not stored. On Citus it would lie with the organisation.
    #[must_use]
    pub fn unknown_key_nearby(&self) -> ApiKey {
        let place = self.runtime.block_on(self.keys.place(self.organisation)).expect("the shards are known");
        let mut keys = std::iter::repeat_with(|| self.unknown_key());
        keys.find(|key| place.suits(&key.digest())).expect("a key lies there")
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

fn audit() -> AuditContext {
    let entry_id = Uuid::from_bytes(random()).into();
    AuditContext {
        entry_id,
        actor: Actor::Operator(intake_domain::Operator::default()),
        address: None,
        at: OffsetDateTime::UNIX_EPOCH,
        confirmed_in: None,
    }
}

/// Bytes that differ each time.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "tests draw their own random bytes")]
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("random bytes");
    bytes
}
