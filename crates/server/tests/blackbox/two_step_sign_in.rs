//! The second factor: turning it on, signing in with it, losing it, and what an attacker with the password cannot do.

use diesel::connection::SimpleConnection;
use intake_domain::TotpSecret;
use intake_http::edge;
use intake_test_support::{Browser, Response, request};
use time::Duration;

use crate::dashboard::{Clinic, PASSWORD};
use crate::dashboard_guard::{Guest, House, post};
use crate::service;

/// What the app shows, or will show in half a minute: good already, and never used before.
fn code(secret: &TotpSecret, ahead: i64) -> String {
    secret.code_at(edge::now() + Duration::seconds(ahead * 30))
}

fn wrong(secret: &TotpSecret) -> &'static str {
    let near: Vec<_> = (-3..4).map(|ahead| code(secret, ahead)).collect();
    ["000000", "000001", "000002", "000003", "000004", "000005", "000006", "000007"]
        .into_iter()
        .find(|guess| !near.iter().any(|code| code == guess))
        .unwrap()
}

#[test]
fn a_member_turns_it_on_signs_in_with_it_and_turns_it_off() {
    let Some(browser) = Browser::start() else { return };
    let clinic = Clinic::open();
    clinic.join(&browser, "Ada", "ada@clinic.example");
    let sign_out = || {
        browser.press("Sign out");
        browser.wait_for("New here?");
    };
    browser.press("Account");
    browser.press("Turn on two-step sign-in");
    browser.wait_for("Scan this");
    let shown = || browser.run("return document.querySelector('[name=secret]').value").as_str().unwrap().to_owned();
    let text = shown();
    let secret = TotpSecret::from_base32(&text).unwrap();
    assert!(browser.text().replace(' ', "").contains(&text), "the key can be typed");
    browser.fill("Code that the app shows", wrong(&secret));
    browser.fill("Your password", PASSWORD);
    browser.press("Turn on");
    browser.wait_for("The code is wrong.");
    assert_eq!(shown(), text, "the app that has it need not scan again");
    browser.fill("Code that the app shows", &code(&secret, 0));
    browser.fill("Your password", "wrong");
    browser.press("Turn on");
    browser.wait_for("The password is wrong.");
    let used = code(&secret, 0);
    browser.fill("Code that the app shows", &used);
    browser.fill("Your password", PASSWORD);
    browser.press("Turn on");
    browser.wait_for("they won't be shown again");
    let recovery: Vec<String> = browser.value("Recovery codes").split_whitespace().map(str::to_owned).collect();
    assert_eq!(recovery.len(), 10);
    browser.press("Copy");
    browser.wait_for("Copied.");
    browser.press("I have saved them");
    browser.wait_for("You have 10 recovery codes left.");
    browser.press("Members");
    browser.wait_for("On");
    sign_out();

    let try_code = |typed: &str| {
        browser.wait_for("Enter your code");
        browser.fill("Code", typed);
        browser.press("Continue");
    };
    clinic.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(wrong(&secret));
    browser.wait_for("The code is wrong, or was used before.");
    try_code(&used);
    browser.wait_for("The code is wrong, or was used before.");
    try_code(&code(&secret, 1));
    browser.wait_for("There is no API key yet.");
    sign_out();
    clinic.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(&recovery[3].to_uppercase());
    browser.wait_for("There is no API key yet.");
    sign_out();
    clinic.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(&recovery[3]);
    browser.wait_for("The code is wrong, or was used before.");
    try_code(&recovery[4]);
    browser.wait_for("There is no API key yet.");
    browser.press("Account");
    browser.wait_for("You have 8 recovery codes left.");
    browser.press("New recovery codes");
    browser.fill("Your password", PASSWORD);
    browser.press("Show new codes");
    browser.wait_for("they won't be shown again");
    assert!(recovery.iter().all(|old| !browser.value("Recovery codes").contains(old.as_str())));
    browser.press("I have saved them");
    browser.wait_for("You have 10 recovery codes left.");

    browser.press("Turn off");
    browser.fill("Your password", "wrong");
    browser.press("Turn off");
    browser.wait_for("The password is wrong.");
    browser.fill("Your password", PASSWORD);
    browser.press("Turn off");
    browser.wait_for("Off.");
    browser.press("Activity");
    for line in [
        "turned on two-step sign-in for ada@clinic.example",
        "entered the right password but a wrong code for ada@clinic.example",
        "signed in with a recovery code as ada@clinic.example",
        "created new recovery codes for ada@clinic.example",
        "turned off two-step sign-in for ada@clinic.example",
    ] {
        browser.wait_for(line);
    }
    sign_out();
    clinic.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("There is no API key yet.");
}

/// A member with a second factor, for programs without a browser.
struct Guarded {
    house: House,
    ada: Guest,
    secret: TotpSecret,
    organisation: String,
}

impl Guarded {
    fn open() -> Self {
        let house = House::open();
        let (ada, clinic) = house.guest("ada@clinic.example");
        let secret = TotpSecret::new([9; 20]);
        let form = format!(
            "secret={}&code={}&password={}",
            *secret.to_base32(),
            // The earliest that is good: every later one is left for the tests.
            code(&secret, -1),
            PASSWORD.replace(' ', "+")
        );
        let turned_on = ada.post("/settings/account/second-factor", &form);
        assert_eq!(turned_on.status, 200, "{}", turned_on.text());
        Self { house, ada, secret, organisation: clinic.organisation.to_string() }
    }

    /// Gives the right password; gives the cookie of the sign-in that waits.
    fn wait_for_code(&self) -> String {
        let form = format!("email=ada%40clinic.example&password={}", PASSWORD.replace(' ', "+"));
        let response = post(&self.ada.client, "/sign-in", &[], &form);
        assert_eq!((response.status, response.header("location")), (303, Some("/sign-in/code")));
        response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    fn page(&self, cookie: &str) -> Response {
        self.ada.client.send(&request("GET", "/sign-in/code", &[("Cookie", cookie)], b""))
    }

    fn send_code(&self, cookie: &str, code: &str) -> Response {
        let page = self.page(cookie).text();
        let token = page.split_once("name=\"form_token\" value=\"").unwrap().1.split('"').next().unwrap();
        self.send_form(cookie, &format!("form_token={token}&code={code}"))
    }

    fn send_form(&self, cookie: &str, form: &str) -> Response {
        post(&self.ada.client, "/sign-in/code", &[("Cookie", cookie)], form)
    }
}

#[test]
fn the_right_password_alone_opens_nothing() {
    let guarded = Guarded::open();
    let cookie = guarded.wait_for_code();
    let (name, token) = cookie.split_once('=').unwrap();
    assert_eq!(name, "__Host-intake-waiting");
    let as_session = format!("__Host-intake-session={token}");
    for cookie in [&cookie, &as_session, &format!("{as_session}; {cookie}")] {
        let headers = [("Cookie", cookie.as_str())];
        let response = guarded.ada.client.send(&request("GET", "/settings/account", &headers, b""));
        assert_eq!((response.status, response.header("location")), (303, Some("/sign-in")), "{cookie}");
    }
    assert_eq!(guarded.send_form(&cookie, "form_token=x&code=0").status, 403, "the form is not of this sign-in");
    for table in ["waiting_sign_ins", "sessions"] {
        let clear = format!("{table} AS t WHERE t::text LIKE '%{token}%'");
        assert_eq!(guarded.house.database.count(&clear), 0, "{table}");
    }
}

#[test]
fn one_code_signs_in_once_even_in_a_race() {
    let guarded = Guarded::open();
    let cookies: Vec<_> = (0..6).map(|_| guarded.wait_for_code()).collect();
    let right = code(&guarded.secret, 0);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let racers: Vec<_> = cookies.iter().map(|cookie| scope.spawn(|| guarded.send_code(cookie, &right))).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(303), count(401)), (1, 5));
    let in_front = answers.iter().find(|answer| answer.status == 303).unwrap();
    let session = in_front.header("set-cookie").unwrap().split(';').next().unwrap();
    let signed_in = request("GET", "/settings/account", &[("Cookie", session)], b"");
    assert_eq!(guarded.ada.client.send(&signed_in).status, 200);
    assert_eq!(guarded.house.database.count("waiting_sign_ins"), 5, "used up");
}

#[test]
fn codes_cannot_be_tried_for_long() {
    let guarded = Guarded::open();
    let wrong = wrong(&guarded.secret);
    let mut cookie = guarded.wait_for_code();
    for tried in 0..10 {
        if tried % 3 == 0 {
            cookie = guarded.wait_for_code();
        }
        assert_eq!(guarded.send_code(&cookie, wrong).status, 401);
    }
    let refused = guarded.send_code(&cookie, &code(&guarded.secret, 0));
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("Too many attempts"));
    assert_eq!(guarded.house.database.count("audit_entries WHERE action = 'code_failed'"), 10);
}

#[test]
fn a_sign_in_waits_ten_minutes_for_its_code() {
    let guarded = Guarded::open();
    let cookie = guarded.wait_for_code();
    let age = |by: &str| {
        let sql = format!("UPDATE waiting_sign_ins SET started_at = now() - interval '{by}'");
        guarded.house.database.connect().batch_execute(&sql).unwrap();
    };
    age("9 minutes 50 seconds");
    assert_eq!(guarded.page(&cookie).status, 200);
    age("10 minutes 1 second");
    let over = guarded.page(&cookie);
    assert_eq!((over.status, over.header("location")), (303, Some("/sign-in")));
    guarded.wait_for_code();
    assert_eq!(guarded.house.database.count("waiting_sign_ins"), 1, "the dead one is gone");
}

#[test]
fn an_operator_lets_a_member_in_who_lost_everything() {
    let guarded = Guarded::open();
    let run = |arguments: &[&str]| {
        let command = service(&guarded.house.database);
        arguments.iter().fold(command, |command, argument| command.argument(argument)).run()
    };
    let reset = ["member", "reset-second-factor", "--json", "--organisation", &guarded.organisation, "--email"];
    let stranger = run(&[&reset[..], &["eve@clinic.example"]].concat());
    assert!(!stranger.status.success());
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("has no member eve@clinic.example"));
    for was_on in [true, false] {
        let output = run(&[&reset[..], &["ada@clinic.example"]].concat());
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value, serde_json::json!({ "email": "ada@clinic.example", "wasOn": was_on }));
    }
    let form = format!("email=ada%40clinic.example&password={}", PASSWORD.replace(' ', "+"));
    let response = post(&guarded.ada.client, "/sign-in", &[], &form);
    assert_eq!(response.header("location"), Some("/settings/api-keys"));
    let activity = guarded.ada.get("/settings/activity").text();
    assert!(activity.contains("<td>An operator</td><td>turned off two-step sign-in for"), "{activity}");
}

#[test]
fn what_is_kept_of_recovery_codes_opens_nothing() {
    let guarded = Guarded::open();
    let shown =
        guarded.ada.post("/settings/account/recovery-codes", &format!("password={}", PASSWORD.replace(' ', "+")));
    let page = shown.text();
    let first = page.split_once("spellcheck=\"false\">").unwrap().1.split_whitespace().next().unwrap().to_owned();
    assert_eq!(first.len(), 19, "{page}");
    assert_eq!(guarded.house.database.count("recovery_codes"), 10);
    for form in [first.clone(), first.replace('-', "")] {
        let clear = format!("recovery_codes WHERE encode(digest, 'escape') LIKE '%{form}%'");
        assert_eq!(guarded.house.database.count(&clear), 0);
    }
    let cookie = guarded.wait_for_code();
    assert_eq!(guarded.send_code(&cookie, &first).status, 303);
    assert_eq!(guarded.house.database.count("recovery_codes"), 9);
}
