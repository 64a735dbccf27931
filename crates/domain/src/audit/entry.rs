//! The entries of the audit log, which are written with the change that they record and never changed.

use time::OffsetDateTime;

use crate::audit::action::{RecordedAction, RecordedActor};
use crate::idempotency_digest::IdempotencyDigest;
use crate::ids::{AuditEntryId, KeyId, OrganisationId};

/// The API key that an entry is about. Names of keys are not unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedKey {
    /// Its id.
    pub id: KeyId,
    /// Its last characters.
    pub hint: String,
}

/// Details of a change besides the entry's action and subject: they repeat it in a database that was restored to a
/// moment before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditDetails {
    /// The key that a new key replaces.
    pub replaced_key: Option<KeyId>,
    /// Time at which a new key expires.
    pub key_expires_at: Option<OffsetDateTime>,
    /// The digest of the idempotency key of an erased patient.
    pub idempotency_digest: Option<IdempotencyDigest>,
    /// The name of the role with which a guest was invited, or joined.
    pub role: Option<&'static str>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// A UUID version 7, given by the service: a repeated change is recorded once.
    pub id: AuditEntryId,
    /// Time at which it was recorded, by the database's clock.
    pub at: OffsetDateTime,
    /// A number that is higher than those of all entries of the organisation that were there before.
    pub number: i64,
    /// Action that was done.
    pub action: RecordedAction,
    /// Who did it.
    pub actor: RecordedActor,
    /// Subject of the action: a key's name, a member's email address or new name, a patient's id.
    pub subject: String,
    /// The client's address; none: it was done on the command line.
    pub address: Option<String>,
    /// The operator's reason, if one was given.
    pub reason: Option<String>,
    /// The key that it is about; none if it is about none, and in entries of before this was kept.
    pub key: Option<AuditedKey>,
    /// Details that repeat the change; empty in entries of before this was kept.
    pub details: AuditDetails,
    /// The organisation in whose log the entry is.
    pub organisation_id: OrganisationId,
}
