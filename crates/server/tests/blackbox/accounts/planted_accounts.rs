//! Accounts that a stranger made under a person's address. The person arrives in every way there is, with and without a
//! mail server, with passwords on, off, and on again: the stranger never gets into the person's organisation.

use diesel::connection::SimpleConnection;
use intake_test_support::{Response, TestDatabase, request};

use crate::accounts::single_sign_on::made_up_provider::MadeUpProvider;
use crate::accounts::single_sign_on::signed_in;
use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{Member, PASSWORD, TestApp, between, password_field, post, service};

const VICTIMS: &str = "Victim Clinic";
const VICTIMS_PASSWORD: &str = "four herons at the jetty";

/// Origin of an account whose address nobody has proved.
#[derive(Clone, Copy, Debug)]
enum Planted {
    /// An administrator invited the address, and opened the link that was shown.
    ByInvitation,
    /// The same, and turned on two-step sign-in.
    WithSecondFactor,
    /// A member changed the own address.
    ByChange,
    /// The same in a session that began by single sign-on.
    ByChangeAfterProvider,
}

/// Way in which the owner of the address arrives.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// Single sign-on, without an invitation.
    SignsIn,
    /// An invitation, and single sign-on.
    JoinsByProvider,
    /// An invitation, and a password.
    JoinsByPassword,
    /// "Forgotten password?", and then an invitation and the new password.
    Resets,
}

const ALL_PLANTED: [Planted; 4] =
    [Planted::ByInvitation, Planted::WithSecondFactor, Planted::ByChange, Planted::ByChangeAfterProvider];
const ALL_ARRIVALS: [Arrival; 4] =
    [Arrival::SignsIn, Arrival::JoinsByProvider, Arrival::JoinsByPassword, Arrival::Resets];

/// An account under another person's address, and all sessions that its maker holds.
struct Plant {
    email: String,
    sessions: Vec<Member>,
}

fn planted(app: &TestApp, provider: &MadeUpProvider, planted: Planted, email: &str) -> Plant {
    let admin = app.member_of(&app.other_clinic(), &format!("admin.{email}"));
    let change = format!("email={}&{}", email.replace('@', "%40"), password_field(PASSWORD));
    let own = format!("mal.{email}");
    let sessions = match planted {
        Planted::ByInvitation => vec![Member::join(app.service.client(), &admin.invite(email), "Mal")],
        Planted::WithSecondFactor => {
            let mal = Member::join(app.service.client(), &admin.invite(email), "Mal");
            drop(mal.turn_on_second_factor());
            vec![mal]
        }
        Planted::ByChange => {
            let mal = Member::join(app.service.client(), &admin.invite(&own), "Mal");
            assert_eq!(mal.post("/settings/account/email", &change).status, 303);
            vec![mal]
        }
        Planted::ByChangeAfterProvider => {
            let mut mal = Member::join(app.service.client(), &admin.invite(&own), "Mal");
            assert_eq!(provider.link(app, &mal, &own).status, 303);
            mal = signed_in(app, &provider.sign_in(app, &own));
            assert_eq!(mal.confirm_identity(PASSWORD, "").status, 303);
            assert_eq!(mal.post("/settings/account/email", &change).status, 303);
            vec![mal, signed_in(app, &provider.sign_in(app, &own))]
        }
    };
    Plant { email: email.to_owned(), sessions }
}

fn form_of(email: &str, password: &str) -> String {
    format!("email={}&{}", email.replace('@', "%40"), password_field(password))
}

impl Plant {
    /// Its maker tries every session, and the password.
    fn assert_kept_out(&self, app: &TestApp, case: &str) {
        let by_password = post(&app.service.client(), "/sign-in", &[], &form_of(&self.email, PASSWORD));
        let cookies = self.sessions.iter().map(|session| session.cookie.clone());
        let by_password = (by_password.status == 303).then(|| crate::fixtures::cookie(&by_password));
        for cookie in cookies.chain(by_password) {
            for path in ["/settings/api-keys", "/settings/members", "/choose-organisation"] {
                let page = app.service.client().send(&request("GET", path, &[("Cookie", &cookie)], b""));
                assert!(!page.text().contains(VICTIMS), "{case}: {path}: {}", page.text());
            }
        }
    }
}

struct Setting {
    app: TestApp,
    provider: MadeUpProvider,
    mails: Option<MailServer>,
}

impl Setting {
    fn restart(&mut self, passwords: &str) {
        let settings = self.provider.settings(service(&self.app.database)).setting("INTAKE_PASSWORDS", passwords);
        let settings = match &self.mails {
            Some(mails) => with_mails(settings, &mails.url()),
            None => settings,
        };
        assert!(self.app.service.stop().success());
        self.app.service = settings.start();
    }

    /// An invitation of an administrator of the victim's own organisation. With a mail server, it is mailed.
    fn invited(&self, email: &str) -> String {
        let clinic = self.app.other_clinic();
        let named = format!("UPDATE organisations SET name = '{VICTIMS}' WHERE id = '{}'", clinic.organisation);
        self.app.database.connect().batch_execute(&named).unwrap();
        let head = format!("head.{}.{email}", clinic.organisation);
        let mut head_member = signed_in(
            &self.app,
            &self.provider.go(&self.app, &format!("{}/provider", self.app.invite_into(&clinic, &head)), "", &head),
        );
        let confirmed = self.provider.go(&self.app, "/settings/confirm/provider", &head_member.cookie, &head);
        head_member.go_on(&confirmed);
        match &self.mails {
            None => head_member.invite(email),
            Some(mails) => {
                let form = format!("email={}&role=administrator", email.replace('@', "%40"));
                assert_eq!(head_member.post("/settings/members/invite", &form).status, 200);
                let mail = mails.wait_for_mail(email, &format!("Invitation to {VICTIMS}"));
                format!("/invitations/{}", between(&mail, "/invitations/", "\n"))
            }
        }
    }

    fn join(&self, invitation: &str, password: &str) -> Response {
        post(&self.app.service.client(), invitation, &[], &format!("name=Vic&{}", password_field(password)))
    }

    fn assert_in(&self, answer: &Response, case: &str) {
        assert_eq!(answer.status, 303, "{case}: {}", answer.text());
        assert_eq!(answer.header("location"), Some("/settings/api-keys"), "{case}");
        let page = Member::signed_in(self.app.service.client(), answer).get("/settings/api-keys").text();
        assert!(page.contains(VICTIMS), "{case}: {page}");
    }

    /// The person arrives, and gets in wherever the setting lets anybody in that way.
    fn arrive(&self, arrival: Arrival, email: &str, passwords: &str, case: &str) {
        let has_passwords = passwords == "on";
        match arrival {
            Arrival::SignsIn => {
                let refused = self.provider.sign_in(&self.app, email);
                assert!(refused.status == 403 && refused.text().contains("No account for"), "{case}");
            }
            Arrival::JoinsByProvider => {
                let invitation = self.invited(email);
                let joined = self.provider.go(&self.app, &format!("{invitation}/provider"), "", email);
                self.assert_in(&joined, case);
                self.assert_in(&self.provider.sign_in(&self.app, email), case);
            }
            Arrival::JoinsByPassword => {
                let invitation = self.invited(email);
                let joined = self.join(&invitation, VICTIMS_PASSWORD);
                match has_passwords {
                    true => self.assert_in(&joined, case),
                    false => assert_eq!(joined.status, 403, "{case}"),
                }
            }
            Arrival::Resets => {
                let asked = format!("email={}", email.replace('@', "%40"));
                let asked = post(&self.app.service.client(), "/forgotten-password", &[], &asked);
                let Some(mails) = self.mails.as_ref().filter(|_| has_passwords) else {
                    assert_ne!(asked.status, 303, "{case}");
                    return;
                };
                let mail = mails.wait_for_mail(email, "Choose a new password");
                let link = format!("/reset-password/{}", between(&mail, "/reset-password/", "\n"));
                let done = post(&self.app.service.client(), &link, &[], &password_field(VICTIMS_PASSWORD));
                assert_eq!(done.status, 303, "{case}: {}", done.text());
                let joined = self.join(&self.invited(email), VICTIMS_PASSWORD);
                // The account still asks for the second factor that its maker turned on, who cannot get in, either.
                if joined.header("location") != Some("/sign-in/code") {
                    self.assert_in(&joined, case);
                }
            }
        }
    }
}

#[test]
fn an_account_under_anothers_address_never_leads_into_their_organisation() {
    assert_kept_out_in_every_case(None);
}

#[test]
fn an_account_under_anothers_address_never_leads_into_an_organisation_that_mails() {
    let Some(mails) = MailServer::start() else { return };
    assert_kept_out_in_every_case(Some(mails));
}

/// Tries every account and arrival; the mail server comes later: while there was none, nobody proved an address.
fn assert_kept_out_in_every_case(mails: Option<MailServer>) {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let mut setting = Setting { app, provider, mails: None };
    let mut plants = Vec::new();
    for passwords in ["on", "off"] {
        for (number, planted_how) in ALL_PLANTED.into_iter().enumerate() {
            for arrival in ALL_ARRIVALS {
                let email = format!("{passwords}.{number}.{arrival:?}@clinic.example").to_lowercase();
                let plant = planted(&setting.app, &setting.provider, planted_how, &email);
                let case = format!("{planted_how:?}, {arrival:?}, passwords {passwords}");
                plants.push((plant, arrival, passwords, case));
            }
        }
    }
    setting.mails = mails;
    for passwords in ["on", "off"] {
        setting.restart(passwords);
        for (plant, arrival, _, case) in plants.iter().filter(|(_, _, when, _)| *when == passwords) {
            setting.arrive(*arrival, &plant.email, passwords, case);
            plant.assert_kept_out(&setting.app, case);
        }
    }
    setting.restart("on");
    for (plant, _, _, case) in &plants {
        plant.assert_kept_out(&setting.app, &format!("{case}, on again"));
    }
}

/// The first person at the provider with a proved address gets the account, and an earlier owner is out.
#[test]
fn the_first_sign_in_by_a_proved_address_takes_the_account_over_and_another_person_is_refused() {
    let Some(mails) = MailServer::start() else { return };
    let provider = MadeUpProvider::start();
    let app = TestApp::start_with(|builder| with_mails(provider.settings(builder), &mails.url()));
    let head = app.member("head@clinic.example");
    let form = "email=ann%40clinic.example&role=administrator";
    assert_eq!(head.post("/settings/members/invite", form).status, 200);
    let mail = mails.wait_for_mail("ann@clinic.example", "Invitation to Test Clinic");
    let invitation = format!("/invitations/{}", between(&mail, "/invitations/", "\n"));
    let by_password = Member::join(app.service.client(), &invitation, "Ann");
    assert_eq!(proved_by(&app.database, "ann@clinic.example"), "mail");

    let ann = signed_in(&app, &provider.sign_in(&app, "ann@clinic.example"));
    assert_eq!(by_password.get("/settings/account").status, 303, "the earlier session has ended");
    let again = post(&app.service.client(), "/sign-in", &[], &form_of("ann@clinic.example", PASSWORD));
    assert_eq!(again.status, 401, "the earlier password may be that of an earlier owner of the mailbox");
    assert!(ann.get("/settings/account").text().contains("<strong>Linked.</strong>"));

    let round = crate::accounts::single_sign_on::made_up_provider::begin(&app, "/sign-in/provider", "");
    let mut claims = provider.truth("ann@clinic.example", &round);
    claims["sub"] = "another".into();
    provider.plan().claims = claims;
    let refused = crate::accounts::single_sign_on::made_up_provider::come_back(&app, &round, "");
    let page = refused.text();
    assert!(refused.status == 403 && page.contains("remove you under Members"), "{page}");
    let activity = ann.get("/settings/activity").text();
    assert!(activity.contains("was refused single sign-on, as another person with the email"), "{activity}");
    assert!(activity.contains("linked single sign-on to"), "{activity}");
}

fn proved_by(database: &TestDatabase, email: &str) -> String {
    ["mail", "provider", "operator"]
        .into_iter()
        .find(|by| {
            let proved = format!("members WHERE email = '{email}' AND email_proved_by = '{by}'");
            database.count(&format!("{proved} AND email_proved_at IS NOT NULL")) == 1
        })
        .unwrap_or("nobody")
        .to_owned()
}

/// An installation without mail moves to single sign-on: members link their accounts, and the operator the rest.
#[test]
fn an_operator_lets_single_sign_on_find_an_account_and_everything_in_it_ends() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ann = app.member("ann@clinic.example");
    drop(ann.turn_on_second_factor());
    app.database.connect().batch_execute(crate::dashboard::pages::PASSKEY_OF_EACH_MEMBER).unwrap();
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 403);
    let id = app.clinic.organisation.to_string();
    let link = |email: &str| {
        let arguments = ["member", "link", "--organisation", &id, "--email", email];
        arguments.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run()
    };
    assert_eq!(link("nobody@clinic.example").status.code(), Some(1));
    let linked = link("ann@clinic.example");
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    assert_eq!(proved_by(&app.database, "ann@clinic.example"), "operator");
    assert_eq!(ann.get("/settings/account").status, 303);
    for rest in ["sessions", "passkeys", "recovery_codes", "members WHERE totp_secret IS NOT NULL"] {
        assert_eq!(app.database.count(rest), 0, "{rest}");
    }
    let ann = signed_in(&app, &provider.sign_in(&app, "ann@clinic.example"));
    assert!(ann.get("/settings/activity").text().contains("confirmed the email of"));
    assert_eq!(proved_by(&app.database, "ann@clinic.example"), "provider");
}

#[test]
fn an_account_is_linked_from_inside_to_a_person_with_its_address_alone() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ann = app.member("ann@clinic.example");
    let other = Member::signed_in(
        app.service.client(),
        &post(&app.service.client(), "/sign-in", &[], &form_of("ann@clinic.example", PASSWORD)),
    );
    assert_eq!(
        provider_begin(&app, &other).header("location"),
        Some("/settings/confirm?next=%2Fsettings%2Faccount%2Fprovider")
    );
    assert!(ann.get("/settings/account/provider").text().contains("Continue with Harbour Login"));
    let refused = provider.link(&app, &ann, "bob@clinic.example");
    assert!(refused.status == 403 && refused.text().contains("Your account wasn&#39;t linked"), "{}", refused.text());
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 403);

    assert_eq!(provider.link(&app, &ann, "ann@clinic.example").header("location"), Some("/settings/account"));
    assert_eq!(ann.get("/settings/account").status, 200, "the session in which it was linked goes on");
    assert_eq!(other.get("/settings/account").status, 303, "all others have ended");
    assert_eq!(proved_by(&app.database, "ann@clinic.example"), "provider");
    let by_password = post(&app.service.client(), "/sign-in", &[], &form_of("ann@clinic.example", PASSWORD));
    assert_eq!(by_password.status, 303, "the password still works");
    drop(signed_in(&app, &provider.sign_in(&app, "ann@clinic.example")));
}

fn provider_begin(app: &TestApp, member: &Member) -> Response {
    let headers = [("Cookie", member.cookie.as_str())];
    app.service.client().send(&request("GET", "/settings/account/provider?begin=yes", &headers, b""))
}

/// A mailed link proves the address, and then nothing that a stranger has put into the account stays. By a link that
/// strangers can ask for, a second factor stays, or a mailbox alone would get past it: so does the lack of a proof.
#[test]
fn a_mailed_reset_link_proves_an_address_and_only_one_that_a_person_made_removes_factors() {
    let Some(mails) = MailServer::start() else { return };
    let app = TestApp::start_with(|builder| with_mails(builder, &mails.url()));
    let head = app.member("head@clinic.example");
    let reset = |email: &str| {
        let mail = mails.wait_for_mail(email, "Choose a new password");
        let link = format!("/reset-password/{}", between(&mail, "/reset-password/", "\n"));
        let done = post(&app.service.client(), &link, &[], &password_field(VICTIMS_PASSWORD));
        assert_eq!(done.status, 303, "{}", done.text());
    };
    let ask = |email: &str| {
        let asked = format!("email={}", email.replace('@', "%40"));
        assert_eq!(post(&app.service.client(), "/forgotten-password", &[], &asked).status, 200);
    };
    drop(app.member("ann@clinic.example"));
    ask("ann@clinic.example");
    reset("ann@clinic.example");
    assert_eq!(proved_by(&app.database, "ann@clinic.example"), "mail");

    for email in ["bob@clinic.example", "cat@clinic.example"] {
        drop(app.member(email).turn_on_second_factor());
    }
    let factors = || app.database.count("members WHERE totp_secret IS NOT NULL");
    ask("bob@clinic.example");
    reset("bob@clinic.example");
    assert_eq!((proved_by(&app.database, "bob@clinic.example"), factors()), ("nobody".to_owned(), 2));
    let link = head.page_about("Cat", "reset-password");
    assert_eq!(head.post(&link, "").status, 200);
    reset("cat@clinic.example");
    assert_eq!((proved_by(&app.database, "cat@clinic.example"), factors()), ("mail".to_owned(), 1));
    // Once the address is proved, the second factor is its owner's.
    let cat = post(&app.service.client(), "/sign-in", &[], &form_of("cat@clinic.example", VICTIMS_PASSWORD));
    let mut cat = Member::signed_in(app.service.client(), &cat);
    assert_eq!(cat.confirm_identity(VICTIMS_PASSWORD, "").status, 303);
    drop(cat.turn_on_second_factor());
    assert_eq!(head.post(&link, "").status, 200);
    let mails_to_cat =
        || mails.mails().into_iter().filter(|mail| mail.contains("To: cat@") && mail.contains("/reset-password/"));
    intake_test_support::wait_for("the second link", || mails_to_cat().count() == 2);
    let opened = mails_to_cat().map(|mail| format!("/reset-password/{}", between(&mail, "/reset-password/", "\n")));
    let statuses: Vec<_> =
        opened.map(|link| post(&app.service.client(), &link, &[], &password_field(PASSWORD)).status).collect();
    assert!(statuses.contains(&303), "{statuses:?}");
    assert_eq!(factors(), 2);
}
