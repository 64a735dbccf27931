//! Passwords that others guess first are refused wherever a person chooses one, with the reason.

use intake_test_support::Response;

use crate::fixtures::{Member, PASSWORD, TestApp, post};

const EASY: &str = "is too easy to guess: choose a less common one.";
const ADDRESS: &str = "contains your email address: choose one without it.";
const NAME: &str = "contains your name: choose one without it.";
const ORGANISATION: &str = "contains the name of your organisation: choose one without it.";

/// For Grace Hopper, g.murray@harbour.example, in the organisation "Test Clinic". As many as a person may try in a row.
const REFUSED: [(&str, &str); 9] = [
    ("short", "must be 12 to 128 characters long."),
    ("Summer2026!!", EASY),
    ("letmein12345", EASY),
    ("intakeintake1", EASY),
    ("unbelievable", EASY),
    ("hopper-1906-1992", EASY),
    ("G.Murray@harbour.example", ADDRESS),
    ("four GRACE-HOPPER herons", NAME),
    ("a Test-Clinic heron", ORGANISATION),
];

fn assert_refused(choose: impl Fn(&str) -> Response) {
    for (password, reason) in REFUSED {
        let typed: String = password.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = choose(&typed);
        assert!(answer.status == 422 && answer.text().contains(reason), "{password}: {}", answer.text());
    }
}

#[test]
fn a_password_that_others_guess_first_is_refused_wherever_one_is_chosen() {
    let app = TestApp::start();
    let client = app.service.client();
    let email = "g.murray@harbour.example";
    let invitation = app.invite(email);
    assert_refused(|typed| post(&client, &invitation, &[], &format!("name=Grace+Hopper&password={typed}")));
    assert_eq!(app.database.count("members"), 0);

    let grace = Member::join(app.service.client(), &invitation, "Grace+Hopper");
    assert_refused(|typed| grace.post("/settings/account/password", &format!("new_password={typed}")));
    let link = app.reset_password(email);
    assert_refused(|typed| post(&client, &link, &[], &format!("password={typed}")));
    let changes = "audit_entries WHERE action IN ('password_changed', 'password_reset')";
    assert_eq!(app.database.count(changes), 0);

    assert_eq!(grace.post("/settings/account/password", "new_password=four+herons+at+the+jetty").status, 303);
    let link = app.reset_password(email);
    let form = format!("password={}", PASSWORD.replace(' ', "+"));
    assert_eq!(post(&client, &link, &[], &form).status, 303);
    assert_eq!(app.database.count(changes), 2);
}
