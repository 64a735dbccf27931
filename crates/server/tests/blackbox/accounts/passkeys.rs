//! Passkeys: as the second step and as the only step of signing in, with a device that Chromium pretends to have, and
//! by hand, as an attacker would.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, Client, Response, request};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

use crate::fixtures::{
    Member, PASSWORD, TestApp, accept, between, confirm_identity, cookie, form_token, password_field, post, unconfirm,
};

const PRESENT: u8 = 0b001;
pub(crate) const PRESENT_AND_VERIFIED: u8 = 0b101;

fn sign_out(browser: &Browser) {
    browser.press("Sign out");
    browser.wait_for("New here?");
}

/// Adds a passkey, from the account's page.
fn add(browser: &Browser, name: &str) {
    browser.press("Add a passkey");
    browser.fill("Name", name);
    browser.press("Add passkey");
}

/// Joins as Ada, and adds the first passkey after a confirmation.
fn join_with_passkey(app: &TestApp, browser: &Browser) {
    app.join(browser, "Ada", "ada@clinic.example");
    browser.press("Account");
    browser.press("Add a passkey");
    confirm_identity(browser);
    browser.fill("Name", "Work laptop");
    browser.press("Add passkey");
    browser.wait_for("The passkey was added.");
}

#[test]
fn a_passkey_is_added_and_is_the_second_step_and_the_only_one() {
    let Some(browser) = Browser::start() else { return };
    let device = browser.add_authenticator();
    let app = TestApp::start();
    join_with_passkey(&app, &browser);
    browser.wait_for("On, by passkey.");
    browser.wait_for("Never");
    assert!(browser.text().contains("Work laptop"));

    // Else the device would answer the page for signing in by itself.
    let answers_by_itself = |is_on: bool| {
        let device = json!({ "authenticatorId": device, "enabled": is_on });
        browser.tell("WebAuthn.setAutomaticPresenceSimulation", &device);
    };
    answers_by_itself(false);
    sign_out(&browser);
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("Use your passkey");
    answers_by_itself(true);
    browser.set_user_verified(&device, false);
    browser.press("Use passkey");
    browser.wait_for("The passkey was not used.");
    browser.set_user_verified(&device, true);
    browser.press("Use passkey");
    browser.wait_for("No API keys yet.");
    browser.press("Account");
    browser.wait_for("Work laptop");
    assert!(!browser.text().contains("Never"));

    answers_by_itself(false);
    sign_out(&browser);
    browser.press("Use a passkey instead");
    browser.wait_for("Your browser will ask");
    answers_by_itself(true);
    browser.press("Use passkey");
    browser.wait_for("No API keys yet.");

    browser.press("Account");
    browser.press("Add a passkey");
    browser.wait_for("Confirm it's you");
    assert!(!browser.has("Your password"), "the password alone is not enough");
    browser.press("Use passkey");
    browser.wait_for("For example “Work laptop”");
    browser.press("Cancel");
    add(&browser, "The same");
    browser.wait_for("This device already has a passkey of yours.");
    browser.press("Cancel");
    browser.press("Remove passkey Work laptop");
    browser.wait_for("Remove the passkey “Work laptop”?");
    browser.press("Remove passkey");
    browser.wait_for("The passkey was removed, and");
    browser.press("Activity");
    for line in ["added the passkey Work laptop", "signed in with a passkey as ada@", "removed the passkey Work laptop"]
    {
        browser.wait_for(line);
    }
    answers_by_itself(false);
    sign_out(&browser);
    browser.press("Use a passkey instead");
    browser.wait_for("Your browser will ask");
    answers_by_itself(true);
    browser.press("Use passkey");
    browser.wait_for("We don't recognise this passkey.");
    answers_by_itself(false);
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("No API keys yet.");
}

#[test]
fn the_field_for_the_email_offers_passkeys_and_leads_to_the_page_that_was_asked_for() {
    let Some(browser) = Browser::start() else { return };
    let _device = browser.add_authenticator();
    let app = TestApp::start();
    join_with_passkey(&app, &browser);
    app.database.connect().batch_execute("DELETE FROM sessions").unwrap();
    // The device chooses its passkey by itself, as a person does in the field.
    browser.open(&app.url("/settings/activity"));
    browser.wait_for("signed in with a passkey as ada@");
    assert_eq!(browser.url(), app.url("/settings/activity"));
}

#[test]
fn the_page_says_what_passkeys_need_where_scripts_are_turned_off() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/sign-in"));
    browser.press("Use a passkey instead");
    browser.wait_for("Passkeys need JavaScript");
}

/// A device without a browser, which signs anything.
pub(crate) struct Device {
    pair: EcdsaKeyPair,
    credential: Vec<u8>,
}

impl Device {
    /// A device whose passkey the member with this address has.
    pub(crate) fn of(app: &TestApp, email: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &random).unwrap();
        let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let key = hexadecimal(pair.public_key().as_ref());
        let sql = format!(
            "INSERT INTO passkeys (digest, member_id, credential, public_key, name, created_at)
             SELECT sha256('{email}'), id, '{email}', '\\x3059301306072a8648ce3d020106082a8648ce3d030107034200{key}', 'Phone', now()
             FROM members WHERE email = '{email}'"
        );
        app.database.connect().batch_execute(&sql).unwrap();
        Self { pair, credential: email.as_bytes().to_vec() }
    }

    /// The form of a use of the passkey.
    pub(crate) fn sign(&self, page: &str, origin: &str, flags: u8) -> String {
        let challenge = between(page, "data-challenge=\"", "\"");
        let client_data =
            format!(r#"{{"type":"webauthn.get","challenge":"{challenge}","origin":"{origin}","crossOrigin":false}}"#);
        let mut data = digest(&SHA256, b"localhost").as_ref().to_vec();
        data.push(flags);
        data.extend([0; 4]);
        let message = [data.as_slice(), digest(&SHA256, client_data.as_bytes()).as_ref()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).unwrap();
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        format!(
            "form_token={}&credential={}&client_data={}&authenticator_data={}&signature={}",
            form_token(page),
            encode(&self.credential),
            encode(client_data.as_bytes()),
            encode(&data),
            encode(signature.as_ref())
        )
    }
}

/// A sign-in that waits for a passkey.
pub(crate) struct SignIn {
    client: Client,
    cookie: String,
    pub(crate) page: String,
}

impl SignIn {
    pub(crate) fn alone(app: &TestApp) -> Self {
        let client = app.service.client();
        let begun = post(&client, "/sign-in/passkey", &[], "");
        assert_eq!((begun.status, begun.header("location")), (303, Some("/sign-in/passkey")));
        Self::new(client, &begun, "/sign-in/passkey")
    }

    pub(crate) fn after_the_password(app: &TestApp, email: &str) -> Self {
        let client = app.service.client();
        let form = format!("email={}&{}", email.replace('@', "%40"), password_field(PASSWORD));
        let begun = post(&client, "/sign-in", &[], &form);
        assert_eq!((begun.status, begun.header("location")), (303, Some("/sign-in/code")));
        Self::new(client, &begun, "/sign-in/code")
    }

    fn new(client: Client, begun: &Response, path: &str) -> Self {
        let cookie = cookie(begun);
        let page = client.send(&request("GET", path, &[("Cookie", &cookie)], b"")).text();
        Self { client, cookie, page }
    }

    pub(crate) fn send(&self, path: &str, form: &str) -> Response {
        post(&self.client, path, &[("Cookie", &self.cookie)], form)
    }
}

#[test]
fn a_guest_with_a_passkey_joins_by_it_after_the_password() {
    let app = TestApp::start();
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    drop(app.member("ada@clinic.example"));
    let device = Device::of(&app, "ada@clinic.example");
    let invitation = eve.invite("ada@clinic.example");
    let joined = accept(&app.service.client(), &invitation, "Ada");
    assert_eq!((joined.status, joined.header("location")), (303, Some("/sign-in/code")));
    let waiting = SignIn::new(app.service.client(), &joined, "/sign-in/code");
    let unverified = device.sign(&waiting.page, &app.url(""), PRESENT);
    assert_eq!(waiting.send("/sign-in/code/passkey", &unverified).status, 401);
    assert_eq!(app.database.count("memberships"), 2);
    let signed = waiting.send("/sign-in/code/passkey", &device.sign(&waiting.page, &app.url(""), PRESENT_AND_VERIFIED));
    assert_eq!((signed.status, signed.header("location")), (303, Some("/settings/api-keys")), "{}", signed.text());
    let members = Member::signed_in(app.service.client(), &signed).get("/settings/members").text();
    assert!(members.contains("eve@elsewhere") && members.contains(">Ada"), "{members}");
    assert_eq!(accept(&app.service.client(), &invitation, "Ada").status, 404, "it is used up");
}

#[test]
fn a_challenge_is_signed_here_by_a_verified_user_and_once() {
    let app = TestApp::start();
    drop(app.member("ada@clinic.example"));
    let device = Device::of(&app, "ada@clinic.example");
    let (origin, sessions) = (app.url(""), app.database.count("sessions"));
    let (one, other) = (SignIn::alone(&app), SignIn::alone(&app));
    let use_it = |form: &str| one.send("/sign-in/passkey/use", form);
    for (what, form) in [
        ("another origin", device.sign(&one.page, "https://evil.example", PRESENT_AND_VERIFIED)),
        ("an unverified user", device.sign(&one.page, &origin, PRESENT)),
        ("nobody there", device.sign(&one.page, &origin, 0)),
        (
            "another challenge",
            device
                .sign(&other.page, &origin, PRESENT_AND_VERIFIED)
                .replace(&form_token(&other.page), &form_token(&one.page)),
        ),
        (
            "another signature",
            device.sign(&one.page, &origin, PRESENT_AND_VERIFIED).replace("&signature=", "&signature=AAAA"),
        ),
    ] {
        let refused = use_it(&form);
        assert!(refused.status == 401 && refused.header("set-cookie").is_none(), "{what}");
    }
    let right = device.sign(&one.page, &origin, PRESENT_AND_VERIFIED);
    assert_eq!(other.send("/sign-in/passkey/use", &right).status, 403, "the form of another sign-in");
    assert_eq!(app.database.count("sessions"), sessions);

    let member = Member::signed_in(app.service.client(), &use_it(&right));
    assert_eq!(member.get("/settings/api-keys").status, 200);
    let again = use_it(&right);
    assert_eq!((again.status, again.header("location")), (303, Some("/sign-in")), "once is for good");
    assert_eq!(app.database.count("sessions"), sessions + 1);
    let late = "UPDATE passkey_challenges SET started_at = now() - interval '10 minutes 1 second'";
    app.database.connect().batch_execute(late).unwrap();
    let late = other.send("/sign-in/passkey/use", &device.sign(&other.page, &origin, PRESENT_AND_VERIFIED));
    assert_eq!((late.status, late.header("location")), (303, Some("/sign-in")));
    assert_eq!(app.database.count("audit_entries WHERE action = 'signed_in_by_passkey'"), 1);
    let token = one.cookie.split_once('=').unwrap().1;
    assert_eq!(app.database.tables_that_hold(token), [""; 0]);
}

#[test]
fn after_the_password_a_passkey_of_the_same_member_is_needed() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace"));
    let (of_ada, of_grace) = (Device::of(&app, "ada@clinic.example"), Device::of(&app, "grace@clinic.example"));
    let sign_in = SignIn::after_the_password(&app, "ada@clinic.example");
    assert!(!sign_in.page.contains("name=\"code\""), "there is no app");
    let send = |form: &str| sign_in.send("/sign-in/code/passkey", form);
    assert_eq!(send(&of_grace.sign(&sign_in.page, &app.url(""), PRESENT_AND_VERIFIED)).status, 401);
    assert_eq!(send(&of_ada.sign(&sign_in.page, &app.url(""), PRESENT)).status, 401);
    assert_eq!(
        sign_in.send("/sign-in/code", &format!("form_token={}&code=000000", form_token(&sign_in.page))).status,
        401
    );
    let right = of_ada.sign(&sign_in.page, &app.url(""), PRESENT_AND_VERIFIED);
    assert_eq!(send(&right).header("location"), Some("/settings/api-keys"));
    assert_eq!(send(&right).header("location"), Some("/sign-in"), "once is for good");
    assert_eq!(app.database.count("passkeys WHERE last_used_at IS NOT NULL"), 1);
}

#[test]
fn a_passkey_satisfies_the_requirement_and_an_operator_helps_when_it_is_lost() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Device::of(&app, "ada@clinic.example"));
    assert_eq!(ada.confirm("/settings/policies/require-two-step-sign-in").status, 303);
    assert_eq!(ada.get("/settings/members").status, 200);
    let id = app.clinic.organisation.to_string();
    let arguments = ["member", "reset-second-factor", "--organisation", &id, "--email", "ada@clinic.example"];
    let command = arguments.iter().fold(crate::fixtures::service(&app.database), |all, one| all.argument(one));
    assert!(command.run().status.success());
    assert_eq!(app.database.count("passkeys"), 0);
    assert_eq!(ada.get("/settings/members").header("location"), Some("/sign-in?next=%2Fsettings%2Fmembers"));
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let cookie = cookie(&post(&ada.client, "/sign-in", &[], &form));
    let ada = Member { cookie, ..ada };
    assert_eq!(ada.get("/settings/members").header("location"), Some("/settings/account/second-factor"));
}

#[test]
fn a_passkey_alone_confirms_and_each_signature_confirms_once() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    drop(Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace"));
    let (of_ada, of_grace) = (Device::of(&app, "ada@clinic.example"), Device::of(&app, "grace@clinic.example"));
    unconfirm(&app);
    let led = ada.get("/settings/account/passkeys/new");
    let to = "/settings/confirm?next=%2Fsettings%2Faccount%2Fpasskeys%2Fnew";
    assert_eq!((led.status, led.header("location")), (303, Some(to)));
    let page = ada.get(to).text();
    assert!(!page.contains("name=\"password\""), "{page}");
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 422, "the password is not enough");
    assert_eq!(ada.confirm_identity(PASSWORD, "000000").status, 422);
    let send = |ada: &Member, device: &Device, flags: u8| {
        let form = device.sign(&page, &app.url(""), flags);
        post(&ada.client, "/settings/confirm/passkey", &[("Cookie", &ada.cookie)], &form)
    };
    assert_eq!(send(&ada, &of_ada, PRESENT).status, 422, "an unverified user");
    assert_eq!(send(&ada, &of_grace, PRESENT_AND_VERIFIED).status, 422, "another member's passkey");
    assert_eq!(ada.get("/settings/account/passkeys/new").status, 303);
    let confirmed = send(&ada, &of_ada, PRESENT_AND_VERIFIED);
    assert_eq!(confirmed.status, 303);
    ada.go_on(&confirmed);
    assert_eq!(ada.get("/settings/account/passkeys/new").status, 200);
    let late = "UPDATE sessions SET confirmed_at = now() - interval '16 minutes' WHERE confirmed_at IS NOT NULL";
    app.database.connect().batch_execute(late).unwrap();
    assert_eq!(send(&ada, &of_ada, PRESENT_AND_VERIFIED).status, 403, "the signature of an earlier confirmation");
    assert_eq!(ada.get("/settings/account/passkeys/new").status, 303);
}

#[test]
fn confirming_by_a_passkey_makes_the_invitation_that_was_asked_for_once() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    let device = Device::of(&app, "ada@clinic.example");
    unconfirm(&app);
    let invitations = || app.database.count("invitations WHERE email = 'sam@clinic.example'");
    let asked = "email=sam%40clinic.example&role=administrator";
    let interrupted = ada.post("/settings/members/invite", asked);
    let draft = interrupted.all("set-cookie").iter().find(|cookie| cookie.contains("-draft=")).unwrap().to_string();
    let cookies = format!("{}; {}", ada.cookie, draft.split(';').next().unwrap());
    let confirm = interrupted.header("location").unwrap().to_owned();
    let page = ada.client.send(&request("GET", &confirm, &[("Cookie", &cookies)], b"")).text();
    assert!(page.contains("Confirm to invite sam@clinic.example as an administrator."), "{page}");
    assert!(!page.contains("send the form again"), "{page}");
    let form = page.split("data-passkey=\"get\"").next().unwrap().rsplit("action=\"").next().unwrap();
    let action = form.split('"').next().unwrap().to_owned();
    let fields = |page: &str| {
        let form = page.split_once("data-passkey=\"get\"").unwrap().1.split("</form>").next().unwrap().to_owned();
        let value = |name: &str| between(&form, &format!("name=\"{name}\" value=\""), "\"").replace('@', "%40");
        format!("email={}&role={}", value("email"), value("role"))
    };
    let send = |flags: u8| {
        let form = format!("{}&{}", fields(&page), device.sign(&page, &app.url(""), flags));
        post(&ada.client, &action, &[("Cookie", &cookies)], &form)
    };
    let wrong = send(PRESENT);
    assert!(wrong.status == 422 && wrong.text().contains("Confirm to invite sam@clinic.example"), "{}", wrong.text());
    assert_eq!((invitations(), fields(&wrong.text()), fields(&page)), (0, asked.to_owned(), asked.to_owned()));
    let made = send(PRESENT_AND_VERIFIED);
    assert!(made.status == 200 && made.text().contains("/invitations/"), "{} {}", made.status, made.text());
    assert!(made.all("set-cookie").iter().any(|cookie| cookie.contains("-draft=;")), "the draft is carried out");
    assert_eq!(invitations(), 1);
    assert!([303, 403].contains(&send(PRESENT_AND_VERIFIED).status));
    assert_eq!(invitations(), 1, "each signature confirms once");
    ada.go_on(&made);
    assert_eq!(ada.post("/settings/members/invite", "email=max%40clinic.example&role=administrator").status, 200);
}

#[test]
fn a_reset_link_made_by_an_administrator_lists_and_removes_the_passkeys() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    drop((Device::of(&app, "ada@clinic.example"), Device::of(&app, "grace@clinic.example")));
    let link = app.reset_password("ada@clinic.example");
    let page = ada.client.send(&request("GET", &link, &[], b"")).text();
    assert!(page.contains("<strong>Phone</strong>, a passkey added") && page.contains("Remove all passkeys"), "{page}");
    let choose = |link: &str| {
        let form = format!("{}&remove_passkeys=yes", password_field("four herons at the jetty"));
        post(&app.service.client(), link, &[], &form).status
    };
    assert_eq!(choose(&link), 303);
    assert_eq!(app.database.count("passkeys"), 1, "another member's passkey stays");
    assert_eq!(app.database.count("audit_entries WHERE action = 'password_and_passkeys_reset'"), 1);
    assert_eq!(ada.get("/settings/account").status, 303);
    // A link that anybody can ask for leaves the second factor of a mailbox's owner alone.
    let link = app.reset_password("grace@clinic.example");
    app.database.connect().batch_execute("UPDATE password_resets SET is_asked_by_stranger = true").unwrap();
    let page = grace.client.send(&request("GET", &link, &[], b"")).text();
    assert!(page.contains("<strong>Phone</strong>") && !page.contains("Remove all passkeys"), "{page}");
    assert_eq!(choose(&link), 303);
    assert_eq!(app.database.count("passkeys"), 1);
    assert_eq!(app.database.count("audit_entries WHERE action = 'password_and_passkeys_reset'"), 1);
}
