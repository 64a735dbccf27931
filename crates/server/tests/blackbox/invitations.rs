//! Invitations: seen and withdrawn by members, and no way back in for somebody who was removed.

use intake_test_support::{Browser, request};

use crate::dashboard::{Clinic, PASSWORD};
use crate::dashboard_guard::{Guest, House, post};

/// Makes an invitation as this member; gives its path.
fn invite(member: &Guest, email: &str) -> String {
    let page = member.post("/settings/members", &format!("email={}", email.replace('@', "%40"))).text();
    let link = page.split_once("id=\"link\" value=\"").unwrap().1.split('"').next().unwrap();
    link[link.find("/invitations/").unwrap()..].to_owned()
}

fn open(house: &House, invitation: &str) -> u16 {
    house.service.client().send(&request("GET", invitation, &[], b"")).status
}

fn join(house: &House, invitation: &str, name: &str) -> u16 {
    let form = format!("name={name}&password={}", PASSWORD.replace(' ', "+"));
    post(&house.service.client(), invitation, &[], &form).status
}

fn join_as(house: &House, invitation: &str, name: &str) -> Guest {
    let client = house.service.client();
    let form = format!("name={name}&password={}", PASSWORD.replace(' ', "+"));
    let joined = post(&client, invitation, &[], &form);
    assert_eq!(joined.status, 303, "{}", joined.text());
    Guest::new(client, &joined)
}

/// What stands between the two texts on a page.
fn between(page: &str, before: &str, after: &str) -> String {
    page.split_once(before).unwrap().1.split(after).next().unwrap().to_owned()
}

fn remove(member: &Guest, name: &str) {
    let page = member.get("/settings/members").text();
    let row = page.split("<tr>").find(|row| row.contains(&format!(">{name}<"))).unwrap();
    let id = between(row, "id=\"member-", "\"");
    assert_eq!(member.post(&format!("/settings/members/{id}/remove"), "").status, 303);
}

#[test]
fn a_removed_member_does_not_come_back_by_an_invitation_made_before() {
    let house = House::open();
    let (ada, clinic) = house.guest("ada@clinic.example");
    let grace = join_as(&house, &invite(&ada, "grace@clinic.example"), "Grace");
    let own = invite(&grace, "other.address@clinic.example");
    let to_grace = invite(&ada, "Grace@Clinic.example");
    let to_somebody_else = invite(&ada, "mary@clinic.example");
    let by_operator = house.invite(&clinic, "eve@clinic.example");
    for invitation in [&own, &to_grace, &to_somebody_else, &by_operator] {
        assert_eq!(open(&house, invitation), 200);
    }
    remove(&ada, "Grace");
    for invitation in [&own, &to_grace] {
        assert_eq!(open(&house, invitation), 404, "{invitation}");
        assert_eq!(join(&house, invitation, "Grace"), 404);
    }
    assert_eq!(house.database.count("members"), 1);
    for invitation in [&to_somebody_else, &by_operator] {
        assert_eq!(open(&house, invitation), 200, "{invitation}");
    }
    let again = invite(&ada, "grace@clinic.example");
    assert_eq!(join(&house, &again, "Grace"), 303, "who is invited again is welcome");
}

#[test]
fn open_invitations_are_listed_until_they_are_accepted_or_withdrawn() {
    let house = House::open();
    let (ada, clinic) = house.guest("ada@clinic.example");
    let accepted = invite(&ada, "grace@clinic.example");
    let withdrawn = invite(&ada, "mistyped@clinic.example");
    let by_operator = house.invite(&clinic, "eve@clinic.example");
    let page = || ada.get("/settings/members").text();
    let rows = || page().matches("id=\"invitation-").count();
    assert_eq!(rows(), 3);
    assert!(page().contains(">an operator<"));
    assert!(!page().contains(withdrawn.trim_start_matches("/invitations/")), "nobody can open it from the list");

    assert_eq!(join(&house, &accepted, "Grace"), 303);
    assert_eq!(rows(), 2);
    let text = page();
    let row = text.split("<tr>").find(|row| row.contains("mistyped@")).unwrap();
    let path = between(row, "action=\"", "\"");
    let confirm = ada.get(&path);
    assert_eq!(confirm.status, 200);
    assert!(confirm.text().contains("Withdraw the invitation for mistyped@clinic.example?"));
    assert_eq!(open(&house, &withdrawn), 200, "looking changes nothing");
    assert_eq!(ada.post(&path, "").status, 303);
    assert_eq!(open(&house, &withdrawn), 404);
    assert_eq!(join(&house, &withdrawn, "Eve"), 404);
    assert_eq!(ada.post(&path, "").status, 404, "once is for good");
    assert_eq!(rows(), 1);
    assert_eq!(open(&house, &by_operator), 200);
    let noted = "audit_entries WHERE action = 'invitation_withdrawn' AND actor = 'Ada' AND subject LIKE 'mistyped@%'";
    assert_eq!(house.database.count(noted), 1);
    assert!(ada.get("/settings/activity").text().contains("withdrew the invitation for"));
}

#[test]
fn an_invitation_is_withdrawn_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let clinic = Clinic::open();
    clinic.join(&browser, "Ada", "ada@clinic.example");
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
