//! The port to passkeys, and to the challenges of sign-ins by a passkey alone.

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use time::OffsetDateTime;

use crate::accounts::member::{Account, Member};
use crate::accounts::passkey::PasskeyKey;
use crate::accounts::session_store::{CodeError, NewSession};
use crate::audit::context::AuditContext;
use crate::ids::MemberId;
use crate::name::{Name, NameError};
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// Number of passkeys that a member may have: far more than anybody has devices.
pub const PASSKEYS_MAX: u32 = 20;

/// A passkey to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPasskey {
    /// The SHA-256 of the credential's id.
    pub id: TokenDigest,
    /// The credential's id, by which an authenticator knows that it has one already.
    pub credential: Vec<u8>,
    /// The public key as `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
    /// The name that its member gave it.
    pub name: Name,
}

/// A passkey as its member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyRecord {
    /// The SHA-256 of the credential's id.
    pub id: TokenDigest,
    /// The credential's id.
    pub credential: Vec<u8>,
    /// The name that its member gave it.
    pub name: String,
    /// Time at which it was made.
    pub created_at: OffsetDateTime,
    /// Time at which it last signed a member in; none: never.
    pub last_used_at: Option<OffsetDateTime>,
}

impl PasskeyRecord {
    /// The credential's id in the digits in which pages give it to browsers.
    #[must_use]
    pub fn credential_as_base64url(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(&self.credential)
    }
}

/// Whose passkey it is, and by which key its signatures are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyHolder {
    /// The account that it signs in to.
    pub account: Account,
    /// The public key.
    pub key: PasskeyKey,
}

/// Reason why a passkey was not added.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AddPasskeyError {
    /// The text cannot be a name.
    #[error("the name is refused")]
    Name(#[source] NameError),
    /// The browser sent no new passkey of this site, or one that belongs to a member already.
    #[error("the passkey is refused")]
    Refused,
    /// The member has [`PASSKEYS_MAX`] passkeys.
    #[error("the member has too many passkeys")]
    TooMany,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Passkeys. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasskeyStore: Send + Sync {
    /// The member's passkeys, the oldest first.
    async fn passkeys(&self, member: MemberId) -> Result<Vec<PasskeyRecord>, StoreError>;

    /// Adds a passkey to the member's.
    async fn add(&self, member: &Member, passkey: &NewPasskey, audit: &AuditContext) -> Result<(), AddPasskeyError>;

    /// Removes one of the member's passkeys. Returns false if the member has no such passkey.
    async fn remove(&self, member: &Member, id: &TokenDigest, audit: &AuditContext) -> Result<bool, StoreError>;

    /// Whose passkey this is.
    async fn holder(&self, id: &TokenDigest) -> Result<Option<PasskeyHolder>, StoreError>;

    /// Keeps a challenge for as long as a sign-in waits for its code.
    async fn begin(&self, challenge: &TokenDigest, at: OffsetDateTime) -> Result<(), StoreError>;

    /// Uses up a challenge, and starts the session of who has signed it by this passkey.
    async fn sign_in(
        &self,
        challenge: &TokenDigest,
        passkey: &TokenDigest,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<(), CodeError>;
}
