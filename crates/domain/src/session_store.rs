//! The port to sessions: who is signed in.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::Deed;
use crate::ids::MemberId;
use crate::member::Member;
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// A session that nobody used for so long is over.
pub const SESSION_IDLE_LIMIT: Duration = Duration::hours(12);
/// However busy, a session ends after this.
pub const SESSION_LIMIT: Duration = Duration::days(7);

/// A session to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Finds it again.
    pub token: TokenDigest,
    /// Whose it is.
    pub member_id: MemberId,
    /// When it began.
    pub started_at: OffsetDateTime,
}

/// Who holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The member.
    pub member: Member,
    /// The name of the member's organisation.
    pub organisation_name: String,
}

/// Sessions. Whatever changes something records the deed in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Starts a session.
    async fn start(&self, session: &NewSession, deed: &Deed) -> Result<(), StoreError>;

    /// Records that somebody tried to sign in as this member and could not.
    async fn note_failure(&self, member: &Member, deed: &Deed) -> Result<(), StoreError>;

    /// Who holds this session, if it is not over. Its use keeps it from becoming idle.
    async fn holder(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<SignedIn>, StoreError>;

    /// Ends a session.
    async fn end(&self, token: &TokenDigest, deed: &Deed) -> Result<(), StoreError>;

    /// Ends every session of a member.
    async fn end_all(&self, member: &Member, deed: &Deed) -> Result<(), StoreError>;
}
