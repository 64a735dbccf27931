//! All keys of an organisation are stopped together, and exactly those are resumed together.

use intake_domain::{ApiKey, KeyId};
use intake_edge as edge;
use intake_test_support::patient;
use serde_json::Value;
use time::Duration;

use crate::assert_unauthorised;
use crate::commands::organisations::done;
use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{Member, TestApp, between, in_each_browser, service};

const STOP: &str = "/settings/api-keys/stop-all";
const RESUME: &str = "/settings/api-keys/resume-stopped";

fn is_accepted(app: &TestApp, (_, key): &(KeyId, ApiKey)) -> bool {
    app.service.create(key, &patient()).status == 201
}

/// The stop that the list offers to resume.
fn offered(member: &Member) -> String {
    format!("stop={}", between(&member.get("/settings/api-keys").text(), "name=\"stop\" value=\"", "\""))
}

fn counts(app: &TestApp) -> [i64; 4] {
    ["key_paused", "key_all_stopped", "key_resumed", "key_all_resumed"]
        .map(|action| app.database.count(&format!("audit_entries WHERE action = '{action}'")))
}

#[test]
fn every_accepted_key_stops_at_once_and_exactly_those_are_resumed() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    let ada = app.member("ada@clinic.example");
    let [one, other, paused, revoked] = [(); 4].map(|()| app.clinic.key());
    let ending = app.clinic.key_until(Some(edge::now() + Duration::HOUR));
    let elsewhere = app.other_clinic().key();
    assert_eq!(ada.post(&format!("/settings/api-keys/{}/pause", paused.0), "").status, 303);
    app.clinic.revoke(revoked.0);
    let body = patient().to_string();
    assert_eq!(app.service.create_with(&one.1, &[("Idempotency-Key", "once")], body.as_bytes()).status, 201);
    let page = ada.get(STOP).text();
    assert!(page.find(">Stop 3 keys</button>").unwrap() < page.find("<table").unwrap(), "the button first: {page}");

    let stopped = ada.post(STOP, "");
    assert!(ada.follow(&stopped).contains("3 keys were stopped. Requests using them are refused until you resume"));
    for key in [&one, &other, &ending] {
        for instance in [&app.service, &second] {
            let refused = instance.create(&key.1, &patient());
            assert_unauthorised(&refused);
            assert!(
                refused.header("www-authenticate").unwrap().ends_with("error_description=\"The API key is paused\"")
            );
        }
    }
    assert!(is_accepted(&app, &elsewhere), "another organisation's");
    assert_eq!(counts(&app), [4, 1, 0, 0]);
    let again = ada.post(STOP, "");
    assert!(ada.follow(&again).contains("No key was active, so nothing was stopped."));
    assert!(ada.get(STOP).text().contains("No key is active, so there is nothing to stop."));
    assert_eq!(counts(&app), [4, 1, 0, 0]);

    // One was resumed by itself and paused again, which is a pause of its own; one expires meanwhile.
    for action in ["resume", "pause"] {
        assert_eq!(ada.post(&format!("/settings/api-keys/{}/{action}", other.0), "").status, 303);
    }
    assert_eq!(counts(&app), [5, 1, 1, 0]);
    let list = ada.get("/settings/api-keys").text();
    assert!(
        list.contains("2 keys were stopped together by Ada, <time") && list.contains(">Resume the 2 keys</button>"),
        "{list}"
    );
    let resumed = ada.post(RESUME, &offered(&ada));
    assert!(ada.follow(&resumed).contains("2 keys were resumed."));
    let retried = app.service.create_with(&one.1, &[("Idempotency-Key", "once")], body.as_bytes());
    assert!(retried.status == 201 && retried.header("idempotent-replayed").is_some(), "a retry gets its first answer");
    let accepted = [&one, &ending, &other, &paused, &revoked].map(|key| is_accepted(&app, key));
    assert_eq!(accepted, [true, true, false, false, false]);
    assert_eq!(counts(&app), [5, 1, 3, 1]);
    assert!(!ada.get("/settings/api-keys").text().contains("stopped together"));
}

#[test]
fn a_later_stop_leaves_the_keys_of_an_earlier_one_to_it() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let early = app.clinic.key();
    assert_eq!(ada.post(STOP, "").status, 303);
    let first = offered(&ada);
    let late = app.clinic.key();
    assert_eq!(ada.post(STOP, "").status, 303);
    let last = offered(&ada);
    assert_ne!(first, last, "the latest comes first");
    assert_eq!(ada.get("/settings/api-keys").text().matches("was stopped together").count(), 2);
    assert_eq!(ada.post(RESUME, &last).status, 303);
    assert_eq!([&early, &late].map(|key| is_accepted(&app, key)), [false, true]);
    assert_eq!(ada.post(RESUME, &first).status, 303);
    assert!(is_accepted(&app, &early));
    let nothing = ada.post(RESUME, &first);
    assert!(ada.follow(&nothing).contains("No key was left to resume."));
    assert_eq!(ada.post(RESUME, "stop=x").status, 400);
}

#[test]
fn a_stop_outlasts_a_suspension_and_no_key_that_is_over_comes_back() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let [kept, ended] = [(); 2].map(|()| app.clinic.key());
    let organisation = app.clinic.organisation.to_string();
    done(&app, &["organisation", "suspend", &organisation]);
    assert_eq!(ada.post(STOP, "").status, 303);
    done(&app, &["organisation", "resume", &organisation]);
    assert_eq!([&kept, &ended].map(|key| is_accepted(&app, key)), [false, false]);
    app.clinic.revoke(ended.0);
    let resumed = ada.post(RESUME, &offered(&ada));
    assert!(ada.follow(&resumed).contains("1 key was resumed."));
    assert_eq!([&kept, &ended].map(|key| is_accepted(&app, key)), [true, false]);
}

#[test]
fn only_administrators_stop_all_keys_and_everyone_sees_that_they_were() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let key = app.clinic.key();
    let join = |email, role| Member::join(app.service.client(), &ada.invite_as(email, role), "Grace");
    let others = [join("grace@clinic.example", "key-manager")];
    for other in &others {
        assert!(!other.get("/settings/api-keys").text().contains("Stop all keys"));
        assert_eq!([other.get(STOP).status, other.post(STOP, "").status], [403, 403]);
    }
    assert!(ada.get("/settings/api-keys").text().contains(">Stop all keys</a>"));
    assert_eq!(ada.post(STOP, "").status, 303);
    let stop = offered(&ada);
    for other in &others {
        let list = other.get("/settings/api-keys").text();
        assert!(
            list.contains("1 key was stopped together by Ada, <time") && !list.contains("Resume the key"),
            "{list}"
        );
        assert_eq!(other.post(RESUME, &stop).status, 403);
    }
    assert!(!is_accepted(&app, &key));
}

#[test]
fn an_operator_stops_and_resumes_all_keys_by_command() {
    let app = TestApp::start();
    let keys = [(); 2].map(|()| app.clinic.key());
    let organisation = app.clinic.organisation.to_string();
    let command = |arguments: &[&str]| {
        let all = [&["key"], arguments, &["--json"]].concat();
        let output = all.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
        let value = output.status.success().then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap());
        (output.status.code(), value)
    };
    let number = |value: Option<Value>| value.unwrap()["keys"].as_array().unwrap().len();
    for (action, changed, is_resumed) in
        [("pause", 2, false), ("pause", 0, false), ("resume", 2, true), ("resume", 0, true)]
    {
        let (_, value) = command(&[action, "--all", &organisation, "--reason", "leak"]);
        assert_eq!(number(value), changed, "{action}");
        assert_eq!(keys.each_ref().map(|key| is_accepted(&app, key)), [is_resumed; 2], "{action}");
    }
    assert_eq!(counts(&app), [2, 1, 2, 1]);
    let id = keys[0].0.to_string();
    for wrong in [&["pause"][..], &["resume", &id, "--all", &organisation]] {
        assert_eq!(command(wrong).0, Some(2), "{wrong:?}");
    }
    assert_eq!(command(&["pause", "--all", "018f0000-0000-7000-8000-000000000000"]).0, Some(1));
}

#[test]
fn one_mail_tells_the_others_which_keys_were_stopped() {
    let Some(server) = MailServer::start() else { return };
    let app = TestApp::start_with(|builder| with_mails(builder, &server.url()));
    let ada = app.member("ada@clinic.example");
    drop(app.member("grace@clinic.example"));
    let keys = [(); 2].map(|()| app.clinic.key());
    assert_eq!(ada.post(STOP, "").status, 303);
    let mail = server.wait_for_mail("grace@clinic.example", "All keys of Test Clinic were stopped");
    assert!(
        mail.contains("Ada (ada@clinic.example) has stopped all active API keys of Test Clinic: 2 keys."),
        "{mail}"
    );
    for (_, key) in &keys {
        assert!(mail.contains(&format!("“Test key” (…{})", key.hint())), "{mail}");
    }
    assert_eq!(ada.post(RESUME, &offered(&ada)).status, 303);
    server.wait_for_mail("grace@clinic.example", "Keys of Test Clinic were resumed");
    let about = |mail: &&String| mail.contains("Subject: All keys of") || mail.contains("Subject: Keys of");
    assert_eq!(server.mails().iter().filter(about).count(), 2, "one each, and none to Ada");
}

#[test]
fn a_person_stops_all_keys_and_resumes_them() {
    in_each_browser(|app, browser| {
        let key = app.clinic.key();
        browser.open(&app.url("/settings/api-keys"));
        browser.press("Stop all keys");
        browser.wait_for("Stop all keys?");
        let _ = browser.run("document.querySelector('main details summary').click()");
        assert!(browser.text().contains("Test key"), "{}", browser.text());
        browser.press("Stop 1 key");
        browser.wait_for("1 key was stopped.");
        assert!(!is_accepted(app, &key));
        browser.press("Resume the key");
        browser.wait_for("1 key was resumed.");
        assert!(is_accepted(app, &key));
        browser.open(&app.url("/settings/activity"));
        browser.wait_for("stopped all keys: 1 key");
    });
}
