//! What a key may ask about itself, against mocked ports: no question reaches a store before the key was checked.

use intake_domain::{
    AllowedNetworks, AnswerCode, AnswerCount, AskKeyError, Caller, CreatedInPart, DayPart, Doubt, DoubtCount,
    Environment, KeyCheck, KeyFormat, KeyHolder, KeyId, KeyQuality, KeyRefusal, MockKeyActivity, MockOwnKeyStore,
    MockPatientRegister, OwnKey, REPLAYED, StoreError, assess_quality, count_created, describe_key, list_refusals,
};
use time::macros::{date, datetime};

use crate::fixtures::{NOW, organisation, run};

fn caller() -> Caller {
    let key = KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).mint([5; 32]);
    Caller { key: key.digest(), address: Some([203, 0, 113, 9].into()) }
}

fn holder() -> KeyHolder {
    KeyHolder { key_id: KeyId::new(NOW, [1; 10]), organisation_id: organisation() }
}

fn stored() -> OwnKey {
    OwnKey {
        id: holder().key_id,
        name: "Front desk".to_owned(),
        hint: "abcd".to_owned(),
        organisation_id: organisation(),
        organisation_name: "Clinic".to_owned(),
        zone: "Australia/Sydney".parse().unwrap(),
        created_at: NOW,
        expires_at: None,
        allowed_networks: AllowedNetworks::default(),
    }
}

/// A store that is asked for the key once.
fn own_key() -> MockOwnKeyStore {
    let mut keys = MockOwnKeyStore::new();
    keys.expect_own_key().times(1).withf(|asked| *asked == holder()).return_once(|_| Ok(Some(stored())));
    keys
}

fn register(check: KeyCheck) -> MockPatientRegister {
    let mut register = MockPatientRegister::new();
    register.expect_check_key().times(1).withf(|asked, _| *asked == caller()).return_once(move |_, _| Ok(check));
    register
}

#[test]
fn a_key_learns_what_is_stored_of_itself() {
    let described = run(describe_key(&register(KeyCheck::Active(holder())), &own_key(), &caller()));
    assert_eq!(described.unwrap(), stored());
}

#[test]
fn a_refused_key_learns_nothing_and_no_store_is_asked() {
    for refusal in [KeyRefusal::Unknown, KeyRefusal::Revoked, KeyRefusal::Paused, KeyRefusal::Elsewhere] {
        let refused = KeyCheck::Refused(refusal);
        let described = run(describe_key(&register(refused), &MockOwnKeyStore::new(), &caller()));
        assert!(matches!(described, Err(AskKeyError::KeyRefused(found)) if found == refusal), "{described:?}");
        let part = DayPart::new(NOW.date(), None, None);
        let counted = run(count_created(&register(refused), &MockOwnKeyStore::new(), &caller(), part));
        assert!(matches!(counted, Err(AskKeyError::KeyRefused(found)) if found == refusal), "{counted:?}");
        let listed = run(list_refusals(&register(refused), &MockKeyActivity::new(), &caller()));
        assert!(matches!(listed, Err(AskKeyError::KeyRefused(found)) if found == refusal), "{listed:?}");
        let (keys, activity, created) = (MockOwnKeyStore::new(), MockKeyActivity::new(), AnswerCode(201));
        let assessed = run(assess_quality(&register(refused), &keys, &activity, &caller(), created, NOW));
        assert!(matches!(assessed, Err(AskKeyError::KeyRefused(found)) if found == refusal), "{assessed:?}");
    }
}

#[test]
fn a_day_is_counted_for_the_key_that_asks() {
    let (part, counted) =
        (DayPart::new(NOW.date(), None, None), CreatedInPart { existing: 2, erased: 1, digest: [7; 32] });
    let mut keys = MockOwnKeyStore::new();
    let is_own = move |asked: &_, asked_part: &_| (*asked, *asked_part) == (holder(), part);
    keys.expect_created().times(1).withf(is_own).return_once(move |_, _| Ok(counted));
    let found = run(count_created(&register(KeyCheck::Active(holder())), &keys, &caller(), part));
    assert_eq!(found.unwrap(), counted);
}

#[test]
fn a_key_that_a_restore_has_lost_is_unknown() {
    let mut keys = MockOwnKeyStore::new();
    keys.expect_own_key().return_once(|_| Ok(None));
    let described = run(describe_key(&register(KeyCheck::Active(holder())), &keys, &caller()));
    assert!(matches!(described, Err(AskKeyError::KeyRefused(KeyRefusal::Unknown))), "{described:?}");
}

#[test]
fn refusals_are_those_of_the_key_and_a_store_that_is_away_is_no_empty_list() {
    let mut activity = MockKeyActivity::new();
    let is_own = |organisation: &_, key: &_| (*organisation, *key) == (holder().organisation_id, holder().key_id);
    activity.expect_refusals().times(1).withf(is_own).return_once(|_, _| Err(StoreError::Overloaded));
    let listed = run(list_refusals(&register(KeyCheck::Active(holder())), &activity, &caller()));
    assert!(matches!(listed, Err(AskKeyError::Store(StoreError::Overloaded))), "{listed:?}");
}

#[test]
fn quality_counts_patients_once_and_no_small_numbers() {
    let mut activity = MockKeyActivity::new();
    let answer = |code, field: Option<&str>, count| {
        let field = field.map(str::to_owned);
        AnswerCount { day: NOW.date(), code: AnswerCode(code), field, count }
    };
    let eve = NOW.date().previous_day().unwrap();
    let of_eve = |field, count| AnswerCount { day: eve, ..answer(201, field, count) };
    let answers = vec![
        answer(201, None, 20),
        answer(201, Some(REPLAYED), 8),
        answer(201, Some("state"), 4),
        answer(201, Some("postcode"), 3),
        answer(201, Some("postcode"), 2),
        answer(201, Some("a doubt of a later version"), 9),
        answer(422, None, 7),
        answer(422, Some("state"), 7),
        of_eve(None, 7),
        of_eve(Some("postcode"), 6),
    ];
    let all = answers.clone();
    let (now, first) = (datetime!(2026-03-01 23:30 UTC), date!(2026 - 02 - 01));
    let is_own = move |_: &_, key: &_, since: &_| (*key, *since) == (holder().key_id, first);
    activity.expect_answers().times(1).withf(is_own).return_once(|_, _, _| Ok(answers));
    let register = register(KeyCheck::Active(holder()));
    let counted = run(assess_quality(&register, &own_key(), &activity, &caller(), AnswerCode(201), now)).unwrap();
    let count = |day, doubt, count| DoubtCount { day, doubt, count };
    let expected = [count(eve, Doubt::Postcode, 6), count(NOW.date(), Doubt::Postcode, 5)];
    assert_eq!(counted, expected, "by day, and none under five");
    let quality = KeyQuality::new(&all, AnswerCode(201));
    assert_eq!(quality.patients, Some(19));
    assert_eq!(quality.doubts, [(Doubt::Postcode, Some(11)), (Doubt::State, None)]);
}

#[test]
fn one_to_four_patients_have_neither_a_count_nor_doubts() {
    let quality = |created, replayed, doubts| {
        let answer = |field: Option<&str>, count| {
            let field = field.map(str::to_owned);
            AnswerCount { day: NOW.date(), code: AnswerCode(201), field, count }
        };
        let answers = [answer(None, created), answer(Some(REPLAYED), replayed), answer(Some("state"), doubts)];
        KeyQuality::new(&answers, AnswerCode(201))
    };
    for (created, replayed) in [(1, 0), (4, 0), (12, 8)] {
        assert_eq!(quality(created, replayed, 1), KeyQuality { patients: None, doubts: Vec::new() });
    }
    assert_eq!(quality(5, 0, 5), KeyQuality { patients: Some(5), doubts: vec![(Doubt::State, Some(5))] });
    assert_eq!(quality(3, 3, 0).patients, Some(0));
}
