//! The key use cases against a mocked store.

use intake_domain::{
    Actor, AuditContext, Environment, KeyContact, KeyDigest, KeyFormat, KeyId, KeyPlace, KeyRequest, KeySecret,
    ManageKeysError, MockKeyList, MockKeyStateStore, MockKeyStore, Name, Replacement, RevokeOutcome, create_key,
    list_keys, replace_leaked_key,
};
use time::macros::datetime;

use crate::fixtures::{NOW, organisation, origin, run};

fn format() -> KeyFormat {
    KeyFormat::new(&"intake".parse().unwrap(), Environment::Production)
}

fn audit() -> AuditContext {
    origin().by(Actor::Operator(intake_domain::Operator::default()))
}

fn key_request() -> KeyRequest {
    KeyRequest {
        organisation_id: organisation(),
        name: Name::new("Front desk").unwrap(),
        expires_at: Some(datetime!(2026-01-01 0:00 UTC)),
        allowed_networks: "203.0.113.0/24".parse().unwrap(),
        contact: KeyContact::new("Acme, 02 5550 1234").unwrap(),
        replaces: None,
        id: KeyId::new(NOW, [2; 10]),
        secret: KeySecret::new([3; 32]),
    }
}

fn key_store() -> MockKeyStore {
    let mut keys = MockKeyStore::new();
    keys.expect_place().returning(|_| Ok(KeyPlace::new(|_| true)));
    keys
}

#[test]
fn a_key_is_made_that_suits_its_organisation() {
    let mut keys = MockKeyStore::new();
    let suits = |key: &KeyDigest| key.as_bytes()[0] < 8;
    keys.expect_place().times(1).returning(move |of| {
        assert_eq!(of, organisation());
        Ok(KeyPlace::new(suits))
    });
    keys.expect_add_key().times(1).returning(move |stored, _| {
        assert!(suits(&stored.digest));
        Ok(())
    });
    let issued = run(create_key(&keys, &format(), key_request(), &audit())).unwrap();
    assert!(suits(&issued.key.digest()) && !suits(&format().mint([3; 32]).digest()));

    let mut keys = MockKeyStore::new();
    keys.expect_place().returning(|_| Ok(KeyPlace::new(|_| false)));
    keys.expect_add_key().times(1).returning(|_, _| Ok(()));
    assert!(run(create_key(&keys, &format(), key_request(), &audit())).is_ok(), "where none suits, any works");
}

#[test]
fn a_made_key_is_handed_out_and_only_its_digest_is_stored() {
    let mut keys = key_store();
    keys.expect_add_key().times(1).returning(|stored, recorded| {
        assert_eq!(recorded, &audit());
        let key = format().mint([3; 32]);
        assert_eq!(stored.digest, key.digest());
        assert_eq!(stored.hint, &key.expose()[key.expose().len() - 4..]);
        assert_eq!(stored.expires_at, Some(datetime!(2026-01-01 0:00 UTC)));
        assert_eq!(stored.allowed_networks.to_string(), "203.0.113.0/24");
        assert_eq!(stored.contact.as_str(), "Acme, 02 5550 1234");
        assert_eq!((stored.created_at, stored.id), (NOW, KeyId::new(NOW, [2; 10])));
        assert!(!format!("{stored:?}").contains(key.expose()));
        Ok(())
    });
    let issued = run(create_key(&keys, &format(), key_request(), &audit())).unwrap();
    assert!(issued.key.expose().starts_with("intake_live_"));
    assert_eq!(format().parse(issued.key.expose()), Ok(issued.key));
}

#[test]
fn a_request_that_is_repeated_shows_no_second_key() {
    let mut keys = key_store();
    keys.expect_add_key().returning(|_, _| Err(ManageKeysError::AlreadyMade));
    let result = run(create_key(&keys, &format(), key_request(), &audit()));
    assert!(matches!(result, Err(ManageKeysError::AlreadyMade)));
}

#[test]
fn a_key_takes_the_place_of_an_active_one_alone() {
    let key = KeyId::new(NOW, [9; 10]);
    let replaces = Some(Replacement { key, ends_after: time::Duration::HOUR, ends_by: NOW + time::Duration::DAY });
    for (added, is_made) in [(Ok(()), true), (Err(ManageKeysError::NothingToReplace), false)] {
        let mut keys = key_store();
        keys.expect_add_key().times(1).return_once(move |stored, _| {
            assert_eq!(stored.replaces, replaces);
            added
        });
        let request = KeyRequest { replaces, ..key_request() };
        let result = run(create_key(&keys, &format(), request, &audit()));
        assert_eq!(result.is_ok(), is_made);
        assert!(is_made || matches!(result, Err(ManageKeysError::NothingToReplace)));
    }
}

#[test]
fn a_leaked_key_is_revoked_once_its_replacement_is_made_and_not_without_one() {
    let old = KeyId::new(NOW, [9; 10]);
    for (added, revocations) in
        [(Ok(()), 1), (Err(ManageKeysError::AlreadyMade), 1), (Err(ManageKeysError::TooManyKeys), 0)]
    {
        let (mut keys, is_made) = (key_store(), added.is_ok());
        keys.expect_add_key().times(1).return_once(move |stored, _| {
            let replacement = stored.replaces.unwrap();
            assert_eq!((replacement.key, replacement.ends_by), (old, NOW), "it ends in the same transaction");
            added
        });
        let mut revoked = MockKeyStateStore::new();
        revoked.expect_revoke().times(revocations).returning(move |key, within, _| {
            assert_eq!((key, within), (old, Some(organisation())));
            Ok(RevokeOutcome::Revoked { at: NOW })
        });
        let request = KeyRequest { replaces: Some(Replacement::at_once(old, NOW)), ..key_request() };
        let made = run(replace_leaked_key(&keys, &revoked, &format(), request, &audit(), &audit()));
        assert_eq!(made.is_ok(), is_made);
    }
}

#[test]
fn a_key_for_nobody_is_refused() {
    let mut keys = key_store();
    keys.expect_add_key().returning(|_, _| Err(ManageKeysError::NoSuchOrganisation(organisation())));
    let result = run(create_key(&keys, &format(), key_request(), &audit()));
    assert!(matches!(result, Err(ManageKeysError::NoSuchOrganisation(id)) if id == organisation()));

    let mut keys = MockKeyList::new();
    keys.expect_keys().returning(|_| Ok(None));
    let result = run(list_keys(&keys, organisation()));
    assert!(matches!(result, Err(ManageKeysError::NoSuchOrganisation(_))));
}

#[test]
fn debug_output_of_a_request_does_not_show_what_the_key_is_made_of() {
    let shown = format!("{:?}", key_request());
    assert!(shown.contains("Front desk") && shown.contains("KeySecret(…)"), "{shown}");
    assert!(!shown.contains("3, 3"), "{shown}");
}
