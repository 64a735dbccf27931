//! Changing one's name and password, and resetting a forgotten one, against mocked ports.

use intake_domain::{
    Actor, ChangeEmailError, ChangeNameError, ConfirmError, Credentials, EmailOutcome, IssueOutcome,
    IssuePasswordResetError, IssuedPasswordReset, MockMemberStore, MockPasswordHasher, NameError, OrganisationId,
    Password, PasswordError, PasswordHash, PasswordResetOutcome, PresentedPassword, ResetPasswordError, Token, Waiter,
    change_email, change_name, change_password, confirm_password, issue_password_reset, reset_password,
};
use time::macros::datetime;
use uuid::Uuid;

use crate::fixtures::{NOW, PASSWORD, ada, confirmed, hash, organisation, origin, run, signed_in};

const NEW_PASSWORD: &str = "four herons at the jetty";

fn new_hash() -> PasswordHash {
    PasswordHash::new("$argon2id$new".to_owned())
}

/// Knows Ada, whose password is [`PASSWORD`].
fn members() -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(|email, _| {
        assert_eq!(email.folded(), ada().email.folded());
        Ok(Some(Credentials { member: ada(), password: hash(), has_second_factor: false, is_familiar: false }))
    });
    members
}

fn hasher() -> MockPasswordHasher {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().returning(|waiter, presented, stored| {
        assert_eq!((waiter, stored), (Waiter::Member(ada().id), Some(hash())));
        Ok(presented.expose() == PASSWORD)
    });
    hasher
}

fn try_to_confirm(members: &MockMemberStore, hasher: &MockPasswordHasher, password: &str) -> Result<(), ConfirmError> {
    let (signed_in, password) = (signed_in(false), PresentedPassword::new(password));
    run(confirm_password(members, hasher, &signed_in, &password)).map(drop)
}

#[test]
fn only_the_right_password_confirms_a_member() {
    let (members, hasher) = (members(), hasher());
    assert!(try_to_confirm(&members, &hasher, PASSWORD).is_ok());
    for wrong in ["correct horse", ""] {
        assert!(matches!(try_to_confirm(&members, &hasher, wrong), Err(ConfirmError::WrongPassword)), "{wrong}");
    }
}

#[test]
fn a_confirmed_member_changes_the_password_and_the_session_goes_on() {
    let (mut members, mut hasher) = (MockMemberStore::new(), MockPasswordHasher::new());
    hasher.expect_hash().times(1).returning(|waiter, password, salt| {
        assert_eq!((waiter, password.expose(), salt), (Waiter::Member(ada().id), NEW_PASSWORD, [3; 16]));
        Ok(new_hash())
    });
    members.expect_change_password().times(1).returning(|member, password, kept, recorded| {
        assert_eq!((member, password, *kept), (&ada(), &new_hash(), Token::new([2; 32]).digest()));
        assert_eq!(recorded, &origin().by(ada().actor()));
        Ok(())
    });
    let (new, session, deed) = (Password::new(NEW_PASSWORD).unwrap(), Token::new([2; 32]), origin().by(ada().actor()));
    confirmed(&signed_in(false), |ada| {
        run(change_password(&members, &hasher, ada, &new, [3; 16], &session, &deed)).unwrap();
    });
}

#[test]
fn a_name_is_changed_once_and_keeps_the_rules() {
    let deed = origin().by(ada().actor());
    let mut members = MockMemberStore::new();
    members.expect_change_name().times(1).returning(|member, name, recorded| {
        assert_eq!((member, name.as_str(), recorded), (&ada(), "Ada King", &origin().by(ada().actor())));
        Ok(())
    });
    run(change_name(&members, &ada(), "Ada King", &deed)).unwrap();
    run(change_name(&members, &ada(), "Ada", &deed)).unwrap();
    let blank = run(change_name(&members, &ada(), " ", &deed));
    assert!(matches!(blank, Err(ChangeNameError::Invalid(NameError::Blank))));
}

#[test]
fn an_email_is_changed_once_and_may_be_taken() {
    for (outcome, is_changed) in [(EmailOutcome::Changed, true), (EmailOutcome::Taken, false)] {
        let mut members = MockMemberStore::new();
        members.expect_change_email().times(1).returning(move |member, email, kept, recorded| {
            assert_eq!((member, email.as_str()), (&ada(), "countess@clinic.example"));
            assert_eq!((*kept, recorded), (Token::new([2; 32]).digest(), &origin().by(ada().actor())));
            Ok(outcome)
        });
        let change = |email: &str| {
            let (email, session, deed) = (email.parse().unwrap(), Token::new([2; 32]), origin().by(ada().actor()));
            confirmed(&signed_in(false), |ada| run(change_email(&members, ada, &email, &session, &deed)))
        };
        let result = change("countess@clinic.example");
        assert_eq!(result.is_ok(), is_changed);
        assert!(is_changed || matches!(result, Err(ChangeEmailError::Taken)));
        change(ada().email.as_str()).unwrap();
    }
}

fn issue(
    members: &MockMemberStore,
    organisation: OrganisationId,
    email: &str,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    let (email, deed) = (email.parse().unwrap(), origin().by(Actor::Operator));
    run(issue_password_reset(members, organisation, &email, Token::new([5; 32]), &deed))
}

#[test]
fn a_reset_link_is_good_for_24_hours() {
    let mut members = members();
    members.expect_issue_password_reset().times(1).returning(|member, reset, recorded| {
        assert_eq!((member, reset.token), (&ada(), Token::new([5; 32]).digest()));
        assert_eq!((reset.expires_at, &recorded.actor), (datetime!(2025-12-04 10:30 UTC), &Actor::Operator));
        Ok(IssueOutcome::Issued)
    });
    let made = issue(&members, organisation(), "Ada@clinic.example");
    let made = made.unwrap();
    assert_eq!((made.email, made.expires_at), (ada().email, datetime!(2025-12-04 10:30 UTC)));
}

#[test]
fn no_link_is_made_for_a_member_of_another_organisation_nor_for_one_who_is_gone() {
    let elsewhere = issue(&members(), Uuid::from_u128(2).into(), "ada@clinic.example");
    assert!(matches!(elsewhere, Err(IssuePasswordResetError::NoSuchMember { .. })));
    let mut members = members();
    members.expect_issue_password_reset().times(1).returning(|_, _, _| Ok(IssueOutcome::NoSuchMember));
    let gone = issue(&members, organisation(), "ada@clinic.example");
    assert!(matches!(gone, Err(IssuePasswordResetError::NoSuchMember { .. })));
}

fn try_to_reset(
    members: &MockMemberStore,
    hasher: &MockPasswordHasher,
    password: &str,
) -> Result<(), ResetPasswordError> {
    let (token, password) = (Token::new([5; 32]), PresentedPassword::new(password));
    run(reset_password(members, hasher, &token, &password, [3; 16], origin()))
}

#[test]
fn an_open_link_gives_its_member_another_password() {
    for (outcome, is_done) in [(PasswordResetOutcome::Done, true), (PasswordResetOutcome::Gone, false)] {
        let (mut members, mut hasher) = (MockMemberStore::new(), MockPasswordHasher::new());
        members.expect_password_reset().times(1).returning(|token, now| {
            assert_eq!((*token, now), (Token::new([5; 32]).digest(), NOW));
            Ok(Some(ada()))
        });
        hasher.expect_hash().times(1).returning(|waiter, password, salt| {
            let guest = Waiter::Guest(Token::new([5; 32]).digest());
            assert_eq!((waiter, password.expose(), salt), (guest, NEW_PASSWORD, [3; 16]));
            Ok(new_hash())
        });
        members.expect_reset_password().times(1).returning(move |token, member, password, recorded| {
            assert_eq!((*token, member, password), (Token::new([5; 32]).digest(), &ada(), &new_hash()));
            assert_eq!(recorded, &origin().by(Actor::Stranger));
            Ok(outcome)
        });
        let result = try_to_reset(&members, &hasher, NEW_PASSWORD);
        assert_eq!(result.is_ok(), is_done);
        assert!(is_done || matches!(result, Err(ResetPasswordError::NoReset)));
    }
}

#[test]
fn a_dead_link_makes_nobody_hash_and_a_bad_password_asks_nobody() {
    let mut members = MockMemberStore::new();
    members.expect_password_reset().times(1).returning(|_, _| Ok(None));
    let dead = try_to_reset(&members, &MockPasswordHasher::new(), NEW_PASSWORD);
    assert!(matches!(dead, Err(ResetPasswordError::NoReset)));
    let short = try_to_reset(&MockMemberStore::new(), &MockPasswordHasher::new(), "short");
    assert!(matches!(short, Err(ResetPasswordError::Invalid(PasswordError::Length))));
}
