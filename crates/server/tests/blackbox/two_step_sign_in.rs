//! The second factor: turning it on, signing in with it, losing it, and what an attacker with the password cannot do.

use diesel::connection::SimpleConnection;
use intake_domain::TotpSecret;
use intake_http::edge;
use intake_test_support::{Browser, Client, Response, request};
use time::Duration;

use crate::fixtures::{Member, PASSWORD, TestApp, cookie, form_token, password_field, post, service};

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
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
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
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(wrong(&secret));
    browser.wait_for("The code is wrong or has been used before.");
    try_code(&used);
    browser.wait_for("The code is wrong or has been used before.");
    try_code(&code(&secret, 1));
    browser.wait_for("There is no API key yet.");
    sign_out();
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(&recovery[3].to_uppercase());
    browser.wait_for("There is no API key yet.");
    sign_out();
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    try_code(&recovery[3]);
    browser.wait_for("The code is wrong or has been used before.");
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
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("There is no API key yet.");
}

/// A sign-in that waits for its code: the right password was given, and Ada has a second factor.
struct WaitingSignIn {
    client: Client,
    cookie: String,
}

/// Ada with a second factor, and its secret.
fn ada_with_second_factor(app: &TestApp) -> (Member, TotpSecret) {
    let ada = app.member("ada@clinic.example");
    let secret = TotpSecret::new([9; 20]);
    let turned_on = ada.turn_on_second_factor(&secret);
    assert_eq!(turned_on.status, 200, "{}", turned_on.text());
    (ada, secret)
}

impl WaitingSignIn {
    /// Gives Ada's password.
    fn start(app: &TestApp) -> Self {
        let client = app.service.client();
        let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
        let response = post(&client, "/sign-in", &[], &form);
        assert_eq!((response.status, response.header("location")), (303, Some("/sign-in/code")));
        Self { client, cookie: cookie(&response) }
    }

    fn page(&self) -> Response {
        self.client.send(&request("GET", "/sign-in/code", &[("Cookie", &self.cookie)], b""))
    }

    fn send_code(&self, code: &str) -> Response {
        self.send_form(&format!("form_token={}&code={code}", form_token(&self.page().text())))
    }

    fn send_form(&self, form: &str) -> Response {
        post(&self.client, "/sign-in/code", &[("Cookie", &self.cookie)], form)
    }
}

#[test]
fn the_right_password_alone_opens_nothing() {
    let app = TestApp::start();
    let (ada, _) = ada_with_second_factor(&app);
    let sign_in = WaitingSignIn::start(&app);
    let (name, token) = sign_in.cookie.split_once('=').unwrap();
    assert_eq!(name, "__Host-intake-waiting");
    let as_session = format!("__Host-intake-session={token}");
    for cookie in [&sign_in.cookie, &as_session, &format!("{as_session}; {}", sign_in.cookie)] {
        let headers = [("Cookie", cookie.as_str())];
        let response = ada.client.send(&request("GET", "/settings/account", &headers, b""));
        let led_to = Some("/sign-in?next=%2Fsettings%2Faccount");
        assert_eq!((response.status, response.header("location")), (303, led_to), "{cookie}");
    }
    assert_eq!(sign_in.send_form("form_token=x&code=0").status, 403, "the form is not of this sign-in");
    assert_eq!(app.database.tables_that_hold(token), [""; 0]);
}

#[test]
fn one_code_signs_in_once_even_in_a_race() {
    let app = TestApp::start();
    let (ada, secret) = ada_with_second_factor(&app);
    let sign_ins: Vec<_> = (0..6).map(|_| WaitingSignIn::start(&app)).collect();
    let right = code(&secret, 0);
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let racers: Vec<_> = sign_ins.iter().map(|sign_in| scope.spawn(|| sign_in.send_code(&right))).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(303), count(401)), (1, 5));
    let in_front = answers.iter().find(|answer| answer.status == 303).unwrap();
    let session = cookie(in_front);
    let signed_in = request("GET", "/settings/account", &[("Cookie", &session)], b"");
    assert_eq!(ada.client.send(&signed_in).status, 200);
    assert_eq!(app.database.count("waiting_sign_ins"), 5, "used up");
}

#[test]
fn codes_cannot_be_tried_for_long() {
    let app = TestApp::start();
    let (_, secret) = ada_with_second_factor(&app);
    let wrong = wrong(&secret);
    let mut sign_in = WaitingSignIn::start(&app);
    for tried in 0..10 {
        if tried % 3 == 0 {
            sign_in = WaitingSignIn::start(&app);
        }
        assert_eq!(sign_in.send_code(wrong).status, 401);
    }
    let refused = sign_in.send_code(&code(&secret, 0));
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("Too many attempts"));
    assert_eq!(app.database.count("audit_entries WHERE action = 'code_failed'"), 10);
}

#[test]
fn a_sign_in_waits_ten_minutes_for_its_code() {
    let app = TestApp::start();
    drop(ada_with_second_factor(&app));
    let sign_in = WaitingSignIn::start(&app);
    let age = |by: &str| {
        let sql = format!("UPDATE waiting_sign_ins SET started_at = now() - interval '{by}'");
        app.database.connect().batch_execute(&sql).unwrap();
    };
    age("9 minutes 50 seconds");
    assert_eq!(sign_in.page().status, 200);
    age("10 minutes 1 second");
    let over = sign_in.page();
    assert_eq!((over.status, over.header("location")), (303, Some("/sign-in")));
    WaitingSignIn::start(&app);
    assert_eq!(app.database.count("waiting_sign_ins"), 1, "the dead one is gone");
}

#[test]
fn an_operator_lets_a_member_in_who_lost_everything() {
    let app = TestApp::start();
    let (ada, _) = ada_with_second_factor(&app);
    let run = |arguments: &[&str]| {
        let command = service(&app.database);
        arguments.iter().fold(command, |command, argument| command.argument(argument)).run()
    };
    let reset =
        ["member", "reset-second-factor", "--json", "--organisation", &app.clinic.organisation.to_string(), "--email"];
    let stranger = run(&[&reset[..], &["eve@clinic.example"]].concat());
    assert!(!stranger.status.success());
    assert!(String::from_utf8_lossy(&stranger.stderr).contains("has no member eve@clinic.example"));
    for was_on in [true, false] {
        let output = run(&[&reset[..], &["ada@clinic.example"]].concat());
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value, serde_json::json!({ "email": "ada@clinic.example", "wasOn": was_on }));
    }
    let form = format!("email=ada%40clinic.example&password={}", PASSWORD.replace(' ', "+"));
    let response = post(&ada.client, "/sign-in", &[], &form);
    assert_eq!(response.header("location"), Some("/settings/api-keys"));
    let activity = ada.get("/settings/activity").text();
    assert!(activity.contains("<td>An operator</td><td>turned off two-step sign-in for"), "{activity}");
}

#[test]
fn what_is_kept_of_recovery_codes_opens_nothing() {
    let app = TestApp::start();
    let (ada, _) = ada_with_second_factor(&app);
    let shown = ada.post("/settings/account/recovery-codes", &format!("password={}", PASSWORD.replace(' ', "+")));
    let page = shown.text();
    let first = page.split_once("spellcheck=\"false\">").unwrap().1.split_whitespace().next().unwrap().to_owned();
    assert_eq!(first.len(), 19, "{page}");
    assert_eq!(app.database.count("recovery_codes"), 10);
    for form in [first.clone(), first.replace('-', "")] {
        assert_eq!(app.database.tables_that_hold(&form), [""; 0]);
    }
    let sign_in = WaitingSignIn::start(&app);
    assert_eq!(sign_in.send_code(&first).status, 303);
    assert_eq!(app.database.count("recovery_codes"), 9);
}
