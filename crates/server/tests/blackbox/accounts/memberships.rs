//! One person in several organisations: chosen after signing in, switched in the same session, and none of the
//! organisations has power over the others, or learns of them.

use intake_edge as edge;
use intake_test_support::{Browser, Client, Clinic, Response, request};
use serde_json::json;

use crate::fixtures::{Member, PASSWORD, TestApp, accept, between, cookie, form_token, password_field, post, service};

const EMAIL: &str = "ada@clinic.example";
const OTHER_PASSWORD: &str = "four herons at the jetty";
const CHOOSE: &str = "/choose-organisation";

/// Two organisations with an administrator each, and Ada, who is a member of both.
struct Setup {
    app: TestApp,
    elsewhere: Clinic,
    grace: Member,
    eve: Member,
}

impl Setup {
    fn new() -> Self {
        let app = TestApp::start();
        let elsewhere = app.other_clinic();
        let grace = app.member("grace@clinic.example");
        let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
        drop(app.member(EMAIL));
        let joined = accept(&app.service.client(), &eve.invite(EMAIL), "Ada");
        assert_eq!((joined.status, joined.header("location")), (303, Some("/settings/api-keys")), "{}", joined.text());
        Self { app, elsewhere, grace, eve }
    }

    fn sign_in(&self, password: &str) -> Response {
        let form = format!("email=ada%40clinic.example&{}", password_field(password));
        post(&self.app.service.client(), "/sign-in", &[], &form)
    }

    /// Signs Ada in, and lets her choose this organisation.
    fn ada_in(&self, clinic: &Clinic) -> Member {
        let session = Undecided::of(self.app.service.client(), &self.sign_in(PASSWORD));
        assert_eq!(session.choose(clinic).status, 303);
        session.into_member()
    }
}

/// A session in which an organisation may have yet to be chosen.
struct Undecided {
    client: Client,
    cookie: String,
}

impl Undecided {
    fn of(client: Client, answer: &Response) -> Self {
        assert_eq!(answer.status, 303, "{}", answer.text());
        Self { client, cookie: cookie(answer) }
    }

    fn get(&self, path: &str) -> Response {
        self.client.send(&request("GET", path, &[("Cookie", &self.cookie)], b""))
    }

    fn choose(&self, clinic: &Clinic) -> Response {
        let form = format!("form_token={}&organisation={}", form_token(&self.get(CHOOSE).text()), clinic.organisation);
        post(&self.client, CHOOSE, &[("Cookie", &self.cookie)], &form)
    }

    fn into_unconfirmed(self) -> Member {
        let form_token = form_token(&self.get("/settings/account").text());
        Member { client: self.client, cookie: self.cookie, form_token }
    }

    fn into_member(self) -> Member {
        let mut member = self.into_unconfirmed();
        member.confirm_identity(PASSWORD, "");
        member
    }
}

fn names(page: &str) -> usize {
    page.matches("name=\"organisation\"").count()
}

#[test]
fn a_person_in_two_organisations_chooses_one_and_switches() {
    let setup = Setup::new();
    let undecided = Undecided::of(setup.app.service.client(), &setup.sign_in(PASSWORD));
    let led = undecided.get("/settings/members?x=1");
    assert_eq!(
        (led.status, led.header("location")),
        (303, Some("/choose-organisation?next=%2Fsettings%2Fmembers%3Fx%3D1"))
    );
    let page = undecided.get(CHOOSE).text();
    assert!(page.contains("<h1>Choose an organisation</h1>") && names(&page) == 2, "{page}");
    assert_eq!(setup.app.database.count("audit_entries WHERE action = 'signed_in'"), 0, "neither is recorded yet");

    let stranger = setup.app.other_clinic();
    assert_eq!(undecided.choose(&stranger).header("location"), Some(CHOOSE), "of neither");
    assert_eq!(undecided.get("/settings/account").status, 303);
    assert_eq!(undecided.choose(&setup.elsewhere).header("location"), Some("/settings/api-keys"));
    let ada = undecided.into_member();
    let members = |ada: &Member| ada.get("/settings/members").text();
    assert!(members(&ada).contains("eve@elsewhere") && !members(&ada).contains("grace@clinic"), "{}", members(&ada));
    assert!(members(&ada).contains("href=\"/choose-organisation\""), "there is a way to switch");
    assert!(!setup.eve.get("/settings/members").text().contains(CHOOSE), "not for those in one organisation");

    let switched = Undecided { client: ada.client.clone(), cookie: ada.cookie.clone() };
    assert_eq!(switched.choose(&setup.app.clinic).status, 303);
    let switched = switched.into_unconfirmed();
    assert!(members(&switched).contains("grace@clinic") && !members(&switched).contains("eve@elsewhere"));
    // A form that was opened before changes neither organisation.
    let stale = ada.post("/settings/members/invite", "email=mary%40third.example");
    assert!(stale.status == 403 && stale.text().contains("switched organisation"), "{}", stale.text());
    assert_eq!(switched.post("/settings/members/invite", "email=mary%40third.example").status, 200);
    let signed_in = |clinic: &Clinic| {
        let entries =
            format!("audit_entries WHERE action = 'signed_in' AND organisation_id = '{}'", clinic.organisation);
        setup.app.database.count(&entries)
    };
    assert_eq!((signed_in(&setup.app.clinic), signed_in(&setup.elsewhere)), (1, 1));
    assert_eq!(switched.post("/sign-out", "").status, 303);
    assert_eq!(ada.get("/settings/account").header("location"), Some("/sign-in?next=%2Fsettings%2Faccount"));
}

#[test]
fn the_role_is_that_of_the_chosen_organisation() {
    let setup = Setup::new();
    let role = setup.eve.page_about("Ada", "role");
    assert_eq!(setup.eve.post(&role, &format!("role=key-manager&{}", password_field(PASSWORD))).status, 303);
    assert_eq!(setup.ada_in(&setup.elsewhere).get("/settings/members").status, 403);
    assert_eq!(setup.ada_in(&setup.app.clinic).get("/settings/members").status, 200);
}

#[test]
fn ending_the_sessions_of_a_shared_account_reaches_no_further_than_the_own_organisation() {
    let setup = Setup::new();
    let (here, there) = (setup.ada_in(&setup.app.clinic), setup.ada_in(&setup.elsewhere));
    let undecided = Undecided::of(setup.app.service.client(), &setup.sign_in(PASSWORD));
    assert_eq!(setup.grace.confirm(&setup.grace.page_about("Ada", "end-sessions")).status, 303);
    assert_eq!((here.get("/settings/account").status, there.get("/settings/account").status), (303, 200));
    assert_eq!(undecided.get(CHOOSE).status, 303, "it could have chosen either");

    let switched = Undecided { client: there.client.clone(), cookie: there.cookie.clone() };
    assert_eq!(switched.choose(&setup.elsewhere).status, 303, "it stays where it is");
    assert_eq!(there.get("/settings/account").status, 200);
    let refused = switched.choose(&setup.app.clinic);
    assert_eq!(refused.header("location"), Some("/sign-in"), "{}", refused.text());
    assert_eq!(there.get("/settings/account").status, 303);
    assert_eq!(setup.ada_in(&setup.app.clinic).get("/settings/account").status, 200, "after a new sign-in");
    let noted = |clinic: &Clinic| {
        let entries =
            format!("audit_entries WHERE action = 'sessions_ended' AND organisation_id = '{}'", clinic.organisation);
        setup.app.database.count(&entries)
    };
    assert_eq!((noted(&setup.app.clinic), noted(&setup.elsewhere)), (1, 0));
}

#[test]
fn a_member_removed_from_one_organisation_can_sign_in_to_the_other_at_once() {
    let setup = Setup::new();
    let (here, there) = (setup.ada_in(&setup.app.clinic), setup.ada_in(&setup.elsewhere));
    let undecided = Undecided::of(setup.app.service.client(), &setup.sign_in(PASSWORD));
    let invitation = there.invite("mary@third.example");
    assert_eq!(setup.eve.confirm(&setup.eve.page_about("Ada", "remove")).status, 303);
    assert_eq!((here.get("/settings/account").status, there.get("/settings/account").status), (200, 303));
    assert_eq!(names(&undecided.get(CHOOSE).text()), 1);
    assert_eq!(accept(&setup.app.service.client(), &invitation, "Mary").status, 404, "made there");
    assert!(!setup.eve.get("/settings/members").text().contains(EMAIL));
    let again = Member::signed_in(setup.app.service.client(), &setup.sign_in(PASSWORD));
    assert!(again.get("/settings/members").text().contains("grace@clinic"), "nothing to choose");
    // The account goes with the last membership.
    assert_eq!(setup.grace.confirm(&setup.grace.page_about("Ada", "remove")).status, 303);
    assert_eq!(setup.app.database.count("members WHERE email LIKE 'ada@%'"), 0);
    assert_eq!(setup.sign_in(PASSWORD).status, 401);
}

#[test]
fn a_closed_organisation_leaves_its_people_in_the_others() {
    let setup = Setup::new();
    let there = setup.ada_in(&setup.elsewhere);
    let id = setup.elsewhere.organisation.to_string();
    let close = ["organisation", "close", &id];
    let output = close.iter().fold(service(&setup.app.database), |all, one| all.argument(one)).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(there.get("/settings/account").status, 303);
    assert_eq!(setup.app.database.count("members"), 2, "Eve's account is gone, Ada's is not");
    assert_eq!(setup.ada_in(&setup.app.clinic).get("/settings/account").status, 200);
}

#[test]
fn an_administrator_cannot_get_into_another_organisation_through_a_colleague() {
    let setup = Setup::new();
    for page in ["reset-password", "reset-second-factor"] {
        let answer = setup.eve.confirm(&setup.eve.page_about("Ada", page));
        if page == "reset-password" {
            assert!(answer.status == 409 && answer.text().contains("Only the service operator"), "{page}");
        }
        assert!(!answer.text().contains("/reset-password/"), "no link is shown");
    }
    assert_eq!(setup.app.database.count("password_resets"), 0);
    let ada = setup.ada_in(&setup.app.clinic);
    ada.turn_on_second_factor();
    let refused = setup.eve.confirm(&setup.eve.page_about("Ada", "reset-second-factor"));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(setup.app.database.count("members WHERE totp_secret IS NOT NULL"), 1);

    // A link that was shown while Grace was in one organisation.
    let link = setup.app.member("mary@clinic.example");
    let shown = setup.grace.confirm(&setup.grace.page_about("Mary", "reset-password")).text();
    let path = format!("/reset-password/{}", between(&shown, "/reset-password/", "\""));
    let open = || setup.app.service.client().send(&request("GET", &path, &[], b"")).status;
    assert_eq!(open(), 200);
    assert_eq!(accept(&setup.app.service.client(), &setup.eve.invite("mary@clinic.example"), "Mary").status, 303);
    assert_eq!(open(), 404, "since she joined another one");
    let used = post(&setup.app.service.client(), &path, &[], &password_field(OTHER_PASSWORD));
    assert_eq!((used.status, link.get("/settings/account").status), (404, 200));
    // An operator is trusted by both.
    assert_eq!(
        setup.app.service.client().send(&request("GET", &setup.app.reset_password(EMAIL), &[], b"")).status,
        200
    );
}

#[test]
fn an_invitation_looks_the_same_whether_or_not_its_guest_has_an_account() {
    let setup = Setup::new();
    let page = |email: &str, invitation: &str| {
        let page = setup.app.service.client().send(&request("GET", invitation, &[], b""));
        (page.status, page.text().replace(email, "guest").replace(invitation, "link"))
    };
    let [known, unknown] = ["eve@elsewhere.example", "nobody@elsewhere.example"].map(|email| {
        let answer = setup.grace.post("/settings/members/invite", &format!("email={}", email.replace('@', "%40")));
        let text = answer.text();
        let link = between(&text, "id=\"link\" value=\"", "\"");
        let rows = text.split("<tr>").filter(|row| row.contains(email)).count();
        (answer.status, rows, page(email, &link[link.find("/invitations/").unwrap()..]))
    });
    assert_eq!(known, unknown);
    // Nor do the ids, in which a time would be that of the account.
    let ids = "members WHERE substr(id::text, 15, 1) <> '4'";
    assert_eq!(setup.app.database.count(ids), 0);
}

#[test]
fn a_guest_with_an_account_joins_by_its_password_and_its_second_factor() {
    let app = TestApp::start();
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    let ada = app.member(EMAIL);
    let secret = ada.turn_on_second_factor();
    let invitation = eve.invite(EMAIL);
    let client = app.service.client();

    let right = accept(&client, &invitation, "Mallory");
    assert_eq!((right.status, right.header("location")), (303, Some("/sign-in/code")));
    assert_eq!(app.database.count("memberships"), 2, "the password alone is not enough");
    let waiting = cookie(&right);
    let page = client.send(&request("GET", "/sign-in/code", &[("Cookie", &waiting)], b"")).text();
    let send = |code: &str| {
        let form = format!("form_token={}&code={code}", form_token(&page));
        post(&client, "/sign-in/code", &[("Cookie", &waiting)], &form)
    };
    assert_eq!(send("000").status, 401);
    let joined = send(&secret.code_at(edge::now() + time::Duration::seconds(30)));
    assert_eq!((joined.status, joined.header("location")), (303, Some("/settings/api-keys")));
    let there = Member::signed_in(app.service.client(), &joined);
    let members = there.get("/settings/members").text();
    assert!(members.contains("eve@elsewhere") && members.contains(">Ada"), "in that organisation: {members}");
    assert!(!members.contains("Mallory"), "the account keeps its name");
    assert_eq!(accept(&client, &invitation, "Ada").status, 404, "it is used up");
}

#[test]
fn without_mail_no_answer_reveals_an_account_elsewhere_and_nobody_is_locked_out() {
    let app = TestApp::start();
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    drop(app.member(EMAIL));
    let client = app.service.client();
    let form = |password: &str, name: &str| format!("name={name}&{}", password_field(password));
    let [known, unknown] = [(EMAIL, "Mallory"), ("nobody@clinic.example", "Mary")].map(|(email, name)| {
        let joined = post(&client, &eve.invite(email), &[], &form(OTHER_PASSWORD, name));
        (joined.status, joined.header("location").unwrap().to_owned())
    });
    assert_eq!(known, unknown);
    assert_eq!(known, (303, "/settings/api-keys".to_owned()));

    let sign_in = |password: &str| {
        post(&client, "/sign-in", &[], &format!("email=ada%40clinic.example&{}", password_field(password)))
    };
    let members =
        |password: &str| Member::signed_in(app.service.client(), &sign_in(password)).get("/settings/members").text();
    assert!(members(PASSWORD).contains(">Ada") && !members(PASSWORD).contains("eve@"), "{}", members(PASSWORD));
    assert!(members(OTHER_PASSWORD).contains("eve@") && !members(OTHER_PASSWORD).contains(">Ada"));
    // One hash compares a password with both: the time of a sign-in reveals nothing either.
    let salts =
        "(SELECT split_part(password_hash, '$', 5) FROM members WHERE email = 'ada@clinic.example' GROUP BY 1) AS s";
    assert_eq!((app.database.count("members WHERE email = 'ada@clinic.example'"), app.database.count(salts)), (2, 1));
    assert_eq!(sign_in("another long password").status, 401);
    intake_test_support::wait_for("records of the failure", || {
        app.database.count("audit_entries WHERE action = 'sign_in_failed' AND subject = 'ada@clinic.example'") == 2
    });
    // Neither account is the other organisation's to change.
    let link = eve.confirm(&eve.page_about("Mallory", "reset-password")).text();
    let reset = format!("/reset-password/{}", between(&link, "/reset-password/", "\""));
    assert_eq!(post(&client, &reset, &[], &password_field("a third long password")).status, 303);
    assert_eq!(app.database.count(salts), 1);
    assert_eq!(eve.confirm(&eve.page_about("Mallory", "remove")).status, 303);
    assert_eq!((sign_in(PASSWORD).status, sign_in("a third long password").status), (303, 401));
}

#[test]
fn a_guest_learns_that_a_name_is_taken_before_the_second_step() {
    let app = TestApp::start();
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    drop(app.member_of(&elsewhere, "ada@elsewhere.example"));
    let ada = app.member(EMAIL);
    let invitation = eve.invite(EMAIL);
    let refused = || accept(&app.service.client(), &invitation, "Countess");
    let is_told = |refused: &Response| refused.status == 409 && refused.text().contains("has the name of your account");
    assert!(is_told(&refused()), "{}", refused().text());
    ada.turn_on_second_factor();
    assert!(is_told(&refused()), "{}", refused().text());
    assert_eq!(ada.post("/settings/account/name", "name=Countess").status, 303);
    assert_eq!(refused().header("location"), Some("/sign-in/code"), "the invitation is still open");
}

#[test]
fn a_second_factor_that_one_organisation_requires_stays_and_is_met_there_alone() {
    let setup = Setup::new();
    setup.eve.turn_on_second_factor();
    assert_eq!(setup.eve.confirm("/settings/policies/require-two-step-sign-in").status, 303);
    let here = setup.ada_in(&setup.app.clinic);
    let there = Undecided::of(setup.app.service.client(), &setup.sign_in(PASSWORD));
    assert_eq!(there.choose(&setup.elsewhere).status, 303);
    assert_eq!(here.get("/settings/members").status, 200);
    assert_eq!(there.get("/settings/members").header("location"), Some("/settings/account/second-factor"));
    assert!(there.get("/settings/account/second-factor").status != 404);
    assert_eq!(there.choose(&setup.app.clinic).status, 303, "there is a way back");
    assert_eq!(there.get("/settings/members").status, 200);
    here.turn_on_second_factor();
    let kept = here.confirm("/settings/account/second-factor/turn-off");
    assert_ne!(kept.status, 200);
    assert_eq!(setup.app.database.count("members WHERE totp_secret IS NOT NULL"), 2);
}

#[test]
fn changes_to_an_account_are_recorded_in_each_of_its_organisations() {
    let setup = Setup::new();
    let ada = setup.ada_in(&setup.app.clinic);
    let form = format!("{}&new_password={}", password_field(PASSWORD), OTHER_PASSWORD.replace(' ', "+"));
    assert_eq!(ada.post("/settings/account/password", &form).status, 303);
    assert_eq!(ada.post("/settings/account/name", "name=Countess").status, 303);
    for admin in [&setup.grace, &setup.eve] {
        let page = admin.get("/settings/activity").text();
        assert!(page.contains("changed the password of") && page.contains("Countess"), "{page}");
        assert!(admin.get("/settings/members").text().contains("Countess"));
    }
    // Names are unlike those of other members in each.
    let taken = ada.post("/settings/account/name", "name=Eve");
    assert_eq!(taken.status, 422, "{}", taken.text());
}

#[test]
fn an_organisation_is_chosen_in_a_browser_by_keyboard_and_without_scripts() {
    let Some(browser) = Browser::without_scripts() else { return };
    let setup = Setup::new();
    setup.app.sign_in(&browser, EMAIL, PASSWORD);
    browser.wait_for("Choose an organisation");
    // Past the link to the content, to the first organisation.
    browser.keys("\u{E004}\u{E004}\u{E007}");
    browser.wait_for("Switch organisation");
    browser.press("Switch organisation");
    browser.wait_for("Choose an organisation");
    browser.press("Sign out");
    browser.wait_for("New here?");
}

#[test]
fn ten_organisations_with_long_names_fit_on_every_screen() {
    use diesel::connection::SimpleConnection;

    let Some(browser) = Browser::start() else { return };
    let setup = Setup::new();
    let many = "UPDATE organisations SET name = repeat('Longname', 12);
        INSERT INTO organisations (id, name)
            SELECT gen_random_uuid(), n || ' Practice of Dr Hopper and Partners, ' || repeat('Upper Kangaroo Valley ', n)
            FROM generate_series(1, 8) AS n;
        INSERT INTO memberships SELECT organisations.id, members.id, 'administrator', now()
            FROM organisations, members WHERE email = 'ada@clinic.example' ON CONFLICT DO NOTHING";
    setup.app.database.connect().batch_execute(many).unwrap();
    setup.app.sign_in(&browser, EMAIL, PASSWORD);
    browser.wait_for("Choose an organisation");
    for width in [360, 768, 1_280, 1_920] {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.tell("Emulation.setDeviceMetricsOverride", &metrics);
        intake_test_support::wait_for(&format!("a page within {width} px"), || {
            browser.run("return document.documentElement.scrollWidth").as_u64().unwrap() <= width
        });
    }
}
