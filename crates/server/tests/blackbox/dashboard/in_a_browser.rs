//! The dashboard in a real browser, the way a member uses it.

use intake_edge as edge;
use intake_test_support::{Browser, Service, ServiceBuilder, patient, wait_for};
use serde_json::json;

use crate::assert_unauthorised;
use crate::fixtures::{
    PASSWORD, TestApp, accept_invitation, choose_action, choose_role, confirm_identity, create_key, shown_key,
};
use crate::patient_with;

const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";

#[test]
fn a_member_joins_and_makes_uses_and_revokes_a_key() {
    for browser in Browser::each() {
        let app = TestApp::start();
        app.join(&browser, "Ada Lovelace", "ada@clinic.example");
        browser.wait_for("No API keys yet.");

        let key = create_key(&browser, "Front desk");
        browser.press("Copy");
        browser.wait_for("Copied.");
        browser.wait_for("Waiting for the first request");
        assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412 345 678")).status, 422);
        browser.wait_for("A request was refused: Phone number. Tell the vendor.");
        assert_eq!(app.service.create(&key, &patient()).status, 201);
        browser.wait_for("A request was accepted. It created a patient.");

        browser.press("Done");
        browser.wait_for("Front desk");
        let list = browser.text();
        assert!(list.contains(&format!("…{}", key.hint())) && list.contains("Active"), "{list}");
        assert!(!list.contains(key.expose()));
        choose_action(&browser, "Front desk", "Revoke");
        browser.wait_for("Revoke “Front desk”?");
        browser.press("Revoke key");
        browser.wait_for("Revoked");
        assert_unauthorised(&app.service.create(&key, &patient()));
        assert!(!browser.has("Revoke"), "a revoked key has no menu");

        browser.press("Activity");
        for line in ["created the key Front desk", "revoked the key Front desk", "joined as ada@clinic.example"] {
            browser.wait_for(line);
        }
        browser.press("Sign out");
        browser.wait_for("Sign in");
        browser.open(&app.url("/settings/api-keys"));
        browser.wait_for("Email");
        assert!(browser.url().ends_with("/sign-in"));
    }
}

#[test]
fn a_key_is_replaced_without_a_gap() {
    for browser in Browser::each() {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let old = create_key(&browser, "Front desk");
        browser.press("Done");
        choose_action(&browser, "Front desk", "Replace");
        browser.wait_for("Replace “Front desk”");
        let _ = browser.run("document.getElementById('ends-after').value = 'now'");
        browser.press("Create replacement");
        browser.wait_for("won't be shown again");
        let new = shown_key(&browser);
        browser.press("Done");
        browser.wait_for("Old key, still working");
        browser.wait_for("New key, not used yet");
        let menus = browser.run("return [...document.querySelectorAll('.menu')].map((menu) => menu.textContent)");
        assert_eq!(menus, json!(["ReplacePauseRevoke", "PauseRevoke"]), "the old one has its replacement already");
        assert_eq!(app.service.create(&old, &patient()).status, 201, "good until the new one is used");

        assert_eq!(app.service.create(&new, &patient()).status, 201);
        wait_for("the old key's end", || app.service.create(&old, &patient()).status == 401);
        assert_eq!(app.service.create(&new, &patient()).status, 201);
        browser.open(&app.url("/settings/api-keys"));
        browser.wait_for("Expired");
        browser.press("Activity");
        browser.wait_for("created a replacement for the key Front desk");
    }
}

#[test]
fn a_replaced_key_has_the_time_that_was_chosen() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.press("Done");
    choose_action(&browser, "Front desk", "Replace");
    browser.press("Create replacement");
    let new = shown_key(&browser);
    assert_eq!(app.service.create(&new, &patient()).status, 201);
    let set =
        "api_keys WHERE expires_at BETWEEN now() + interval '23 hours 59 minutes' AND now() + interval '24 hours'";
    wait_for("the end to be set", || app.database.count(set) == 1);
}

#[test]
fn a_replacement_expires_with_the_old_key_unless_another_end_is_chosen() {
    use diesel::connection::SimpleConnection;

    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.wait_for("unless you revoke it sooner");
    assert_eq!(
        app.database
            .count("api_keys WHERE expires_at BETWEEN now() + interval '364 days' AND now() + interval '366 days'"),
        1
    );
    let aged = "UPDATE api_keys SET created_at = now() - interval '80 days', expires_at = now() + interval '10 days'";
    app.database.connect().batch_execute(aged).unwrap();
    browser.press("Done");
    choose_action(&browser, "Front desk", "Replace");
    browser.wait_for("90 days, as before: until ");
    assert_eq!(browser.value("Expires"), "same");
    let choose = |lasts: &str, day: &str| {
        let fill = format!(
            "document.querySelector('#lasts').value = '{lasts}'; document.querySelector('#expires').value = '{day}'"
        );
        let _ = browser.run(&fill);
        browser.press("Create replacement");
    };
    choose("date", "2020-01-01");
    browser.wait_for("The date must not be in the past.");
    browser.wait_for("All times are UTC.");
    choose("same", "");
    browser.wait_for("won't be shown again");
    // To the end of the ninetieth day.
    let in_91_days = (edge::now() + time::Duration::days(91)).date().to_string();
    let ends = format!("api_keys WHERE replaces IS NOT NULL AND expires_at = '{in_91_days} 00:00 UTC'");
    assert_eq!(app.database.count(&ends), 1);
}

#[test]
fn a_copy_that_fails_is_never_said_to_have_worked() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    let _ = browser.run(
        "Object.defineProperty(navigator.clipboard, 'writeText', { value: () => Promise.reject() });
         document.execCommand = () => false;",
    );
    browser.press("Copy");
    browser.wait_for("Couldn't copy. Select the key and press Ctrl+C.");
    let selected =
        "const field = document.activeElement; return field.value.slice(field.selectionStart, field.selectionEnd)";
    assert_eq!(browser.run(selected), browser.value("Your new key"));
    let _ = browser.run(
        "document.execCommand = () => true;
         window.announced = [];
         const place = document.getElementById('copied');
         new MutationObserver(() => window.announced.push(place.textContent)).observe(place, { childList: true });",
    );
    for _ in 0..2 {
        browser.press("Copy");
        wait_for("the announcement", || {
            browser.run("return document.getElementById('copied').textContent") == "Copied."
        });
    }
    assert_eq!(
        browser.run("return window.announced"),
        json!(["", "Copied.", "", "Copied."]),
        "a second copy is announced, too"
    );
}

#[test]
fn a_forgotten_page_asks_for_ten_minutes_and_keeps_no_session_alive() {
    use diesel::connection::SimpleConnection;

    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.wait_for("Waiting for the first request");
    let idle = "UPDATE sessions SET last_used_at = now() - interval '11 hours'";
    app.database.connect().batch_execute(idle).unwrap();
    let asked = || {
        let found = browser.run(
            "return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('/first-use')).length",
        );
        found.as_u64().unwrap()
    };
    let before = asked();
    wait_for("the script to ask", || asked() >= before + 2);
    assert_eq!(app.database.count("sessions WHERE last_used_at < now() - interval '10 hours'"), 1, "no use of it");
    let _ = browser.run("const clock = Date.now; Date.now = () => clock() + 10 * 60 * 1000;");
    browser.wait_for("No request yet.");
    let last = asked();
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(asked(), last);
}

#[test]
fn the_use_of_a_key_is_charted_with_the_reasons_of_refusals() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let key = create_key(&browser, "Front desk");
    for _ in 0..3 {
        assert_eq!(app.service.create(&key, &patient()).status, 201);
    }
    let _ = app.service.create(&key, &patient_with("email", "Canary"));
    let _ = app.service.create_with(&key, &[], b"{");
    wait_for("the counts", || app.database.count("key_answers WHERE status <> 201 OR field = ''") == 4);
    browser.press("Done");
    browser.press("Front desk");
    browser.wait_for("3 accepted");
    let page = browser.text();
    assert!(page.contains("2 refused") && page.contains("Email address (1)"), "{page}");
    assert!(!page.contains("Canary"));
    assert_eq!(browser.run("return document.querySelectorAll('svg.chart g').length"), 30);
}

#[test]
fn a_key_is_shown_once() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let key = create_key(&browser, "Once");
    browser.reload();
    assert!(!browser.run("return document.documentElement.outerHTML").as_str().unwrap().contains(key.expose()));
    browser.open(&app.url("/settings/api-keys"));
    browser.back();
    browser.back();
    assert!(!browser.run("return document.documentElement.outerHTML").as_str().unwrap().contains(key.expose()));
    assert_eq!(app.database.count("api_keys"), 1, "sending the form again makes no second key");
}

#[test]
fn a_wrong_pair_is_refused_whichever_half_is_wrong() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "Ada@Clinic.example");
    browser.press("Sign out");
    for (email, password) in
        [("ada@clinic.example", "wrong wrong wrong"), ("eve@clinic.example", PASSWORD), ("no address", PASSWORD)]
    {
        app.sign_in(&browser, email, password);
        if email.contains('@') {
            browser.wait_for("Email or password is wrong");
            let alert = browser.run("return document.querySelector('[role=alert]')?.textContent");
            assert_eq!(alert, "Email or password is wrong");
        }
    }
    app.sign_in(&browser, "ada@clinic.EXAMPLE", PASSWORD);
    browser.wait_for("No API keys yet.");
    browser.press("Activity");
    browser.wait_for("entered an incorrect password for Ada@Clinic.example");
}

#[test]
fn faults_are_shown_beside_their_fields_and_typed_text_stays() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url(&app.invite("ada@clinic.example")));
    // What a browser would not let through.
    let _ = browser.run("document.querySelector('form').noValidate = true");
    browser.fill("Your name", "Ada");
    browser.fill("Password", "short");
    browser.press("Join");
    browser.wait_for("The password must be 12 to 128 characters long.");
    assert_eq!(browser.value("Your name"), "Ada");
    browser.fill("Password", "passwordpassword");
    browser.press("Join");
    browser.wait_for("The password is too easy to guess");
    browser.fill("Password", PASSWORD);
    browser.press("Join");
    browser.wait_for("No API keys yet.");

    browser.press("Create API key");
    let _ = browser.run("document.querySelector('main form').noValidate = true");
    browser.fill("Name", "   ");
    browser.press("Create key");
    browser.wait_for("The name must not be blank.");
    assert_eq!(app.database.count("api_keys"), 0);
}

#[test]
fn an_invitation_is_good_once() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    let link = app.url(&app.invite("ada@clinic.example"));
    browser.open(&link);
    accept_invitation(&browser, "Ada");
    for used in [link.as_str(), &app.url("/invitations/wrong"), &app.url(&format!("/invitations/{}", "0".repeat(64)))] {
        browser.open(used);
        browser.wait_for("This invitation no longer works");
    }
}

#[test]
fn members_invite_and_remove_each_other_and_the_last_one_stays() {
    let Some((ada, grace)) = Browser::firefox().zip(Browser::start()) else { return };
    let app = TestApp::start();
    app.join(&ada, "Ada", "ada@clinic.example");
    ada.press("Members");
    ada.press("Ada");
    ada.wait_for("You're the only administrator");
    assert!(!ada.has("Remove"), "the last member cannot be removed");
    ada.press("Members");
    ada.press("Invite member");
    ada.fill("Email", "grace@clinic.example");
    choose_role(&ada, "administrator");
    ada.press("Create invitation link");
    ada.wait_for("Confirm to invite grace@clinic.example as an administrator.");
    confirm_identity(&ada);
    ada.wait_for("won't be shown again");
    grace.open(&ada.value("Invitation link"));
    accept_invitation(&grace, "Grace");

    ada.press("Members");
    ada.wait_for("grace@clinic.example");
    ada.press("Grace");
    ada.press("Remove");
    ada.wait_for("Remove Grace?");
    ada.press("Remove member");
    ada.wait_for("Invite member");
    assert!(!ada.text().contains("grace@clinic.example"));
    grace.open(&app.url("/settings/api-keys"));
    grace.wait_for("Sign in");
    app.sign_in(&grace, "grace@clinic.example", PASSWORD);
    grace.wait_for("Email or password is wrong");
}

#[test]
fn a_key_can_be_made_with_the_keyboard_alone() {
    for browser in Browser::each() {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let focused = || browser.run("return document.activeElement.textContent.trim() || document.activeElement.name");
        for _ in 0..20 {
            if focused() == "Create API key" {
                break;
            }
            browser.keys(TAB);
        }
        assert_eq!(focused(), "Create API key");
        browser.keys(ENTER);
        browser.wait_for("Where the key will be used");
        assert_eq!(focused(), "name", "the first field has the focus");
        browser.keys(&format!("By keyboard{ENTER}"));
        browser.wait_for("won't be shown again");
        assert!(shown_key(&browser).expose().starts_with("intake_demo_"));
    }
}

#[test]
fn everything_works_without_scripts() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let key = create_key(&browser, "Plain");
    assert!(!browser.text().contains("Waiting for the first request"), "nothing waits");
    let copies =
        browser.run("return [...document.querySelectorAll('[data-copy]')].some((one) => one.getClientRects().length)");
    assert_eq!(copies, json!(false), "what does nothing is not shown");
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    browser.press("Done");
    choose_action(&browser, "Plain", "Revoke");
    browser.press("Revoke key");
    browser.wait_for("Revoked");
    assert_unauthorised(&app.service.create(&key, &patient()));
    browser.press("Sign out");
    browser.wait_for("Sign in");
}

#[test]
fn the_first_start_prints_an_invitation_that_leads_to_the_dashboard() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let start = || ServiceBuilder::in_folder(env!("CARGO_BIN_EXE_intake"), folder.path()).start();
    let link = |service: &Service| {
        let output = service.output();
        output.lines().find(|line| line.starts_with("https://") && line.contains("/invitations/")).map(str::to_owned)
    };
    let mut service = start();
    wait_for("the link", || link(&service).is_some());
    browser.open(&link(&service).unwrap());
    browser.wait_for("Join Demo Clinic");
    browser.fill("Your name", "Ada");
    browser.fill("Password", PASSWORD);
    browser.press("Join");
    browser.wait_for("Demo key");
    assert!(service.stop().success());
    let service = start();
    wait_for("the greeting", || service.output().contains("intake is ready"));
    assert_eq!(link(&service), None, "there is a member by now");
}
