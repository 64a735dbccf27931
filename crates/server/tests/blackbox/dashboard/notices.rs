//! Every change ends with a notice at the top of the next page, which has the focus and is shown once; a new
//! invitation has a page of its own, and an address has one open invitation.

use diesel::connection::SimpleConnection;
use intake_test_support::{Response, request};

use crate::fixtures::{
    Member, PASSWORD, TestApp, accept, between, choose_role, confirm_identity, cookie, in_each_browser,
};

/// The notice of a page, where it has the focus.
fn notice(page: &str) -> Option<String> {
    let (_, rest) = page.split_once("<p class=\"notice\" role=\"status\" tabindex=\"-1\" autofocus>")?;
    Some(rest.split("</p>").next().unwrap().replace("&#39;", "'"))
}

#[track_caller]
fn assert_notice(member: &Member, answer: &Response, expected: &str) {
    assert_eq!(answer.status, 303, "{expected}: {}", answer.text());
    assert_eq!(notice(&member.follow(answer)).as_deref(), Some(expected));
}

#[test]
fn every_change_ends_with_a_notice() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(app.member("grace@clinic.example"));
    let (key, _) = app.clinic.key();
    let at = |page: &str| format!("/settings/api-keys/{key}/{page}");
    assert_notice(&ada, &ada.post(&at("rename"), "name=Desk"), "Renamed to “Desk”.");
    assert_notice(&ada, &ada.post(&at("rename"), "name=Desk"), "Nothing was changed.");
    assert_notice(&ada, &ada.post(&at("note"), "note=Call+Dana"), "Note saved.");
    let revoked = "“Desk” has been revoked. Requests using it are now refused.";
    assert_notice(&ada, &ada.post(&at("revoke"), ""), revoked);
    let again = ada.post(&at("revoke"), "");
    assert_eq!(ada.get(&at("revoke")).header("location"), again.header("location"));
    let at =
        app.database.texts("SELECT to_char(revoked_at AT TIME ZONE 'UTC', 'FMDD Mon YYYY, HH24:MI') FROM api_keys");
    assert_notice(&ada, &again, &format!("“Desk” was already revoked on {} UTC.", at[0]));
    let hidden = "First steps are hidden in this browser.";
    assert_notice(&ada, &ada.post("/settings/first-steps", ""), hidden);

    let role = ada.page_about("Grace", "role");
    assert_notice(&ada, &ada.post(&role, "role=key-manager"), "Grace is a key manager now.");
    assert_notice(&ada, &ada.post(&role, "role=administrator"), "Grace is an administrator now.");
    drop(ada.invite("mary@clinic.example"));
    let list = ada.get("/settings/members").text();
    let withdraw =
        format!("/settings/members/invitations/{}/withdraw", between(&list, "/settings/members/invitations/", "/"));
    assert_notice(&ada, &ada.post(&withdraw, ""), "The invitation was withdrawn.");
    let removed = ada.confirm(&ada.page_about("Grace", "remove"));
    assert_notice(&ada, &removed, "Grace was removed, and signed out everywhere.");
    assert_notice(&ada, &ada.post("/settings/account/name", "name=Countess"), "Your name was changed.");
    assert_notice(
        &ada,
        &ada.post("/settings/account/second-factor/turn-off", ""),
        "Two-step sign-in was already changed in another window.",
    );
    app.database.connect().batch_execute("UPDATE organisations SET second_factor_required = true").unwrap();
    app.database.connect().batch_execute(crate::dashboard::pages::PASSKEY_OF_EACH_MEMBER).unwrap();
    assert_notice(
        &ada,
        &ada.post("/settings/account/second-factor/turn-off", ""),
        "Your organisation requires two-step sign-in, so it can't be turned off.",
    );
}

#[test]
fn members_who_remove_themselves_learn_how_to_come_back() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(app.member("grace@clinic.example"));
    let page = ada.page_about("Ada", "remove");
    assert!(ada.get(&page).text().contains("You can come back only if an administrator invites you."));
    let removed = ada.confirm(&page);
    assert_eq!((removed.status, removed.header("location")), (303, Some("/sign-in")));
    assert!(cookie(&removed).ends_with("intake-session="), "{}", cookie(&removed));
    let cookies = removed.all("set-cookie");
    let left = cookies.iter().find(|one| one.starts_with("__Host-intake-done=")).unwrap();
    let left = left.split(';').next().unwrap();
    let sign_in = ada.client.send(&request("GET", "/sign-in", &[("Cookie", left)], b"")).text();
    assert_eq!(notice(&sign_in).as_deref(), Some("You are no longer a member of Test Clinic."));
}

#[test]
fn the_notice_is_in_sight_has_the_focus_and_is_shown_once() {
    in_each_browser(|app, browser| {
        for number in 1..=20 {
            drop(app.clinic.key());
            drop(app.invite(&format!("guest{number}@clinic.example")));
        }
        browser.open(&app.url("/settings/account/name"));
        browser.fill("Your name", "Countess");
        browser.press("Save name");
        browser.wait_for("Your name was changed.");
        let focused = "const one = document.activeElement; const place = one.getBoundingClientRect();
            return [one.classList.contains('notice'), place.top >= 0 && place.bottom <= innerHeight]";
        browser.wait_until(focused, serde_json::json!([true, true]));
        browser.reload();
        browser.wait_for("Countess");
        assert!(!browser.text().contains("Your name was changed."), "once");

        browser.press("Members");
        browser.wait_for("Invite member");
        browser.press("Invite member");
        browser.fill("Email", "grace@clinic.example");
        choose_role(browser, "administrator");
        browser.press("Create invitation link");
        confirm_identity(browser);
        browser.wait_for("Invitation for grace@clinic.example");
        assert_eq!(browser.run(focused), serde_json::json!([true, true]), "a page of its own, in sight");
        let first = browser.value("Invitation link");
        browser.press("Create new link");
        browser.wait_for("Invitation for grace@clinic.example");
        let second = browser.value("Invitation link");
        assert_ne!(first, second);
        browser.open(&first);
        browser.wait_for("This invitation no longer works");
        browser.open(&second);
        browser.wait_for("Join Test Clinic");
    });
}

#[test]
fn an_address_has_one_open_invitation_which_can_be_sent_again() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let by_operator = app.invite("grace@clinic.example");
    let open = |path: &str| app.service.client().send(&request("GET", path, &[], b"")).status;
    let first = ada.invite_as("Grace@clinic.example", "key-manager");
    assert_eq!((open(&by_operator), open(&first)), (404, 200), "the later one replaces the earlier");
    let list = ada.get("/settings/members").text();
    assert_eq!(list.matches("id=\"invitation-").count(), 1);
    let resend =
        format!("/settings/members/invitations/{}/resend", between(&list, "/settings/members/invitations/", "/"));
    let asked = ada.get(&resend);
    assert!(asked.status == 200 && asked.text().contains("Invite Grace@clinic.example again?"), "{}", asked.text());
    assert_eq!(open(&first), 200, "looking changes nothing");
    let page = ada.post(&resend, "").text();
    let second = between(&page, "id=\"link\" value=\"", "\"");
    let second = &second[second.find("/invitations/").unwrap()..];
    assert_eq!((open(&first), open(second)), (404, 200));
    assert_eq!(ada.post(&resend, "").status, 404, "it is gone");
    assert_eq!(accept(&app.service.client(), second, "Grace").status, 303);
    assert_eq!(app.database.count("memberships WHERE role = 'key-manager'"), 1, "the role is kept");
    assert_eq!(app.database.count("audit_entries WHERE action = 'member_invited'"), 4);
}

#[test]
fn invitations_at_the_same_moment_leave_one_open() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    std::thread::scope(|threads| {
        for _ in 0..3 {
            let _ = threads.spawn(|| {
                let sent = ada.post("/settings/members/invite", "email=grace%40clinic.example");
                assert_eq!(sent.status, 200, "{}", sent.text());
            });
        }
    });
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 1);
}

#[test]
fn the_first_wrong_field_of_an_invitation_has_the_focus() {
    let app = TestApp::start();
    let invitation = app.invite("ada@clinic.example");
    let client = app.service.client();
    let focused = |form: &str| {
        let page = crate::fixtures::post(&client, &invitation, &[], form).text();
        let first = page.split('<').find(|tag| tag.contains(" autofocus")).unwrap().to_owned();
        if first.contains("class=\"alert\"") { "all".to_owned() } else { between(&first, "id=\"", "\"") }
    };
    assert_eq!(focused("name=Ada&password=short"), "password");
    assert_eq!(focused("name=+&password=short"), "all");
    assert_eq!(focused(&format!("name=+&password={}", PASSWORD.replace(' ', "+"))), "name");
    let ada = app.member("grace@clinic.example");
    let page = ada.post("/settings/members/invite", "email=nonsense&role=key-manager").text();
    let field = page.split("<input ").find(|input| input.contains(" autofocus")).unwrap();
    assert!(field.starts_with("id=\"email\""), "{field}");
}
