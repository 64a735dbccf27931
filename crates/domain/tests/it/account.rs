//! Changing one's name and password, and resetting a forgotten one, against mocked ports.

use std::sync::{Arc, Mutex};

use intake_domain::{
    Action, Actor, ChangeEmailError, ChangeNameError, ChangePasswordError, ConfirmEmailError, ConfirmError,
    ConfirmedMember, Credentials, EmailAddress, Evidence, Factors, IssuePasswordResetError, IssuedPasswordReset,
    LinkDelivery, MockAccountStore, MockEmailChangeStore, MockMemberStore, MockPasswordHasher, MockPasswordResetStore,
    MockSessionStore, NameError, OpenReset, OrganisationId, PASSWORD_RESET_LIFE, PasskeysAtReset, Password,
    PasswordHash, PasswordOwner, PresentedCode, PresentedPassword, Proof, RecoveryCode, Renewal, Requester,
    ResetPasswordError, Salt, SignedIn, Token, TotpSecret, change_email, change_name, change_password,
    confirm_by_password, confirm_email_change, issue_password_reset, request_password_reset, reset_password,
};
use time::Duration;
use time::macros::datetime;
use uuid::Uuid;

use crate::fixtures::{
    NOW, PASSWORD, ada, confirmed, confirmed_audit, hash, organisation, origin, run, session, signed_in,
};

const NEW_PASSWORD: &str = "four herons at the jetty";

fn new_password() -> Password {
    Password::new(NEW_PASSWORD, PasswordOwner::default()).unwrap()
}

fn new_hash() -> PasswordHash {
    PasswordHash::new("$argon2id$new".to_owned())
}

/// Knows Ada, whose password is [`PASSWORD`].
fn members() -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(|email, _| {
        assert_eq!(email.folded(), ada().email.folded());
        Ok(vec![Credentials {
            account: ada().account(),
            password: Some(hash()),
            is_address_proved: true,
            is_familiar: false,
        }])
    });
    members.expect_member().returning(|id, email| {
        let is_ada = id == organisation() && email.folded() == ada().email.folded();
        Ok(is_ada.then(ada))
    });
    members
}

fn hasher() -> MockPasswordHasher {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_find().returning(|requester, presented, stored| {
        assert_eq!((requester, stored), (Requester::Confirmation(session().digest()), &[hash()][..]));
        Ok((presented.expose() == PASSWORD).then(hash))
    });
    hasher
}

/// The token under which the session goes on.
fn next_token() -> Token {
    Token::new([8; 32])
}

/// Tries to confirm Ada, whose app has this secret, by what she typed. Gives what the store was asked to accept.
fn try_to_confirm(
    secret: Option<&TotpSecret>,
    password: &str,
    code: Option<&str>,
    confirm: impl Fn() -> Result<(), ConfirmError> + Send + Sync + 'static,
) -> (Result<(), ConfirmError>, Vec<Evidence>) {
    let (members, hasher, mut sessions) = (members(), hasher(), MockSessionStore::new());
    let (secret, shown) = (secret.cloned(), Arc::new(Mutex::new(Vec::new())));
    sessions.expect_factors().returning(move |_| {
        Ok(Factors { secret: secret.clone(), has_passkey: false, has_password: true, is_linked_to_provider: false })
    });
    let seen = Arc::clone(&shown);
    let failures = usize::from(matches!(confirm(), Err(ConfirmError::WrongFactor)));
    sessions.expect_confirm().returning(move |token, next, evidence, recorded| {
        assert_eq!((*token, *next, recorded), (session().digest(), next_token().digest(), &origin().by(ada().actor())));
        seen.lock().unwrap().push(evidence.clone());
        confirm()
    });
    sessions.expect_note_failure().times(failures).returning(|account, action, _| {
        assert_eq!((account, action), (&ada().account(), Action::CodeFailed));
        Ok(())
    });
    let (signed_in, password) = (signed_in(false), PresentedPassword::new(password));
    let code = code.map(PresentedCode::new);
    let typed = (&password, code.as_ref());
    let (session, next) = (session(), next_token());
    let renewal = Renewal { session: &session, next: &next };
    let done = run(confirm_by_password(&members, &sessions, &hasher, &signed_in, renewal, typed, origin()));
    let shown = shown.lock().unwrap().clone();
    (done, shown)
}

#[test]
fn only_the_right_password_confirms_a_member() {
    let (done, shown) = try_to_confirm(None, PASSWORD, None, || Ok(()));
    done.unwrap();
    assert_eq!(shown, [Evidence::Password(hash(), None)]);
    for wrong in ["correct horse", ""] {
        let (done, shown) = try_to_confirm(None, wrong, None, || Ok(()));
        assert!(matches!(done, Err(ConfirmError::WrongPassword)) && shown.is_empty(), "{wrong}");
    }
}

#[test]
fn a_typed_code_is_shown_to_the_store_and_a_wrong_one_is_recorded() {
    let secret = TotpSecret::new([9; 20]);
    let right = secret.code_at(NOW);
    let (done, shown) = try_to_confirm(Some(&secret), PASSWORD, Some(&right), || Ok(()));
    done.unwrap();
    assert_eq!(shown, [Evidence::Password(hash(), Some(Proof::Step(NOW.unix_timestamp() / 30)))]);
    let recovery = RecoveryCode::new([1; 16]);
    let (_, shown) = try_to_confirm(Some(&secret), PASSWORD, Some(recovery.expose()), || Ok(()));
    assert_eq!(shown, [Evidence::Password(hash(), Some(Proof::RecoveryCode(recovery.digest())))]);
    let (wrong, _) = try_to_confirm(Some(&secret), PASSWORD, Some("000000"), || Err(ConfirmError::WrongFactor));
    assert!(matches!(wrong, Err(ConfirmError::WrongFactor)));
    let (alone, _) = try_to_confirm(Some(&secret), PASSWORD, None, || Err(ConfirmError::NotEnough));
    assert!(matches!(alone, Err(ConfirmError::NotEnough)));
    let (guess, shown) = try_to_confirm(Some(&secret), "guess", Some(&right), || Ok(()));
    assert!(matches!(guess, Err(ConfirmError::WrongPassword)) && shown.is_empty(), "the code is not used up");
}

#[test]
fn a_confirmation_is_good_for_a_quarter_of_an_hour() {
    for (age, is_good) in [(Duration::ZERO, true), (Duration::minutes(14), true), (Duration::minutes(15), false)] {
        let signed_in = SignedIn { confirmed_at: Some(NOW - age), ..signed_in(false) };
        assert_eq!(ConfirmedMember::of(&signed_in, &session(), NOW).is_some(), is_good, "{age}");
    }
    let never = SignedIn { confirmed_at: None, ..signed_in(false) };
    assert!(ConfirmedMember::of(&never, &session(), NOW).is_none());
}

#[test]
fn a_confirmed_member_changes_the_password_and_the_session_goes_on() {
    let (mut accounts, mut hasher) = (MockAccountStore::new(), MockPasswordHasher::new());
    hasher.expect_hash().times(1).returning(|requester, password, salt| {
        let of_the_address = Salt::Of(hash());
        assert_eq!((requester, password.expose(), salt), (Requester::NewPassword, NEW_PASSWORD, of_the_address));
        Ok(new_hash())
    });
    accounts.expect_change_password().times(1).returning(|member, password, recorded| {
        assert_eq!((member, password), (&ada(), &new_hash()));
        assert_eq!(recorded, &confirmed_audit());
        Ok(())
    });
    let (new, audit) = (new_password(), origin().by(ada().actor()));
    confirmed(&signed_in(false), |ada| {
        run(change_password(&accounts, &members(), &hasher, ada, &new, [3; 16], &audit)).unwrap();
    });
}

#[test]
fn the_password_that_a_member_has_is_not_changed() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().times(1).returning(|_, _, _| Ok(hash()));
    let (new, audit) = (new_password(), origin().by(ada().actor()));
    let refused = confirmed(&signed_in(false), |ada| {
        run(change_password(&MockAccountStore::new(), &members(), &hasher, ada, &new, [3; 16], &audit))
    });
    assert!(matches!(refused, Err(ChangePasswordError::Same)), "{refused:?}");
}

#[test]
fn a_name_is_changed_once_obeys_the_rules_and_must_be_free() {
    let audit = origin().by(ada().actor());
    let mut accounts = MockAccountStore::new();
    accounts.expect_change_name().times(1).returning(|member, name, recorded| {
        assert_eq!((member, name.as_str(), recorded), (&ada(), "Ada King", &origin().by(ada().actor())));
        Ok(())
    });
    run(change_name(&accounts, &ada(), "Ada King", &audit)).unwrap();
    run(change_name(&accounts, &ada(), "Ada", &audit)).unwrap();
    let blank = run(change_name(&accounts, &ada(), " ", &audit));
    assert!(matches!(blank, Err(ChangeNameError::Invalid(NameError::Blank))));
    let reserved = run(change_name(&accounts, &ada(), "An operator", &audit));
    assert!(matches!(reserved, Err(ChangeNameError::Invalid(NameError::Reserved))));
    accounts.checkpoint();
    accounts.expect_change_name().times(1).returning(|_, _, _| Err(ChangeNameError::Invalid(NameError::Taken)));
    let taken = run(change_name(&accounts, &ada(), "Grace", &audit));
    assert!(matches!(taken, Err(ChangeNameError::Invalid(NameError::Taken))));
}

/// Tries it where another account may have the new address, with this hash.
fn try_to_change_email(
    other: Option<PasswordHash>,
    email: &str,
    password: &str,
    outcome: Result<(), ChangeEmailError>,
) -> Result<(), ChangeEmailError> {
    let (mut accounts, mut members) = (MockAccountStore::new(), MockMemberStore::new());
    let mut hasher = MockPasswordHasher::new();
    let salt = other.clone().map_or(Salt::Random([3; 16]), Salt::Of);
    members.expect_credentials().returning(move |email, _| {
        let found = if email.folded() == ada().email.folded() { Some(hash()) } else { other.clone() };
        let credentials = |password| Credentials {
            account: ada().account(),
            password: Some(password),
            is_address_proved: true,
            is_familiar: false,
        };
        Ok(found.map(credentials).into_iter().collect())
    });
    hasher.expect_find().returning(|_, presented, stored| {
        assert_eq!(stored, &[hash()][..]);
        Ok((presented.expose() == PASSWORD).then(hash))
    });
    hasher.expect_hash().returning(move |_, password, with| {
        assert_eq!((password.expose(), with), (PASSWORD, salt.clone()));
        Ok(new_hash())
    });
    accounts.expect_change_email().return_once(move |member, email, seen, new, recorded| {
        assert_eq!((member, email.as_str()), (&ada(), "countess@clinic.example"));
        assert_eq!((seen, new, recorded), (&hash(), &new_hash(), &confirmed_audit()));
        outcome
    });
    let (email, password) = (email.parse().unwrap(), PresentedPassword::new(password));
    let audit = origin().by(ada().actor());
    confirmed(&signed_in(false), |ada| {
        run(change_email(&accounts, &members, &hasher, ada, (&email, &password), [3; 16], &audit))
    })
}

#[test]
fn an_email_is_changed_by_the_password_which_is_hashed_with_the_salt_of_the_new_address() {
    const COUNTESS: &str = "countess@clinic.example";
    for other in [None, Some(PasswordHash::new("$argon2id$elsewhere".to_owned()))] {
        let change =
            |email: &str, password: &str, outcome| try_to_change_email(other.clone(), email, password, outcome);
        change(COUNTESS, PASSWORD, Ok(())).unwrap();
        change(ada().email.as_str(), "", Err(ChangeEmailError::Taken)).unwrap();
        let wrong = change(COUNTESS, "correct horse", Ok(()));
        assert!(matches!(wrong, Err(ChangeEmailError::WrongPassword)));
        let taken = change(COUNTESS, PASSWORD, Err(ChangeEmailError::Taken));
        assert!(matches!(taken, Err(ChangeEmailError::Taken)));
        let changed = change(COUNTESS, PASSWORD, Err(ChangeEmailError::AccountChanged));
        assert!(matches!(changed, Err(ChangeEmailError::AccountChanged)));
    }
}

fn issue(
    resets: &MockPasswordResetStore,
    organisation: OrganisationId,
    email: &str,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    let (email, audit) = (email.parse().unwrap(), origin().by(Actor::Operator(intake_domain::Operator::default())));
    let (token, shown) = (Token::new([5; 32]), LinkDelivery::Shown);
    run(issue_password_reset(&members(), resets, organisation, &email, token, shown, &audit))
}

#[test]
fn a_reset_link_is_good_for_24_hours() {
    let mut resets = MockPasswordResetStore::new();
    resets.expect_issue_password_reset().times(1).returning(|member, reset, delivery, recorded| {
        let token = Token::new([5; 32]).digest();
        assert_eq!((member, reset.token, delivery), (&ada(), token, LinkDelivery::Shown));
        assert_eq!(
            (reset.expires_at, &recorded.actor),
            (datetime!(2025-12-04 10:30 UTC), &Actor::Operator(intake_domain::Operator::default()))
        );
        Ok(())
    });
    let made = issue(&resets, organisation(), "Ada@clinic.example");
    let made = made.unwrap();
    assert_eq!((made.email, made.expires_at), (ada().email, datetime!(2025-12-04 10:30 UTC)));
}

#[test]
fn no_link_is_made_for_a_member_of_another_organisation_nor_for_one_who_is_shared() {
    let elsewhere = issue(&MockPasswordResetStore::new(), Uuid::from_u128(2).into(), "ada@clinic.example");
    assert!(matches!(elsewhere, Err(IssuePasswordResetError::NoSuchMember { .. })));
    let mut resets = MockPasswordResetStore::new();
    let refused = |_: &_, _: &_, _, _: &_| Err(IssuePasswordResetError::SharedAccount);
    resets.expect_issue_password_reset().times(1).returning(refused);
    let shared = issue(&resets, organisation(), "ada@clinic.example");
    assert!(matches!(shared, Err(IssuePasswordResetError::SharedAccount)));
}

fn try_to_reset(resets: &MockPasswordResetStore, hasher: &MockPasswordHasher) -> Result<(), ResetPasswordError> {
    let (token, password) = (Token::new([5; 32]), new_password());
    let password = (&password, PasskeysAtReset::Removed);
    run(reset_password(&members(), resets, hasher, &token, password, [3; 16], origin()))
}

#[test]
fn an_open_link_gives_its_member_another_password() {
    for is_done in [true, false] {
        let (mut resets, mut hasher) = (MockPasswordResetStore::new(), MockPasswordHasher::new());
        resets.expect_password_reset().times(1).returning(|token, now| {
            assert_eq!((*token, now), (Token::new([5; 32]).digest(), NOW));
            Ok(Some(OpenReset { account: ada().account(), may_remove_passkeys: true }))
        });
        hasher.expect_hash().times(1).returning(|requester, password, salt| {
            let guest = Requester::Guest(Token::new([5; 32]).digest());
            assert_eq!((requester, password.expose(), salt), (guest, NEW_PASSWORD, Salt::Of(hash())));
            Ok(new_hash())
        });
        resets.expect_reset_password().times(1).returning(move |token, account, password, passkeys, recorded| {
            assert_eq!((*token, account, password), (Token::new([5; 32]).digest(), &ada().account(), &new_hash()));
            assert_eq!(passkeys, PasskeysAtReset::Removed);
            assert_eq!(recorded, &origin().by(Actor::Stranger));
            if is_done { Ok(()) } else { Err(ResetPasswordError::NoReset) }
        });
        let result = try_to_reset(&resets, &hasher);
        assert_eq!(result.is_ok(), is_done);
        assert!(is_done || matches!(result, Err(ResetPasswordError::NoReset)));
    }
}

#[test]
fn a_dead_link_makes_nobody_hash() {
    let mut resets = MockPasswordResetStore::new();
    resets.expect_password_reset().times(1).returning(|_, _| Ok(None));
    let dead = try_to_reset(&resets, &MockPasswordHasher::new());
    assert!(matches!(dead, Err(ResetPasswordError::NoReset)));
}

#[test]
fn a_link_that_was_asked_for_is_the_members_alone_and_open_for_a_day() {
    for known in [Some(ada().account()), None] {
        let mut resets = MockPasswordResetStore::new();
        let found = known.clone();
        resets.expect_request_password_reset().times(1).returning(move |member, link, recorded| {
            assert_eq!((member, link.token), (ada().id, Token::new([4; 32]).digest()));
            assert_eq!((link.expires_at, recorded), (NOW + PASSWORD_RESET_LIFE, &origin().by(Actor::Stranger)));
            Ok(found.clone())
        });
        let make_token = || Token::new([4; 32]);
        let made = run(request_password_reset(&members(), &resets, &ada().email, make_token, origin())).unwrap();
        let made: Vec<_> = made.into_iter().map(|(account, link)| (account, link.expires_at)).collect();
        let expected: Vec<_> = known.into_iter().map(|ada| (ada, NOW + PASSWORD_RESET_LIFE)).collect();
        assert_eq!(made, expected);
    }
    let mut nobody = MockMemberStore::new();
    nobody.expect_credentials().returning(|_, _| Ok(vec![]));
    let (resets, make_token) = (MockPasswordResetStore::new(), || Token::new([4; 32]));
    let made = run(request_password_reset(&nobody, &resets, &ada().email, make_token, origin())).unwrap();
    assert!(made.is_empty());
}

#[test]
fn a_new_address_counts_once_its_link_was_opened() {
    let email: EmailAddress = "ada@elsewhere.example".parse().unwrap();
    for outcome in [Ok(()), Err(ConfirmEmailError::Taken), Err(ConfirmEmailError::NoChange)] {
        let expected = outcome.is_ok().then(|| (ada().account(), email.clone()));
        let (mut changes, asked) = (MockEmailChangeStore::new(), email.clone());
        changes.expect_email_change().returning(move |_, _| Ok(Some((ada().account(), asked.clone()))));
        changes.expect_confirm_email_change().times(1).return_once(move |_, account, new, recorded| {
            assert_eq!((account, new.as_str()), (&ada().account(), "ada@elsewhere.example"));
            assert_eq!(recorded, &origin().by(ada().actor()));
            outcome
        });
        let confirmed = run(confirm_email_change(&changes, &Token::new([5; 32]), origin()));
        assert_eq!(confirmed.ok(), expected);
    }
    let mut changes = MockEmailChangeStore::new();
    changes.expect_email_change().returning(|_, _| Ok(None));
    let refused = run(confirm_email_change(&changes, &Token::new([5; 32]), origin()));
    assert!(matches!(refused, Err(ConfirmEmailError::NoChange)));
}
