//! Changing one's name and password against mocked ports.

use intake_domain::{
    ChangeNameError, ChangePasswordError, ChangePasswordRequest, Credentials, MockMemberStore, MockPasswordHasher,
    NameError, PasswordError, PasswordHash, PresentedPassword, Token, Waiter, change_name, change_password,
};

use crate::fixtures::{PASSWORD, ada, hash, origin, run};

const NEW_PASSWORD: &str = "four herons at the jetty";

fn new_hash() -> PasswordHash {
    PasswordHash::new("$argon2id$new".to_owned())
}

/// Knows Ada, whose password is [`PASSWORD`].
fn members() -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(|email, _| {
        assert_eq!(email, &ada().email);
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

fn try_to_change(
    members: &MockMemberStore,
    hasher: &MockPasswordHasher,
    current: &str,
    new: &str,
) -> Result<(), ChangePasswordError> {
    let (current, new, session) = (PresentedPassword::new(current), PresentedPassword::new(new), Token::new([2; 32]));
    let request = ChangePasswordRequest { current: &current, new: &new, salt: [3; 16], session: &session };
    run(change_password(members, hasher, &ada(), request, &origin().by(ada().actor())))
}

#[test]
fn a_password_is_changed_by_who_knows_the_current_one_and_the_session_goes_on() {
    let (mut members, mut hasher) = (members(), hasher());
    hasher.expect_hash().times(1).returning(|waiter, password, salt| {
        assert_eq!((waiter, password.expose(), salt), (Waiter::Member(ada().id), NEW_PASSWORD, [3; 16]));
        Ok(new_hash())
    });
    members.expect_change_password().times(1).returning(|member, password, kept, recorded| {
        assert_eq!((member, password, *kept), (&ada(), &new_hash(), Token::new([2; 32]).digest()));
        assert_eq!(recorded, &origin().by(ada().actor()));
        Ok(())
    });
    try_to_change(&members, &hasher, PASSWORD, NEW_PASSWORD).unwrap();
}

#[test]
fn a_wrong_current_password_changes_nothing() {
    let result = try_to_change(&members(), &hasher(), "correct horse", NEW_PASSWORD);
    assert!(matches!(result, Err(ChangePasswordError::WrongPassword)));
}

#[test]
fn a_new_password_keeps_the_rules_before_anything_is_compared() {
    for (new, fault) in [("short", PasswordError::Length), ("passwordpassword", PasswordError::Common)] {
        let result = try_to_change(&MockMemberStore::new(), &MockPasswordHasher::new(), PASSWORD, new);
        assert!(matches!(result, Err(ChangePasswordError::Invalid(found)) if found == fault), "{new}");
    }
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
