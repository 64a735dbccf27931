//! Where a member is signed in: listed on the account's page, and ended there one by one or all at once.

use diesel::connection::SimpleConnection;
use intake_test_support::Browser;

use crate::fixtures::{Member, PASSWORD, TestApp, between, confirm_identity, password_field, post};

const FIREFOX: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0";
const ACCOUNT: &str = "/settings/account";

/// Signs Ada in by a browser that calls itself so.
fn sign_in(app: &TestApp, user_agent: &str) -> Member {
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let client = app.service.client();
    let signed_in = post(&client, "/sign-in", &[("User-Agent", user_agent)], &form);
    Member::signed_in(client, &signed_in)
}

/// The row of a session on the account's page.
fn row(member: &Member, part: &str) -> String {
    let page = member.get(ACCOUNT).text();
    let row = page.split("<tr>").skip(1).find(|row| row.contains(part));
    row.unwrap_or_else(|| panic!("{part} is not on {page}")).to_owned()
}

fn count(member: &Member) -> usize {
    member.get(ACCOUNT).text().matches("id=\"session-").count()
}

#[test]
fn sessions_are_listed_and_ended_one_by_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let firefox = sign_in(&app, FIREFOX);
    let odd = sign_in(&app, "<b>anything</b>");
    assert_eq!(count(&ada), 3);
    let listed = row(&ada, "Firefox on Windows");
    assert!(listed.contains("127.0.0.1") && listed.contains("<time datetime"), "{listed}");
    assert!(!listed.contains("(this one)") && row(&firefox, "(this one)").contains("Firefox on Windows"));
    assert!(!row(&ada, "(this one)").contains("End session"), "one signs out here instead");
    for token in [&ada, &firefox, &odd].map(|member| member.cookie.split_once('=').unwrap().1) {
        assert!(!ada.get(ACCOUNT).text().contains(token), "nobody is signed in by what the page shows");
    }

    let end = between(&listed, "action=\"", "\"");
    assert!(ada.get(&end).text().contains("End the session of Firefox on Windows?"));
    let ended = ada.post(&end, "");
    assert_eq!((ended.status, ended.header("location")), (303, Some("/settings/account")));
    assert!(ada.follow(&ended).contains("The session was ended."));
    assert_eq!((firefox.get(ACCOUNT).status, odd.get(ACCOUNT).status), (303, 200));
    assert_eq!((ada.get(&end).status, ada.post(&end, "").status), (404, 404), "once is for good");
    let noted = "audit_entries WHERE action = 'session_ended' AND actor = 'Ada' AND subject = 'ada@clinic.example'";
    assert_eq!(app.database.count(noted), 1);
    assert!(ada.get("/settings/activity").text().contains("signed out another session of"));
}

#[test]
fn all_others_are_ended_at_once_and_so_is_a_sign_in_that_waits_for_its_code() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let others = [sign_in(&app, FIREFOX), sign_in(&app, "curl/8.14.1")];
    let waiting = "INSERT INTO waiting_sign_ins SELECT 'waits', id, now() FROM members WHERE email LIKE 'ada@%'";
    app.database.connect().batch_execute(waiting).unwrap();
    let ended = ada.post("/settings/account/sessions/end-others", "");
    assert_eq!((ended.status, ended.header("location")), (303, Some("/settings/account")));
    let page = ada.follow(&ended);
    assert!(page.contains("All your other sessions were ended.") && !page.contains("End all other sessions"), "{page}");
    assert_eq!(others.map(|other| other.get(ACCOUNT).status), [303, 303]);
    assert_eq!((count(&ada), grace.get(ACCOUNT).status), (1, 200), "another member's session");
    assert_eq!(app.database.count("waiting_sign_ins"), 0);
    assert_eq!(app.database.count("audit_entries WHERE action = 'other_sessions_ended'"), 1);
}

#[test]
fn a_browser_that_was_left_signed_in_ends_no_other_session() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let thief = sign_in(&app, FIREFOX);
    let listed = row(&thief, "Unknown browser");
    for end in [between(&listed, "action=\"", "\""), format!("{ACCOUNT}/sessions/end-others")] {
        for answer in [thief.get(&end), thief.post(&end, "")] {
            let location = answer.header("location").unwrap();
            assert!(answer.status == 303 && location.starts_with("/settings/confirm?next="), "{end}: {location}");
        }
    }
    assert_eq!((ada.get(ACCOUNT).status, count(&thief)), (200, 2));
    assert_eq!(app.database.count("audit_entries WHERE action LIKE '%session%ended'"), 0);
}

#[test]
fn an_administrator_ends_a_colleagues_sessions() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite_as("grace@clinic.example", "key-manager"), "Grace");
    let mary = Member::join(app.service.client(), &ada.invite_as("mary@clinic.example", "auditor"), "Mary");
    let elsewhere = sign_in(&app, FIREFOX);
    let waiting = "INSERT INTO waiting_sign_ins SELECT 'waits', id, now() FROM members WHERE email LIKE 'grace@%'";
    app.database.connect().batch_execute(waiting).unwrap();
    let end = ada.page_about("Grace", "end-sessions");
    let unconfirmed = elsewhere.post(&end, "");
    assert!(unconfirmed.header("location").unwrap().starts_with("/settings/confirm?next="));
    assert_eq!([&grace, &mary].map(|other| other.post(&end, "").status), [403, 403]);
    assert!(ada.get(&end).text().contains("End Grace&#39;s sessions?"), "{}", ada.get(&end).text());
    assert_eq!((grace.get(ACCOUNT).status, app.database.count("waiting_sign_ins")), (200, 1), "nothing has ended yet");

    let ended = ada.confirm(&end);
    assert_eq!((ended.status, ended.header("location")), (303, Some("/settings/members")));
    assert!(ada.follow(&ended).contains("Grace was signed out everywhere."));
    assert_eq!((grace.get(ACCOUNT).status, app.database.count("waiting_sign_ins")), (303, 0));
    assert_eq!([&ada, &elsewhere, &mary].map(|other| other.get(ACCOUNT).status), [200; 3]);
    let noted = "audit_entries WHERE action = 'sessions_ended' AND actor = 'Ada' AND subject = 'grace@clinic.example'";
    assert_eq!(app.database.count(noted), 1);
    assert!(ada.get("/settings/activity").text().contains("ended the sessions of"));
    let own = ada.page_about("Ada", "end-sessions");
    assert_eq!([ada.get(&own), ada.post(&own, "")].map(|own| own.status), [303; 2]);
    assert_eq!(ada.get(ACCOUNT).status, 200, "one signs out instead");
}

#[test]
fn members_see_and_end_only_their_own_sessions() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let id = between(&row(&grace, "(this one)"), "id=\"session-", "\"");
    assert!(!ada.get(ACCOUNT).text().contains(&id));
    assert_eq!(ada.post(&format!("/settings/account/sessions/{id}/end"), "").status, 404);
    assert_eq!(grace.get(ACCOUNT).status, 200);
    assert_eq!(app.database.count("audit_entries WHERE action = 'session_ended'"), 0);
}

#[test]
fn the_list_shows_the_address_of_the_last_use_and_no_ended_sessions() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let moved = "UPDATE sessions SET address = '203.0.113.9', last_used_at = now() - interval '6 minutes'";
    app.database.connect().batch_execute(moved).unwrap();
    drop(ada.get("/settings/api-keys"));
    assert!(row(&ada, "(this one)").contains("127.0.0.1"));
    let over = "INSERT INTO sessions SELECT 'old', id, now() - interval '8 days', now() FROM members;
        INSERT INTO sessions SELECT 'idle', id, now() - interval '1 day', now() - interval '13 hours' FROM members;
        INSERT INTO sessions SELECT sha256('from before'), id, now(), now() FROM members;";
    app.database.connect().batch_execute(over).unwrap();
    assert_eq!(count(&ada), 2);
    assert!(row(&ada, ">unknown</td>").contains(">Unknown browser</th>"), "from before either was noted");
}

#[test]
fn of_more_sessions_than_anybody_needs_the_least_recently_used_one_ends() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let many = "UPDATE sessions SET last_used_at = now() - interval '2 hours';
        INSERT INTO sessions SELECT sha256(n::text::bytea), id, now() - interval '1 hour', now() - interval '1 hour'
            FROM members, generate_series(1, 49) AS n;";
    app.database.connect().batch_execute(many).unwrap();
    let newest = sign_in(&app, FIREFOX);
    assert_eq!((count(&newest), ada.get(ACCOUNT).status), (50, 303));
}

/// A copy of a browser's cookie is worth nothing after its owner has signed in or confirmed.
#[test]
fn a_sign_in_ends_the_session_that_the_browser_had_and_a_confirmation_renews_its_token() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let again = post(&ada.client, "/sign-in", &[("Cookie", &ada.cookie)], &form);
    assert_eq!(ada.get(ACCOUNT).status, 303, "the session from before has ended");
    ada = Member::signed_in(ada.client, &again);
    assert_eq!(count(&ada), 1);

    let earlier =
        Member { client: app.service.client(), cookie: ada.cookie.clone(), form_token: ada.form_token.clone() };
    assert_eq!(ada.confirm_identity("a guess at it", "").status, 422);
    assert_eq!(earlier.get(ACCOUNT).status, 200, "a wrong password changes nothing");
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
    assert_eq!((earlier.get(ACCOUNT).status, ada.get(ACCOUNT).status), (303, 200));
    assert_eq!(count(&ada), 1);
}

#[test]
fn a_session_elsewhere_is_ended_in_a_browser() {
    let Some((here, there)) = Browser::start().zip(Browser::start()) else { return };
    let app = TestApp::start();
    app.join(&here, "Ada", "ada@clinic.example");
    let one = "End session of Chrome on Linux, 127.0.0.1";
    for (named, end) in [(one, "End session"), ("End all other sessions", "End all other sessions")] {
        app.sign_in(&there, "ada@clinic.example", PASSWORD);
        there.wait_for("No API keys yet.");
        here.press("Account");
        here.wait_for("Chrome on Linux");
        here.press(named);
        if end == "End session" {
            confirm_identity(&here);
        }
        here.wait_for("signed out at once");
        here.press(end);
        here.wait_for("ended.");
        assert!(!here.has(named));
        there.open(&app.url("/settings/members"));
        there.wait_for("New here?");
    }
}

#[test]
fn after_signing_out_nothing_comes_back() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Sign out");
    browser.wait_for("Password");
    browser.back();
    browser.wait_for("Password");
    assert!(!browser.text().contains("No API keys yet."), "{}", browser.text());
    let signed_out = app.member("grace@clinic.example").post("/sign-out", "");
    assert_eq!(signed_out.header("clear-site-data"), Some("\"cache\""));
}
