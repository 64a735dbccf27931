//! The second factor: turning it on, signing in with it, losing it, and what an attacker with the password cannot do.

use diesel::connection::SimpleConnection;
use intake_domain::TotpSecret;
use intake_edge as edge;
use intake_test_support::{Browser, Client, Response, request};
use time::Duration;

use crate::fixtures::{
    Member, PASSWORD, TestApp, between, confirm_identity, cookie, form_token, password_field, post, service, unconfirm,
};

/// Returns what the app shows, or will show in half a minute: good already, and never used before.
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
    for browser in Browser::each() {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let sign_out = || {
            browser.press("Sign out");
            browser.wait_for("New here?");
        };
        browser.press("Account");
        browser.press("Turn on two-step sign-in");
        confirm_identity(&browser);
        browser.wait_for("Scan this");
        let shown =
            || browser.run("return document.querySelector('.setup-key').textContent").as_str().unwrap().to_owned();
        let text = shown();
        let secret = TotpSecret::from_base32(&text.replace(' ', "")).unwrap();
        browser.fill("Code that the app shows", wrong(&secret));
        browser.press("Turn on");
        browser.wait_for("Incorrect code.");
        assert_eq!(shown(), text, "the app that has it need not scan again");
        let used = code(&secret, 0);
        browser.fill("Code that the app shows", &used);
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
        browser.wait_for("Incorrect code, or one that was used before.");
        try_code(&used);
        browser.wait_for("Incorrect code, or one that was used before.");
        try_code(&code(&secret, 1));
        browser.wait_for("No API keys yet.");
        sign_out();
        app.sign_in(&browser, "ada@clinic.example", PASSWORD);
        try_code(&recovery[3].to_uppercase());
        browser.wait_for("No API keys yet.");
        sign_out();
        app.sign_in(&browser, "ada@clinic.example", PASSWORD);
        browser.wait_for("Enter your code");
        browser.press("Use a recovery code");
        for used in [&recovery[3], &recovery[4]] {
            browser.fill("Recovery code", used);
            browser.press("Continue");
            let outcome = if *used == recovery[3] { "Incorrect code, or" } else { "No API keys yet." };
            browser.wait_for(outcome);
        }
        browser.press("Account");
        browser.wait_for("You have 8 recovery codes left.");
        browser.press("New recovery codes");
        browser.wait_for("Confirm it's you");
        browser.fill("Your password", PASSWORD);
        browser.fill("Code", wrong(&secret));
        browser.press("Confirm");
        browser.wait_for("Incorrect code, or one that was used before.");
        browser.fill("Your password", PASSWORD);
        browser.press("Use a recovery code");
        browser.fill("Your password", PASSWORD);
        browser.fill("Recovery code", &recovery[5]);
        browser.press("Confirm");
        browser.press("Show new codes");
        browser.wait_for("they won't be shown again");
        assert!(recovery.iter().all(|old| !browser.value("Recovery codes").contains(old.as_str())));
        browser.press("I have saved them");
        browser.wait_for("You have 10 recovery codes left.");

        browser.press("Turn off");
        browser.wait_for("Turn off two-step sign-in?");
        browser.press("Turn off");
        browser.wait_for("Off.");
        browser.press("Activity");
        for line in [
            "turned on two-step sign-in for ada@clinic.example",
            "entered an incorrect code for ada@clinic.example",
            "signed in with a recovery code as ada@clinic.example",
            "created new recovery codes for ada@clinic.example",
            "turned off two-step sign-in for ada@clinic.example",
        ] {
            browser.wait_for(line);
        }
        sign_out();
        app.sign_in(&browser, "ada@clinic.example", PASSWORD);
        browser.wait_for("No API keys yet.");
    }
}

/// A sign-in that waits for its code: the right password was given, and Ada has a second factor.
struct WaitingSignIn {
    client: Client,
    cookie: String,
}

/// Ada with a second factor, and its secret.
fn ada_with_second_factor(app: &TestApp) -> (Member, TotpSecret) {
    let ada = app.member("ada@clinic.example");
    let secret = ada.turn_on_second_factor();
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

/// Signs in by the password alone, in another session, and confirms it.
fn ada_elsewhere(app: &TestApp) -> Member {
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let mut elsewhere = Member::signed_in(app.service.client(), &post(&app.service.client(), "/sign-in", &[], &form));
    assert_eq!(elsewhere.confirm_identity(PASSWORD, "").status, 303);
    elsewhere
}

/// A secret that a form sends in its place, or that another session was shown, may be known to others.
#[test]
fn only_the_secret_that_this_session_was_shown_is_turned_on() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let turn_on = |member: &Member, secret: &TotpSecret| {
        let form = format!("secret={}&code={}", *secret.to_base32(), code(secret, 0));
        member.post("/settings/account/second-factor", &form).status
    };
    let chosen = TotpSecret::new([0; 20]);
    assert_eq!(turn_on(&ada, &chosen), 422, "nothing was shown yet");
    let shown = ada.offered_secret();
    let thief = ada_elsewhere(&app);
    let seen_by_thief = thief.offered_secret();
    assert_ne!(shown, seen_by_thief);
    for unknown in [&chosen, &seen_by_thief] {
        assert_eq!(turn_on(&ada, unknown), 422);
        assert_eq!(ada.offered_secret(), shown, "the app that has it need not scan again");
    }
    assert_eq!(app.database.count("members WHERE totp_secret IS NOT NULL"), 0);
    let second = service(&app.database).start();
    let through_another = Member { client: second.client(), cookie: ada.cookie.clone(), form_token: ada.form_token };
    assert_eq!(through_another.offered_secret(), shown, "whichever instance is asked");
    assert_eq!(turn_on(&through_another, &shown), 200);
    assert_eq!(turn_on(&through_another, &shown), 303, "once");
    assert_eq!(app.database.count("sessions WHERE offered_totp_secret IS NOT NULL"), 0);
    assert_eq!(through_another.confirm("/settings/account/second-factor/turn-off").status, 303);
    assert_ne!(through_another.offered_secret(), shown, "what was in use is not offered again");
    unconfirm(&app);
    let led = through_another.get("/settings/account/second-factor");
    assert!(led.header("location").unwrap().starts_with("/settings/confirm?next="));
}

#[test]
fn an_app_that_is_set_up_after_a_reset_is_not_locked_by_wrong_codes_of_the_one_before() {
    let app = TestApp::start();
    drop(ada_with_second_factor(&app));
    let grace = app.member("grace@clinic.example");
    app.database.connect().batch_execute("UPDATE members SET wrong_codes = 100 WHERE name = 'Ada'").unwrap();
    assert_eq!(grace.confirm(&grace.page_about("Ada", "reset-second-factor")).status, 303);
    let secret = ada_elsewhere(&app).turn_on_second_factor();
    assert_eq!(WaitingSignIn::start(&app).send_code(&code(&secret, 0)).status, 303);
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
    assert_eq!(ada.get("/settings/activity").status, 303, "every session has ended");
    let activity = Member::signed_in(app.service.client(), &response).get("/settings/activity").text();
    assert!(
        activity
            .contains("<td data-label=\"Who\">An operator</td><td data-label=\"What\">turned off two-step sign-in for"),
        "{activity}"
    );
}

#[test]
fn stored_recovery_codes_open_nothing() {
    let app = TestApp::start();
    let (ada, _) = ada_with_second_factor(&app);
    let shown = ada.confirm("/settings/account/recovery-codes");
    let page = shown.text();
    let first = page.split_once("spellcheck=\"false\">").unwrap().1.split_whitespace().next().unwrap().to_owned();
    assert_eq!(first.len(), 26 + 6, "{page}");
    assert_eq!(app.database.count("recovery_codes"), 10);
    for form in [first.clone(), first.replace('-', "")] {
        assert_eq!(app.database.tables_that_hold(&form), [""; 0]);
    }
    let sign_in = WaitingSignIn::start(&app);
    assert_eq!(sign_in.send_code(&first).status, 303);
    assert_eq!(app.database.count("recovery_codes"), 9);
}

#[test]
fn an_administrator_resets_the_second_factors_of_a_colleague_and_nobody_else_does() {
    let app = TestApp::start();
    let (ada, _) = ada_with_second_factor(&app);
    let mut grace = app.member("grace@clinic.example");
    let keeper = Member::join(app.service.client(), &grace.invite_as("jo@clinic.example", "key-manager"), "Jo");
    let path = grace.page_about("Ada", "reset-second-factor");
    let about = path.trim_end_matches("/reset-second-factor");
    assert!(grace.get(about).text().contains("Reset two-step sign-in"));
    assert_eq!(keeper.confirm(&path).status, 403);
    assert_eq!(ada.confirm(&path).header("location"), Some("/settings/account"), "not one's own");
    unconfirm(&app);
    assert!(grace.confirm(&path).header("location").unwrap().starts_with("/settings/confirm?next="));
    assert_eq!(app.database.count("members WHERE totp_secret IS NOT NULL"), 1);
    assert_eq!(grace.confirm_identity(PASSWORD, "").status, 303);
    assert!(grace.follow(&grace.confirm(&path)).contains("Two-step sign-in was reset"));
    let left =
        "members WHERE totp_secret IS NOT NULL OR EXISTS (SELECT FROM recovery_codes) OR EXISTS (SELECT FROM passkeys)";
    assert_eq!(app.database.count(left), 0);
    assert_eq!((ada.get("/settings/account").status, grace.get("/settings/account").status), (303, 200));
    let activity = grace.get("/settings/activity").text();
    assert!(activity.contains("turned off two-step sign-in for <strong>ada@clinic.example"), "{activity}");
}

#[test]
fn after_a_hundred_wrong_codes_in_a_row_codes_wait_for_a_reset_link_and_recovery_codes_go_on() {
    let app = TestApp::start();
    let (ada, secret) = ada_with_second_factor(&app);
    let page = ada.confirm("/settings/account/recovery-codes").text();
    let recovery_code =
        page.split_once("spellcheck=\"false\">").unwrap().1.split_whitespace().next().unwrap().to_owned();
    let wrong = |count: u32| {
        let set = format!("UPDATE members SET wrong_codes = {count}");
        app.database.connect().batch_execute(&set).unwrap();
    };
    wrong(99);
    let sign_in = WaitingSignIn::start(&app);
    assert_eq!(sign_in.send_code("000000").status, 401);
    let locked = sign_in.send_code(&code(&secret, 0));
    assert!(
        locked.status == 429 && locked.text().contains("stopped accepting codes from your app"),
        "{}",
        locked.text()
    );
    assert_eq!(sign_in.send_code(&recovery_code).status, 303);
    assert_eq!(app.database.count("members WHERE wrong_codes = 0"), 1, "the row of wrong ones has ended");
    wrong(100);
    assert_eq!(WaitingSignIn::start(&app).send_code(&code(&secret, 0)).status, 429);
    let link = app.reset_password("ada@clinic.example");
    assert_eq!(post(&app.service.client(), &link, &[], &password_field(PASSWORD)).status, 303);
    assert_eq!(WaitingSignIn::start(&app).send_code(&code(&secret, 0)).status, 303);
}

/// Limits of a thief who has the password and a session without the second factor.
#[test]
fn no_factor_is_added_removed_or_turned_off_without_one_if_there_is_one() {
    let app = TestApp::start();
    let (mut ada, secret) = ada_with_second_factor(&app);
    app.database.connect().batch_execute(crate::dashboard::pages::PASSKEY_OF_EACH_MEMBER).unwrap();
    let passkey = between(&ada.get("/settings/account").text(), "id=\"passkey-", "\"");
    unconfirm(&app);
    let entries = app.database.count("audit_entries");
    let forms = [
        ("/settings/account/second-factor/turn-off".to_owned(), String::new()),
        ("/settings/account/recovery-codes".to_owned(), String::new()),
        (format!("/settings/account/passkeys/{passkey}/remove"), String::new()),
        ("/settings/account/passkeys/new".to_owned(), everything_of_a_passkey()),
        ("/settings/account/password".to_owned(), "new_password=four+herons+at+the+jetty".to_owned()),
        ("/settings/account/email".to_owned(), "email=thief%40clinic.example".to_owned()),
    ];
    let led = |path: &str| format!("/settings/confirm?next={}", path.replace('/', "%2F").replace('-', "%2D"));
    let try_all = |ada: &Member, case: &str| {
        for (path, form) in &forms {
            let form = format!("{form}&{}", password_field(PASSWORD));
            for answer in [ada.post(path, &form), ada.get(path)] {
                assert_eq!(
                    (answer.status, answer.header("location")),
                    (303, Some(led(path).as_str())),
                    "{case}: {path}"
                );
            }
        }
    };
    try_all(&ada, "unconfirmed");
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 422);
    try_all(&ada, "by the password alone");
    assert_eq!(ada.confirm_identity("a guess at it", &code(&secret, 1)).status, 422);
    assert_eq!(ada.confirm_identity(PASSWORD, wrong(&secret)).status, 422);
    try_all(&ada, "by a wrong code");
    assert_eq!(app.database.count("audit_entries WHERE action <> 'code_failed'"), entries);
    let code_used = code(&secret, 1);
    assert_eq!(ada.confirm_identity(PASSWORD, &code_used).status, 303);
    let again = ada.confirm_identity(PASSWORD, &code_used);
    assert!(again.text().contains("wait for the next one (up to 30 seconds)"), "a code confirms once");
    for (path, _) in &forms {
        assert_eq!(ada.get(path).status, 200, "{path}");
    }
    let age = |minutes: u32| {
        let sql = format!("UPDATE sessions SET confirmed_at = now() - interval '{minutes} minutes'");
        app.database.connect().batch_execute(&sql).unwrap();
    };
    age(11);
    let path = &forms[0].0;
    assert_eq!(ada.get(path).status, 303, "a page asks again after 10 minutes");
    age(16);
    assert_eq!(ada.confirm(path).header("location"), Some(led(path).as_str()), "and a change is refused after 15");
    age(14);
    assert!(ada.follow(&ada.confirm(path)).contains("The authenticator app was turned off"));
    let passwords_wait = (0..12).find(|_| ada.confirm_identity("guess", "").status == 429);
    assert!(passwords_wait.is_some(), "guesses have to wait");
}

fn everything_of_a_passkey() -> String {
    "name=Phone&credential=x&client_data=x&authenticator_data=x&public_key=x".to_owned()
}
