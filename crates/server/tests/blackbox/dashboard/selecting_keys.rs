//! Keys that nothing uses are marked and paused or revoked together, after a page that names them.

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, KeyId};
use intake_test_support::{Browser, patient};
use serde_json::json;

use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{Member, TestApp, between, in_each_browser};

const SELECTED: &str = "/settings/api-keys/selected";

fn is_accepted(app: &TestApp, (_, key): &(KeyId, ApiKey)) -> bool {
    app.service.create(key, &patient()).status == 201
}

fn marks<'a>(keys: impl IntoIterator<Item = &'a (KeyId, ApiKey)>) -> String {
    keys.into_iter().map(|(id, _)| format!("&key={id}")).collect()
}

/// Asks, and then does it. Returns both pages.
fn change(ada: &Member, what: &str, marks: &str) -> (String, String) {
    let asked = ada.get(&format!("{SELECTED}?do={what}{marks}")).text();
    let changed = ada.post(SELECTED, &format!("do={what}{marks}"));
    (asked, ada.follow(&changed))
}

#[test]
fn the_marked_keys_are_paused_or_revoked_and_no_other() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let keys = [(); 5].map(|()| app.clinic.key());
    let [one, other, kept, over, paused] = &keys;
    let elsewhere = app.other_clinic().key();
    app.clinic.revoke(over.0);
    assert_eq!(ada.post(&format!("/settings/api-keys/{}/pause", paused.0), "").status, 303);
    let all = marks([one, other, over, paused, &elsewhere]);

    let (asked, done) = change(&ada, "pause", &all);
    assert!(asked.contains("<h1>Pause 2 keys?</h1>") && asked.contains(">Pause 2 keys</button>"), "{asked}");
    assert!(asked.matches(&format!("…{}", one.1.hint())).count() == 1 && !asked.contains(kept.1.hint()), "{asked}");
    assert!(done.contains("2 keys were paused. Requests using them are refused until you resume them."), "{done}");
    assert_eq!([one, other, kept, &elsewhere].map(|key| is_accepted(&app, key)), [false, false, true, true]);
    assert_eq!(ada.post(&format!("/settings/api-keys/{}/resume", one.0), "").status, 303);
    assert!(is_accepted(&app, one), "each is resumed by itself");

    let (asked, done) = change(&ada, "revoke", &all);
    assert!(asked.contains("<h1>Revoke 3 keys?</h1>"), "paused ones, too: {asked}");
    assert!(done.contains("3 keys were revoked. Requests using them are now refused."), "{done}");
    assert_eq!([one, kept, &elsewhere].map(|key| is_accepted(&app, key)), [false, true, true]);
    let recorded = |action: &str| app.database.count(&format!("audit_entries WHERE action = '{action}'"));
    assert_eq!(["key_paused", "key_revoked"].map(recorded), [3, 4], "an entry for each");
    let (asked, done) = change(&ada, "revoke", &all);
    assert!(asked.is_empty() && done.contains("Nothing was changed."), "{done}");
    assert_eq!(recorded("key_revoked"), 4);
}

#[test]
fn keys_that_were_paused_together_are_resumed_together_by_a_key_manager() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let join = |email, role, name| Member::join(app.service.client(), &ada.invite_as(email, role), name);
    let grace = join("grace@clinic.example", "key-manager", "Grace");
    let mary = join("mary@clinic.example", "auditor", "Mary");
    let keys = [(); 4].map(|()| app.clinic.key());
    let [one, other, alone, apart] = &keys;
    let accepted = || keys.each_ref().map(|key| is_accepted(&app, key));
    let (_, done) = change(&grace, "pause", &marks([one, other, alone]));
    assert!(done.contains("3 keys were paused together by Grace, <time"), "{done}");
    assert!(done.contains(">Resume the 3 keys</button>"), "{done}");
    assert_eq!(grace.post(&format!("/settings/api-keys/{}/resume", alone.0), "").status, 303);
    assert_eq!(grace.post(&format!("/settings/api-keys/{}/pause", apart.0), "").status, 303);
    assert_eq!(accepted(), [false, false, true, false]);

    let list = mary.get("/settings/api-keys").text();
    assert!(list.contains("2 keys were paused together by Grace") && !list.contains(">Resume the 2 keys<"), "{list}");
    let resume = "/settings/api-keys/resume-paused";
    let stop = format!("stop={}", between(&list_of(&grace), "name=\"stop\" value=\"", "\""));
    assert_eq!(mary.post(resume, &stop).status, 403);
    let resumed = grace.post(resume, &stop);
    assert!(grace.follow(&resumed).contains("2 keys were resumed."));
    assert_eq!(accepted(), [true, true, true, false], "the one that was paused by itself stays paused");
    let recorded = |action: &str| app.database.count(&format!("audit_entries WHERE action = '{action}'"));
    assert_eq!(["key_paused", "key_all_stopped", "key_resumed", "key_all_resumed"].map(recorded), [4, 0, 3, 1]);

    // What an administrator stopped altogether is not a key manager's to resume.
    assert_eq!(ada.post("/settings/api-keys/stop-all", "").status, 303);
    let stop = format!("stop={}", between(&list_of(&ada), "name=\"stop\" value=\"", "\""));
    assert_eq!(grace.post(resume, &stop).status, 403);
    assert_eq!(accepted(), [false; 4]);
}

fn list_of(member: &Member) -> String {
    member.get("/settings/api-keys").text()
}

#[test]
fn the_page_says_which_keys_were_used_lately_and_needs_marks() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let keys = [(); 3].map(|()| app.clinic.key());
    app.database
        .connect()
        .batch_execute(&format!(
            "INSERT INTO key_uses (organisation_id, key_id, last_used_at)
             SELECT organisation_id, id, now() - interval '1 day' * CASE WHEN id = '{}' THEN 3 ELSE 40 END
             FROM api_keys WHERE id <> '{}'",
            keys[0].0, keys[2].0
        ))
        .unwrap();
    let asked = ada.get(&format!("{SELECTED}?do=revoke{}", marks(&keys))).text();
    assert!(asked.contains("Of these, 1 key was used in the last month: patients may be lost."), "{asked}");
    let asked = ada.get(&format!("{SELECTED}?do=revoke{}", marks(&keys[1..]))).text();
    assert!(!asked.contains("in the last month"), "{asked}");

    let without = ada.get(&format!("{SELECTED}?do=pause&show=unused"));
    assert_eq!(without.header("location").unwrap().split('?').next(), Some("/settings/api-keys/select"));
    assert!(ada.follow(&without).contains("Mark at least one key."));
    let too_many = "&key=018f0000-0000-7000-8000-000000000000".repeat(51);
    for wrong in ["?do=delete&key=x", "?do=pause&key=x", &format!("?do=pause{too_many}")] {
        assert_eq!(ada.get(&format!("{SELECTED}{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn a_search_for_unused_keys_leads_to_marking_them() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let keys = [(); 2].map(|()| app.clinic.key());
    let link = "href=\"/settings/api-keys/select?";
    assert!(!ada.get("/settings/api-keys").text().contains(link));
    app.database.connect().batch_execute("UPDATE api_keys SET created_at = now() - interval '90 days'").unwrap();
    for search in ["show=unused", "unused=30"] {
        assert!(ada.get(&format!("/settings/api-keys?{search}")).text().contains(&format!("{link}{search}\"")));
        for (marked, checked) in [("", 0), ("&marked=all", 2)] {
            let page = ada.get(&format!("/settings/api-keys/select?{search}{marked}")).text();
            assert_eq!(page.matches("type=\"checkbox\" name=\"key\"").count(), 2, "{page}");
            assert_eq!(page.matches(" checked>").count(), checked, "{search}{marked}");
        }
    }
    assert!(is_accepted(&app, &keys[0]));
}

/// The vendor of a leaked key has to install the new one, which is its only key until then.
#[test]
fn a_key_that_its_vendor_has_yet_to_install_is_not_among_the_unused_ones() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let [forgotten, leaked, young] = [(); 3].map(|()| app.clinic.key());
    let replacing = format!("/settings/api-keys/{}/replace", leaked.0);
    let new = between(&ada.get(&replacing).text(), "name=\"id\" value=\"", "\"");
    assert_eq!(ada.post(&replacing, &format!("id={new}&why=leaked&lasts=never")).status, 200);
    app.database
        .connect()
        .batch_execute(&format!(
            "UPDATE api_keys SET created_at = now() - interval '1 hour' * CASE WHEN id = '{}' THEN 13 * 24 ELSE 15 * 24 END",
            young.0
        ))
        .unwrap();
    let list = ada.get("/settings/api-keys").text();
    assert!(list.contains("<b>1</b> never used"), "{list}");
    for search in ["show=unused", "unused=3", "show=all"] {
        let page = ada.get(&format!("/settings/api-keys/select?{search}&marked=all")).text();
        assert!(page.contains(&forgotten.0.to_string()), "{search}: {page}");
        for waiting in [&new, &young.0.to_string()] {
            assert!(!page.contains(waiting), "{search}: {page}");
        }
        assert!(page.contains("Keys that no request came with yet are left out for their first 14 days"), "{page}");
    }
    let page = ada.get(&format!("/settings/api-keys/{new}")).text();
    assert!(!page.contains("Revoke it if nothing needs it"), "{page}");
}

#[test]
fn one_mail_tells_the_others_which_keys_were_revoked() {
    let Some(server) = MailServer::start() else { return };
    let app = TestApp::start_with(|builder| with_mails(builder, &server.url()));
    let ada = app.member("ada@clinic.example");
    drop(app.member("grace@clinic.example"));
    let keys = [(); 2].map(|()| app.clinic.key());
    change(&ada, "revoke", &marks(&keys));
    let mail = server.wait_for_mail("grace@clinic.example", "Keys of Test Clinic were revoked");
    assert!(mail.contains("Ada (ada@clinic.example) has revoked 2 keys of Test Clinic."), "{mail}");
    assert!(keys.iter().all(|(_, key)| mail.contains(&format!("(…{})", key.hint()))), "{mail}");
}

#[test]
fn a_person_revokes_keys_that_were_never_used() {
    in_each_browser(|app, browser| {
        let keys = [(); 2].map(|()| app.clinic.key());
        app.database.connect().batch_execute("UPDATE api_keys SET created_at = now() - interval '15 days'").unwrap();
        browser.open(&app.url("/settings/api-keys"));
        browser.press("2 never used");
        browser.press("Select several");
        browser.wait_for("Select keys");
        browser.press("Mark all 2");
        browser.wait_for("Mark none");
        let is_level = "const [name, status, created] = ['.check span', '.status', 'td time'].map((one) => {
                const range = document.createRange();
                range.selectNodeContents(document.querySelector(`tbody ${one}`));
                return range.getClientRects()[0];
            });
            return [Math.abs(name.top - created.top) <= 1, Math.abs(name.bottom - created.bottom) <= 1, status.top > 0]";
        assert_eq!(browser.run(is_level), json!([true, true, true]), "{browser:?}");
        browser.press("Revoke 2 marked keys");
        browser.wait_for("Revoke 2 keys?");
        browser.press("Revoke 2 keys");
        browser.wait_for("2 keys were revoked.");
        assert!(keys.iter().all(|key| !is_accepted(app, key)));
    });
}

#[test]
fn the_buttons_say_how_many_keys_are_marked() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let _ = [(); 3].map(|()| app.clinic.key());
    app.database.connect().batch_execute("UPDATE api_keys SET created_at = now() - interval '15 days'").unwrap();
    browser.open(&app.url("/settings/api-keys/select"));
    let mark = |number: u32| {
        let _ = browser.run(&format!("document.querySelectorAll('[name=key]')[{number}].click()"));
    };
    assert!(browser.has("Pause marked keys") && browser.has("Revoke marked keys"));
    mark(1);
    assert!(browser.has("Pause 1 marked key") && browser.has("Revoke 1 marked key"));
    mark(2);
    assert!(browser.has("Revoke 2 marked keys"));
    mark(1);
    browser.press("Revoke 1 marked key");
    browser.wait_for("Revoke 1 key?");
    browser.back();
    browser.wait_for("Select keys");
    let marked = "return document.querySelectorAll('[name=key]:checked').length";
    let marked = browser.run(marked).as_u64().unwrap();
    assert!(browser.has(if marked == 1 { "Revoke 1 marked key" } else { "Revoke marked keys" }), "{marked}");
}
