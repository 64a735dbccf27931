//! Passwords turned off: the provider lets everyone in, and neither a password nor a passkey alone does.

use intake_test_support::{Response, TestDatabase, request};

use crate::accounts::passkeys::{Device, PRESENT_AND_VERIFIED};
use crate::accounts::single_sign_on::made_up_provider::MadeUpProvider;
use crate::accounts::single_sign_on::{assert_signed_in, signed_in};
use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{
    Member, PASSWORD, TestApp, accept, cookie, form_token, password_field, post, program, service, unconfirm,
};

const ANN: &str = "ann@clinic.example";

/// A service whose passwords are on, which is asked for nothing but sign-ins by the provider later.
fn with_passwords(provider: &MadeUpProvider) -> TestApp {
    provider.with_service()
}

fn without_passwords(provider: &MadeUpProvider) -> TestApp {
    TestApp::start_with(|builder| provider.settings(builder).setting("INTAKE_PASSWORDS", "off"))
}

/// Restarts the service with this setting.
fn turn_passwords(app: &mut TestApp, provider: &MadeUpProvider, switch: &str) {
    let settings = provider.settings(service(&app.database)).setting("INTAKE_PASSWORDS", switch);
    assert!(app.service.stop().success());
    app.service = settings.start();
}

fn get(app: &TestApp, path: &str, cookie: &str) -> Response {
    app.service.client().send(&request("GET", path, &[("Cookie", cookie), ("Accept", "text/html")], b""))
}

fn sign_in_by_password(app: &TestApp) -> Response {
    let form = format!("email=ann%40clinic.example&{}", password_field(PASSWORD));
    post(&app.service.client(), "/sign-in", &[], &form)
}

#[test]
fn the_pages_offer_the_provider_and_refuse_the_rest_in_words() {
    let provider = MadeUpProvider::start();
    let mut app = with_passwords(&provider);
    drop(provider.member_with_password(&app, ANN));
    let [invitation, reset] = [app.invite("bob@clinic.example"), app.reset_password(ANN)];
    turn_passwords(&mut app, &provider, "off");

    let page = get(&app, "/sign-in", "").text();
    assert!(page.contains("<a class=\"button\" href=\"/sign-in/provider\">Sign in with Harbour Login</a>"), "{page}");
    assert!(!page.to_lowercase().contains("passw") && !page.contains("passkey") && !page.contains("<form"), "{page}");
    let page = get(&app, &invitation, "").text();
    assert!(page.contains("Join with Harbour Login") && page.contains("bob@clinic.example"), "{page}");
    assert!(!page.to_lowercase().contains("password") && !page.contains("<form"), "{page}");

    let ann = signed_in(&app, &provider.sign_in(&app, ANN));
    let someone = signed_in(&app, &provider.go(&app, &format!("{invitation}/provider"), "", "bob@clinic.example"));
    let reset_colleague = ann.page_about("Ann Chovy", "reset-password");
    drop(someone);
    let (ask, mine) = ("/settings/confirm?next=/settings/account", form_token(&ann.get("/settings/account").text()));
    for (method, path, form) in [
        ("POST", "/sign-in", "email=ann%40clinic.example&password=correct+horse+battery+staple"),
        ("POST", "/sign-in/passkey", ""),
        ("GET", "/sign-in/passkey", ""),
        ("POST", "/sign-in/passkey/use", "credential="),
        ("POST", &invitation, "name=Bob&password=correct+horse+battery+staple"),
        ("GET", &reset, ""),
        ("POST", &reset, "password=another+long+password"),
        ("GET", "/forgotten-password", ""),
        ("POST", "/forgotten-password", "email=ann%40clinic.example"),
        ("GET", "/settings/account/password", ""),
        ("POST", "/settings/account/password", "new_password=another+long+password"),
        ("GET", &reset_colleague, ""),
        ("POST", &reset_colleague, ""),
        ("POST", "/settings/confirm", "password=correct+horse+battery+staple"),
    ] {
        let answer = match method {
            "GET" => get(&app, path, &ann.cookie),
            _ => {
                let headers = [("Cookie", ann.cookie.as_str())];
                post(&app.service.client(), path, &headers, &format!("form_token={mine}&{form}"))
            }
        };
        let page = answer.text();
        assert!(answer.status == 403 && page.contains("Passwords are turned off"), "{method} {path}: {page}");
        assert!(answer.all("set-cookie").iter().all(|cookie| !cookie.contains("session=")), "{method} {path}");
    }
    let stranger = sign_in_by_password(&app);
    assert!(stranger.status == 403 && stranger.text().contains("href=\"/sign-in\""), "{}", stranger.text());
    assert_eq!(app.database.count("password_resets"), 1, "no other link was made");
    let page = ann.get(ask).text();
    assert!(page.contains("Confirm with Harbour Login") && !page.contains("password"), "{page}");
    let page = ann.get("/settings/account").text();
    assert!(!page.to_lowercase().contains("password") && !page.contains("Change email"), "{page}");
    let page = ann.get("/settings/account/email");
    assert!(page.status == 403 && page.text().contains("can&#39;t check a new address"), "{}", page.text());
    let page = ann.get(reset_colleague.trim_end_matches("/reset-password")).text();
    assert!(page.contains("Change role") && !page.contains("Reset password"), "{page}");
}

#[test]
fn what_a_password_began_ends_at_its_next_request_and_the_rest_goes_on() {
    let provider = MadeUpProvider::start();
    let mut app = with_passwords(&provider);
    let by_password = provider.member_with_password(&app, ANN);
    let by_provider = signed_in(&app, &provider.sign_in(&app, ANN));
    let device = Device::of(&app, ANN);
    let waiting = [sign_in_by_password(&app), provider.sign_in(&app, ANN)];
    assert!(waiting.iter().all(|answer| answer.header("location") == Some("/sign-in/code")));
    turn_passwords(&mut app, &provider, "off");

    let ended = get(&app, "/settings/account", &by_password.cookie);
    assert_eq!(ended.header("location"), Some("/sign-in?next=%2Fsettings%2Faccount"), "{}", ended.text());
    assert_eq!(app.database.count("sessions"), 1);
    assert_eq!(get(&app, "/settings/account", &by_provider.cookie).status, 200);
    let [refused, page] = waiting.map(|answer| (get(&app, "/sign-in/code", &cookie(&answer)), cookie(&answer)));
    assert_eq!(refused.0.header("location"), Some("/sign-in"), "{}", refused.0.text());
    // A passkey is still the second step.
    let form = device.sign(&page.0.text(), &app.url(""), PRESENT_AND_VERIFIED);
    let answer = post(&app.service.client(), "/sign-in/code/passkey", &[("Cookie", &page.1)], &form);
    assert_signed_in(&answer);
    // And confirms who is signed in.
    let ann = Member::signed_in(app.service.client(), &answer);
    unconfirm(&app);
    let page = ann.get("/settings/confirm?next=/settings/account").text();
    let form = device.sign(&page, &app.url(""), PRESENT_AND_VERIFIED);
    let confirmed = post(&app.service.client(), "/settings/confirm/passkey", &[("Cookie", &ann.cookie)], &form);
    assert_eq!((confirmed.status, confirmed.header("location")), (303, Some("/settings/api-keys")));
}

#[test]
fn an_operator_lets_members_in_by_password_while_the_provider_is_away() {
    let provider = MadeUpProvider::start();
    let mut app = with_passwords(&provider);
    drop(app.member(ANN));
    let away = |app: &TestApp, switch: &str| {
        let settings = provider.settings(service(&app.database)).setting("INTAKE_OIDC_ISSUER", "http://127.0.0.1:9");
        settings.setting("INTAKE_PASSWORDS", switch).start()
    };
    app.service = away(&app, "off");
    assert_eq!(get(&app, "/sign-in/provider", "").status, 503);
    assert_eq!(sign_in_by_password(&app).status, 403);
    assert_eq!(app.create(&intake_test_support::patient()).status, 201, "the interface goes on");
    app.service = away(&app, "on");
    assert_signed_in(&sign_in_by_password(&app));
}

#[test]
fn a_register_without_members_gets_its_first_administrator() {
    let provider = MadeUpProvider::start();
    let app = without_passwords(&provider);
    let invitation = app.invite(ANN);
    assert_eq!(accept(&app.service.client(), &invitation, "Ann").status, 403);
    let mut ann = signed_in(&app, &provider.go(&app, &format!("{invitation}/provider"), "", ANN));
    // Inviting administrators needs a confirmation, which the provider gives.
    let from = "/settings/confirm/provider?next=/settings/members";
    let confirmed = provider.go(&app, from, &ann.cookie, ANN);
    assert_eq!(confirmed.header("location"), Some("/settings/members"), "{}", confirmed.text());
    ann.go_on(&confirmed);
    let invitation = ann.invite("bob@clinic.example");
    assert_signed_in(&provider.go(&app, &format!("{invitation}/provider"), "", "bob@clinic.example"));
    let members = ann.get("/settings/members").text();
    assert!(members.contains("bob@clinic.example"), "{members}");
}

#[test]
fn the_greeting_of_a_demo_says_how_to_become_the_first_member() {
    let folder = tempfile::tempdir().unwrap();
    let provider = MadeUpProvider::start();
    let demo = |name: &str| {
        let builder = intake_test_support::ServiceBuilder::in_folder(env!("CARGO_BIN_EXE_intake"), folder.path());
        provider.settings(builder).setting("INTAKE_PASSWORDS", name)
    };
    let service = demo("off").start();
    intake_test_support::wait_for("the greeting", || service.output().contains("To become the first member"));
    let greeting = service.output();
    let command = greeting.lines().find(|line| line.starts_with("intake member invite --organisation ")).unwrap();
    let organisation = command.split(' ').nth(4).unwrap();
    let invite = ["member", "invite", "--organisation", organisation, "--email", ANN];
    let invited = invite.iter().fold(demo("off"), |builder, argument| builder.argument(argument)).run();
    assert!(invited.status.success(), "{}", String::from_utf8_lossy(&invited.stderr));
    assert!(!greeting.contains("/invitations/"), "nobody has the demo's address at the provider: {greeting}");
}

#[test]
fn operators_see_the_setting_and_are_refused_what_it_rules_out() {
    let provider = MadeUpProvider::start();
    let app = without_passwords(&provider);
    let doctor = |builder: intake_test_support::ServiceBuilder| {
        let output = builder.setting("INTAKE_PASSWORDS", "off").argument("doctor").run();
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().find(|line| line.starts_with("sign-on")).unwrap().to_owned()
    };
    let settings = || provider.settings(service(&app.database));
    assert_eq!(doctor(settings()), "sign-on      ok     the provider answers; passwords are off");
    let away = doctor(settings().setting("INTAKE_OIDC_ISSUER", "http://127.0.0.1:9"));
    assert!(away.contains("WRONG") && away.contains("nobody can sign in, unless INTAKE_PASSWORDS is on"), "{away}");

    let id = app.clinic.organisation.to_string();
    let reset = ["member", "reset-password", "--organisation", &id, "--email", ANN];
    let reset = reset.iter().fold(settings().setting("INTAKE_PASSWORDS", "off"), |builder, one| builder.argument(one));
    let reset = reset.run();
    let said = String::from_utf8(reset.stderr).unwrap();
    assert!(reset.status.code() == Some(1) && said.contains("INTAKE_PASSWORDS is off"), "{said}");

    let database = TestDatabase::new();
    let refused = program().database(&database).setting("INTAKE_PASSWORDS", "off").try_start().err().unwrap();
    assert!(refused.contains("INTAKE_PASSWORDS is off, and there is no single sign-on"), "{refused}");
}

#[test]
fn mails_speak_of_no_password() {
    let Some(server) = MailServer::start() else { return };
    let provider = MadeUpProvider::start();
    let app = TestApp::start_with(|builder| {
        with_mails(provider.settings(builder).setting("INTAKE_PASSWORDS", "off"), &server.url())
    });
    let ann = provider.member(&app, ANN);

    assert_eq!(ann.post("/settings/members/invite", "email=bob%40clinic.example").status, 200);
    let mail = server.wait_for_mail("bob@clinic.example", "Invitation to Test Clinic");
    assert!(mail.contains("Open this link to join:") && mail.contains("/invitations/"), "{mail}");
    ann.turn_on_second_factor();
    let mail = server.wait_for_mail(ANN, "Two-step sign-in is on");
    assert!(mail.contains("If this wasn't you, tell an administrator of your organisation."), "{mail}");
    assert_eq!(ann.post("/settings/account/email", "email=ann.chovy%40clinic.example").status, 200);
    let mail = server.wait_for_mail(ANN, "Someone asked to change your email address");
    assert!(mail.contains("Someone who is signed in to your account asked to change its email address."), "{mail}");
    let mail = server.wait_for_mail("ann.chovy@clinic.example", "Confirm your email address");
    assert!(mail.contains("/confirm-email/"), "{mail}");
    for mail in server.mails() {
        assert!(!mail.to_lowercase().contains("password"), "{mail}");
    }
}
