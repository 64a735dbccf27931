//! The port to sessions: who is signed in.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::deed::{Action, Deed};
use crate::ids::MemberId;
use crate::members::member::Member;
use crate::members::second_factor::TotpSecret;
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// A session that nobody used for so long is over.
pub const SESSION_IDLE_LIMIT: Duration = Duration::hours(12);
/// However busy, a session ends after this.
pub const SESSION_LIMIT: Duration = Duration::days(7);
/// How long a sign-in waits for its code: long enough to look for the telephone.
pub const CODE_LIMIT: Duration = Duration::minutes(10);

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

/// A sign-in with the right password that waits for its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedMember {
    /// Who it would be.
    pub member: Member,
    /// Shared with the member's app.
    pub secret: TotpSecret,
}

/// By what a member shows to have the second factor. Each is good once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The code of this half minute, counted as in RFC 6238.
    Step(i64),
    /// The recovery code of this digest.
    RecoveryCode(TokenDigest),
}

/// What became of an attempt to finish a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOutcome {
    /// The member is signed in.
    SignedIn,
    /// The proof was used before, or is none.
    WrongCode,
    /// The sign-in took too long, or was finished before.
    Over,
}

/// Why somebody asks who holds a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A person looks at a page or changes something: this keeps the session from becoming idle.
    Person,
    /// A script asks by itself, whether or not anybody is there.
    Script,
}

/// Sessions. Whatever changes something records the deed in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Starts a session.
    async fn start(&self, session: &NewSession, deed: &Deed) -> Result<(), StoreError>;

    /// Records that somebody tried to sign in as this member and could not: in which way, the action says.
    async fn note_failure(&self, member: &Member, action: Action, deed: &Deed) -> Result<(), StoreError>;

    /// Keeps a sign-in until its code comes. It is no session: nothing but the code can be given under its token.
    async fn await_code(&self, sign_in: &NewSession) -> Result<(), StoreError>;

    /// Whose sign-in waits under this token, if it is not over.
    async fn awaited(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<AwaitedMember>, StoreError>;

    /// Uses up a proof and the waiting sign-in, and starts the session.
    async fn finish(
        &self,
        waiting: &TokenDigest,
        proof: Proof,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<CodeOutcome, StoreError>;

    /// Who holds this session, if it is not over.
    async fn holder(
        &self,
        token: &TokenDigest,
        visit: Visit,
        now: OffsetDateTime,
    ) -> Result<Option<SignedIn>, StoreError>;

    /// Ends a session.
    async fn end(&self, token: &TokenDigest, deed: &Deed) -> Result<(), StoreError>;

    /// Ends every session of a member.
    async fn end_all(&self, member: &Member, deed: &Deed) -> Result<(), StoreError>;
}
