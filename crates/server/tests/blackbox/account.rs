//! A member's own account: a name and a password that can be changed, and what a change of the password ends.

use intake_test_support::Response;

use crate::fixtures::{Member, PASSWORD, TestApp, password_field, post};

const NEW_PASSWORD: &str = "four herons at the jetty";

/// Tries to sign Ada in from a browser of its own.
fn sign_in(app: &TestApp, password: &str) -> Response {
    let form = format!("email=ada%40clinic.example&{}", password_field(password));
    post(&app.service.client(), "/sign-in", &[], &form)
}

fn change_password(member: &Member, current: &str, new: &str) -> Response {
    member.post("/settings/account/password", &format!("{}&new_{}", password_field(current), password_field(new)))
}

#[test]
fn a_member_who_changes_the_password_stays_signed_in_here_and_nowhere_else() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let elsewhere = Member::signed_in(app.service.client(), &sign_in(&app, PASSWORD));
    let changed = change_password(&ada, PASSWORD, NEW_PASSWORD);
    assert_eq!((changed.status, changed.header("location")), (303, Some("/settings/account?password-changed")));
    let page = ada.get("/settings/account?password-changed");
    assert!(page.status == 200 && page.text().contains("Your password was changed"));
    assert_eq!(elsewhere.get("/settings/account").status, 303);
    assert_eq!(grace.get("/settings/account").status, 200, "somebody else's session");
    assert_eq!((sign_in(&app, PASSWORD).status, sign_in(&app, NEW_PASSWORD).status), (401, 303));
    let noted = "audit_entries WHERE action = 'password_changed' AND actor = 'Ada' AND subject = 'ada@clinic.example'";
    assert_eq!(app.database.count(noted), 1);
    assert_eq!(app.database.tables_that_hold(NEW_PASSWORD), [""; 0]);
    assert!(ada.get("/settings/activity").text().contains("changed the password of"));
}

#[test]
fn a_password_is_not_changed_without_the_current_one_nor_to_a_bad_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    for (current, new, told) in [
        ("wrong", NEW_PASSWORD, "The password is wrong."),
        (PASSWORD, "short", "The new password must be 12 to 128 characters long."),
        (PASSWORD, "passwordpassword", "The new password is too common"),
    ] {
        let refused = change_password(&ada, current, new);
        assert!(refused.status == 422 && refused.text().contains(told), "{told}: {}", refused.text());
    }
    let waiting = (0..10).find_map(|_| Some(change_password(&ada, "wrong", NEW_PASSWORD)).filter(|r| r.status == 429));
    assert!(waiting.unwrap().text().contains("Too many attempts"));
    assert_eq!(change_password(&ada, PASSWORD, NEW_PASSWORD).status, 429);
    assert_eq!(sign_in(&app, PASSWORD).status, 303);
    assert_eq!(app.database.count("audit_entries WHERE action = 'password_changed'"), 0);
}

#[test]
fn a_member_changes_the_name_and_the_record_keeps_the_old_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let blank = ada.post("/settings/account/name", "name=+");
    assert!(blank.status == 422 && blank.text().contains("Your name must not be blank"), "{}", blank.text());
    let changed = ada.post("/settings/account/name", "name=Ada+%3CKing%3E");
    assert_eq!((changed.status, changed.header("location")), (303, Some("/settings/account")));
    for page in ["/settings/account", "/settings/members", "/settings/activity"] {
        let text = ada.get(page).text();
        assert!(text.contains("Ada &#60;King&#62;") && !text.contains("<King>"), "{page}: {text}");
    }
    let noted = "audit_entries WHERE action = 'name_changed' AND actor = 'Ada' AND subject = 'Ada <King>'";
    assert_eq!(app.database.count(noted), 1);
}
