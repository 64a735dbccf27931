//! Passkeys: as the second step and as the only step of signing in, with a device that Chromium pretends to have, and by
//! hand, as an attacker would.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, Client, Response, request};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

use crate::fixtures::{Member, PASSWORD, TestApp, between, cookie, form_token, password_field, post};

const PRESENT: u8 = 0b001;
const PRESENT_AND_VERIFIED: u8 = 0b101;

fn sign_out(browser: &Browser) {
    browser.press("Sign out");
    browser.wait_for("New here?");
}

/// Adds a passkey, from the account's page.
fn add(browser: &Browser, name: &str, password: &str) {
    browser.press("Add a passkey");
    browser.fill("Name", name);
    browser.fill("Your password", password);
    browser.press("Add passkey");
}

#[test]
fn a_passkey_is_added_and_is_the_second_step_and_the_only_one() {
    let Some(browser) = Browser::start() else { return };
    let device = browser.add_authenticator();
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Account");
    add(&browser, "Work laptop", "guess");
    browser.wait_for("The password is wrong.");
    assert_eq!(browser.value("Name"), "Work laptop");
    browser.fill("Your password", PASSWORD);
    browser.press("Add passkey");
    browser.wait_for("The passkey was added.");
    browser.wait_for("On, by passkey.");
    browser.wait_for("Never");
    assert!(browser.text().contains("Work laptop"));

    sign_out(&browser);
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("Use your passkey");
    browser.set_user_verified(&device, false);
    browser.press("Use passkey");
    browser.wait_for("The passkey was not used.");
    browser.set_user_verified(&device, true);
    browser.press("Use passkey");
    browser.wait_for("There is no API key yet.");
    browser.press("Account");
    browser.wait_for("Work laptop");
    assert!(!browser.text().contains("Never"));

    sign_out(&browser);
    browser.press("Use a passkey instead");
    browser.wait_for("Your browser will ask");
    browser.press("Use passkey");
    browser.wait_for("There is no API key yet.");

    browser.press("Account");
    add(&browser, "The same", PASSWORD);
    browser.wait_for("This device already has a passkey of yours.");
    browser.press("Cancel");
    browser.press("Remove passkey");
    browser.wait_for("Remove the passkey “Work laptop”?");
    browser.fill("Your password", PASSWORD);
    browser.press("Remove passkey");
    browser.wait_for("The passkey was removed.");
    browser.press("Activity");
    for line in ["added the passkey Work laptop", "signed in with a passkey as ada@", "removed the passkey Work laptop"]
    {
        browser.wait_for(line);
    }
    sign_out(&browser);
    browser.press("Use a passkey instead");
    browser.wait_for("Your browser will ask");
    browser.press("Use passkey");
    browser.wait_for("This passkey isn't known here.");
    app.sign_in(&browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("There is no API key yet.");
}

#[test]
fn the_page_says_what_passkeys_need_where_scripts_are_turned_off() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/sign-in"));
    browser.press("Use a passkey instead");
    browser.wait_for("Passkeys need scripts");
}

/// A device without a browser, which signs whatever it is told to.
struct Device {
    pair: EcdsaKeyPair,
    credential: Vec<u8>,
}

impl Device {
    /// A device whose passkey the member with this address has.
    fn of(app: &TestApp, email: &str) -> Self {
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
    fn sign(&self, page: &str, origin: &str, flags: u8) -> String {
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
struct SignIn {
    client: Client,
    cookie: String,
    page: String,
}

impl SignIn {
    fn alone(app: &TestApp) -> Self {
        let client = app.service.client();
        let begun = post(&client, "/sign-in/passkey", &[], "");
        assert_eq!((begun.status, begun.header("location")), (303, Some("/sign-in/passkey")));
        Self::new(client, &begun, "/sign-in/passkey")
    }

    fn after_the_password(app: &TestApp, email: &str) -> Self {
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

    fn send(&self, path: &str, form: &str) -> Response {
        post(&self.client, path, &[("Cookie", &self.cookie)], form)
    }
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
fn a_passkey_counts_where_two_step_sign_in_is_required_and_an_operator_lets_in_who_lost_it() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    drop(Device::of(&app, "ada@clinic.example"));
    assert_eq!(ada.confirm("/settings/members/require-two-step-sign-in").status, 303);
    assert_eq!(ada.get("/settings/members").status, 200);
    let id = app.clinic.organisation.to_string();
    let arguments = ["member", "reset-second-factor", "--organisation", &id, "--email", "ada@clinic.example"];
    let command = arguments.iter().fold(crate::fixtures::service(&app.database), |all, one| all.argument(one));
    assert!(command.run().status.success());
    assert_eq!(app.database.count("passkeys"), 0);
    assert_eq!(ada.get("/settings/members").header("location"), Some("/settings/account/second-factor"));
}
