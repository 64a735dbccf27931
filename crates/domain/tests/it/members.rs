//! Joining, signing in and leaving against mocked ports.

use intake_domain::{
    Action, Actor, AuditContext, Credentials, EasyToGuess, EmailAddress, FirstStep, Guest, HasherError, Invitation,
    InviteError, IssuedInvitation, JoinError, JoinOutcome, JoinRequest, LinkDelivery, MockInvitationStore,
    MockMemberStore, MockPasswordHasher, MockSessionStore, NameError, Network, NewCredential, PasswordError,
    PasswordHash, PresentedPassword, Requester, Role, Salt, SignIn, SignInError, Token, find_candidate, invite_member,
    join, note_failed_sign_in, sign_in,
};
use time::macros::datetime;

use crate::fixtures::{NOW, PASSWORD, ada, hash, organisation, origin, run};

/// Nobody has an account yet.
fn guests() -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(|_, _| Ok(vec![]));
    members
}

/// The invitation is open.
fn invitations() -> MockInvitationStore {
    invitations_by(LinkDelivery::Mailed)
}

fn invitations_by(delivery: LinkDelivery) -> MockInvitationStore {
    let mut invitations = MockInvitationStore::new();
    invitations.expect_invitation().returning(move |_, _| Ok(open_invitation(delivery)));
    invitations
}

fn open_invitation(delivery: LinkDelivery) -> Option<Invitation> {
    let organisation_name = "Clinic".to_owned();
    Some(Invitation { organisation_id: organisation(), email: ada().email, organisation_name, delivery })
}

fn try_to_join(
    (invitations, members): (&MockInvitationStore, &MockMemberStore),
    hasher: &MockPasswordHasher,
    name: &str,
    password: &str,
) -> Result<SignIn, JoinError> {
    let (invitation, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let password = &PresentedPassword::new(password);
    let request =
        JoinRequest { invitation: &invitation, name, password, id: ada().id, salt: [3; 16], session: &session };
    run(join(invitations, members, hasher, request, origin())).map(|(id, joined)| {
        assert_eq!(id, ada().id);
        joined
    })
}

#[test]
fn a_guest_becomes_a_member_with_a_session() {
    let mut invitations = invitations();
    invitations.expect_join().times(1).returning(|invitation, guest, session, recorded| {
        let Guest::New(member) = guest else { panic!("{guest:?}") };
        assert_eq!(invitation, &Token::new([1; 32]).digest());
        assert_eq!((member.id, member.name.as_str()), (ada().id, "Ada"));
        assert_eq!(member.credential, NewCredential::Password(hash()));
        assert_eq!(
            (session.token, session.member_id, session.started_at, session.browser),
            (Token::new([2; 32]).digest(), ada().id, NOW, origin().browser)
        );
        assert_eq!(recorded, &origin().by(ada().actor()));
        Ok(JoinOutcome::Joined)
    });
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().times(1).returning(|requester, password, salt| {
        assert_eq!(requester, Requester::Guest(Token::new([1; 32]).digest()));
        assert_eq!((password.expose(), salt), (PASSWORD, Salt::Random([3; 16])));
        Ok(hash())
    });
    assert_eq!(try_to_join((&invitations, &guests()), &hasher, "Ada", PASSWORD).unwrap(), SignIn::Complete);
}

/// Ada has an account, and is invited by another organisation.
fn members_who_know_the_guest() -> MockMemberStore {
    members_with_ada("203.0.113.9")
}

#[test]
fn a_guest_with_an_account_joins_by_its_password_and_its_second_factor() {
    for (joined, expected) in [(JoinOutcome::Joined, SignIn::Complete), (JoinOutcome::CodeNeeded, SignIn::CodeNeeded)] {
        let mut invitations = invitations();
        invitations.expect_join().times(1).returning(move |_, guest, session, recorded| {
            assert_eq!(
                (guest, session.member_id),
                (&Guest::Known(ada().account(), FirstStep::Password(hash())), ada().id)
            );
            assert_eq!(recorded, &origin().by(ada().actor()), "in the name of the account");
            Ok(joined)
        });
        let ports = (&invitations, &members_who_know_the_guest());
        assert_eq!(try_to_join(ports, &hasher_of_adas_salt(hash()), "Another", PASSWORD).unwrap(), expected);
    }
}

/// One hash, as for a guest without an account.
fn hasher_of_adas_salt(hashed: PasswordHash) -> MockPasswordHasher {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_hash().times(1).returning(move |requester, password, salt| {
        assert_eq!(requester, Requester::Guest(Token::new([1; 32]).digest()));
        assert_eq!((password.expose(), salt), (PASSWORD, Salt::Of(hash())));
        Ok(hashed.clone())
    });
    hasher
}

/// An account under an address that nobody proved keeps nobody out, even if the link was mailed.
#[test]
fn another_password_is_refused_only_where_the_guest_and_the_account_have_proved_the_address() {
    let other = || PasswordHash::new("$argon2id$other".to_owned());
    for (delivery, is_address_proved) in
        [(LinkDelivery::Mailed, true), (LinkDelivery::Mailed, false), (LinkDelivery::Shown, true)]
    {
        let (mut invitations, mut members) = (invitations_by(delivery), MockMemberStore::new());
        members.expect_credentials().returning(move |_, _| {
            let password = Some(hash());
            Ok(vec![Credentials { account: ada().account(), password, is_address_proved, is_familiar: false }])
        });
        let is_refused = delivery == LinkDelivery::Mailed && is_address_proved;
        invitations.expect_join().times(usize::from(!is_refused)).returning(move |_, guest, _, _| {
            let made = matches!(guest, Guest::New(new) if new.credential == NewCredential::Password(other()));
            assert!(made, "{guest:?}");
            Ok(JoinOutcome::Joined)
        });
        let joined = try_to_join((&invitations, &members), &hasher_of_adas_salt(other()), "Somebody else", PASSWORD);
        match joined {
            Err(JoinError::WrongPassword(accounts)) => assert!(is_refused && accounts == [ada().account()]),
            joined => assert_eq!((joined.unwrap(), is_refused), (SignIn::Complete, false)),
        }
    }
}

#[test]
fn the_name_of_an_account_is_not_changed_where_it_is_taken() {
    let mut invitations = invitations();
    invitations.expect_join().returning(|_, _, _, _| Ok(JoinOutcome::NameTaken));
    let ports = (&invitations, &members_who_know_the_guest());
    let refused = try_to_join(ports, &hasher_of_adas_salt(hash()), "Ada", PASSWORD);
    assert!(matches!(refused, Err(JoinError::AccountNameTaken)));
}

#[test]
fn both_faults_of_the_form_are_shown_without_asking_the_store() {
    match try_to_join((&MockInvitationStore::new(), &MockMemberStore::new()), &MockPasswordHasher::new(), " ", "short")
    {
        Err(JoinError::Invalid { name, password }) => {
            assert_eq!((name, password), (Some(NameError::Blank), Some(PasswordError::Length)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chosen_password_does_not_hold_the_organisations_name_and_that_of_an_account_may() {
    let other = || PasswordHash::new("$argon2id$other".to_owned());
    let invitations_by = |delivery| {
        let organisation_name = "Horse Battery".to_owned();
        let open = Invitation { organisation_name, delivery, ..open_invitation(delivery).unwrap() };
        let mut invitations = MockInvitationStore::new();
        invitations.expect_invitation().returning(move |_, _| Ok(Some(open.clone())));
        invitations
    };
    let members = members_who_know_the_guest();
    for (delivery, known) in [(LinkDelivery::Shown, &members), (LinkDelivery::Mailed, &guests())] {
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_hash().returning(move |_, _, _| Ok(other()));
        match try_to_join((&invitations_by(delivery), known), &hasher, "Ada", PASSWORD) {
            Err(JoinError::Invalid { name: None, password }) => {
                assert_eq!(password, Some(EasyToGuess::Organisation.into()));
            }
            joined => panic!("{joined:?}"),
        }
    }
    let mut invitations = invitations_by(LinkDelivery::Mailed);
    invitations.expect_join().times(1).returning(|_, _, _, _| Ok(JoinOutcome::Joined));
    let own = try_to_join((&invitations, &members), &hasher_of_adas_salt(hash()), "Ada", PASSWORD);
    assert_eq!(own.unwrap(), SignIn::Complete);
}

#[test]
fn a_stranger_does_not_make_the_service_hash() {
    let mut invitations = MockInvitationStore::new();
    invitations.expect_invitation().times(1).returning(|_, _| Ok(None));
    let result = try_to_join((&invitations, &MockMemberStore::new()), &MockPasswordHasher::new(), "Ada", PASSWORD);
    assert!(matches!(result, Err(JoinError::NoInvitation)));
}

#[test]
fn an_invitation_used_in_between_and_an_account_made_in_between_and_a_taken_name_are_refused() {
    for joined in [JoinOutcome::NoInvitation, JoinOutcome::AccountChanged, JoinOutcome::NameTaken] {
        let mut invitations = invitations();
        invitations.expect_join().returning(move |_, _, _, _| Ok(joined));
        let mut hasher = MockPasswordHasher::new();
        hasher.expect_hash().returning(|_, _, _| Ok(hash()));
        let result = try_to_join((&invitations, &guests()), &hasher, "Ada", PASSWORD);
        assert!(matches!(
            (joined, result),
            (JoinOutcome::NoInvitation, Err(JoinError::NoInvitation))
                | (JoinOutcome::AccountChanged, Err(JoinError::AccountChanged))
                | (JoinOutcome::NameTaken, Err(JoinError::Invalid { name: Some(NameError::Taken), password: None }))
        ));
    }
}

fn invite(
    invitations: &MockInvitationStore,
    email: EmailAddress,
    role: Role,
    audit: &AuditContext,
) -> Result<IssuedInvitation, InviteError> {
    let token = Token::new([5; 32]);
    run(invite_member(invitations, organisation(), email, role, token, LinkDelivery::Mailed, audit))
}

#[test]
fn an_invitation_is_good_for_72_hours() {
    let mut invitations = MockInvitationStore::new();
    invitations.expect_invite().times(1).returning(|invitation, _| {
        assert_eq!(invitation.expires_at, datetime!(2025-12-06 10:30 UTC));
        assert_eq!((invitation.token, invitation.role), (Token::new([5; 32]).digest(), Role::KeyManager));
        assert_eq!(invitation.delivery, LinkDelivery::Mailed);
        Ok(())
    });
    let email: EmailAddress = "grace@clinic.example".parse().unwrap();
    let audit = origin().by(Actor::Operator(intake_domain::Operator::default()));
    let made = invite(&invitations, email.clone(), Role::KeyManager, &audit).unwrap();
    assert_eq!((made.email, made.expires_at), (email, datetime!(2025-12-06 10:30 UTC)));
}

#[test]
fn a_refused_invitation_gives_the_reason() {
    let refused = |error: InviteError| {
        let mut invitations = MockInvitationStore::new();
        invitations.expect_invite().times(1).return_once(move |_, _| Err(error));
        let (email, audit) = (ada().email, origin().by(ada().actor()));
        invite(&invitations, email, Role::Administrator, &audit).unwrap_err().to_string()
    };
    assert_eq!(refused(InviteError::AlreadyMember(ada().email)), "ada@clinic.example is a member already");
    assert!(refused(InviteError::TooMany).contains("has 500 members and open invitations"));
    assert_eq!(refused(InviteError::NotAdministrator), "only administrators invite people");
    assert!(refused(InviteError::NoSuchOrganisation(organisation())).starts_with("there is no organisation"));
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
fn members_with_ada(home: &'static str) -> MockMemberStore {
    let mut members = MockMemberStore::new();
    members.expect_credentials().returning(move |email, from| {
        let is_familiar = from == Some(Network::of_neighbours(Some(home.parse().unwrap())));
        let ada =
            || Credentials { account: ada().account(), password: Some(hash()), is_address_proved: true, is_familiar };
        Ok((email.folded() == ADA).then(ada).into_iter().collect())
    });
    members
}

fn hasher_that_says(is_right: bool) -> MockPasswordHasher {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_find().times(1).returning(move |_, _, _| Ok(is_right.then(hash)));
    hasher
}

#[test]
fn the_right_pair_starts_a_session_in_the_members_own_name() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_find().times(1).returning(|_, presented, stored| {
        assert_eq!((presented.expose(), stored), (PASSWORD, &[hash()][..]));
        Ok(Some(hash()))
    });
    let mut sessions = MockSessionStore::new();
    sessions.expect_begin().times(1).returning(|session, first, recorded| {
        assert_eq!((session.token, session.member_id), (Token::new([2; 32]).digest(), ada().id));
        assert_eq!((first, &recorded.actor), (&FirstStep::Password(hash()), &ada().actor()));
        Ok(Some(SignIn::Complete))
    });
    let members = members_with_ada("203.0.113.9");
    let signed_in = try_to_sign_in(&members, &sessions, &hasher, "ADA@clinic.example");
    assert_eq!(signed_in.unwrap(), SignIn::Complete);
}

#[test]
fn the_right_pair_is_half_of_it_where_there_is_a_second_factor_and_nothing_after_a_change() {
    let try_with = |begun| {
        let mut sessions = MockSessionStore::new();
        sessions.expect_begin().times(1).returning(move |_, _, _| Ok(begun));
        try_to_sign_in(&members_with_ada("203.0.113.9"), &sessions, &hasher_that_says(true), ADA)
    };
    assert_eq!(try_with(Some(SignIn::CodeNeeded)).unwrap(), SignIn::CodeNeeded);
    let refused = try_with(None);
    assert!(matches!(refused, Err(SignInError::WrongPair(members)) if members == [ada().account()]));
}

#[test]
fn a_member_at_home_goes_before_all_strangers_and_nobody_else_does() {
    for (email, home, expected) in [
        (ADA, "203.0.113.77", Requester::Member(ada().id)),
        (ADA, "198.51.100.9", Requester::Stranger(Network::of_neighbours(origin().address))),
        ("eve@clinic.example", "203.0.113.77", Requester::Stranger(Network::of_neighbours(origin().address))),
    ] {
        let mut hasher = MockPasswordHasher::new();
        hasher
            .expect_find()
            .times(1)
            .withf(move |requester, _, _| *requester == expected)
            .returning(|_, _, _| Ok(None));
        let members = members_with_ada(home);
        let wrong = try_to_sign_in(&members, &MockSessionStore::new(), &hasher, email);
        assert!(matches!(wrong, Err(SignInError::WrongPair(_))), "{email}");
    }
}

#[test]
fn a_second_attempt_while_one_waits_is_refused_and_not_recorded() {
    let mut hasher = MockPasswordHasher::new();
    hasher.expect_find().returning(|_, _, _| Err(HasherError::AlreadyQueued));
    let members = members_with_ada("203.0.113.9");
    let refused = try_to_sign_in(&members, &MockSessionStore::new(), &hasher, ADA);
    assert!(matches!(refused, Err(SignInError::Hasher(HasherError::AlreadyQueued))));
}

#[test]
fn a_wrong_password_is_recorded_in_nobodys_name() {
    let mut sessions = MockSessionStore::new();
    sessions.expect_note_failure().times(1).returning(|account, action, recorded| {
        assert_eq!(
            (account, action, recorded),
            (&ada().account(), Action::SignInFailed, &origin().by(Actor::Stranger))
        );
        Ok(())
    });
    run(note_failed_sign_in(&sessions, &[ada().account()], origin())).unwrap();
}

/// One look at the members and one hash, and nothing of the sessions' store: what is asked before the answer is the
/// same, so that its time tells nothing.
#[test]
fn an_unknown_address_asks_the_same_of_every_port_as_a_wrong_password() {
    for (email, known) in [(ADA, vec![ada().account()]), ("eve@clinic.example", vec![])] {
        let members = members_with_ada("198.51.100.9");
        let no_sessions = MockSessionStore::new();
        let wrong = try_to_sign_in(&members, &no_sessions, &hasher_that_says(false), email);
        assert!(matches!(wrong, Err(SignInError::WrongPair(members)) if members == known), "{email}");
    }
    for nonsense in ["no address", ""] {
        let nobody = MockMemberStore::new();
        let wrong = try_to_sign_in(&nobody, &MockSessionStore::new(), &hasher_that_says(false), nonsense);
        assert!(matches!(wrong, Err(SignInError::WrongPair(members)) if members.is_empty()));
    }
}

#[test]
fn debug_output_of_a_request_does_not_show_the_password() {
    let (invitation, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let password = &PresentedPassword::new(PASSWORD);
    let (id, salt) = (ada().id, [3; 16]);
    let request = JoinRequest { invitation: &invitation, name: "Ada", password, id, salt, session: &session };
    let shown = format!("{request:?}");
    assert!(shown.contains("Ada") && !shown.contains(PASSWORD), "{shown}");
}
