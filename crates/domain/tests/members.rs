//! Joining, signing in and leaving against mocked ports.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use futures_util::FutureExt;
use intake_domain::{
    Action, Actor, AuditEntryId, Credentials, Deed, EmailAddress, Invitation, JoinError, JoinRequest, Joined, Member,
    MemberId, MockMemberStore, MockPasswordHasher, MockSessionStore, Name, NameError, OrganisationId, PasswordError,
    PasswordHash, SignIn, Token, invite_member, join, sign_in,
};
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
const PASSWORD: &str = "correct horse battery";

fn deed() -> Deed {
    let entry_id = AuditEntryId::new(NOW, [4; 10]);
    Deed { entry_id, actor: Actor::Stranger, address: Some([203, 0, 113, 9].into()), at: NOW }
}

fn organisation() -> OrganisationId {
    Uuid::from_u128(1).into()
}

fn ada() -> Member {
    Member {
        id: MemberId::new(NOW, [1; 10]),
        organisation_id: organisation(),
        name: Name::new("Ada").unwrap(),
        email: "ada@clinic.example".parse().unwrap(),
    }
}

fn hash() -> PasswordHash {
    PasswordHash::new("$argon2id$ada".to_owned())
}

fn open_invitation() -> Option<Invitation> {
    Some(Invitation { email: ada().email, organisation_name: "Clinic".to_owned() })
}

fn try_to_join(
    members: &MockMemberStore,
    hasher: &MockPasswordHasher,
    name: &str,
    password: &str,
) -> Result<(), JoinError> {
    let (invitation, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let request =
        JoinRequest { invitation: &invitation, name, password, id: ada().id, salt: [3; 16], session: &session };
    join(members, hasher, request, &deed()).now_or_never().expect("mocks answer at once")
}

#[test]
fn a_guest_becomes_a_member_with_a_session() {
    let mut members = MockMemberStore::new();
    members.expect_invitation().returning(|_, _| Ok(open_invitation()));
    members.expect_join().times(1).returning(|invitation, member, session, recorded| {
        assert_eq!(invitation, &Token::new([1; 32]).digest());
        assert_eq!((member.id, member.name.as_str(), &member.password), (ada().id, "Ada", &hash()));
        assert_eq!(
            (session.token, session.member_id, session.started_at),
            (Token::new([2; 32]).digest(), ada().id, NOW)
        );
        assert_eq!(recorded, &deed());
        Ok(Joined::Joined)
    });
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().times(1).returning(|password, salt| {
        assert_eq!((password.expose(), salt), (PASSWORD, [3; 16]));
        Ok(hash())
    });
    try_to_join(&members, &hasher, "Ada", PASSWORD).unwrap();
}

#[test]
fn both_faults_of_the_form_are_told_and_nobody_is_asked() {
    match try_to_join(&MockMemberStore::new(), &MockPasswordHasher::new(), " ", "short") {
        Err(JoinError::Invalid { name, password }) => {
            assert_eq!((name, password), (Some(NameError::Blank), Some(PasswordError::Length)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stranger_does_not_make_the_service_hash() {
    let mut members = MockMemberStore::new();
    members.expect_invitation().times(1).returning(|_, _| Ok(None));
    let result = try_to_join(&members, &MockPasswordHasher::new(), "Ada", PASSWORD);
    assert!(matches!(result, Err(JoinError::NoInvitation)));
}

#[test]
fn an_invitation_used_in_between_or_an_address_taken_is_told() {
    for (joined, is_taken) in [(Joined::NoInvitation, false), (Joined::EmailTaken, true)] {
        let mut members = MockMemberStore::new();
        members.expect_invitation().returning(|_, _| Ok(open_invitation()));
        members.expect_join().returning(move |_, _, _, _| Ok(joined));
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_hash().returning(|_, _| Ok(hash()));
        let result = try_to_join(&members, &hasher, "Ada", PASSWORD);
        assert_eq!(matches!(result, Err(JoinError::EmailTaken)), is_taken);
        assert_eq!(matches!(result, Err(JoinError::NoInvitation)), !is_taken);
    }
}

#[test]
fn an_invitation_is_good_for_72_hours() {
    let mut members = MockMemberStore::new();
    members.expect_invite().times(1).returning(|invitation, _| {
        assert_eq!(invitation.expires_at, datetime!(2025-12-06 10:30 UTC));
        assert_eq!(invitation.token, Token::new([5; 32]).digest());
        Ok(true)
    });
    let email: EmailAddress = "grace@clinic.example".parse().unwrap();
    let deed = deed();
    let made = invite_member(&members, organisation(), email.clone(), Token::new([5; 32]), &deed);
    let made = made.now_or_never().expect("mocks answer at once").unwrap().unwrap();
    assert_eq!((made.email, made.expires_at), (email, datetime!(2025-12-06 10:30 UTC)));
}

fn try_to_sign_in(
    members: &MockMemberStore,
    sessions: &MockSessionStore,
    hasher: &MockPasswordHasher,
    email: &str,
) -> SignIn {
    let token = Token::new([2; 32]);
    let signed_in = sign_in(members, sessions, hasher, (email, PASSWORD), &token, deed());
    signed_in.now_or_never().expect("mocks answer at once").unwrap()
}

fn members_with_ada(has_second_factor: bool) -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(move |email| {
        let is_ada = email.folded() == "ada@clinic.example";
        Ok(is_ada.then(|| Credentials { member: ada(), password: hash(), has_second_factor }))
    });
    members
}

#[test]
fn the_right_pair_starts_a_session_in_the_members_own_name() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().times(1).returning(|presented, stored| {
        assert_eq!((presented, stored), (PASSWORD, Some(hash())));
        Ok(true)
    });
    let mut sessions = MockSessionStore::new();
    sessions.expect_start().times(1).returning(|session, recorded| {
        assert_eq!((session.token, session.member_id), (Token::new([2; 32]).digest(), ada().id));
        assert_eq!(recorded.actor, Actor::Member(ada().id, "Ada".to_owned()));
        Ok(())
    });
    let signed_in = try_to_sign_in(&members_with_ada(false), &sessions, &hasher, "ADA@clinic.example");
    assert_eq!(signed_in, SignIn::SignedIn(ada()));
}

#[test]
fn the_right_pair_is_half_of_it_where_there_is_a_second_factor() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().returning(|_, _| Ok(true));
    let mut sessions = MockSessionStore::new();
    sessions.expect_start().never();
    sessions.expect_await_code().times(1).returning(|waiting| {
        assert_eq!(
            (waiting.token, waiting.member_id, waiting.started_at),
            (Token::new([2; 32]).digest(), ada().id, NOW)
        );
        Ok(())
    });
    let signed_in = try_to_sign_in(&members_with_ada(true), &sessions, &hasher, "ada@clinic.example");
    assert_eq!(signed_in, SignIn::CodeNeeded);
}

#[test]
fn a_wrong_password_is_recorded_and_starts_nothing() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().times(2).returning(|_, _| Ok(false));
    let mut sessions = MockSessionStore::new();
    sessions.expect_note_failure().times(2).returning(|member, action, recorded| {
        assert_eq!((member, action, &recorded.actor), (&ada(), Action::SignInFailed, &Actor::Stranger));
        Ok(())
    });
    // Whether there is a second factor, only the right password tells.
    for has_second_factor in [false, true] {
        let members = members_with_ada(has_second_factor);
        assert_eq!(try_to_sign_in(&members, &sessions, &hasher, "ada@clinic.example"), SignIn::Wrong);
    }
}

#[test]
fn an_unknown_address_takes_as_long_as_a_wrong_password() {
    for email in ["eve@clinic.example", "no address", ""] {
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_matches().times(1).withf(|_, stored| stored.is_none()).returning(|_, _| Ok(false));
        let members = members_with_ada(false);
        assert_eq!(try_to_sign_in(&members, &MockSessionStore::new(), &hasher, email), SignIn::Wrong);
    }
}
