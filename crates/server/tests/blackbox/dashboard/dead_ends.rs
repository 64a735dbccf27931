//! Nobody is left in front of a page that leads nowhere: a required second step can be a passkey, faults keep the menu,
//! and what cannot be done is said before it is asked for.

use intake_test_support::{Browser, request};

use crate::fixtures::{PASSWORD, TestApp, confirm_identity};

#[test]
fn a_passkey_is_enough_where_two_step_sign_in_is_required() {
    let Some(browser) = Browser::start() else { return };
    let _device = browser.add_authenticator();
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    ada.turn_on_second_factor();
    assert_eq!(ada.confirm("/settings/policies/require-two-step-sign-in").status, 303);
    browser.open(&app.url(&ada.invite_as("grace@clinic.example", "key-manager")));
    browser.fill("Your name", "Grace");
    browser.fill("Password", PASSWORD);
    browser.press("Join");
    confirm_identity(&browser);
    browser.wait_for("Scan this");
    browser.press("Add a passkey");
    browser.wait_for("For example “Work laptop”.");
    assert!(browser.has("Use an authenticator app instead") && !browser.has("Cancel"));
    browser.fill("Name", "Work laptop");
    browser.press("Add passkey");
    browser.wait_for("The passkey was added.");
    browser.press("API keys");
    browser.wait_for("No API keys yet.");
}

#[test]
fn faults_keep_the_menu_for_members_and_lead_strangers_to_sign_in() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let menu = "aria-label=\"Settings\"";
    for path in ["/nothing", "/settings/nothing", "/settings/api-keys/nothing", "/invitations/used"] {
        let page = ada.get(path);
        assert!(page.status == 404 && page.text().contains(menu) && page.text().contains("Sign out"), "{path}");
    }
    let grace = {
        let invitation = ada.invite_as("grace@clinic.example", "key-manager");
        crate::fixtures::Member::join(app.service.client(), &invitation, "Grace")
    };
    let refused = grace.get("/settings/members");
    assert!(refused.status == 403 && refused.text().contains(menu), "{}", refused.text());
    assert!(!refused.text().contains("href=\"/settings/members\""), "the menu of a key manager");
    let stranger = app.service.client().send(&request("GET", "/invitations/used", &[("Accept", "text/html")], b""));
    let page = stranger.text();
    assert!(
        stranger.status == 404 && page.contains("<a href=\"/sign-in\">Sign in</a>") && !page.contains(menu),
        "{page}"
    );
}

#[test]
fn the_last_administrator_learns_it_before_any_question() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(crate::fixtures::Member::join(
        app.service.client(),
        &ada.invite_as("grace@clinic.example", "key-manager"),
        "Grace",
    ));
    crate::fixtures::unconfirm(&app);
    for page in ["remove", "role"] {
        let refused = ada.get(&ada.page_about("Ada", page));
        assert!(refused.status == 409 && refused.text().contains("You&#39;re the only administrator"), "{page}");
    }
    let shown = |name: &str| {
        let page = ada.get(ada.page_about(name, "role").trim_end_matches("/role")).text();
        [page.contains("/remove\""), page.contains("/role\"")]
    };
    assert_eq!((shown("Ada"), shown("Grace")), ([false; 2], [true; 2]));
}

#[test]
fn the_same_email_is_no_change() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let same = ada.post("/settings/account/email", "email=ada%40clinic.example");
    assert!(same.status == 422 && same.text().contains("You already sign in with this email address."));
    assert_eq!(app.database.count("audit_entries WHERE action = 'email_changed'"), 0);
}

#[test]
fn the_sample_names_the_certificate_where_it_is() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let form = ada.get("/settings/api-keys/new").text();
    let id = crate::fixtures::between(&form, "name=\"id\" value=\"", "\"");
    let page = ada.post("/settings/api-keys", &format!("id={id}&name=Desk")).text();
    let file = crate::fixtures::between(&page, "export CURL_CA_BUNDLE=", " ");
    assert!(file.starts_with('/') && std::path::Path::new(&file).is_file(), "{file}");
}
