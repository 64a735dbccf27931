//! Confirmations: before a change that takes a [`ConfirmedMember`], signed-in members prove once more who they are,
//! because a browser that was left signed in is not enough. Members with a second factor need it here, too, so that a
//! person who learned the password can neither remove the factor nor add another.

use time::{Duration, OffsetDateTime};

use crate::accounts::evidence::{Evidence, Proof};
use crate::accounts::hasher::{PasswordHasher, Requester};
use crate::accounts::holder::SignedIn;
use crate::accounts::member::Member;
use crate::accounts::member_store::MemberStore;
use crate::accounts::passkey::{Challenge, PasskeyAssertion, RelyingParty, Signatures};
use crate::accounts::passkey_store::PasskeyStore;
use crate::accounts::password::PasswordHash;
use crate::accounts::presented::{PresentedCode, PresentedPassword};
use crate::accounts::session_store::{ConfirmError, SessionStore};
use crate::audit::action::{Action, Actor};
use crate::audit::context::{AuditContext, Origin};
use crate::ids::OrganisationId;
use crate::store_error::StoreError;
use crate::token::{Token, TokenDigest};

/// Time after a confirmation during which the pages that need one are shown without asking again.
pub const CONFIRMATION_PAGE_LIMIT: Duration = Duration::minutes(10);
/// Time after the confirmation during which a change is accepted: longer, so that there is time to fill in a form.
pub const CONFIRMATION_LIMIT: Duration = Duration::minutes(15);

/// A signed-in member with a recent confirmation.
#[derive(Clone, Debug)]
pub struct ConfirmedMember<'a> {
    signed_in: &'a SignedIn,
    session: TokenDigest,
}

impl<'a> ConfirmedMember<'a> {
    /// The member of this session. None: the member has no recent confirmation.
    #[must_use]
    pub fn of(signed_in: &'a SignedIn, session: &Token, now: OffsetDateTime) -> Option<Self> {
        signed_in.is_confirmed(CONFIRMATION_LIMIT, now).then(|| Self { signed_in, session: session.digest() })
    }

    pub(crate) fn member(&self) -> &Member {
        &self.signed_in.member
    }

    pub(crate) fn organisation(&self) -> OrganisationId {
        self.signed_in.member.organisation_id
    }

    pub(crate) fn session(&self) -> TokenDigest {
        self.session
    }

    pub(crate) fn must_have_second_factor(&self) -> bool {
        self.signed_in.is_second_factor_required || self.signed_in.is_second_factor_required_elsewhere
    }

    /// The context of a change that is made only while the session goes on and the confirmation is recent.
    pub(crate) fn confirm(&self, audit: &AuditContext) -> AuditContext {
        AuditContext { confirmed_in: Some(self.session), ..audit.clone() }
    }
}

/// A session that goes on under another token when its member has confirmed who they are.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// The token that the browser sent.
    pub session: &'a Token,
    /// The token that the browser gets.
    pub next: &'a Token,
}

impl Renewal<'_> {
    pub(crate) async fn confirm(
        &self,
        sessions: &dyn SessionStore,
        evidence: &Evidence,
        audit: &AuditContext,
    ) -> Result<(), ConfirmError> {
        sessions.confirm(&self.session.digest(), &self.next.digest(), evidence, audit).await
    }
}

/// Confirms a member by the password and, where the member has an app, a code of it or a recovery code.
pub async fn confirm_by_password(
    members: &dyn MemberStore,
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    SignedIn { member, .. }: &SignedIn,
    renewal: Renewal<'_>,
    (password, code): (&PresentedPassword, Option<&PresentedCode>),
    origin: Origin,
) -> Result<(), ConfirmError> {
    let hash = own_hash(members, member).await?;
    let requester = Requester::Confirmation(renewal.session.digest());
    let right = hasher.find(requester, password, hash.as_slice()).await?;
    let hash = right.ok_or(ConfirmError::WrongPassword)?;
    let code = match code {
        Some(code) => Some(Proof::of_code(sessions.factors(member.id).await?.secret.as_ref(), code, origin.at)),
        None => None,
    };
    confirm_with_code(sessions, member, renewal, &Evidence::Password(hash, code), origin).await
}

/// Confirms a member by a code, after the provider of single sign-on.
pub async fn confirm_after_provider(
    sessions: &dyn SessionStore,
    SignedIn { member, .. }: &SignedIn,
    renewal: Renewal<'_>,
    code: &PresentedCode,
    origin: Origin,
) -> Result<(), ConfirmError> {
    let proof = Proof::of_code(sessions.factors(member.id).await?.secret.as_ref(), code, origin.at);
    confirm_with_code(sessions, member, renewal, &Evidence::AfterProvider(proof), origin).await
}

/// Records a wrong code.
async fn confirm_with_code(
    sessions: &dyn SessionStore,
    member: &Member,
    renewal: Renewal<'_>,
    evidence: &Evidence,
    origin: Origin,
) -> Result<(), ConfirmError> {
    let confirmed = renewal.confirm(sessions, evidence, &origin.by(member.actor())).await;
    if matches!(confirmed, Err(ConfirmError::WrongFactor)) {
        sessions.note_failure(&member.account(), Action::CodeFailed, &origin.by(Actor::Stranger)).await?;
    }
    confirmed
}

/// The hash of the member's password. None: the member has none, was removed, or has another address.
pub(crate) async fn own_hash(members: &dyn MemberStore, member: &Member) -> Result<Option<PasswordHash>, StoreError> {
    let found = members.credentials(&member.email, None).await?;
    let own = found.into_iter().find(|credentials| credentials.account.id == member.id);
    Ok(own.and_then(|credentials| credentials.password))
}

/// Confirms a member by one of their passkeys, without the password: the device has verified its user.
pub async fn confirm_by_passkey(
    (passkeys, sessions, signatures): (&dyn PasskeyStore, &dyn SessionStore, &dyn Signatures),
    site: &RelyingParty,
    SignedIn { member, confirmed_at, .. }: &SignedIn,
    renewal: Renewal<'_>,
    assertion: &PasskeyAssertion,
    origin: Origin,
) -> Result<(), ConfirmError> {
    let id = assertion.passkey();
    let holder = passkeys.holder(&id).await?.filter(|holder| holder.account.id == member.id);
    let holder = holder.ok_or(ConfirmError::WrongFactor)?;
    if !assertion.is_signed(site, &Challenge::of_confirmation(renewal.session, *confirmed_at), &holder.key, signatures)
    {
        return Err(ConfirmError::WrongFactor);
    }
    let evidence = Evidence::Passkey { passkey: id, last_confirmed_at: *confirmed_at };
    renewal.confirm(sessions, &evidence, &origin.by(member.actor())).await
}
