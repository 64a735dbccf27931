//! Roles: who gets which, and that an organisation keeps an administrator; and two-step sign-in where it is required
//! for everyone.

use intake_test_support::{Browser, request};

use crate::accounts::permissions::while_the_role_becomes;
use crate::dashboard::pages::{fill, walled_routes};
use crate::fixtures::{
    Member, PASSWORD, TestApp, accept, between, choose_role, confirm_identity, password_field, post, service, unconfirm,
};

/// Pages that every person who is signed in may open, whatever their organisation requires.
const LEADS_OUT: [&str; 2] = ["/sign-out", "/choose-organisation"];

fn key_manager(app: &TestApp, ada: &Member) -> Member {
    Member::join(app.service.client(), &ada.invite_as("grace@clinic.example", "key-manager"), "Grace")
}

fn role_form(role: &str) -> String {
    format!("role={role}")
}

fn administrators(app: &TestApp) -> i64 {
    app.database.count("memberships WHERE role = 'administrator'")
}

#[test]
fn an_operator_and_an_administrator_invite_people_to_any_role() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let invite = |email: &str, role: &[&str]| {
        let arguments = ["member", "invite", "--json", "--organisation", &id, "--email", email];
        let command = arguments.iter().chain(role).fold(service(&app.database), |all, one| all.argument(one));
        command.run()
    };
    assert!(invite("eve@clinic.example", &["--role", "key-manager"]).status.success());
    assert!(invite("jo@clinic.example", &["--role", "auditor"]).status.success());
    assert!(invite("ada@clinic.example", &[]).status.success());
    let nonsense = invite("mary@clinic.example", &["--role", "owner"]);
    assert_eq!(nonsense.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nonsense.stderr).contains("must be administrator, key-manager or auditor"));
    let invited = |email: &str, role: &str| {
        app.database.count(&format!("invitations WHERE email = '{email}' AND role = '{role}'"))
    };
    for (email, role) in [
        ("eve@clinic.example", "key-manager"),
        ("jo@clinic.example", "auditor"),
        ("ada@clinic.example", "administrator"),
    ] {
        assert_eq!(invited(email, role), 1, "{role}");
    }
    let ada = app.member("ada@clinic.example");
    assert_eq!(ada.post("/settings/members/invite", "email=b%40clinic.example&role=owner").status, 400);
    drop(key_manager(&app, &ada));
    let joined = "members JOIN memberships ON member_id = id WHERE name = 'Grace' AND role = 'key-manager'";
    assert_eq!((app.database.count(joined), administrators(&app)), (1, 1));
    let list = ada.get("/settings/members").text();
    assert!(list.contains("<td data-label=\"Role\" class=\"words\">Key manager</td>"), "{list}");
}

#[test]
fn the_last_administrator_stays_and_changing_a_role_needs_confirmation() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    drop(key_manager(&app, &ada));
    let (own, of_grace) = (ada.page_about("Ada", "role"), ada.page_about("Grace", "role"));
    for refused in [ada.post(&own, &role_form("key-manager")), ada.confirm(&ada.page_about("Ada", "remove"))] {
        assert!(refused.status == 409 && refused.text().contains("the only administrator"));
    }
    unconfirm(&app);
    let removal = ada.page_about("Grace", "remove");
    for answer in [ada.post(&of_grace, &role_form("administrator")), ada.confirm(&removal)] {
        assert!(answer.header("location").unwrap().starts_with("/settings/confirm?next="));
    }
    let guess = ada.confirm_identity("guess", "");
    assert!(guess.status == 422 && guess.text().contains("Incorrect password."));
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
    assert_eq!((administrators(&app), app.database.count("members")), (1, 2));
    assert_eq!(ada.post(&of_grace, &role_form("administrator")).status, 303);
    assert_eq!(ada.post(&of_grace, &role_form("auditor")).status, 303);
    assert_eq!(ada.post(&of_grace, &role_form("administrator")).status, 303);
    let demoted = ada.post(&own, &role_form("key-manager"));
    assert_eq!((demoted.status, demoted.header("location")), (303, Some("/settings/account")));
    assert_eq!((ada.get("/settings/members").status, administrators(&app)), (403, 1));
    for (action, subject, count) in [
        ("administrator_made", "grace@clinic.example", 2),
        ("auditor_made", "grace@clinic.example", 1),
        ("key_manager_made", "ada@clinic.example", 1),
    ] {
        let noted = format!("audit_entries WHERE action = '{action}' AND actor = 'Ada' AND subject = '{subject}'");
        assert_eq!(app.database.count(&noted), count, "{action}");
    }
}

#[test]
fn two_administrators_who_demote_or_remove_each_other_at_once_leave_one() {
    for action in ["role", "remove"] {
        let app = TestApp::start();
        let ada = app.member("ada@clinic.example");
        let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
        let (of_grace, of_ada) = (ada.page_about("Grace", action), grace.page_about("Ada", action));
        let statuses = std::thread::scope(|scope| {
            let one = scope.spawn(|| ada.post(&of_grace, &role_form("key-manager")).status);
            let other = scope.spawn(|| grace.post(&of_ada, &role_form("key-manager")).status);
            [one.join().unwrap(), other.join().unwrap()]
        });
        // The second one lost the role, or the session, before or while it was asked.
        assert!(statuses.contains(&303), "{action}: {statuses:?}");
        assert_eq!(administrators(&app), 1, "{action}: {statuses:?}");
    }
}

/// A race that two requests at once hit only by chance: the role is taken away after the page was asked for, and before
/// the change.
#[test]
fn a_member_who_just_lost_the_administrator_role_can_change_nothing() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace"));
    let (of_grace, remove_grace) = (ada.page_about("Grace", "role"), ada.page_about("Grace", "remove"));
    let requests: [(&str, &str); 5] = [
        (&of_grace, &role_form("key-manager")),
        (&remove_grace, ""),
        (&ada.page_about("Grace", "reset-password"), ""),
        ("/settings/members/invite", "email=mary%40clinic.example"),
        ("/settings/policies/stop-requiring-two-step-sign-in", ""),
    ];
    for (path, form) in requests {
        let refused = while_the_role_becomes("key-manager", "Ada", &app, || ada.post(path, form));
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
    }
    assert_eq!((app.database.count("members"), administrators(&app)), (2, 2));
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 0);
    assert_eq!(app.database.count("password_resets"), 0);
}

#[test]
fn links_of_a_former_administrator_end() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    let open = |path: &str| app.service.client().send(&request("GET", path, &[], b"")).status;
    let reset_link = |maker: &Member| {
        let page = maker.confirm(&maker.page_about("Ada", "reset-password")).text();
        let link = between(&page, "id=\"link\" value=\"", "\"");
        link[link.find("/reset-password/").unwrap()..].to_owned()
    };
    let (invitation, reset) = (grace.invite("second.self@clinic.example"), reset_link(&grace));
    let by_ada = ada.invite("mary@clinic.example");
    assert_eq!([&invitation, &reset, &by_ada].map(|path| open(path)), [200; 3]);
    assert_eq!(ada.post(&ada.page_about("Grace", "role"), &role_form("auditor")).status, 303);
    assert_eq!([&invitation, &reset, &by_ada].map(|path| open(path)), [404, 404, 200]);
    assert_eq!(accept(&app.service.client(), &invitation, "Eve").status, 404);

    assert_eq!(ada.post(&ada.page_about("Grace", "role"), &role_form("administrator")).status, 303);
    let reset = reset_link(&grace);
    assert_eq!(ada.confirm(&ada.page_about("Grace", "remove")).status, 303);
    assert_eq!(open(&reset), 404, "removal ends it as well");
}

fn sign_in(app: &TestApp, email: &str) -> Member {
    let form = format!("email={}&{}", email.replace('@', "%40"), password_field(PASSWORD));
    let client = app.service.client();
    let signed_in = post(&client, "/sign-in", &[], &form);
    assert_eq!(signed_in.header("location"), Some("/settings/api-keys"));
    let cookie = crate::fixtures::cookie(&signed_in);
    let page = client.send(&request("GET", "/settings/confirm", &[("Cookie", &cookie)], b"")).text();
    Member { client, cookie, form_token: crate::fixtures::form_token(&page) }
}

const REQUIRE: &str = "/settings/policies/require-two-step-sign-in";
const STOP: &str = "/settings/policies/stop-requiring-two-step-sign-in";

#[test]
fn a_member_without_a_required_second_factor_can_only_turn_it_on() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    for refused in [ada.get(REQUIRE), ada.confirm(REQUIRE)] {
        assert!(refused.status == 409 && refused.text().contains("on your own Account page first"));
    }
    ada.turn_on_second_factor();
    assert!(ada.get(REQUIRE).text().contains("One member doesn&#39;t use it yet"), "{}", ada.get(REQUIRE).text());
    assert_eq!(grace.get("/settings/members").status, 200, "nothing is required yet");
    assert_eq!(ada.confirm(REQUIRE).header("location"), Some("/settings/policies"));
    assert!(ada.get("/settings/policies").text().contains("Required for everyone."));

    let (key, _) = app.clinic.key();
    let grace_anew = sign_in(&app, "grace@clinic.example");
    for (method, path) in walled_routes() {
        let is_the_way_in = path == "/settings/account/second-factor"
            || path == "/settings/account/passkeys/new"
            || path.starts_with("/settings/confirm")
            || LEADS_OUT.contains(&path.as_str());
        let asked = fill(&path, |_| key.to_string());
        let form = format!(
            "name=k&note=n&contact=c&networks=::1&days=9&zone=UTC&email=e%40e.co&id={key}&ends_after=now&new_password=x&credential=x&client_data=x&authenticator_data=x&public_key=x&signature=x&{}",
            role_form("administrator")
        );
        for member in [&grace, &grace_anew] {
            if !is_the_way_in {
                let answer = if method == "POST" { member.post(&asked, &form) } else { member.get(&asked) };
                let led = (answer.status, answer.header("location"));
                assert_eq!(led, (303, Some("/settings/account/second-factor")), "{method} {path}");
            }
        }
    }
    let page = grace.get("/settings/account/second-factor").text();
    assert!(
        page.contains("requires two-step sign-in for everyone") && !page.contains("aria-label=\"Settings\""),
        "{page}"
    );
    assert!(!page.contains(">Cancel<"));
    assert_eq!(grace_anew.post("/sign-out", "").header("location"), Some("/sign-in"));
    grace.turn_on_second_factor();
    assert_eq!(grace.get("/settings/members").status, 200);

    let turn_off = "/settings/account/second-factor/turn-off";
    assert!(!grace.get("/settings/account").text().contains(turn_off), "what is not possible is not shown");
    drop(grace.confirm(turn_off));
    assert_eq!(app.database.count("members WHERE totp_secret IS NOT NULL"), 2, "nobody turns it off");
    assert_eq!(grace.confirm(STOP).status, 303);
    assert_eq!(grace.confirm(turn_off).status, 303);
    assert_eq!(app.database.count("members WHERE totp_secret IS NOT NULL"), 1);
    for (action, actor) in [("second_factor_required", "Ada"), ("second_factor_optional", "Grace")] {
        let noted =
            format!("audit_entries WHERE action = '{action}' AND actor = '{actor}' AND subject = 'Test Clinic'");
        assert_eq!(app.database.count(&noted), 1, "{action}");
    }
}

#[test]
fn a_guest_turns_on_the_required_two_step_sign_in_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    ada.turn_on_second_factor();
    assert_eq!(ada.confirm(REQUIRE).status, 303);
    browser.open(&app.url(&ada.invite_as("grace@clinic.example", "key-manager")));
    browser.fill("Your name", "Grace");
    browser.fill("Password", PASSWORD);
    browser.press("Join");
    browser.wait_for("requires two-step sign-in for everyone");
    assert!(!browser.has("API keys") && !browser.has("Members") && browser.has("Sign out"));
    app.turn_on_second_factor(&browser, || ());
    browser.press("I have saved them");
    browser.wait_for("so it can't be turned off");
    assert!(browser.has("API keys") && !browser.has("Members") && !browser.has("Activity"));
}

#[test]
fn an_invited_person_becomes_a_key_manager_unless_another_role_is_chosen() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let list = ada.get("/settings/members").text();
    assert!(list.contains("<a class=\"button\" href=\"/settings/members/invite\">Invite member</a>"), "{list}");
    assert!(
        !list.contains("name=\"role\"") && !list.contains("class=\"card\""),
        "people and invitations alone: {list}"
    );
    let form = ada.get("/settings/members/invite").text();
    assert!(form.contains("name=\"role\" value=\"key-manager\" checked"), "{form}");
    assert_eq!(form.matches("<input type=\"radio\" name=\"role\"").count(), 3);
    assert_eq!(ada.post("/settings/members/invite", "email=mary%40clinic.example").status, 200);
    assert_eq!(app.database.count("invitations WHERE email = 'mary@clinic.example' AND role = 'key-manager'"), 1);
}

#[test]
fn confirming_makes_the_invitation_that_was_asked_for_once() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    unconfirm(&app);
    let invitations = || app.database.count("invitations WHERE email = 'sam@clinic.example'");
    let asked = "email=sam%40clinic.example&role=administrator";
    let interrupted = ada.post("/settings/members/invite", asked);
    let confirm = "/settings/confirm?next=%2Fsettings%2Fmembers%2Finvite";
    assert_eq!((interrupted.status, interrupted.header("location")), (303, Some(confirm)));
    let draft = interrupted.all("set-cookie").iter().find(|cookie| cookie.contains("-draft=")).unwrap().to_string();
    let cookies = format!("{}; {}", ada.cookie, draft.split(';').next().unwrap());
    let page = ada.client.send(&request("GET", confirm, &[("Cookie", &cookies)], b"")).text();
    assert!(page.contains("Confirm to invite sam@clinic.example as an administrator."), "{page}");
    assert!(page.contains("<form method=\"post\" action=\"/settings/members/invite\">"), "{page}");
    // Nobody can have another change confirmed by a link.
    let made_up = ada.get("/settings/confirm?next=%2Fsettings%2Fmembers%2Finvite%3Femail%3Deve%40evil.example").text();
    assert!(!made_up.contains("Confirm to invite"), "{made_up}");

    let wrong = ada.post("/settings/members/invite", &format!("{asked}&password=wrong+wrong+wrong"));
    assert!(wrong.status == 422 && wrong.text().contains("Incorrect password."), "{}", wrong.text());
    assert!(wrong.text().contains("value=\"sam@clinic.example\""), "it still waits");
    assert_eq!(invitations(), 0);
    let sent = format!("{asked}&{}", password_field(PASSWORD));
    let first = (ada.cookie.clone(), ada.form_token.clone());
    let made = ada.post("/settings/members/invite", &sent);
    assert!(made.status == 200 && made.text().contains("/invitations/"), "{}", made.text());
    ada.go_on(&made);
    assert_eq!(invitations(), 1);
    // The form of the session as it was before is worth nothing.
    let body = format!("form_token={}&{sent}", first.1);
    let again = post(&ada.client, "/settings/members/invite", &[("Cookie", &first.0)], &body);
    assert!([303, 403].contains(&again.status), "{}", again.status);
    let again = post(&ada.client, "/settings/members/invite", &[("Cookie", &ada.cookie)], &body);
    assert_eq!((again.status, invitations()), (403, 1));
    assert_eq!(ada.post("/settings/members/invite", "email=max%40clinic.example&role=administrator").status, 200);
}

#[test]
fn a_role_is_changed_on_the_cards_that_an_invitation_has() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(key_manager(&app, &ada));
    let cards = |path: &str| {
        let page = ada.get(path).text();
        let (_, cards) = page.split_once("<fieldset class=\"options\"><legend>Role</legend>").unwrap();
        cards.split("</fieldset>").next().unwrap().replace(" checked", "")
    };
    let role = ada.page_about("Grace", "role");
    assert_eq!(cards(&role), cards("/settings/members/invite"));
    assert!(ada.get(&role).text().contains("name=\"role\" value=\"key-manager\" checked"));
    assert!(!ada.get(&role).text().contains("made stop working"), "that is about administrators");
    assert!(ada.get(&ada.page_about("Ada", "role")).status == 409, "the last administrator");
}

#[test]
fn a_role_is_changed_in_a_browser() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    drop(app.member("ada@clinic.example"));
    app.join(&browser, "Grace", "grace@clinic.example");
    browser.press("Members");
    browser.wait_for("Invite member");
    browser.press("Ada");
    browser.press("Change role");
    confirm_identity(&browser);
    browser.wait_for("Change the role of Ada");
    choose_role(&browser, "key-manager");
    browser.press("Change role");
    browser.wait_for("Ada is a key manager now.");
    browser.press("Activity");
    browser.wait_for("made a key manager of ada@clinic.example");
}
