//! Sign-ins and confirmations with the old password, in flight while the password, a second factor, the role or the
//! membership changes: none of them outlives the change.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use intake_domain::{
    AccountStore, Actor, AdministerError, AuditContext, AuditEntryId, EmailAddress, Environment, Evidence, FirstStep,
    Guest, HasherError, Holder, InvitationStore, LinkDelivery, Member, MemberId, MemberStore, Name, NewCredential,
    NewInvitation, NewMember, NewMemberLink, NewPasskey, NewSecondFactor, NewSession, Operator, PasskeyStore,
    PasskeysAtReset, Password, PasswordHash, PasswordHasher, PasswordResetStore, Passwords, PresentedPassword,
    Requester, Role, Salt, SecondFactorStore, SessionStore, SignIn, SignInError, StoreError, Token, TotpSecret, Visit,
    find_candidate, sign_in,
};
use intake_infra::{Database, PostgresMembers, PostgresPasskeyStore, PostgresSessionStore};
use intake_test_support::{Clinic, TestDatabase, random};
use time::OffsetDateTime;
use time::macros::datetime;
use tokio::sync::Barrier;
use uuid::Uuid;

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
const OLD: &str = "old password";
const SIGN_INS: usize = 12;
const ROUNDS: usize = 50;

/// Compares texts, and only once all sign-ins of a round have read the hash and the change is about to be made.
struct Gate(Barrier);

#[async_trait]
impl PasswordHasher for Gate {
    async fn hash(&self, _: Requester, password: &Password, _: Salt) -> Result<PasswordHash, HasherError> {
        Ok(PasswordHash::new(password.expose().to_owned()))
    }

    async fn find(
        &self,
        _: Requester,
        presented: &PresentedPassword,
        hashes: &[PasswordHash],
    ) -> Result<Option<PasswordHash>, HasherError> {
        self.0.wait().await;
        // Up to twice as long as the change takes.
        tokio::time::sleep(Duration::from_micros(u64::from(random::<1>()[0]) * 40)).await;
        Ok(hashes.iter().find(|stored| stored.as_str() == presented.expose()).cloned())
    }
}

struct Setup {
    database: TestDatabase,
    clinic: Clinic,
    members: PostgresMembers,
    passkeys: PostgresPasskeyStore,
    sessions: Arc<PostgresSessionStore>,
}

impl Setup {
    fn new() -> Self {
        let database = TestDatabase::new();
        let pool = Database::new(&database.service, Duration::from_secs(60));
        let clinic = Clinic::open(&database.service, Environment::Development);
        let members = PostgresMembers::new(pool.clone());
        let passkeys = PostgresPasskeyStore::new(pool.clone());
        Self { database, clinic, members, passkeys, sessions: Arc::new(PostgresSessionStore::new(pool, Passwords::On)) }
    }

    /// A member whose password is [`OLD`], with the session in which they joined.
    async fn member(&self, role: Role) -> (Member, Token) {
        let (id, token, session) = (MemberId::new(NOW, random()), Token::new(random()), Token::new(random()));
        let email: EmailAddress = format!("{id}@clinic.example").parse().unwrap();
        let name = Name::new(id.to_string()).unwrap();
        let (organisation_id, expires_at) = (self.clinic.organisation, NOW + time::Duration::HOUR);
        let (token_digest, delivery) = (token.digest(), LinkDelivery::Shown);
        let invitation =
            NewInvitation { token: token_digest, organisation_id, email: email.clone(), role, delivery, expires_at };
        self.members.invite(&invitation, &audit(Actor::Operator(Operator::default()))).await.unwrap();
        let member = Member { id, organisation_id, name: name.clone(), email, role };
        let new = NewMember { id, name, credential: NewCredential::Password(PasswordHash::new(OLD.to_owned())) };
        let first = session_of(id, &session);
        self.members.join(&token.digest(), &Guest::New(new), &first, &audit(member.actor())).await.unwrap();
        let session = self.confirm(&member, &session).await;
        (member, session)
    }

    /// The member types the old password in this session. Returns the token under which it goes on.
    async fn confirm(&self, member: &Member, session: &Token) -> Token {
        let next = Token::new(random());
        let old = Evidence::Password(PasswordHash::new(OLD.to_owned()), None);
        let (session, audit) = (session.digest(), audit(member.actor()));
        self.sessions.confirm(&session, &next.digest(), &old, &audit).await.unwrap();
        next
    }

    async fn sign_ins_during(
        &self,
        round: usize,
        member: &Member,
        change: impl Future<Output = ()>,
    ) -> Vec<Result<SignIn, SignInError>> {
        let gate = Arc::new(Gate(Barrier::new(SIGN_INS + 1)));
        let mut under_way = Vec::new();
        for _ in 0..SIGN_INS {
            let candidate = find_candidate(&self.members, Some(&member.email), None).await.unwrap();
            let (sessions, gate) = (Arc::clone(&self.sessions), Arc::clone(&gate));
            under_way.push(tokio::spawn(async move {
                let (password, token) = (PresentedPassword::new(OLD), Token::new(random()));
                sign_in(sessions.as_ref(), gate.as_ref(), candidate, &password, &token, origin()).await
            }));
        }
        // Both orders for certain, whatever the machine is busy with; in all other rounds it is open who is first.
        let mut change = std::pin::pin!(change);
        if round == 0 {
            change.as_mut().await;
        }
        gate.0.wait().await;
        if round > 1 {
            change.as_mut().await;
        }
        let mut outcomes = Vec::new();
        for one in under_way {
            outcomes.push(one.await.unwrap());
        }
        if round == 1 {
            change.await;
        }
        outcomes
    }

    fn sessions_of(&self, member: &Member) -> i64 {
        self.database.count(&format!("sessions WHERE member_id = '{}'", member.id))
    }

    fn waiting_of(&self, member: &Member) -> i64 {
        self.database.count(&format!("waiting_sign_ins WHERE member_id = '{}'", member.id))
    }
}

fn origin() -> intake_domain::Origin {
    intake_domain::Origin {
        entry_id: AuditEntryId::new(NOW, random()),
        address: None,
        browser: None,
        session: None,
        at: NOW,
    }
}

fn audit(actor: Actor) -> AuditContext {
    origin().by(actor)
}

/// Returns what the member does in this session, having typed the old password there.
fn confirmed(member: &Member, session: &Token) -> AuditContext {
    AuditContext { confirmed_in: Some(session.digest()), ..audit(member.actor()) }
}

fn session_of(member_id: MemberId, token: &Token) -> NewSession {
    let (token, started_at) = (token.digest(), NOW);
    NewSession { token, member_id, started_at, browser: None, is_by_provider: false, replaces: None }
}

fn factor() -> NewSecondFactor {
    NewSecondFactor {
        secret: TotpSecret::new(random()),
        used_step: 1,
        recovery_codes: vec![Token::new(random()).digest()],
    }
}

fn new_password() -> PasswordHash {
    PasswordHash::new(format!("new {}", Uuid::from_bytes(random())))
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

/// Asserts that both orders occurred: a sign-in before the change, which then ended it, and one that the change
/// refused.
fn assert_interleaved(outcomes: &[Result<SignIn, SignInError>]) {
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(SignInError::WrongPair(_)))).count();
    let complete = outcomes.iter().filter(|outcome| matches!(outcome, Ok(SignIn::Complete))).count();
    assert_eq!(refused + complete, outcomes.len());
    assert!(refused > 0 && complete > 0, "{refused} refused, {complete} complete");
}

/// Asserts that no sign-in in flight outlives this change, which ends all sessions of the member, or all but the one in
/// which it is made.
fn assert_ends_sign_ins(setup: &Setup, is_session_kept: bool, change: &impl AsyncFn(&Member, &Token)) {
    let mut outcomes = Vec::new();
    for round in 0..ROUNDS {
        run(async {
            let (member, session) = setup.member(Role::Administrator).await;
            outcomes.extend(setup.sign_ins_during(round, &member, change(&member, &session)).await);
            assert_eq!((setup.sessions_of(&member), setup.waiting_of(&member)), (i64::from(is_session_kept), 0));
            let kept = setup.sessions.holder(&session.digest(), Visit::Script, NOW).await.unwrap();
            assert_eq!(kept.is_some(), is_session_kept, "the session in which it was made");
        });
    }
    assert_interleaved(&outcomes);
}

#[test]
fn no_sign_in_with_the_old_password_outlives_its_change() {
    let setup = Setup::new();
    assert_ends_sign_ins(&setup, true, &async |member, session| {
        setup.members.change_password(member, &new_password(), &confirmed(member, session)).await.unwrap();
    });
}

#[test]
fn no_sign_in_with_the_old_password_outlives_a_reset() {
    let setup = Setup::new();
    assert_ends_sign_ins(&setup, false, &async |member, _| {
        let token = Token::new(random()).digest();
        let reset = NewMemberLink { token, expires_at: NOW + time::Duration::HOUR };
        let operator = audit(Actor::Operator(Operator::default()));
        setup.members.issue_password_reset(member, &reset, LinkDelivery::Shown, &operator).await.unwrap();
        let (account, new, stranger) = (member.account(), new_password(), audit(Actor::Stranger));
        let reset = setup.members.reset_password(&token, &account, &new, PasskeysAtReset::Kept, &stranger);
        reset.await.unwrap();
    });
}

#[test]
fn no_sign_in_without_a_code_outlives_the_turning_on_of_a_second_factor() {
    let setup = Setup::new();
    let (halfway, complete) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for round in 0..ROUNDS {
        run(async {
            let (member, session) = setup.member(Role::Administrator).await;
            let change = async {
                let audit = confirmed(&member, &session);
                if round % 2 == 0 {
                    let factor = factor();
                    let shown = setup.members.offer(member.id, &session.digest(), &factor.secret).await.unwrap();
                    assert_eq!(shown.as_ref(), Some(&factor.secret));
                    setup.members.turn_on(&member, &factor, &audit).await.unwrap();
                } else {
                    setup.passkeys.add(&member, &passkey(), &audit).await.unwrap();
                }
            };
            for outcome in setup.sign_ins_during(round, &member, change).await {
                match outcome.unwrap() {
                    SignIn::CodeNeeded => halfway.fetch_add(1, Ordering::Relaxed),
                    SignIn::Complete => complete.fetch_add(1, Ordering::Relaxed),
                };
            }
            assert_eq!(setup.sessions_of(&member), 1, "but the session in which it was turned on");
        });
    }
    assert!(halfway.into_inner() > 0 && complete.into_inner() > 0);
}

fn passkey() -> NewPasskey {
    NewPasskey {
        id: Token::new(random()).digest(),
        credential: random::<16>().to_vec(),
        public_key: vec![0],
        name: Name::new("Phone").unwrap(),
    }
}

#[test]
fn no_sign_in_outlives_the_members_removal() {
    let setup = Setup::new();
    let (administrator, session) = run(setup.member(Role::Administrator));
    assert_ends_sign_ins(&setup, false, &async |member, _| {
        let audit = confirmed(&administrator, &session);
        setup.members.remove(member.organisation_id, member.id, &audit).await.unwrap();
    });
}

#[test]
fn every_sign_in_has_the_role_that_the_member_was_given() {
    let setup = Setup::new();
    let (administrator, session) = run(setup.member(Role::Administrator));
    for round in 0..ROUNDS {
        run(async {
            let (member, _) = setup.member(Role::Administrator).await;
            let change = async {
                let audit = confirmed(&administrator, &session);
                setup.members.change_role(member.organisation_id, member.id, Role::KeyManager, &audit).await.unwrap();
            };
            let outcomes = setup.sign_ins_during(round, &member, change).await;
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(SignIn::Complete))));
            for record in setup.sessions.sessions(member.id, NOW).await.unwrap() {
                let holder = setup.sessions.holder(&record.token, Visit::Script, NOW).await.unwrap();
                let Some(Holder::Member(signed_in)) = holder else { panic!("{holder:?}") };
                assert_eq!(signed_in.member.role, Role::KeyManager);
            }
            // Whatever is in flight with the role of before.
            let ended_session = confirmed(&member, &Token::new(random()));
            let ended = setup.members.require_second_factor(member.organisation_id, false, &ended_session).await;
            assert!(matches!(ended, Err(AdministerError::Store(StoreError::SessionEnded))));
            let audit = audit(member.actor());
            let refused = setup.members.require_second_factor(member.organisation_id, false, &audit).await;
            assert!(matches!(refused, Err(AdministerError::NotAdministrator)));
        });
    }
}

/// The message of a refusal by any port.
fn said<T>(refused: Result<T, impl Display>) -> Option<String> {
    refused.err().map(|error| error.to_string())
}

/// Else a member could change the address between the two steps of changing the password, and the time of a sign-in
/// would reveal another account with that address.
#[test]
fn a_password_that_was_hashed_with_another_salt_is_refused() {
    let setup = Setup::new();
    run(async {
        let (member, session) = setup.member(Role::Administrator).await;
        let hashed_for_another_address = PasswordHash::new("$argon2id$another salt$hash".to_owned());
        let by = confirmed(&member, &session);
        let refused = setup.members.change_password(&member, &hashed_for_another_address, &by).await;
        assert!(matches!(refused, Err(StoreError::SessionEnded)));
        assert_eq!(setup.database.count("members WHERE password_hash = 'old password'"), 1);
        setup.members.change_password(&member, &new_password(), &by).await.unwrap();
    });
}

/// A change that waited in the queue while the session was ended, say.
#[test]
fn nothing_is_changed_in_a_session_that_has_ended_or_was_not_confirmed() {
    let setup = Setup::new();
    run(async {
        let (member, session) = setup.member(Role::Administrator).await;
        let other = setup.member(Role::Administrator).await.0;
        let stolen = Token::new(random());
        let second = session_of(member.id, &stolen);
        let old = PasswordHash::new(OLD.to_owned());
        setup.sessions.begin(&second, &FirstStep::Password(old), &audit(member.actor())).await.unwrap();
        let stolen = setup.confirm(&member, &stolen).await;
        let change = confirmed(&member, &session);
        setup.members.change_password(&member, &new_password(), &change).await.unwrap();
        // One that has ended, one that was never confirmed, and nobody's.
        let unconfirmed = Token::new(random());
        let third = session_of(member.id, &unconfirmed);
        let new = new_password();
        setup.members.change_password(&member, &new, &confirmed(&member, &session)).await.unwrap();
        setup.sessions.begin(&third, &FirstStep::Password(new.clone()), &audit(member.actor())).await.unwrap();
        let entries = setup.database.count("audit_entries");
        for session in [&unconfirmed, &stolen, &Token::new(random())] {
            let by = || confirmed(&member, session);
            let email = "thief@clinic.example".parse().unwrap();
            let reset = NewMemberLink { token: Token::new(random()).digest(), expires_at: NOW };
            let organisation = member.organisation_id;
            let refused = [
                said(setup.members.change_password(&member, &new_password(), &by()).await),
                said(setup.members.change_email(&member, &email, &new, &new, &by()).await),
                said(setup.members.turn_on(&member, &factor(), &by()).await),
                said(setup.members.turn_off(&member, &by()).await),
                said(setup.members.replace_recovery_codes(&member, &[], &by()).await),
                said(setup.passkeys.add(&member, &passkey(), &by()).await),
                said(setup.passkeys.remove(&member, &Token::new(random()).digest(), &by()).await),
                said(setup.members.issue_password_reset(&other, &reset, LinkDelivery::Mailed, &by()).await),
                said(setup.members.change_role(organisation, other.id, Role::KeyManager, &by()).await),
                said(setup.members.require_second_factor(organisation, false, &by()).await),
                said(setup.members.remove(organisation, other.id, &by()).await),
            ];
            for (number, error) in refused.iter().enumerate() {
                assert_eq!(*error, said(Err::<(), _>(StoreError::SessionEnded)), "{number}");
            }
        }
        assert_eq!(setup.database.count("audit_entries"), entries);
    });
}
