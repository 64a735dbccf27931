//! The port to sessions, with the limits after which they expire: who is signed in.

use std::net::IpAddr;

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::accounts::evidence::{Evidence, FirstStep, Proof};
use crate::accounts::hasher::HasherError;
use crate::accounts::holder::Holder;
use crate::accounts::member::{Account, Invitation, Member, Membership};
use crate::accounts::second_factor::TotpSecret;
use crate::audit::action::Action;
use crate::audit::context::{AuditContext, Origin};
use crate::browser::Browser;
use crate::ids::{MemberId, OrganisationId};
use crate::network::Network;
use crate::store_error::StoreError;
use crate::token::{Token, TokenDigest};

/// Time for which a session lasts without being used.
pub const SESSION_IDLE_LIMIT: Duration = Duration::hours(12);
/// Time that a session lasts at most, however busy it is.
pub const SESSION_LIMIT: Duration = Duration::days(7);
/// Number of sessions that a member has at once: the least recently used one ends when there would be more. Far more
/// than anybody has browsers, and few enough for one page.
pub const SESSIONS_MAX: u32 = 50;
/// Time for which a sign-in waits for its code: long enough to find one's phone.
pub const CODE_LIMIT: Duration = Duration::minutes(10);

/// Wrong codes in a row after which codes of the app no longer work, until a reset link was used: as many as NIST SP
/// 800-63B allows. Recovery codes go on working, because they are too long to be guessed.
pub const WRONG_CODES_MAX: u32 = 100;

/// A session to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// The SHA-256 of the token in the browser's cookie.
    pub token: TokenDigest,
    /// The member who is signed in by it.
    pub member_id: MemberId,
    /// Time at which the member signed in: [`SESSION_LIMIT`] counts from here.
    pub started_at: OffsetDateTime,
    /// The browser, if it named itself.
    pub browser: Option<Browser>,
    /// True if the member signed in with the provider of single sign-on, rather than with a password or passkey.
    pub is_by_provider: bool,
    /// The session that the browser presented until then, which ends.
    pub replaces: Option<TokenDigest>,
}

impl NewSession {
    /// The session of a member who signs in now, without the provider of single sign-on.
    pub(crate) fn new(member_id: MemberId, token: &Token, origin: &Origin) -> Self {
        let (started_at, browser) = (origin.at, origin.browser);
        Self { token: token.digest(), member_id, started_at, browser, is_by_provider: false, replaces: origin.session }
    }
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
    /// Time at which the member signed in.
    pub started_at: OffsetDateTime,
    /// Time at which it was last used, to within a few minutes.
    pub last_used_at: OffsetDateTime,
    /// True if the member signed in with the provider of single sign-on.
    pub is_by_provider: bool,
}

/// Result of a right first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// The member is signed in under the token.
    Complete,
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
}

/// Outcome of an attempt to choose the organisation of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChooseOutcome {
    /// The session is in it.
    Chosen,
    /// An administrator ended the member's sessions there since this one began, so it has ended, too.
    SignInAgain,
    /// The member does not belong to it, or the session has ended.
    NoSuchOrganisation,
}

/// A sign-in whose first step was right, and which waits for its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedMember {
    /// The account that would be signed in to.
    pub account: Account,
    /// The invitation that is accepted by it, if there is one.
    pub invitation: Option<Invitation>,
    /// The secret shared with the member's app, if there is one.
    pub secret: Option<TotpSecret>,
    /// True if the member can use a passkey instead of a code.
    pub has_passkey: bool,
}

/// The second factors of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factors {
    /// The secret shared with the member's app, if there is one.
    pub secret: Option<TotpSecret>,
    /// True if the member has a passkey.
    pub has_passkey: bool,
    /// True if the member has a password: those who joined by single sign-on have none.
    pub has_password: bool,
    /// True if the account is linked to a person at the provider of single sign-on.
    pub is_linked_to_provider: bool,
}

/// Reason why a member was not confirmed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ConfirmError {
    /// The password is not the member's.
    #[error("the password is wrong")]
    WrongPassword,
    /// The code was used before, or is neither the app's nor a recovery code; or the passkey is not the member's.
    #[error("the second factor is wrong")]
    WrongFactor,
    /// The code is not a recovery code, and there were [`WRONG_CODES_MAX`] wrong ones in a row.
    #[error("codes no longer work")]
    Locked,
    /// The member has a second factor, which was not shown, or the password was changed meanwhile.
    #[error("the password alone is not enough")]
    NotEnough,
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a code did not finish a sign-in.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum CodeError {
    /// The code was used before, or is neither the app's nor a recovery code.
    #[error("the code is wrong")]
    WrongCode,
    /// The code is not a recovery code, and there were [`WRONG_CODES_MAX`] wrong ones in a row.
    #[error("codes no longer work")]
    Locked,
    /// The sign-in took too long, or was finished before.
    #[error("the sign-in has ended")]
    Over,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who makes the request that a session is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// A person, who opens a page or changes something from this address: this keeps the session from becoming idle.
    Person(Option<IpAddr>),
    /// A script of a page, which asks whether or not anyone is there: this does not keep the session alive.
    Script,
}

/// Sessions. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Starts a session, in the person's organisation if there is only one. A member with a second factor gets a
    /// sign-in that waits for the code instead. None: the first step no longer holds, because the password or the
    /// address was changed, or the member removed, since it was compared. Takes a lock of the member, as every change
    /// of passwords and second factors does before it ends sessions.
    async fn begin(
        &self,
        session: &NewSession,
        first: &FirstStep,
        audit: &AuditContext,
    ) -> Result<Option<SignIn>, StoreError>;

    /// Returns whether a member has signed in from this network before.
    async fn is_familiar(&self, network: Network) -> Result<bool, StoreError>;

    /// Records a failed attempt to sign in to this account; the action says what was wrong.
    async fn note_failure(&self, account: &Account, action: Action, audit: &AuditContext) -> Result<(), StoreError>;

    /// The member whose sign-in waits for a code under this token, if it has not ended.
    async fn awaited(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<AwaitedMember>, StoreError>;

    /// Uses up a proof and the waiting sign-in, accepts its invitation if it is still open, and starts the session.
    async fn finish(
        &self,
        waiting: &TokenDigest,
        proof: Proof,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<(), CodeError>;

    /// The member's second factors.
    async fn factors(&self, member: MemberId) -> Result<Factors, StoreError>;

    /// Confirms who a session's member is, and uses up the proof of a second factor. The session goes on under the next
    /// token, so that a copy of the one before is not confirmed as well. Fails if the session has ended.
    async fn confirm(
        &self,
        session: &TokenDigest,
        next: &TokenDigest,
        evidence: &Evidence,
        audit: &AuditContext,
    ) -> Result<(), ConfirmError>;

    /// Who holds this session, if it has not ended.
    async fn holder(
        &self,
        token: &TokenDigest,
        visit: Visit,
        now: OffsetDateTime,
    ) -> Result<Option<Holder>, StoreError>;

    /// The organisations of a person, by name.
    async fn memberships(&self, member: MemberId) -> Result<Vec<Membership>, StoreError>;

    /// Puts a session into one of its person's organisations, in place of the one that it is in.
    async fn choose(
        &self,
        token: &TokenDigest,
        organisation: OrganisationId,
        audit: &AuditContext,
    ) -> Result<ChooseOutcome, StoreError>;

    /// Remembers the browser of a session that has just started. Returns its account if this browser in this network is
    /// not known, unless the account is new.
    async fn note_browser(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Account>, StoreError>;

    /// Ends a session.
    async fn end(&self, token: &TokenDigest, audit: &AuditContext) -> Result<(), StoreError>;

    /// The member's sessions that have not ended, the most recently used first.
    async fn sessions(&self, member: MemberId, now: OffsetDateTime) -> Result<Vec<SessionRecord>, StoreError>;

    /// Ends one of the member's sessions. Returns false if the member has no such session.
    async fn end_one(&self, member: &Member, token: &TokenDigest, audit: &AuditContext) -> Result<bool, StoreError>;

    /// Ends every session of the member but the one in which they confirmed, and every sign-in that waits for its code.
    async fn end_others(&self, member: &Member, audit: &AuditContext) -> Result<(), StoreError>;
}
