//! A paused key is refused at once on every instance until it is resumed, and ends at its time all the same.

use diesel::connection::SimpleConnection;
use intake_domain::KeyId;
use intake_edge as edge;
use intake_test_support::{Response, create_request, patient, wait_for};
use serde_json::Value;
use time::Duration;

use crate::assert_unauthorised;
use crate::commands::organisations::{self, done};
use crate::fixtures::{TestApp, choose_action, create_key, in_each_browser, service};

fn key_command(app: &TestApp, arguments: &[&str]) -> Result<Value, String> {
    let all = [&["key"], arguments, &["--json"]].concat();
    let output = all.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn entries(app: &TestApp, key: KeyId) -> Vec<String> {
    app.database.texts(&format!(
        "SELECT concat_ws(' ', action, coalesce(actor, 'operator ' || reason)) FROM audit_entries
         WHERE key_id = '{key}' AND action <> 'key_created' ORDER BY at"
    ))
}

#[test]
fn a_paused_key_is_refused_at_once_on_every_instance_and_works_again_when_it_is_resumed() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    let (id, key) = app.clinic.key();
    let retry = [("Idempotency-Key", "once")];
    let body = patient().to_string();
    for round in 0..3 {
        let created = app.service.create_with(&key, &retry, body.as_bytes());
        assert_eq!((created.status, created.header("idempotent-replayed").is_some()), (201, round > 0));
        assert_eq!(second.create(&key, &patient()).status, 201);
        let paused = key_command(&app, &["pause", &id.to_string(), "--reason", "leak"]).unwrap();
        assert!(paused["id"] == id.to_string() && paused["pausedAt"].is_string(), "{paused}");
        for instance in [&app.service, &second] {
            for body in [body.as_bytes(), b"{"] {
                let refused = instance.create_with(&key, &retry, body);
                assert_unauthorised(&refused);
                let challenge = refused.header("www-authenticate").unwrap();
                assert!(challenge.ends_with("error_description=\"The API key is paused\""), "{challenge}");
            }
        }
        key_command(&app, &["resume", &id.to_string(), "--reason", "no leak"]).unwrap();
    }
    assert_eq!(app.patients(), 1 + 3);
    assert_eq!(entries(&app, id), ["key_paused operator leak", "key_resumed operator no leak"].repeat(3));
    wait_for("the refusals", || app.database.count("key_refusals WHERE reason = 'paused'") == 12);
    let metrics = app.service.probe("/metrics").text();
    assert!(metrics.contains("intake_keys_refused_total{reason=\"paused\"} 6"), "{metrics}");
}

#[test]
fn ended_keys_are_neither_paused_nor_resumed_and_repeating_changes_nothing() {
    let app = TestApp::start();
    let (twice, _) = app.clinic.key();
    let first = key_command(&app, &["pause", &twice.to_string()]).unwrap();
    assert_eq!(key_command(&app, &["pause", &twice.to_string()]).unwrap(), first);
    let listed = key_command(&app, &["list", "--organisation", &app.clinic.organisation.to_string()]).unwrap();
    assert_eq!(listed[0]["pausedAt"], first["pausedAt"]);
    for _ in 0..2 {
        assert_eq!(key_command(&app, &["resume", &twice.to_string()]).unwrap()["pausedAt"], Value::Null);
    }
    assert_eq!(entries(&app, twice).len(), 2);

    let (revoked, _) = app.clinic.key();
    let (expiring, key) = app.clinic.key_until(Some(edge::now() + Duration::HOUR));
    for id in [revoked, expiring] {
        key_command(&app, &["pause", &id.to_string()]).unwrap();
    }
    app.clinic.revoke(revoked);
    let sooner = format!("UPDATE api_keys SET expires_at = now() WHERE id = '{expiring}'");
    app.database.connect().batch_execute(&sooner).unwrap();
    for id in [revoked, expiring] {
        for command in ["resume", "pause"] {
            let refused = key_command(&app, &[command, &id.to_string()]).unwrap_err();
            assert!(refused.contains("was revoked or has expired"), "{refused}");
        }
    }
    assert!(app.service.create(&key, &patient()).header("www-authenticate").unwrap().contains("has expired"));
    assert_eq!(app.database.count("audit_entries WHERE action = 'key_resumed'"), 1);
    let unknown = key_command(&app, &["pause", "018f0000-0000-7000-8000-000000000000"]).unwrap_err();
    assert!(unknown.contains("there is no key"), "{unknown}");
}

#[test]
fn a_paused_key_counts_as_one_that_may_be_active_until_it_is_revoked() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    let at = |page: &str| format!("/settings/api-keys/{id}/{page}");
    let paused = ada.post(&at("pause"), "");
    assert!(ada.follow(&paused).contains("is paused. Requests using it are refused until you resume it."));
    let many = "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
        SELECT gen_random_uuid(), organisation_id, n::text, sha256(n::text::bytea), 'aaaa', created_at
        FROM api_keys, generate_series(1, 499) AS n";
    app.database.connect().batch_execute(many).unwrap();
    assert!(app.clinic.try_key(None, None).unwrap_err().contains("500 active keys"));
    app.clinic.revoke(id);
    assert!(app.clinic.try_key(None, None).is_ok());
    for answer in [ada.get(&at("pause")), ada.post(&at("pause"), ""), ada.post(&at("resume"), "")] {
        let page = ada.follow(&answer);
        assert!(page.contains("was revoked or has expired, so it can&#39;t be paused or resumed."), "{page}");
    }
}

#[test]
fn a_member_pauses_and_resumes_a_key_on_its_page() {
    in_each_browser(|app, browser| {
        let key = create_key(browser, "Front desk");
        browser.press("Done");
        browser.press("Front desk");
        browser.wait_for("Requests in the last 30 days");
        choose_action(browser, "Front desk", "Pause");
        browser.wait_for("Requests in the last 7 days");
        browser.press("Pause key");
        browser.wait_for("“Front desk” is paused. Requests using it are refused until you resume it.");
        assert!(browser.text().contains("Paused today, ") && browser.text().contains(" by Ada"), "{}", browser.text());
        assert!(browser.has("Replace") && !browser.has("Pause"));
        assert_unauthorised(&app.service.create(&key, &patient()));
        browser.open(&app.url("/settings/api-keys?show=paused"));
        browser.press("Front desk");
        browser.wait_for("Requests in the last 30 days");
        choose_action(browser, "Front desk", "Resume");
        browser.wait_for("“Front desk” has been resumed. Requests using it are accepted again.");
        assert_eq!(app.service.create(&key, &patient()).status, 201);
        browser.open(&app.url("/settings/api-keys?show=paused"));
        browser.wait_for("No keys match your search.");
        browser.press("Activity");
        browser.wait_for("paused the key Front desk");
        browser.wait_for("resumed the key Front desk");
        wait_for("the refusal", || app.database.count("key_refusals WHERE reason = 'paused'") == 1);
        browser.press("API keys");
        browser.press("Front desk");
        browser.wait_for("The key was paused");
    });
}

#[test]
fn no_request_that_starts_after_a_pause_creates_anything_under_load() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (is_paused, is_over, refused) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    let bytes = create_request(&key, &[], patient().to_string().as_bytes());
    std::thread::scope(|scope| {
        let over = crate::fixtures::OverWhenDropped(&is_over);
        for _ in 0..8 {
            let client = app.service.client();
            let (bytes, is_paused, is_over, refused) = (&bytes, &is_paused, &is_over, &refused);
            scope.spawn(move || {
                let mut connection = client.connect();
                while !is_over.load(Ordering::SeqCst) {
                    let must_fail = is_paused.load(Ordering::SeqCst);
                    let status = connection.exchange(bytes).status;
                    assert!(status == 401 || (status == 201 && !must_fail), "{status} after {must_fail}");
                    refused.fetch_add(usize::from(must_fail), Ordering::SeqCst);
                }
            });
        }
        wait_for("some patients", || app.patients() > 50);
        assert_eq!(ada.post(&format!("/settings/api-keys/{id}/pause"), "").status, 303);
        is_paused.store(true, Ordering::SeqCst);
        wait_for("refusals", || refused.load(Ordering::SeqCst) > 50);
        drop(over);
    });
}

#[test]
fn keys_of_a_suspended_organisation_are_listed_as_suspended_and_as_nothing_else() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let [(_, _), (paused, _)] = [app.clinic.key(), app.clinic.key()];
    assert_eq!(ada.post(&format!("/settings/api-keys/{paused}/pause"), "").status, 303);
    let listed = || {
        ["active", "suspended", "paused", "current"].map(|show| {
            let page = ada.get(&format!("/settings/api-keys?show={show}")).text();
            page.matches("scope=\"row\"").count()
        })
    };
    assert_eq!(listed(), [1, 0, 1, 2]);
    let clinic = app.clinic.organisation.to_string();
    done(&app, &["organisation", "suspend", &clinic]);
    assert_eq!(listed(), [0, 2, 0, 2]);
    done(&app, &["organisation", "resume", &clinic]);
    assert_eq!(listed(), [1, 0, 1, 2]);
}

#[test]
fn the_page_says_why_a_key_is_refused_all_the_same() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    let at = |page: &str| format!("/settings/api-keys/{id}/{page}");
    let set = |what: &str| app.database.connect().batch_execute(&format!("UPDATE api_keys SET {what}")).unwrap();
    let says = |answer: &Response, said: &str| {
        let page = ada.follow(answer);
        assert!(page.contains(said), "{said}: {page}");
    };
    let organisation = app.clinic.organisation.to_string();
    assert!(organisations::run(&app, &["organisation", "suspend", &organisation]).status.success());
    let until = "Requests using it are refused until you resume it and while the organisation is suspended.";
    says(&ada.post(&at("pause"), ""), until);
    says(&ada.get(&at("pause")), until);
    let still = "has been resumed. Requests using it are still refused, because the organisation is suspended.";
    says(&ada.post(&at("resume"), ""), still);
    says(&ada.get(&at("replace")), "be replaced while the organisation is suspended.");
    let refused = "Requests using it are refused from everywhere, because the organisation is suspended.";
    says(&ada.post(&at("networks"), "networks=::1"), refused);
    assert!(organisations::run(&app, &["organisation", "resume", &organisation]).status.success());
    says(&ada.post(&at("pause"), ""), "is paused. Requests using it are refused until you resume it.");
    says(&ada.post(&at("networks"), "networks=::2"), "from everywhere, because the key is paused.");
    says(&ada.post(&at("resume"), ""), "has been resumed. Requests using it are accepted again.");
    set("created_at = now() - interval '2 days', expires_at = now() - interval '1 day'");
    says(&ada.post(&at("networks"), "networks=::3"), "from everywhere, because the key has expired.");
}
