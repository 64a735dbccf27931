//! Where people get to: after signing in to the page that they asked for, after a change to where they began it. Going
//! back or reloading shows no error page and does nothing twice.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_edge as edge;
use intake_test_support::{Browser, Response, request};

use crate::fixtures::{
    Member, PASSWORD, TestApp, choose_action, confirm_identity, create_key, in_each_browser, password_field, post,
};

const SESSION_ENDED: &str = "Your session has expired.";

fn sign_in_to(app: &TestApp, next: &str) -> Response {
    let form = format!("email=ada%40clinic.example&{}&next={next}", password_field(PASSWORD));
    post(&app.service.client(), "/sign-in", &[], &form)
}

#[test]
fn signing_in_leads_to_the_page_that_was_asked_for() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let asked = app.url("/settings/api-keys?q=desk&show=all");
    browser.press("Sign out");
    browser.wait_for("You have signed out.");
    browser.open(&asked);
    browser.wait_for("New here?");
    assert!(!browser.text().contains(SESSION_ENDED), "there was none");
    browser.fill("Email", "ada@clinic.example");
    browser.fill("Password", "wrong wrong wrong");
    browser.press("Sign in");
    browser.wait_for("Email or password is wrong");
    assert_eq!(browser.value("Email"), "ada@clinic.example");
    browser.wait_for_focus("password");
    browser.fill("Password", PASSWORD);
    browser.press("Sign in");
    browser.wait_for("No API keys yet.");
    assert_eq!(browser.url(), asked);

    app.database.connect().batch_execute("DELETE FROM sessions").unwrap();
    browser.press("Activity");
    browser.wait_for(SESSION_ENDED);
    browser.fill("Email", "ada@clinic.example");
    browser.fill("Password", PASSWORD);
    browser.press("Sign in");
    browser.wait_for("newest first");
    assert_eq!(browser.url(), app.url("/settings/activity"));
}

#[test]
fn the_page_that_was_asked_for_is_kept_in_mind_while_a_code_is_asked_for() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let secret = ada.turn_on_second_factor();
    let code = |at| secret.code_at(at);
    let answer = sign_in_to(&app, "%2Fsettings%2Factivity");
    let location = answer.header("location").unwrap();
    assert_eq!(location, "/sign-in/code?next=%2Fsettings%2Factivity");
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap();
    let client = app.service.client();
    let page = client.send(&request("GET", location, &[("Cookie", cookie)], b"")).text();
    assert!(page.contains("name=\"next\" value=\"/settings/activity\""), "{page}");
    let form_token = crate::fixtures::form_token(&page);
    let send = |code: &str| {
        let form = format!("form_token={form_token}&code={code}&next=%2Fsettings%2Factivity");
        post(&client, "/sign-in/code", &[("Cookie", cookie)], &form)
    };
    let wrong = send("000000");
    assert!(wrong.status == 401 && wrong.text().contains("value=\"/settings/activity\""));
    let right = send(&code(edge::now() + Duration::from_secs(30)));
    assert_eq!((right.status, right.header("location")), (303, Some("/settings/activity")));
    let late = send("000000");
    assert_eq!((late.status, late.header("location")), (303, Some("/sign-in?next=%2Fsettings%2Factivity")));
}

#[test]
fn signing_in_leads_to_no_other_site() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    // Ten attempts are taken at once.
    for (attempt, evil) in [
        "%2F%2Fevil.example",
        "%2F%5Cevil.example",
        "%5C%5Cevil.example",
        "https%3A%2F%2Fevil.example%2Fsettings%2F",
        "javascript%3Aalert(1)",
        "%2Fsettings%2F%5Cevil.example",
        "%2Fsettings%2Fmembers%0D%0ASet-Cookie%3A%20a%3Db",
        "%09%2F%2Fevil.example",
        "%2F%09%2Fevil.example",
        "%2Fsign-out",
    ]
    .into_iter()
    .enumerate()
    {
        if attempt < 8 {
            let signed_in = sign_in_to(&app, evil);
            assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/settings/api-keys")), "{evil}");
            assert_eq!(signed_in.headers.iter().filter(|(name, _)| name == "set-cookie").count(), 1, "{evil}");
        }
        let page = ada.get(&format!("/sign-in?next={evil}"));
        assert_eq!((page.status, page.header("location")), (303, Some("/settings/api-keys")), "{evil}");
        let asked = app.service.client().send(&request("GET", &format!("/sign-in?next={evil}"), &[], b"")).text();
        assert!(asked.contains("name=\"next\" value=\"/settings/api-keys\""), "{evil}: {asked}");
    }
    assert_eq!(sign_in_to(&app, "%2Fsettings%2Fmembers").header("location"), Some("/settings/members"));
    assert_eq!(ada.get("/sign-in?next=%2Fsettings%2Fmembers").header("location"), Some("/settings/members"));
}

#[test]
fn a_result_is_shown_on_the_page_where_the_action_began() {
    in_each_browser(|app, browser| {
        for name in ["Desk one", "Desk two", "Laboratory"] {
            browser.open(&app.url("/settings/api-keys"));
            create_key(browser, name);
        }
        let list = app.url("/settings/api-keys?q=desk&show=active&sort=name");
        browser.open(&list);
        choose_action(browser, "Desk one", "Revoke");
        browser.wait_for("Revoke “Desk one”?");
        browser.press("Cancel");
        browser.wait_for("Desk two");
        assert_eq!(browser.url(), list);
        choose_action(browser, "Desk one", "Revoke");
        browser.press("Revoke key");
        browser.wait_for("“Desk one” has been revoked. Requests using it are now refused.");
        assert!(browser.url().starts_with(&list), "{}", browser.url());
        let text = browser.text();
        assert!(text.contains("Desk two") && !text.contains("Laboratory"), "the same search: {text}");
        choose_action(browser, "Desk two", "Replace");
        browser.press("Create replacement");
        browser.wait_for("won't be shown again");
        browser.press("Done");
        browser.wait_for("New key, not used yet");
        assert_eq!(browser.url(), list);

        browser.press("Desk two");
        browser.wait_for("Requests in the last 30 days");
        choose_action(browser, "Desk two", "Revoke");
        browser.press("Revoke key");
        browser.wait_for("“Desk two” has been revoked.");
        browser.wait_for("Requests in the last 30 days");
        browser.press("API keys");
        browser.open(&app.url("/settings/api-keys?show=all&q=one"));
        browser.press("Desk one");
        let replace = browser.url().replace('?', "/replace?");
        browser.open(&replace);
        browser.wait_for("“Desk one” was revoked, so nothing can replace it.");
    });
}

#[test]
fn going_back_and_loading_anew_show_no_error_and_do_nothing_twice() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.press("Done");
    browser.wait_for("Front desk");
    browser.back();
    browser.wait_for("Where the key will be used");
    let _ = browser.run("document.querySelector('main form').noValidate = true");
    browser.fill("Name", " ");
    browser.press("Create key");
    browser.wait_for("The name must not be blank.");
    browser.reload();
    browser.wait_for("Vendors send patients with API keys");
    create_key(&browser, "Laboratory");
    browser.reload();
    browser.wait_for("Laboratory");
    assert_eq!(app.database.count("api_keys"), 2);

    browser.open(&app.url("/settings/confirm?next=/settings/members/invite"));
    confirm_identity(&browser);
    browser.wait_for("Invite a member");
    browser.fill("Email", "grace@clinic.example");
    browser.press("Create invitation link");
    browser.wait_for("won't be shown again");
    browser.reload();
    browser.wait_for("Invite a member");
    assert!(!browser.text().contains("won't be shown again"));
    browser.press("Activity");
    browser.back();
    browser.wait_for("Invite a member");
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 1);
}

#[test]
fn the_first_wrong_field_has_the_focus() {
    for browser in [Browser::start(), Browser::without_scripts()] {
        let Some(browser) = browser else { return };
        let app = TestApp::start();
        let ada = app.member("ada@clinic.example");
        let id = "018f0000-0000-7000-8000-000000000000";
        for (name, expires, focused) in [("+", "2099-01-01", "name"), ("Desk", "2020-01-01", "expires")] {
            let form = format!("id={id}&name={name}&lasts=date&expires={expires}");
            let page = ada.post("/settings/api-keys", &form);
            assert_eq!(page.status, 422);
            let text = page.text();
            let with_focus = text.split("<input ").find(|input| input.contains(" autofocus")).unwrap();
            let tag = with_focus.split('>').next().unwrap();
            assert!(tag.starts_with(&format!("id=\"{focused}\"")), "{name} {expires}: {tag}");
            assert!(tag.contains("aria-invalid=\"true\""), "{tag}");
        }
        // As a browser takes it.
        app.sign_in(&browser, "ada@clinic.example", PASSWORD);
        browser.wait_for("No API keys yet.");
        browser.press("Create API key");
        browser.fill("Name", "\u{200B}");
        browser.press("Create key");
        browser.wait_for("The name must not be blank.");
        browser.wait_for_focus("name");
    }
}

#[test]
fn two_hundred_keys_are_a_small_page_and_a_quick_one() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    let ada = app.member("ada@clinic.example");
    let many = "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, expires_at, created_by)
         SELECT gen_random_uuid(), id, repeat('Integration ', 8) || n, sha256(n::text::bytea), 'aB3x', now(),
             now() + interval '5 days', 'Ada Lovelace of the front desk'
         FROM organisations, generate_series(1, 200) AS n;
         INSERT INTO key_uses SELECT organisation_id, id, now(), now() FROM api_keys";
    app.database.connect().batch_execute(many).unwrap();
    for path in ["/settings/api-keys", "/settings/api-keys?show=all&sort=name&page=4"] {
        let mut costs = Vec::new();
        for _ in 0..20 {
            let _ = proxy.take();
            let before = app.service.processor_time();
            let page = ada.get(path);
            costs.push((proxy.take(), app.service.processor_time() - before));
            assert_eq!(page.status, 200);
            assert!(page.body.len() < 100 * 1024, "{path}: {} bytes", page.body.len());
            let text = page.text();
            assert_eq!(text.matches("<tr ").count() + text.matches("<tr>").count(), 51, "{path}");
        }
        // What it costs, not how long it takes beside other programs; other threads of the service work now and then,
        // too.
        let (questions, _) = costs.iter().min_by_key(|(questions, _)| *questions).unwrap();
        let (_, computed) = costs.iter().min_by_key(|(_, computed)| *computed).unwrap();
        assert!(*questions <= 7, "{path}: {questions} questions to the database");
        assert!(*computed < Duration::from_millis(100), "{path}: {computed:?}");
    }
}

#[test]
fn a_form_without_a_session_is_not_repeated_and_is_shown_again() {
    let app = TestApp::start();
    let ada: Member = app.member("ada@clinic.example");
    app.database.connect().batch_execute("DELETE FROM sessions").unwrap();
    let answer = ada.post("/settings/account/name", "name=Eve");
    let again = "/sign-in?next=%2Fsettings%2Faccount%2Fname";
    assert_eq!((answer.status, answer.header("location")), (303, Some(again)));
    let other = ada.post("/settings/account/sessions/end-others", "");
    assert_eq!((other.status, other.header("location")), (303, Some("/sign-in?next=%2Fsettings%2Faccount")));
    assert!(ada.get("/sign-in?next=%2Fsettings%2Faccount").text().contains(SESSION_ENDED));
}
