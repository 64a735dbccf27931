//! Getting, using and losing a second factor against mocked ports.

use intake_domain::{
    Action, Actor, AuditContext, AwaitedMember, CodeError, MockMemberStore, MockSecondFactorStore, MockSessionStore,
    OrganisationId, PresentedCode, Proof, RecoveryCode, SecondFactorError, SecondFactorRequest, Token, TotpSecret,
    finish_sign_in, offer_second_factor, replace_recovery_codes, reset_second_factor, turn_off_second_factor,
    turn_on_second_factor,
};
use uuid::Uuid;

use crate::fixtures::{NOW, ada, confirmed, confirmed_audit, organisation, origin, run, signed_in};

fn audit() -> AuditContext {
    origin().by(ada().actor())
}

fn secret() -> TotpSecret {
    TotpSecret::new([7; 20])
}

fn codes() -> [RecoveryCode; 2] {
    [RecoveryCode::new([1; 16]), RecoveryCode::new([2; 16])]
}

fn try_to_turn_on(factors: &MockSecondFactorStore, code: &str) -> Result<(), SecondFactorError> {
    let (codes, code) = (codes(), PresentedCode::new(code));
    let request = SecondFactorRequest { secret: secret(), code: &code, recovery_codes: &codes };
    confirmed(&signed_in(false), |ada| run(turn_on_second_factor(factors, ada, request, &audit())))
}

fn try_to_finish(sessions: &MockSessionStore, code: &str) -> Result<(), CodeError> {
    let awaited =
        AwaitedMember { account: ada().account(), invitation: None, secret: Some(secret()), has_passkey: false };
    let (waiting, session) = (Token::new([1; 32]), Token::new([2; 32]));
    let code = PresentedCode::new(code);
    run(finish_sign_in(sessions, &awaited, &waiting, &code, &session, origin()))
}

#[test]
fn a_code_turns_it_on_and_is_used_up() {
    let mut factors = MockSecondFactorStore::new();
    factors.expect_turn_on().times(1).returning(|member, factor, recorded| {
        assert_eq!((member, &factor.secret, recorded), (&ada(), &secret(), &confirmed_audit()));
        assert_eq!(factor.used_step, NOW.unix_timestamp() / 30);
        assert_eq!(factor.recovery_codes, codes().map(|code| code.digest()));
        Ok(())
    });
    try_to_turn_on(&factors, &secret().code_at(NOW)).unwrap();
}

#[test]
fn the_secret_is_offered_to_the_session_that_was_confirmed() {
    let mut factors = MockSecondFactorStore::new();
    factors.expect_offer().times(1).returning(|member, session, new| {
        assert_eq!(
            (member, Some(*session), new),
            (ada().id, confirmed_audit().confirmed_in, &TotpSecret::new([8; 20]))
        );
        Ok(Some(secret()))
    });
    let signed_in = signed_in(false);
    let offered = confirmed(&signed_in, |ada| run(offer_second_factor(&factors, &ada, [8; 20])));
    assert_eq!(offered.unwrap(), Some(secret()), "the one that it was shown before");
}

#[test]
fn nothing_is_turned_on_by_a_wrong_code_or_twice() {
    let right = secret().code_at(NOW);
    let wrong = if right == "000000" { "000001" } else { "000000" };
    let refused = try_to_turn_on(&MockSecondFactorStore::new(), wrong);
    assert!(matches!(refused, Err(SecondFactorError::WrongCode)));
    let mut factors = MockSecondFactorStore::new();
    factors.expect_turn_on().times(1).returning(|_, _, _| Err(SecondFactorError::Unchanged));
    assert!(matches!(try_to_turn_on(&factors, &right), Err(SecondFactorError::Unchanged)));
}

#[test]
fn it_is_turned_off_unless_the_organisation_requires_it() {
    let mut factors = MockSecondFactorStore::new();
    factors.expect_turn_off().times(1).returning(|member, _| {
        assert_eq!(*member, ada());
        Ok(())
    });
    let turn_off = |is_required: bool| {
        confirmed(&signed_in(is_required), |ada| run(turn_off_second_factor(&factors, ada, &audit())))
    };
    assert!(matches!(turn_off(true), Err(SecondFactorError::Required)));
    turn_off(false).unwrap();
}

#[test]
fn recovery_codes_are_replaced_by_their_digests() {
    let mut factors = MockSecondFactorStore::new();
    factors.expect_replace_recovery_codes().times(1).returning(|member, digests, _| {
        assert_eq!((member, digests), (&ada(), codes().map(|code| code.digest()).as_slice()));
        Ok(())
    });
    let signed_in = signed_in(true);
    confirmed(&signed_in, |ada| run(replace_recovery_codes(&factors, ada, &codes(), &audit()))).unwrap();
}

#[test]
fn an_operator_turns_it_off_for_a_member_of_that_organisation_alone() {
    let (mut members, mut factors) = (MockMemberStore::new(), MockSecondFactorStore::new());
    members.expect_member().returning(|id, email| {
        let is_ada = id == organisation() && *email == ada().email;
        Ok(is_ada.then(ada))
    });
    let mut results = [Err(SecondFactorError::Unchanged), Ok(())].into_iter();
    factors.expect_turn_off().times(2).returning(move |_, _| results.next().unwrap());
    let reset = |organisation: OrganisationId, email: &str| {
        let email = email.parse().unwrap();
        run(reset_second_factor(&members, &factors, organisation, &email, &audit()))
    };
    for (organisation, email) in
        [(Uuid::from_u128(2).into(), "ada@clinic.example"), (organisation(), "eve@clinic.example")]
    {
        assert!(matches!(reset(organisation, email), Err(SecondFactorError::NoSuchMember { .. })), "{email}");
    }
    assert!(matches!(reset(organisation(), "ada@clinic.example"), Err(SecondFactorError::Unchanged)));
    reset(organisation(), "ada@clinic.example").unwrap();
}

#[test]
fn the_code_of_the_app_finishes_a_sign_in_under_a_new_token() {
    let mut sessions = MockSessionStore::new();
    sessions.expect_finish().times(1).returning(|waiting, proof, session, recorded| {
        assert_eq!(*waiting, Token::new([1; 32]).digest());
        assert_eq!(proof, Proof::Step(NOW.unix_timestamp() / 30));
        assert_eq!((session.token, session.member_id), (Token::new([2; 32]).digest(), ada().id));
        assert_eq!(recorded.actor, ada().actor());
        Ok(())
    });
    try_to_finish(&sessions, &secret().code_at(NOW)).unwrap();
}

#[test]
fn anything_else_is_tried_as_a_recovery_code_and_a_failure_is_recorded() {
    let code = codes()[0].expose().to_uppercase();
    let mut sessions = MockSessionStore::new();
    sessions.expect_finish().times(1).returning(|_, proof, _, _| {
        assert_eq!(proof, Proof::RecoveryCode(codes()[0].digest()));
        Err(CodeError::WrongCode)
    });
    sessions.expect_note_failure().times(1).returning(|account, action, recorded| {
        assert_eq!((account, action, &recorded.actor), (&ada().account(), Action::CodeFailed, &Actor::Stranger));
        Ok(())
    });
    assert!(matches!(try_to_finish(&sessions, &code), Err(CodeError::WrongCode)));
}

#[test]
fn debug_output_of_a_request_shows_no_code() {
    let (codes, code) = (codes(), PresentedCode::new("123456"));
    let request = SecondFactorRequest { secret: secret(), code: &code, recovery_codes: &codes };
    let shown = format!("{request:?}");
    assert!(!shown.contains("123456"), "{shown}");
}
