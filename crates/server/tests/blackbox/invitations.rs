//! Invitations: seen and withdrawn by members, and no way back in for somebody who was removed.

use intake_test_support::{Browser, request};

use crate::fixtures::{Member, PASSWORD, TestApp, accept, between, password_field, service};

fn open(app: &TestApp, invitation: &str) -> u16 {
    app.service.client().send(&request("GET", invitation, &[], b"")).status
}

fn join(app: &TestApp, invitation: &str, name: &str) -> u16 {
    accept(&app.service.client(), invitation, name).status
}

#[test]
fn a_removed_member_does_not_come_back_by_an_invitation_made_before() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let own = grace.invite("other.address@clinic.example");
    let to_grace = ada.invite("Countess@Clinic.example");
    let to_somebody_else = ada.invite("mary@clinic.example");
    let by_operator = app.invite("eve@clinic.example");
    for invitation in [&own, &to_grace, &to_somebody_else, &by_operator] {
        assert_eq!(open(&app, invitation), 200);
    }
    let email = format!("email=countess%40clinic.example&{}", password_field(PASSWORD));
    assert_eq!(grace.post("/settings/account/email", &email).status, 303);
    assert_eq!(ada.confirm(&ada.page_about("Grace", "remove")).status, 303);
    for invitation in [&own, &to_grace] {
        assert_eq!(open(&app, invitation), 404, "{invitation}");
        assert_eq!(join(&app, invitation, "Grace"), 404);
    }
    assert_eq!(app.database.count("members"), 1);
    for invitation in [&to_somebody_else, &by_operator] {
        assert_eq!(open(&app, invitation), 200, "{invitation}");
    }
    let again = ada.invite("countess@clinic.example");
    assert_eq!(join(&app, &again, "Grace"), 303, "who is invited again is welcome");
}

#[test]
fn open_invitations_are_listed_until_they_are_accepted_or_withdrawn() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let accepted = ada.invite("grace@clinic.example");
    let needless = ada.invite("Grace@clinic.example");
    let withdrawn = ada.invite("mistyped@clinic.example");
    let by_operator = app.invite("eve@clinic.example");
    let page = || ada.get("/settings/members").text();
    let rows = || page().matches("id=\"invitation-").count();
    assert_eq!(rows(), 4);
    assert!(page().contains(">an operator<"));
    assert!(!page().contains(withdrawn.trim_start_matches("/invitations/")), "nobody can open it from the list");

    assert_eq!(join(&app, &accepted, "Grace"), 303);
    assert_eq!((rows(), open(&app, &needless)), (2, 404), "whoever is a member needs no other one");
    let text = page();
    let row = text.split("<tr>").find(|row| row.contains("mistyped@")).unwrap();
    let path = between(row, "action=\"", "\"");
    let confirm = ada.get(&path);
    assert_eq!(confirm.status, 200);
    assert!(confirm.text().contains("Withdraw the invitation for mistyped@clinic.example?"));
    assert_eq!(open(&app, &withdrawn), 200, "looking changes nothing");
    assert_eq!(ada.post(&path, "").status, 303);
    assert_eq!(open(&app, &withdrawn), 404);
    assert_eq!(join(&app, &withdrawn, "Eve"), 404);
    assert_eq!(ada.post(&path, "").status, 404, "once is for good");
    assert_eq!(rows(), 1);
    assert_eq!(open(&app, &by_operator), 200);
    let noted = "audit_entries WHERE action = 'invitation_withdrawn' AND actor = 'Ada' AND subject LIKE 'mistyped@%'";
    assert_eq!(app.database.count(noted), 1);
    assert!(ada.get("/settings/activity").text().contains("withdrew the invitation for"));
}

#[test]
fn who_is_a_member_already_gets_no_link() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = app.other_clinic();
    drop(app.member_of(&elsewhere, "eve@elsewhere.example"));
    let invite = |email: &str| ada.post("/settings/members", &format!("email={}", email.replace('@', "%40")));
    let refused = invite("ADA@clinic.example");
    assert!(refused.status == 409 && refused.text().contains("This person is a member already."), "{}", refused.text());
    assert!(refused.text().contains("value=\"ADA@clinic.example\""), "what was typed is kept");
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 0);
    // Who is a member of another organisation is not told here.
    let [known, unknown] = ["eve@elsewhere.example", "nobody@elsewhere.example"].map(|email| {
        let page = invite(email);
        (page.status, page.text().contains("won't be shown again"))
    });
    assert_eq!((known, unknown), ((200, true), (200, true)));

    // Operators know everybody, and are told.
    let id = app.clinic.organisation.to_string();
    for email in ["ada@clinic.example", "Eve@elsewhere.example"] {
        let arguments = ["member", "invite", "--organisation", &id, "--email", email];
        let output = arguments.iter().fold(service(&app.database), |all, one| all.argument(one)).run();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(&format!("{email} is a member already")) && told.trim().lines().count() == 1, "{told}");
    }
}

#[test]
fn an_invitation_is_withdrawn_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Members");
    browser.wait_for("Invite a member");
    assert!(!browser.text().contains("Open invitations"));
    browser.fill("Email", "mistyped@clinic.example");
    browser.press("Create invitation link");
    browser.wait_for("won't be shown again");
    browser.wait_for("Open invitations");
    browser.press("Withdraw");
    browser.wait_for("Withdraw the invitation for mistyped@clinic.example?");
    browser.press("Withdraw invitation");
    browser.wait_for("Invite a member");
    assert!(!browser.text().contains("mistyped@"));
}
