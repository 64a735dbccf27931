//! Before a key ends, its page says what depends on it; a replacement keeps what people wrote down, and the two keys
//! lead to each other.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, patient, wait_for};

use crate::fixtures::{Member, TestApp, between, choose_action, create_key, in_each_browser, shown_key};

#[test]
fn the_facts_about_a_key_are_shown_before_it_is_revoked_or_replaced() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (idle, _) = app.clinic.key();
    let at = |id: &str, page: &str| format!("/settings/api-keys/{id}/{page}");
    assert_eq!(ada.post(&at(&id.to_string(), "note"), "note=Call+Dana+%3C1%3E").status, 303);
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    assert_eq!(app.service.create_with(&key, &[], b"{").status, 400);
    wait_for("the counts", || app.database.count("key_answers WHERE status <> 201 OR field = ''") == 2);
    wait_for("the use", || app.database.count("key_uses WHERE last_used_at IS NOT NULL") == 1);
    app.database
        .connect()
        .batch_execute(&format!(
            "INSERT INTO key_answers SELECT organisation_id, id, now()::date - 3, now()::date - 3, 201, '', 1315 FROM api_keys WHERE id = '{id}';
             INSERT INTO key_answers SELECT organisation_id, id, now()::date - 8, now()::date - 8, 201, '', 40000 FROM api_keys WHERE id = '{id}'"
        ))
        .unwrap();
    let hint = &key.expose()[key.expose().len() - 4..];
    for page in ["revoke", "replace"] {
        let shown = ada.get(&at(&id.to_string(), page)).text();
        let expected = [
            "Call Dana &#60;1&#62;",
            &format!("…{hint}"),
            "by the service operator",
            ">1,317<",
            "This key is in use: the last request came",
        ];
        for expected in expected {
            assert!(shown.contains(expected), "{page}: {expected}: {shown}");
        }
        let idle = ada.get(&at(&idle.to_string(), page)).text();
        assert!(!idle.contains("This key is in use") && idle.contains("<dd>never"), "{page}: {idle}");
    }
}

#[test]
fn a_leaked_key_stops_when_its_replacement_is_made() {
    in_each_browser(|app, browser| {
        let old = create_key(browser, "Front desk");
        browser.press("Done");
        choose_action(browser, "Front desk", "Replace");
        browser.wait_for("Might someone else have the key?");
        let is_shown = || browser.run("return document.getElementById('ends-by').getClientRects().length > 0");
        assert_eq!(is_shown(), true);
        let _ = browser.run("document.querySelector('[value=leaked]').click()");
        assert_eq!(is_shown(), false);
        assert!(browser.run("return document.querySelector('.danger').getClientRects().length > 0") == true);
        browser.press("Stop the old key and create a new one");
        browser.wait_for("Key replaced: Front desk");
        browser.wait_for("was revoked. No patient is received until the vendor has installed the new key.");
        browser.wait_for("The old key has already stopped: no patient is received until you install the new key.");
        let new = shown_key(browser);
        browser.press("old key");
        browser.wait_for("not used yet. This key has stopped");
        browser.wait_for("no patient is received until the vendor has installed the new key");
        assert!(!browser.text().contains("This key stops"), "{}", browser.text());
        assert_eq!(app.service.create(&old, &patient()).status, 401);
        assert_eq!(app.service.create(&new, &patient()).status, 201);
        browser.press("Activity");
        browser.wait_for("created a replacement for the key Front desk");
        browser.wait_for("revoked the key Front desk");
    });
}

#[test]
fn a_key_that_is_in_use_is_a_warning_only_where_it_stops() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    wait_for("the use", || app.database.count("key_uses WHERE last_used_at IS NOT NULL") == 1);
    for (page, is_alert) in [("pause", true), ("revoke", true), ("replace", false)] {
        let shown = ada.get(&format!("/settings/api-keys/{id}/{page}")).text();
        assert!(shown.contains("This key is in use: the last request came"), "{page}: {shown}");
        assert_eq!(shown.contains("<p class=\"alert\">This key is in use"), is_alert, "{page}: {shown}");
    }
}

#[test]
fn a_paused_key_is_replaced_and_is_not_called_working() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (routine, key) = app.clinic.key();
    let at = |id: &str, page: &str| format!("/settings/api-keys/{id}/{page}");
    let routine = routine.to_string();
    assert_eq!(ada.post(&at(&routine, "pause"), "").status, 303);
    assert!(ada.get("/settings/api-keys").text().contains(&at(&routine, "replace")), "the menu");
    let form = ada.get(&at(&routine, "replace")).text();
    assert!(form.contains("This key is paused: its requests are refused already"), "{form}");
    let new = between(&form, "name=\"id\" value=\"", "\"");
    let choice = format!("id={new}&why=routine&ends_after=24h&ends_by=14&lasts=never");
    assert_eq!(ada.post(&at(&routine, "replace"), &choice).status, 200);
    let list = ada.get("/settings/api-keys").text();
    assert!(list.contains(">Old key, replaced</a>") && !list.contains("still working"), "{list}");
    assert_eq!(ada.post(&at(&routine, "resume"), "").status, 303);
    assert!(ada.get("/settings/api-keys").text().contains(">Old key, still working</a>"));
    assert_eq!(app.service.create(&key, &patient()).status, 201);
}

#[test]
fn a_routine_replacement_has_a_latest_end_that_is_chosen() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (old, key) = app.clinic.key();
    let replacing = format!("/settings/api-keys/{old}/replace");
    let id = between(&ada.get(&replacing).text(), "name=\"id\" value=\"", "\"");
    for wrong in ["why=routine&ends_after=24h&ends_by=999", "why=lost&ends_after=24h&ends_by=14"] {
        assert_eq!(ada.post(&replacing, &format!("id={id}&{wrong}&lasts=never")).status, 400);
    }
    let made = ada.post(&replacing, &format!("id={id}&why=routine&ends_after=24h&ends_by=30&lasts=never"));
    let made = made.text();
    for expected in [
        "It stops at <time",
        "The new key doesn't expire.",
        &format!(
            "has replaced the API key that ends in {}, for “Test key”.\nPlease install the new key by ",
            key.hint()
        ),
    ] {
        assert!(made.contains(expected), "{expected}: {made}");
    }
    let ends = "expires_at BETWEEN now() + interval '29 days' AND now() + interval '30 days'";
    assert_eq!(app.database.count(&format!("api_keys WHERE id = '{old}' AND {ends}")), 1);
    assert_eq!(app.service.create(&key, &patient()).status, 201);
}

#[test]
fn an_expired_key_is_replaced_from_its_page_and_from_the_list() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (old, key) = app.clinic.key();
    let expire = format!(
        "UPDATE api_keys SET note = 'Call Dana', created_at = now() - interval '31 days', expires_at = now() - interval '1 day'
         WHERE id = '{old}'"
    );
    app.database.connect().batch_execute(&expire).unwrap();
    let replacing = format!("/settings/api-keys/{old}/replace");
    for page in ["?show=all", &format!("/{old}")] {
        let shown = ada.get(&format!("/settings/api-keys{page}")).text();
        assert!(shown.contains(&replacing) && !shown.contains(">Pause<"), "{page}: {shown}");
    }
    let form = ada.get(&replacing).text();
    assert!(form.contains("This key expired, <time") && !form.contains("Might someone else"), "{form}");
    assert!(form.contains("value=\"365\" selected"), "a year, as for a key of its own: {form}");
    let id = between(&form, "name=\"id\" value=\"", "\"");
    let made = ada.post(&replacing, &format!("id={id}&lasts=365")).text();
    assert!(made.contains("The old key has expired: no patient is received until you install the new key."), "{made}");
    let new = crate::fixtures::demo_key(&between(&made, "id=\"key\" value=\"", "\""));
    assert_eq!(app.service.create(&new, &patient()).status, 201);
    assert_eq!(app.service.create(&key, &patient()).status, 401);
    let is_ended = "expires_at < now() - interval '23 hours' AND revoked_at IS NULL";
    assert_eq!(app.database.count(&format!("api_keys WHERE id = '{old}' AND {is_ended}")), 1, "its end stays");
    assert_eq!(app.database.count(&format!("api_keys WHERE replaces = '{old}' AND note = 'Call Dana'")), 1);
    let shown = ada.get("/settings/api-keys?show=all").text();
    assert!(!shown.contains(&replacing), "once is enough: {shown}");
}

#[test]
fn a_key_whose_replacement_is_refused_is_replaced_again() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (old, _) = app.clinic.key();
    let (new, _) = app.clinic.key();
    let sql = |sql: &str| app.database.connect().batch_execute(sql).unwrap();
    sql(&format!(
        "UPDATE api_keys SET created_at = now() - interval '31 days', expires_at = now() + interval '3 days' WHERE id = '{old}';
         UPDATE api_keys SET replaces = '{old}' WHERE id = '{new}'"
    ));
    let replacing = format!("/settings/api-keys/{old}/replace");
    let shown = |page: &str| ada.get(&format!("/settings/api-keys{page}")).text();
    let is_replaced = || {
        let (list, page) = (shown(""), shown(&format!("/{old}")));
        let is_replaced = !list.contains(&replacing);
        assert_eq!(list.contains("Old key, still working"), is_replaced, "{list}");
        assert_eq!(list.contains("show=expiring"), !is_replaced, "{list}");
        assert_eq!(page.contains("<dt>Replaced by</dt>"), is_replaced, "{page}");
        assert_eq!(page.contains(&replacing), !is_replaced, "{page}");
        is_replaced
    };
    assert!(is_replaced());
    for refused in ["paused_at", "expires_at"] {
        sql(&format!("UPDATE api_keys SET {refused} = now() WHERE id = '{new}'"));
        assert!(!is_replaced(), "{refused}");
        sql(&format!("UPDATE api_keys SET {refused} = NULL WHERE id = '{new}'"));
        assert!(is_replaced(), "{refused}");
    }
}

#[test]
fn the_keys_of_a_member_who_leaves_are_listed_to_be_replaced() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let james = app.member("james@clinic.example");
    let new = between(&james.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    assert_eq!(james.post("/settings/api-keys", &format!("id={new}&name=Kiosk&lasts=never")).status, 200);
    let (other, _) = app.clinic.key();
    let about = |page: &str| ada.page_about("james@clinic.example", page);
    let (page, removing) = (about(""), about("remove"));
    for page in [page.trim_end_matches('/'), &removing] {
        let shown = ada.get(page).text();
        assert!(shown.contains(&format!("href=\"/settings/api-keys/{new}/replace?at=key\"")), "{page}: {shown}");
        assert!(!shown.contains(&other.to_string()), "{page}: {shown}");
    }
    let list = ada.follow(&ada.post(&removing, ""));
    assert!(list.contains("Next: replace the keys of this list that James knows."), "{list}");
    assert!(list.contains(&new) && !list.contains(&other.to_string()), "{list}");
}

#[test]
fn the_keys_of_a_member_are_known_by_the_member_and_not_by_a_name() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let make = |member: &Member, name: &str| {
        let id = between(&member.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
        let form = format!("id={id}&name={name}&lasts=never");
        assert_eq!(member.post("/settings/api-keys", &form).status, 200);
        id
    };
    let james = app.member("james@clinic.example");
    let before = make(&james, "Kiosk");
    assert_eq!(james.post("/settings/account/name", "name=Jim").status, 303);
    let after = make(&james, "Foyer");
    // Another person gets the name that the first key bears.
    let other = Member::join(app.service.client(), &app.invite("jim@clinic.example"), "James");
    let foreign = make(&other, "Reception");
    let id = app.database.texts("SELECT id::text FROM members WHERE email = 'james@clinic.example'").remove(0);
    let page = format!("/settings/members/{id}");
    let removing = format!("{page}/remove");
    for page in [&page, &removing] {
        let shown = ada.get(page).text();
        assert!(shown.contains(&before) && shown.contains(&after) && !shown.contains(&foreign), "{page}: {shown}");
    }
    let of_other = ada.get(ada.page_about("James", "").trim_end_matches('/')).text();
    assert!(of_other.contains(&foreign) && !of_other.contains(&before), "{of_other}");
    let list = ada.follow(&ada.post(&removing, ""));
    assert!(list.contains("Next: replace the keys of this list that Jim knows."), "{list}");
    assert!(list.contains(&before) && list.contains(&after) && !list.contains(&foreign), "{list}");
    assert!(list.contains("Keys that Jim created") && list.contains(">Clear search</a>"), "{list}");
    // Another search in this list stays among them.
    let found = ada.get(&format!("/settings/api-keys?made_by={}&q=kiosk", between(&list, "?made_by=", "\""))).text();
    assert!(found.contains(&before) && !found.contains(&after), "{found}");
    assert_eq!(ada.get("/settings/api-keys?made_by=nobody").status, 200);
}

#[test]
fn only_what_cannot_be_undone_has_a_red_button() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    for (page, is_red) in [("pause", false), ("revoke", true)] {
        let shown = ada.get(&format!("/settings/api-keys/{id}/{page}")).text();
        assert_eq!(shown.contains("type=\"submit\" class=\"danger\""), is_red, "{page}");
    }
}

#[test]
fn a_replacement_has_the_note_and_each_key_leads_to_the_other() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let old = create_key(&browser, "Front desk");
    browser.press("Done");
    app.database.connect().batch_execute("UPDATE api_keys SET note = 'Call Dana'").unwrap();
    choose_action(&browser, "Front desk", "Replace");
    browser.wait_for("Call Dana");
    browser.press("Create replacement");
    browser.wait_for("stops 24 hours after the new key's first patient. It stops at");
    let new = shown_key(&browser);
    browser.press("old key");
    browser.wait_for("Replaced by");
    browser.wait_for("This key stops 24 hours after the new key's first patient");
    browser.press("New key");
    browser.wait_for("Replaces");
    assert!(browser.text().contains("Call Dana"), "the note is kept");
    assert_eq!(app.service.create(&new, &patient()).status, 201);
    browser.press("Old key");
    browser.wait_for("Replaced by");
    wait_for("the use", || {
        browser.reload();
        browser.text().contains("which is in use")
    });
    let expires = "return [...document.querySelectorAll('dt')].find((one) => one.textContent === 'Expires').nextElementSibling.textContent";
    assert!(browser.run(expires).as_str().unwrap().contains("in 23 hours"), "until when it works: {}", browser.text());
    assert_eq!(app.service.create(&old, &patient()).status, 201);
    // A replacement that is revoked replaces nothing.
    browser.press("New key");
    browser.wait_for("Old key");
    choose_action(&browser, "Front desk", "Revoke");
    browser.press("Revoke key");
    browser.wait_for("has been revoked");
    browser.press("Old key");
    browser.wait_for("Requests in the last 30 days");
    assert!(!browser.text().contains("Replaced by"));
}
