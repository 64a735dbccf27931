//! The port to sessions, with the limits after which they expire: who is signed in.

use std::net::IpAddr;

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::action::{Action, Deed};
use crate::ids::MemberId;
use crate::members::member::Member;
use crate::members::second_factor::TotpSecret;
use crate::sessions::browser::Browser;
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// How long a session lasts without being used.
pub const SESSION_IDLE_LIMIT: Duration = Duration::hours(12);
/// How long a session lasts at most, however busy it is.
pub const SESSION_LIMIT: Duration = Duration::days(7);
/// How many sessions a member has at once: the least recently used one ends when there would be more. Far more than
/// anybody has browsers, and few enough for one page.
pub const SESSIONS_MAX: u32 = 50;
/// How long a sign-in waits for its code: long enough to find one's phone.
pub const CODE_LIMIT: Duration = Duration::minutes(10);

/// A session to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The SHA-256 of the token in the browser's cookie.
    pub token: TokenDigest,
    /// The member who is signed in by it.
    pub member_id: MemberId,
    /// When the member signed in: [`SESSION_LIMIT`] counts from here.
    pub started_at: OffsetDateTime,
    /// The browser, if it named itself.
    pub browser: Option<Browser>,
}

/// A session as its member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The SHA-256 of the token: it identifies the session, and nobody is signed in by it.
    pub token: TokenDigest,
    /// The browser in plain words, if it is known.
    pub browser: Option<String>,
    /// The address of the last use, if it is known.
    pub address: Option<String>,
    /// When the member signed in.
    pub started_at: OffsetDateTime,
    /// When it was last used, to within a few minutes.
    pub last_used_at: OffsetDateTime,
}

/// What became of an attempt to end a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndOutcome {
    /// It has ended.
    Ended,
    /// The member has no such session.
    NoSuchSession,
}

/// Who holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The member who is signed in.
    pub member: Member,
    /// The name of the member's organisation.
    pub organisation_name: String,
    /// Whether the member signs in with a code as well as the password.
    pub has_second_factor: bool,
    /// Whether the organisation requires that of every member.
    pub is_second_factor_required: bool,
}

impl SignedIn {
    /// Whether the member must turn on two-step sign-in before anything else.
    #[must_use]
    pub fn must_turn_on_second_factor(&self) -> bool {
        self.is_second_factor_required && !self.has_second_factor
    }
}

/// A sign-in with the right password that waits for its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedMember {
    /// The member who would be signed in.
    pub member: Member,
    /// The secret shared with the member's app, if there is one.
    pub secret: Option<TotpSecret>,
    /// Whether the member can use a passkey instead of a code.
    pub has_passkey: bool,
}

/// The proof that a member has the second factor. Each works once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The app's code for this half minute, counted as in RFC 6238.
    Step(i64),
    /// The recovery code of this digest.
    RecoveryCode(TokenDigest),
    /// A passkey, whose signature of this sign-in's challenge was checked.
    Passkey(TokenDigest),
}

/// What became of an attempt to finish a sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOutcome {
    /// The member is signed in.
    SignedIn,
    /// The code was used before, or is wrong.
    WrongCode,
    /// The sign-in took too long, or was finished before.
    Over,
}

/// Who makes the request that a session is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A person, who opens a page or changes something from this address: this keeps the session from becoming idle.
    Person(Option<IpAddr>),
    /// A script of a page, which asks whether or not anyone is there: this does not keep the session alive.
    Script,
}

/// Sessions. Every change records its deed in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Starts a session.
    async fn start(&self, session: &NewSession, deed: &Deed) -> Result<(), StoreError>;

    /// Records a failed attempt to sign in as this member; the action says what was wrong.
    async fn note_failure(&self, member: &Member, action: Action, deed: &Deed) -> Result<(), StoreError>;

    /// Stores a sign-in that waits for its code. It is not a session: its token allows sending the code and nothing
    /// else.
    async fn await_code(&self, sign_in: &NewSession) -> Result<(), StoreError>;

    /// The member whose sign-in waits for a code under this token, if it has not ended.
    async fn awaited(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<AwaitedMember>, StoreError>;

    /// Uses up a proof and the waiting sign-in, and starts the session.
    async fn finish(
        &self,
        waiting: &TokenDigest,
        proof: Proof,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<CodeOutcome, StoreError>;

    /// Who holds this session, if it has not ended.
    async fn holder(
        &self,
        token: &TokenDigest,
        visit: Visit,
        now: OffsetDateTime,
    ) -> Result<Option<SignedIn>, StoreError>;

    /// Ends a session.
    async fn end(&self, token: &TokenDigest, deed: &Deed) -> Result<(), StoreError>;

    /// The member's sessions that have not ended, the most recently used first.
    async fn sessions(&self, member: MemberId, now: OffsetDateTime) -> Result<Vec<SessionRecord>, StoreError>;

    /// Ends one of the member's sessions.
    async fn end_one(&self, member: &Member, token: &TokenDigest, deed: &Deed) -> Result<EndOutcome, StoreError>;

    /// Ends every session of the member but this one, and every sign-in that waits for its code.
    async fn end_others(&self, member: &Member, kept: &TokenDigest, deed: &Deed) -> Result<(), StoreError>;
}
