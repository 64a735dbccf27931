//! Invitations: seen and withdrawn by members, and no way back in for a removed member.

use std::thread;

use intake_domain::Environment;
use intake_test_support::{Browser, Clinic, TestDatabase, request};

use crate::fixtures::{
    Member, PASSWORD, TestApp, accept, between, first_row_sleeps, password_field, service, wait_for_lock_waits,
};

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
    let to_another_guest = ada.invite("mary@clinic.example");
    let by_operator = app.invite("eve@clinic.example");
    for invitation in [&own, &to_grace, &to_another_guest, &by_operator] {
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
    for invitation in [&to_another_guest, &by_operator] {
        assert_eq!(open(&app, invitation), 200, "{invitation}");
    }
    let again = ada.invite("countess@clinic.example");
    assert_eq!(join(&app, &again, "Grace"), 303, "who is invited again is welcome");
}

#[test]
fn a_join_that_hangs_and_is_sent_again_succeeds_once() {
    let app = TestApp::on_one_server(|builder| builder);
    let invitation = app.invite("ada@clinic.example");
    first_row_sleeps(&app.database, "INSERT ON audit_entries", 4.0);
    thread::scope(|scope| {
        let joined = scope.spawn(|| join(&app, &invitation, "Ada"));
        // The first try sleeps, and the second one waits for the first one's row.
        wait_for_lock_waits(&app.database, 1);
        assert_eq!(joined.join().unwrap(), 303);
    });
    assert_eq!(app.database.count("members"), 1);
}

#[test]
fn open_invitations_are_listed_until_they_are_accepted_or_withdrawn() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let accepted = ada.invite("grace@clinic.example");
    let withdrawn = ada.invite("mistyped@clinic.example");
    let by_operator = app.invite("eve@clinic.example");
    let page = || ada.get("/settings/members").text();
    let rows = || page().matches("id=\"invitation-").count();
    assert_eq!(rows(), 3);
    assert!(page().contains(">the service operator<"));
    assert!(!page().contains(withdrawn.trim_start_matches("/invitations/")), "nobody can open it from the list");

    assert_eq!(join(&app, &accepted, "Grace"), 303);
    assert_eq!(rows(), 2);
    let text = page();
    let row = text.split("<tr>").find(|row| row.contains("mistyped@")).unwrap();
    let path = between(row, "action=\"", "\"").replace("/resend", "/withdraw");
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
fn an_existing_member_gets_no_link() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = app.other_clinic();
    drop(app.member_of(&elsewhere, "eve@elsewhere.example"));
    let invite = |email: &str| ada.post("/settings/members/invite", &format!("email={}", email.replace('@', "%40")));
    let refused = invite("ADA@clinic.example");
    assert!(refused.status == 409 && refused.text().contains("This person is already a member."), "{}", refused.text());
    assert!(refused.text().contains("value=\"ADA@clinic.example\""), "what was typed is kept");
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 0);
    // Whether a person is a member of another organisation is not revealed here.
    let [known, unknown] = ["eve@elsewhere.example", "nobody@elsewhere.example"].map(|email| {
        let page = invite(email);
        (page.status, page.text().contains("won't be shown again"))
    });
    assert_eq!((known, unknown), ((200, true), (200, true)));

    let id = app.clinic.organisation.to_string();
    let arguments = ["member", "invite", "--organisation", &id, "--email", "ada@clinic.example"];
    let output = arguments.iter().fold(service(&app.database), |all, one| all.argument(one)).run();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("ada@clinic.example is a member already") && message.trim().lines().count() == 1,
        "{message}"
    );
}

#[test]
fn in_production_no_link_is_made_that_leads_to_this_machine_alone() {
    let database = TestDatabase::new();
    let id = Clinic::open(&database.service, Environment::Production).organisation.to_string();
    let run = |command: &str, url: &str| {
        let production =
            service(&database).setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_PUBLIC_URL", url);
        let arguments = ["member", command, "--organisation", &id, "--email", "ada@clinic.example"];
        arguments.iter().fold(production, |all, one| all.argument(one)).run()
    };
    for command in ["invite", "reset-password"] {
        let refused = run(command, "");
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(message.contains("INTAKE_PUBLIC_URL must be set in production"), "{message}");
        assert_eq!((refused.status.code(), database.count("invitations")), (Some(1), 0));
    }
    let made = run("invite", "https://intake.example");
    assert!(String::from_utf8_lossy(&made.stdout).contains("https://intake.example/invitations/"), "{made:?}");
}

#[test]
fn an_invitation_that_is_sent_from_several_windows_at_once_makes_one_member() {
    let app = TestApp::start();
    let invitation = app.invite("ada@clinic.example");
    let mut statuses = thread::scope(|scope| {
        let windows: Vec<_> = (0..6).map(|_| scope.spawn(|| join(&app, &invitation, "Ada"))).collect();
        windows.into_iter().map(|window| window.join().unwrap()).collect::<Vec<_>>()
    });
    statuses.sort_unstable();
    assert_eq!(statuses[0], 303);
    // "One moment", or the link has been used.
    assert!(statuses[1..].iter().all(|status| [404, 429].contains(status)), "{statuses:?}");
    assert_eq!((app.database.count("members"), app.database.count("memberships")), (1, 1));
}

#[test]
fn an_invitation_is_withdrawn_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Members");
    browser.wait_for("Invite member");
    assert!(!browser.text().contains("Open invitations"));
    browser.press("Invite member");
    browser.fill("Email", "mistyped@clinic.example");
    browser.press("Create invitation link");
    browser.wait_for("won't be shown again");
    browser.press("Back to members");
    browser.wait_for("Open invitations");
    browser.press("Withdraw the invitation for mistyped@clinic.example");
    browser.wait_for("Withdraw the invitation for mistyped@clinic.example?");
    browser.press("Withdraw invitation");
    browser.wait_for("The invitation was withdrawn.");
    assert!(!browser.text().contains("mistyped@"));
}
