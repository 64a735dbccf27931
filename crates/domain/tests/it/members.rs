//! Joining, signing in and leaving against mocked ports.

use intake_domain::{
    Action, Actor, Credentials, EmailAddress, HasherError, Invitation, InviteOutcome, JoinError, JoinOutcome,
    JoinRequest, MockMemberStore, MockPasswordHasher, MockSessionStore, NameError, Network, PasswordError,
    PresentedPassword, Role, SignIn, SignInError, Token, Waiter, find_candidate, invite_member, join,
    note_failed_sign_in, sign_in,
};
use time::macros::datetime;

use crate::fixtures::{NOW, PASSWORD, ada, hash, organisation, origin, run};

fn open_invitation() -> Option<Invitation> {
    Some(Invitation { organisation_id: organisation(), email: ada().email, organisation_name: "Clinic".to_owned() })
}

fn try_to_join(
    members: &MockMemberStore,
    hasher: &MockPasswordHasher,
    name: &str,
    password: &str,
) -> Result<(), JoinError> {
    let (invitation, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let password = &PresentedPassword::new(password);
    let request =
        JoinRequest { invitation: &invitation, name, password, id: ada().id, salt: [3; 16], session: &session };
    run(join(members, hasher, request, origin()))
}

#[test]
fn a_guest_becomes_a_member_with_a_session() {
    let mut members = MockMemberStore::new();
    members.expect_invitation().returning(|_, _| Ok(open_invitation()));
    members.expect_join().times(1).returning(|invitation, member, session, recorded| {
        assert_eq!(invitation, &Token::new([1; 32]).digest());
        assert_eq!((member.id, member.name.as_str(), &member.password), (ada().id, "Ada", &hash()));
        assert_eq!(
            (session.token, session.member_id, session.started_at, session.browser),
            (Token::new([2; 32]).digest(), ada().id, NOW, origin().browser)
        );
        assert_eq!(recorded, &origin().by(ada().actor()));
        Ok(JoinOutcome::Joined)
    });
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().times(1).returning(|waiter, password, salt| {
        assert_eq!(waiter, Waiter::Guest(Token::new([1; 32]).digest()));
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
    for (joined, is_taken) in [(JoinOutcome::NoInvitation, false), (JoinOutcome::EmailTaken, true)] {
        let mut members = MockMemberStore::new();
        members.expect_invitation().returning(|_, _| Ok(open_invitation()));
        members.expect_join().returning(move |_, _, _, _| Ok(joined));
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_hash().returning(|_, _, _| Ok(hash()));
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
        assert_eq!((invitation.token, invitation.role), (Token::new([5; 32]).digest(), Role::KeyManager));
        Ok(InviteOutcome::Invited)
    });
    let email: EmailAddress = "grace@clinic.example".parse().unwrap();
    let deed = origin().by(Actor::Operator);
    let made = invite_member(&members, organisation(), email.clone(), Role::KeyManager, Token::new([5; 32]), &deed);
    let made = run(made).unwrap();
    assert_eq!((made.email, made.expires_at), (email, datetime!(2025-12-06 10:30 UTC)));
}

#[test]
fn who_cannot_be_invited_is_told_why() {
    let invite = |outcome: InviteOutcome| {
        let mut members = MockMemberStore::new();
        members.expect_invite().times(1).returning(move |_, _| Ok(outcome));
        let (email, deed) = (ada().email, origin().by(ada().actor()));
        let made = invite_member(&members, organisation(), email, Role::Administrator, Token::new([5; 32]), &deed);
        run(made).unwrap_err().to_string()
    };
    assert_eq!(invite(InviteOutcome::AlreadyMember), "ada@clinic.example is a member already");
    assert!(invite(InviteOutcome::TooMany).contains("has 500 members and open invitations"));
    assert_eq!(invite(InviteOutcome::NotAdministrator), "only administrators invite people");
    assert!(invite(InviteOutcome::NoSuchOrganisation).starts_with("there is no organisation"));
}

const ADA: &str = "ada@clinic.example";

fn try_to_sign_in(
    members: &MockMemberStore,
    sessions: &MockSessionStore,
    hasher: &MockPasswordHasher,
    email: &str,
) -> Result<SignIn, SignInError> {
    let token = Token::new([2; 32]);
    let email: Option<EmailAddress> = email.parse().ok();
    let candidate = run(find_candidate(members, email.as_ref(), origin().address)).unwrap();
    let password = PresentedPassword::new(PASSWORD);
    run(sign_in(sessions, hasher, candidate, &password, &token, origin()))
}

/// Ada is known, and at home in one network.
fn members_with_ada(has_second_factor: bool, home: &'static str) -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(move |email, from| {
        let is_familiar = from == Some(Network::of_neighbours(Some(home.parse().unwrap())));
        let ada = || Credentials { member: ada(), password: hash(), has_second_factor, is_familiar };
        Ok((email.folded() == ADA).then(ada))
    });
    members
}

fn hasher_that_says(is_right: bool) -> MockPasswordHasher {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().times(1).returning(move |_, _, _| Ok(is_right));
    hasher
}

#[test]
fn the_right_pair_starts_a_session_in_the_members_own_name() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().times(1).returning(|_, presented, stored| {
        assert_eq!((presented.expose(), stored), (PASSWORD, Some(hash())));
        Ok(true)
    });
    let mut sessions = MockSessionStore::new();
    sessions.expect_start().times(1).returning(|session, recorded| {
        assert_eq!((session.token, session.member_id), (Token::new([2; 32]).digest(), ada().id));
        assert_eq!(recorded.actor, Actor::Member(ada().id, "Ada".to_owned()));
        Ok(())
    });
    let members = members_with_ada(false, "203.0.113.9");
    let signed_in = try_to_sign_in(&members, &sessions, &hasher, "ADA@clinic.example");
    assert_eq!(signed_in.unwrap(), SignIn::Complete);
}

#[test]
fn the_right_pair_is_half_of_it_where_there_is_a_second_factor() {
    let mut sessions = MockSessionStore::new();
    sessions.expect_start().never();
    sessions.expect_await_code().times(1).returning(|waiting| {
        assert_eq!(
            (waiting.token, waiting.member_id, waiting.started_at),
            (Token::new([2; 32]).digest(), ada().id, NOW)
        );
        Ok(())
    });
    let members = members_with_ada(true, "203.0.113.9");
    let halfway = try_to_sign_in(&members, &sessions, &hasher_that_says(true), ADA);
    assert_eq!(halfway.unwrap(), SignIn::CodeNeeded);
}

#[test]
fn a_member_at_home_goes_before_all_strangers_and_nobody_else_does() {
    for (email, home, expected) in [
        (ADA, "203.0.113.77", Waiter::Member(ada().id)),
        (ADA, "198.51.100.9", Waiter::Stranger(Network::of_neighbours(origin().address))),
        ("eve@clinic.example", "203.0.113.77", Waiter::Stranger(Network::of_neighbours(origin().address))),
    ] {
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_matches().times(1).withf(move |waiter, _, _| *waiter == expected).returning(|_, _, _| Ok(false));
        let members = members_with_ada(false, home);
        let wrong = try_to_sign_in(&members, &MockSessionStore::new(), &hasher, email);
        assert!(matches!(wrong, Err(SignInError::WrongPair(_))), "{email}");
    }
}

#[test]
fn whoever_is_in_line_already_is_told_so_and_nothing_is_recorded() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_matches().returning(|_, _, _| Err(HasherError::AlreadyInLine));
    let members = members_with_ada(false, "203.0.113.9");
    let refused = try_to_sign_in(&members, &MockSessionStore::new(), &hasher, ADA);
    assert!(matches!(refused, Err(SignInError::AlreadyInLine)));
}

#[test]
fn a_wrong_password_is_recorded_in_nobodys_name() {
    let mut sessions = MockSessionStore::new();
    sessions.expect_note_failure().times(1).returning(|member, action, recorded| {
        assert_eq!((member, action, recorded), (&ada(), Action::SignInFailed, &origin().by(Actor::Stranger)));
        Ok(())
    });
    run(note_failed_sign_in(&sessions, &ada(), origin())).unwrap();
}

/// One look at the members and one hash, and nothing of the sessions' store: what is asked before the answer is the
/// same, so that its time tells nothing.
#[test]
fn an_unknown_address_asks_the_same_of_every_port_as_a_wrong_password() {
    // Whether there is a second factor, only the right password tells.
    for (email, has_second_factor, known) in
        [(ADA, false, Some(ada())), (ADA, true, Some(ada())), ("eve@clinic.example", false, None)]
    {
        let members = members_with_ada(has_second_factor, "198.51.100.9");
        let no_sessions = MockSessionStore::new();
        let wrong = try_to_sign_in(&members, &no_sessions, &hasher_that_says(false), email);
        assert!(matches!(wrong, Err(SignInError::WrongPair(member)) if member == known), "{email}");
    }
    for nonsense in ["no address", ""] {
        let nobody = MockMemberStore::new();
        let wrong = try_to_sign_in(&nobody, &MockSessionStore::new(), &hasher_that_says(false), nonsense);
        assert!(matches!(wrong, Err(SignInError::WrongPair(None))));
    }
}

#[test]
fn debug_output_of_a_request_does_not_show_the_password() {
    let (invitation, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let password = &PresentedPassword::new(PASSWORD);
    let request =
        JoinRequest { invitation: &invitation, name: "Ada", password, id: ada().id, salt: [3; 16], session: &session };
    let shown = format!("{request:?}");
    assert!(shown.contains("Ada") && !shown.contains(PASSWORD), "{shown}");
}
