//! `intake key replace`: the same rules as on the dashboard, and the command says until when the old key works.

use diesel::connection::SimpleConnection;
use intake_test_support::{create_request, patient, wait_for};
use serde_json::Value;

use crate::assert_unauthorised;
use crate::commands::organisations::{done, recorded, refused, run};
use crate::fixtures::{TestApp, demo_key};

/// Days from the making of a key to its end.
fn days(app: &TestApp, key: &str) -> Vec<String> {
    app.database.texts(&format!(
        "SELECT coalesce(trim_scale(round(extract(epoch FROM expires_at - created_at) / 86400, 3))::text, 'never')
         FROM api_keys WHERE id = '{key}'"
    ))
}

#[test]
fn a_replacement_has_the_name_and_note_of_the_old_key_which_ends_once_the_new_one_is_used() {
    let app = TestApp::start();
    let (old, key) = app.clinic.key();
    let old = old.to_string();
    app.database.connect().batch_execute("UPDATE api_keys SET note = 'Call Dana', name = 'Front desk'").unwrap();
    let made = done(&app, &["key", "replace", &old, "--ends-after", "now", "--as", "Ada", "--reason", "leaked"]);
    let names: Vec<_> = made.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "expiresAt",
            "id",
            "key",
            "name",
            "organisationId",
            "replacedEndsAfterSeconds",
            "replacedExpiresAt",
            "replaces"
        ]
    );
    assert_eq!((&made["name"], &made["expiresAt"]), (&"Front desk".into(), &Value::Null));
    assert_eq!((&made["replaces"], &made["replacedEndsAfterSeconds"]), (&old.as_str().into(), &0.into()));
    assert_eq!(made["organisationId"], app.clinic.organisation.to_string());
    let linked =
        format!("api_keys WHERE note = 'Call Dana' AND replaces = '{old}' AND id = '{}'", made["id"].as_str().unwrap());
    assert_eq!(app.database.count(&linked), 1);
    assert_eq!(recorded(&app, "key_replaced"), ["Front desk|Ada|leaked"]);

    assert_eq!(app.service.create(&key, &patient()).status, 201, "both work until the new one is used");
    assert_eq!(app.service.create(&demo_key(made["key"].as_str().unwrap()), &patient()).status, 201);
    wait_for("the old key to end", || app.service.create(&key, &patient()).status == 401);
    assert_unauthorised(&app.service.create(&key, &patient()));
}

#[test]
fn neither_a_dry_run_nor_a_refused_request_with_the_new_key_ends_the_old_one() {
    let app = TestApp::start();
    let (old, key) = app.clinic.key();
    let old = old.to_string();
    let made = done(&app, &["key", "replace", &old, "--ends-after", "now"]);
    let new = demo_key(made["key"].as_str().unwrap());
    let create = create_request(&new, &[], patient().to_string().as_bytes());
    let validate = String::from_utf8(create).unwrap().replacen("/api/v1/patients ", "/api/v1/patients/validate ", 1);
    assert_eq!(app.service.create(&new, &serde_json::json!({ "firstName": "Ada" })).status, 422);
    assert_eq!(app.service.client().send(validate.as_bytes()).status, 200);
    let is_used = format!("key_uses WHERE last_used_at IS NOT NULL AND key_id = '{}'", made["id"].as_str().unwrap());
    wait_for("the use to be written", || app.database.count(&is_used) == 1);
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    let early = format!("api_keys WHERE id = '{old}' AND expires_at < now() + interval '13 days'");
    assert_eq!(app.database.count(&early), 0);

    assert_eq!(app.service.create(&new, &patient()).status, 201);
    wait_for("the old key to end", || app.service.create(&key, &patient()).status == 401);
}

#[test]
fn a_replacement_lasts_as_long_as_the_old_key_unless_a_time_is_given() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let old = done(&app, &["key", "create", "--organisation", &id, "--name", "Front desk", "--expires", "2999-12-31"]);
    let old = old["id"].as_str().unwrap();
    app.database.connect().batch_execute("UPDATE api_keys SET expires_at = created_at + interval '30 days'").unwrap();
    let replaced = |more: &[&str]| {
        let made = done(&app, &[&["key", "replace", old], more].concat());
        days(&app, made["id"].as_str().unwrap())
    };
    assert_eq!(replaced(&[]), ["30"]);
    // Made for some hours, it is replaced for as many.
    let hours = "UPDATE api_keys SET expires_at = created_at + interval '36 hours' WHERE replaces IS NULL";
    app.database.connect().batch_execute(hours).unwrap();
    assert_eq!(replaced(&[]), ["1.5"]);
    assert_eq!(replaced(&["--expires", "never"]), ["never"]);
    let made = done(&app, &["key", "replace", old, "--expires", "2999-12-31"]);
    assert_eq!(made["expiresAt"], "2999-12-31T00:00:00.000Z");

    let said = String::from_utf8(run(&app, &["key", "replace", old]).stdout).unwrap();
    let expected = [
        &format!("The old key, {old} (…"),
        "works until 24 hours after the new one has created a patient, at the latest until 20",
        "cannot be retrieved later:\nintake_demo_",
    ];
    for expected in expected {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let wrong = run(&app, &["key", "replace", old, "--ends-after", "2h"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
}

#[test]
fn the_old_key_ends_within_fourteen_days_unless_its_own_end_is_earlier_or_it_leaked() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let end_after = |expires: &[&str], more: &[&str]| {
        let created = ["key", "create", "--organisation", &id, "--name", "Front desk"];
        let old = done(&app, &[&created[..], expires].concat())["id"].as_str().unwrap().to_owned();
        done(&app, &[&["key", "replace", &old], more].concat());
        let texts = app.database.texts(&format!(
            "SELECT coalesce(round(extract(epoch FROM expires_at - now()) / 86400)::text, 'never')
                || CASE WHEN revoked_at IS NULL THEN '' ELSE ' revoked' END FROM api_keys WHERE id = '{old}'"
        ));
        texts.concat()
    };
    assert_eq!(end_after(&[], &[]), "14");
    assert_eq!(end_after(&[], &["--ends-within", "3"]), "3");
    assert_eq!(end_after(&["--expires", "2999-12-31"], &[]), "14");
    let in_two_days = (intake_edge::now() + time::Duration::days(2)).date().to_string();
    assert!(["1", "2"].contains(&end_after(&["--expires", &in_two_days], &[]).as_str()), "an earlier end stays");
    assert_eq!(end_after(&[], &["--leaked"]), "0 revoked");
    assert_eq!(recorded(&app, "key_revoked").len(), 1);
    let (key, _) = app.clinic.key();
    let both = run(&app, &["key", "replace", &key.to_string(), "--leaked", "--ends-within", "3"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn a_key_that_cannot_be_replaced_is_refused_with_advice() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let (key, _) = app.clinic.key();
    let unknown = uuid::Uuid::from_u128(7).to_string();
    let said = refused(&app, &["key", "replace", &unknown]);
    assert!(said.contains(&format!("there is no key {unknown}")), "{said}");
    done(&app, &["organisation", "suspend", &id]);
    let said = refused(&app, &["key", "replace", &key.to_string()]);
    assert!(said.contains(&format!("is suspended, so it gets no keys: `intake organisation resume {id}`")), "{said}");
    done(&app, &["organisation", "resume", &id]);
    app.clinic.revoke(key);
    let said = refused(&app, &["key", "replace", &key.to_string()]);
    assert!(said.contains("the key was revoked: make another one with `intake key create`"), "{said}");
    assert_eq!(app.database.count("api_keys"), 1);
}
