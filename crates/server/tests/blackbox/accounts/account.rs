//! A member's own account: a name and a password that can be changed, and what a change of the password ends;
//! and the link for a member who forgot it.

use intake_test_support::{Browser, Response, request};

use crate::fixtures::{Member, PASSWORD, TestApp, between, confirm_identity, password_field, post, service};

const NEW_PASSWORD: &str = "four herons at the jetty";

/// Tries to sign Ada in from a browser of its own.
fn sign_in(app: &TestApp, password: &str) -> Response {
    let form = format!("email=ada%40clinic.example&{}", password_field(password));
    post(&app.service.client(), "/sign-in", &[], &form)
}

fn change_password(member: &Member, new: &str) -> Response {
    member.post("/settings/account/password", &format!("new_{}", password_field(new)))
}

#[test]
fn the_same_password_or_name_is_no_change() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = Member::signed_in(app.service.client(), &sign_in(&app, PASSWORD));
    let entries = app.database.count("audit_entries");
    let same = change_password(&ada, PASSWORD);
    assert!(same.status == 422 && same.text().contains("This is the password you already have."), "{}", same.text());
    assert!(ada.follow(&ada.post("/settings/account/name", "name=Ada")).contains("This is the name you already have."));
    assert_eq!((app.database.count("audit_entries"), elsewhere.get("/settings/account").status), (entries, 200));
}

#[test]
fn changing_the_password_ends_all_other_sessions() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let elsewhere = Member::signed_in(app.service.client(), &sign_in(&app, PASSWORD));
    let changed = change_password(&ada, NEW_PASSWORD);
    assert_eq!((changed.status, changed.header("location")), (303, Some("/settings/account")));
    assert!(ada.follow(&changed).contains("Your password was changed"));
    assert_eq!(elsewhere.get("/settings/account").status, 303);
    assert_eq!(grace.get("/settings/account").status, 200, "another member's session");
    assert_eq!((sign_in(&app, PASSWORD).status, sign_in(&app, NEW_PASSWORD).status), (401, 303));
    let noted = "audit_entries WHERE action = 'password_changed' AND actor = 'Ada' AND subject = 'ada@clinic.example'";
    assert_eq!(app.database.count(noted), 1);
    assert_eq!(app.database.tables_that_hold(NEW_PASSWORD), [""; 0]);
    assert!(ada.get("/settings/activity").text().contains("changed the password of"));
}

#[test]
fn a_right_confirmation_never_waits() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    let statuses: Vec<_> = (0..12).map(|_| ada.confirm_identity(PASSWORD, "").status).collect();
    assert_eq!(statuses, [303; 12]);
    let wrong: Vec<_> = (0..12).map(|_| ada.confirm_identity("wrong horse battery", "").status).collect();
    assert_eq!((wrong[9], wrong[10]), (422, 429), "{wrong:?}");
}

#[test]
fn a_password_is_not_changed_to_a_bad_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    for (new, message) in [
        ("short", "The new password must be 12 to 128 characters long."),
        ("passwordpassword", "The new password is too easy to guess"),
    ] {
        let refused = change_password(&ada, new);
        assert!(refused.status == 422 && refused.text().contains(message), "{message}: {}", refused.text());
    }
    assert_eq!(sign_in(&app, PASSWORD).status, 303);
    assert_eq!(app.database.count("audit_entries WHERE action = 'password_changed'"), 0);
}

#[test]
fn a_member_changes_the_name_and_the_audit_log_keeps_the_old_one() {
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

/// Changes the email address.
fn change_email(member: &Member, email: &str) -> Response {
    let form = format!("email={}&{}", email.replace('@', "%40"), password_field(PASSWORD));
    member.post("/settings/account/email", &form)
}

#[test]
fn a_member_who_changes_the_email_signs_in_with_the_new_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = Member::signed_in(app.service.client(), &sign_in(&app, PASSWORD));
    let reset = app.reset_password("ada@clinic.example");
    let changed = change_email(&ada, "Countess@Clinic.example");
    assert_eq!((changed.status, changed.header("location")), (303, Some("/settings/account")));
    let page = ada.follow(&changed);
    assert!(page.contains("Your email was changed") && page.contains("<dd>Countess@Clinic.example</dd>"), "{page}");
    assert_eq!(elsewhere.get("/settings/account").status, 303, "signed out everywhere else");
    assert_eq!(open(&app, &reset), 404, "the link was sent to the earlier address");
    assert_eq!(sign_in(&app, PASSWORD).status, 401, "by the earlier address");
    let form = format!("email=countess%40clinic.example&{}", password_field(PASSWORD));
    assert_eq!(post(&app.service.client(), "/sign-in", &[], &form).status, 303);
    let noted =
        "audit_entries WHERE action = 'email_changed' AND actor = 'Ada' AND subject = 'Countess@Clinic.example'";
    assert_eq!(app.database.count(noted), 1);
    assert!(ada.get("/settings/activity").text().contains("changed their email to"));
    assert_eq!(change_email(&ada, "Countess@Clinic.example").status, 422, "no change");
    assert_eq!(change_email(&ada, "countess@clinic.example").status, 303, "only its case");
    assert_eq!(app.database.count("audit_entries WHERE action = 'email_changed'"), 2);
}

#[test]
fn an_email_is_not_changed_to_one_that_is_taken() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace"));
    drop(app.member_of(&app.other_clinic(), "eve@elsewhere.example"));
    let nonsense = change_email(&ada, "no address");
    assert!(nonsense.status == 422 && nonsense.text().contains("The email must be"), "{}", nonsense.text());
    let refused = change_email(&ada, "Grace@Clinic.example");
    assert!(refused.status == 409 && refused.text().contains("Another member of your organisation has this email"));
    assert!(refused.text().contains("value=\"Grace@Clinic.example\""), "what was typed is kept");
    for form in ["email=eve%40elsewhere.example", "email=eve%40elsewhere.example&password=wrong+horse+battery"] {
        let wrong = ada.post("/settings/account/email", form);
        assert!(wrong.status == 422 && wrong.text().contains("Incorrect password."), "{}", wrong.text());
    }
    let waiting = (0..10).find_map(|_| Some(change_email(&ada, "grace@clinic.example")).filter(|r| r.status == 429));
    assert!(waiting.unwrap().text().contains("Too many attempts"), "addresses cannot be tried for long");
    assert_eq!(app.database.count("audit_entries WHERE action = 'email_changed'"), 0);
    assert_eq!(sign_in(&app, PASSWORD).status, 303);
}

#[test]
fn a_change_to_an_address_of_another_organisation_reveals_nothing_and_takes_nothing_away() {
    let app = TestApp::start();
    let (ada, elsewhere) = (app.member("ada@clinic.example"), app.other_clinic());
    let mary = app.member_of(&elsewhere, "mary@elsewhere.example");
    let changed = ["nobody@elsewhere.example", "ada@clinic.example"].map(|email| {
        let changed = change_email(&mary, email);
        (changed.status, changed.header("location").unwrap().to_owned())
    });
    assert_eq!(changed[0], changed[1]);
    assert_eq!(changed[0], (303, "/settings/account".to_owned()));
    // One hash compares a password with both.
    let salts =
        "(SELECT split_part(password_hash, '$', 5) FROM members WHERE email = 'ada@clinic.example' GROUP BY 1) AS s";
    assert_eq!(app.database.count(salts), 1);
    let other = ada.post("/settings/account/password", "new_password=four+herons+at+the+jetty");
    assert_eq!((other.status, app.database.count(salts)), (303, 1));
    let led = |password: &str| {
        let member = Member::signed_in(app.service.client(), &sign_in(&app, password));
        member.get("/settings/members").text().contains("mary@")
            || member.get("/settings/members").text().contains(">Mary")
    };
    assert_eq!((led("four herons at the jetty"), led(PASSWORD)), (false, true));
}

#[test]
fn one_of_two_members_who_take_an_email_at_once_gets_it() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let mut statuses = std::thread::scope(|scope| {
        let racers = [&ada, &grace].map(|member| scope.spawn(|| change_email(member, "both@clinic.example").status));
        racers.map(|racer| racer.join().unwrap())
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409]);
    assert_eq!(app.database.count("members WHERE email = 'both@clinic.example'"), 1);
}

/// Opens a reset link.
fn open(app: &TestApp, link: &str) -> u16 {
    app.service.client().send(&request("GET", link, &[], b"")).status
}

/// Chooses a password by a reset link.
fn choose(app: &TestApp, link: &str, password: &str) -> Response {
    post(&app.service.client(), link, &[], &password_field(password))
}

#[test]
fn a_reset_link_works_once_ends_every_session_and_leaves_two_step_sign_in_on() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    ada.turn_on_second_factor();
    assert_eq!(sign_in(&app, PASSWORD).header("location"), Some("/sign-in/code"));
    assert_eq!(app.database.count("waiting_sign_ins"), 1);

    let page = grace.page_about("Ada", "reset-password");
    let confirm = grace.get(&page);
    assert!(confirm.status == 200 && confirm.text().contains("Reset Ada"));
    assert_eq!(app.database.count("password_resets"), 0, "looking changes nothing");
    let made = grace.confirm(&page).text();
    let link = between(&made, "id=\"link\" value=\"", "\"");
    let link = &link[link.find("/reset-password/").unwrap()..];
    assert_eq!(app.database.tables_that_hold(link.trim_start_matches("/reset-password/")), [""; 0]);
    assert_eq!(open(&app, link), 200);
    assert_eq!(ada.get("/settings/account").status, 200, "a link that nobody used ends nothing");
    let refused = choose(&app, link, "short");
    assert!(refused.status == 422 && refused.text().contains("The password must be 12 to 128 characters long."));

    let chosen = choose(&app, link, NEW_PASSWORD);
    assert_eq!((chosen.status, chosen.header("location")), (303, Some("/sign-in")));
    let cookie = chosen.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-intake-done="), "nobody is signed in by it: {cookie}");
    assert_eq!((open(&app, link), choose(&app, link, PASSWORD).status), (404, 404));
    assert_eq!((app.database.count("waiting_sign_ins"), app.database.count("password_resets")), (0, 0));
    assert_eq!((ada.get("/settings/account").status, grace.get("/settings/account").status), (303, 200));
    assert_eq!(sign_in(&app, PASSWORD).status, 401);
    assert_eq!(sign_in(&app, NEW_PASSWORD).header("location"), Some("/sign-in/code"), "two steps, as before");
    let activity = grace.get("/settings/activity").text();
    for message in [
        "<td data-label=\"Who\">Grace <small>grace@clinic.example</small></td><td data-label=\"What\">created a password reset link for",
        "<td data-label=\"Who\">Someone</td><td data-label=\"What\">reset the password of",
    ] {
        assert!(activity.contains(message), "{activity}");
    }
}

#[test]
fn a_later_link_replaces_the_earlier_one_and_a_day_is_its_life() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let _ada = app.member("ada@clinic.example");
    let (first, second) = (app.reset_password("ada@clinic.example"), app.reset_password("ada@clinic.example"));
    assert_eq!((open(&app, &first), open(&app, &second)), (404, 200));
    let is_a_day = "password_resets WHERE expires_at - now() BETWEEN interval '23 hours' AND interval '24 hours'";
    assert_eq!(app.database.count(is_a_day), 1);
    let late = "UPDATE password_resets SET expires_at = now() - interval '1 second'";
    app.database.connect().batch_execute(late).unwrap();
    assert_eq!((open(&app, &second), choose(&app, &second, NEW_PASSWORD).status), (404, 404));
    assert_eq!(sign_in(&app, PASSWORD).status, 303);
    for nonsense in ["/reset-password/x", &format!("/reset-password/{}", "0".repeat(64))] {
        assert_eq!((open(&app, nonsense), choose(&app, nonsense, NEW_PASSWORD).status), (404, 404));
    }
}

#[test]
fn a_reset_link_ends_when_the_member_changes_the_password_or_is_removed() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let link = app.reset_password("ada@clinic.example");
    assert_eq!(change_password(&ada, NEW_PASSWORD).status, 303);
    assert_eq!(open(&app, &link), 404);
    let link = app.reset_password("ada@clinic.example");
    assert_eq!(grace.confirm(&grace.page_about("Ada", "remove")).status, 303);
    assert_eq!((open(&app, &link), choose(&app, &link, NEW_PASSWORD).status), (404, 404));
}

#[test]
fn a_link_is_used_once_even_in_a_race() {
    let app = TestApp::start();
    let _ada = app.member("ada@clinic.example");
    let link = app.reset_password("ada@clinic.example");
    let passwords = ["four herons at the jetty", "five herons at the jetty", "nine herons at the jetty"];
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let racers: Vec<_> =
            passwords.iter().map(|password| scope.spawn(|| choose(&app, &link, password).status)).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
    assert_eq!(passwords.iter().filter(|password| sign_in(&app, password).status == 303).count(), 1);
    assert_eq!(app.database.count("audit_entries WHERE action = 'password_reset'"), 1);
}

#[test]
fn neither_oneself_nor_another_organisation_gets_a_link() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let own = ada.page_about("Ada", "reset-password");
    for answer in [ada.get(&own), ada.confirm(&own)] {
        assert_eq!((answer.status, answer.header("location")), (303, Some("/settings/account/password")));
    }
    assert!(!ada.get(own.trim_end_matches("/reset-password")).text().contains("Reset password"));
    let elsewhere = app.other_clinic().organisation.to_string();
    let arguments = ["member", "reset-password", "--organisation", &elsewhere, "--email", "ada@clinic.example"];
    let output = arguments.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("has no member ada@clinic.example") && message.trim().lines().count() == 1, "{message}");
    assert_eq!(app.database.count("password_resets"), 0);
}

#[test]
fn a_member_who_forgot_the_password_gets_in_again_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    let _ada = app.member("ada@clinic.example");
    app.join(&browser, "Grace", "grace@clinic.example");
    browser.press("Members");
    browser.wait_for("Invite member");
    browser.press("Ada");
    browser.press("Reset password");
    confirm_identity(&browser);
    browser.wait_for("Reset Ada's password?");
    browser.press("Create reset link");
    browser.wait_for("Reset link for Ada");
    let link = browser.value("Reset link");
    browser.press("Sign out");
    browser.wait_for("Forgotten your password?");
    browser.open(&link);
    browser.wait_for("Choose a new password");
    browser.fill("New password", "passwordpassword");
    browser.press("Save password");
    browser.wait_for("The password is too easy to guess");
    browser.fill("New password", NEW_PASSWORD);
    browser.press("Save password");
    browser.wait_for("Your password was changed. Sign in with the new one.");
    browser.fill("Email", "ada@clinic.example");
    browser.fill("Password", NEW_PASSWORD);
    browser.press("Sign in");
    browser.wait_for("No API keys yet.");
    browser.press("Account");
    browser.press("Change password");
    browser.wait_for("Confirm it's you");
    browser.fill("Your password", "guess");
    browser.press("Confirm");
    browser.wait_for("Incorrect password.");
    browser.fill("Your password", NEW_PASSWORD);
    browser.press("Confirm");
    browser.fill("New password", PASSWORD);
    browser.press("Change password");
    browser.wait_for("Your password was changed, and you were signed out everywhere else.");
    browser.open(&browser.url());
    browser.wait_for("Two-step sign-in");
    assert!(!browser.text().contains("Your password was changed"), "it is shown once");
    browser.press("Change email");
    browser.fill("New email", "countess@clinic.example");
    browser.fill("Your password", PASSWORD);
    browser.press("Change email");
    browser.wait_for("Your email was changed, and you were signed out everywhere else.");
}
