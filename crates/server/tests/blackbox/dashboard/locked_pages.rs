//! Every page that changes a key, a member, an invitation, a policy or an organisation, sent while another program
//! holds the rows that it needs: it names who holds them and how to end that, and what it refused is not done later.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_domain::TotpSecret;
use intake_edge as edge;
use intake_test_support::{Clinic, Response};
use ring::digest::{SHA256, digest};

use crate::accounts::passkeys::{Device, PRESENT_AND_VERIFIED, SignIn};
use crate::accounts::single_sign_on::made_up_provider::MadeUpProvider;
use crate::commands::lock_holders::{changeable, is_named, session_on};
use crate::dashboard::pages::{fill, routes};
use crate::fixtures::{Member, PASSWORD, TestApp, accept, between, form_token, password_field, post, wait_until_idle};

/// Services at work side by side: one organisation has only two connections of a service.
const AT_ONCE: usize = 8;
const TRIES: usize = 10;
/// The secret of every link.
const TOKEN: &str = "7777777777777777777777777777777777777777777777777777777777777777";
/// The moment at which keys were stopped together.
const STOP: &str = "018f0000-0000-7000-8000-000000000000";

/// Beginning of a public key of a passkey, in base64url.
const ED25519: &str = "MCowBQYDK2VwAyEA";

/// A route, the table whose rows are held, and a form.
type Page = (&'static str, &'static str, &'static str);

/// In a form, KEY is a key, STOP what paused keys together, and OTHER another organisation.
const PAGES: [Page; 50] = [
    ("/choose-organisation", "memberships", "organisation=OTHER"),
    ("/confirm-email/{token}", "email_changes", ""),
    ("/invitations/{token}", "invitations", ""),
    ("/reset-password/{token}", "password_resets", "password=four+herons+at+the+jetty"),
    ("/settings/account/email", "members", "email=new%40clinic.example&password=correct+horse+battery+staple"),
    ("/settings/account/name", "members", "name=Countess"),
    ("/settings/account/passkeys/new", "members", ""),
    ("/settings/account/passkeys/{passkey}/remove", "passkeys", ""),
    ("/settings/account/password", "members", "new_password=four+herons+at+the+jetty"),
    ("/settings/account/recovery-codes", "recovery_codes", ""),
    ("/settings/account/second-factor", "members", ""),
    ("/settings/account/second-factor/turn-off", "members", ""),
    ("/settings/account/sessions/end-others", "sessions", ""),
    ("/settings/account/sessions/{session}/end", "sessions", ""),
    ("/settings/api-keys", "organisation_states", "id=018f0000-0000-7000-8000-000000000001&name=Front&expires="),
    ("/settings/api-keys/resume-paused", "api_keys", "stop=STOP"),
    ("/settings/api-keys/resume-stopped", "api_keys", "stop=STOP"),
    ("/settings/api-keys/selected", "api_keys", "do=pause&key=KEY"),
    ("/settings/api-keys/selected", "api_keys", "do=revoke&key=KEY"),
    ("/settings/api-keys/stop-all", "api_keys", ""),
    ("/settings/api-keys/{key}/contact", "api_keys", "contact=Acme"),
    ("/settings/api-keys/{key}/networks", "api_keys", "networks=203.0.113.7"),
    ("/settings/api-keys/{key}/note", "api_keys", "note=Front"),
    ("/settings/api-keys/{key}/pause", "api_keys", ""),
    ("/settings/api-keys/{key}/rename", "api_keys", "name=Front"),
    (
        "/settings/api-keys/{key}/replace",
        "api_keys",
        "id=018f0000-0000-7000-8000-000000000002&ends_after=now&lasts=same&expires=",
    ),
    ("/settings/api-keys/{key}/resume", "api_keys", ""),
    ("/settings/api-keys/{key}/revoke", "api_keys", ""),
    ("/settings/confirm", "sessions", "password=correct+horse+battery+staple"),
    ("/settings/confirm/passkey", "passkeys", ""),
    ("/settings/members/invitations/{invitation}/resend", "invitations", ""),
    ("/settings/members/invitations/{invitation}/withdraw", "invitations", ""),
    ("/settings/members/invite", "organisations", "email=jo%40clinic.example&role=auditor"),
    ("/settings/members/{member}/end-sessions", "sessions", ""),
    ("/settings/members/{member}/remove", "memberships", ""),
    ("/settings/members/{member}/reset-password", "members", ""),
    ("/settings/members/{member}/reset-second-factor", "members", ""),
    ("/settings/members/{member}/role", "memberships", "role=auditor"),
    ("/settings/policies/key-age", "organisations", "days=90"),
    ("/settings/policies/require-two-step-sign-in", "organisations", ""),
    ("/settings/policies/stop-requiring-two-step-sign-in", "organisations", ""),
    ("/settings/policies/time-zone", "organisations", "zone=Australia%2FSydney"),
    ("/sign-in", "members", ""),
    ("/sign-in/code", "members", ""),
    ("/sign-in/code/passkey", "passkeys", ""),
    ("/sign-in/passkey/use", "passkeys", ""),
    // On the way back from single sign-on.
    ("/sign-in/provider/return", "members", "from /sign-in/provider"),
    ("/sign-in/provider/return", "invitations", "from /invitations/{token}/provider"),
    ("/sign-in/provider/return", "members", "from /settings/account/provider?begin=yes"),
    ("/sign-out", "sessions", ""),
];

/// Routes whose answer waits for no row: one looks after its answer, one begins what belongs to nobody yet, and one
/// sets a cookie.
const WAIT_FOR_NOTHING: [&str; 3] = ["/forgotten-password", "/sign-in/passkey", "/settings/first-steps"];

#[test]
fn every_route_that_changes_something_is_tried_while_its_rows_are_held() {
    let mut tried: Vec<&str> = PAGES.iter().map(|(route, ..)| *route).collect();
    tried.retain(|route| *route != "/sign-in/provider/return");
    tried.extend(WAIT_FOR_NOTHING);
    tried.sort_unstable();
    tried.dedup();
    let routes = routes().into_iter().filter(|(method, _)| *method == "POST");
    assert_eq!(routes.map(|(_, route)| route).collect::<Vec<_>>(), tried, "add a new route to PAGES");
}

// Where many programs compute, the last try of a change may still run when a page says that nothing was changed: a
// fault of the pool, which this test finds there.
#[test]
#[ignore = "just test-all: needs a quiet machine"]
fn a_change_that_a_page_has_refused_because_of_a_lock_is_not_made_later() {
    refuse_what_is_held(&Holding {
        start: |provider| TestApp::on_one_server(|builder| provider.settings(builder.setting("INTAKE_DEADLINE", "4s"))),
        holder: |app| app.database.connect(),
        lock: |table| format!("SELECT FROM {table} FOR UPDATE"),
    });
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_change_that_a_page_has_refused_because_of_a_lock_on_a_worker_is_not_made_later() {
    refuse_what_is_held(&Holding {
        start: |provider| TestApp::start_with(|builder| provider.settings(builder.setting("INTAKE_DEADLINE", "6s"))),
        holder: |app| session_on(&app.database, 2),
        lock: |table| format!("LOCK TABLE {table} IN EXCLUSIVE MODE"),
    });
}

#[test]
fn an_invitation_that_a_lock_has_stopped_after_its_confirmation_says_so_and_can_be_sent_again() {
    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_DEADLINE", "10s"));
    let mut ada = app.member("ada@clinic.example");
    let mut holder = app.database.connect();
    let invite = format!("email=jo%40clinic.example&role=administrator&{}", password_field(PASSWORD));
    let mut send = || {
        let answer = ada.post("/settings/members/invite", &invite);
        ada.go_on(&answer);
        answer
    };
    holder.batch_execute("SET application_name = 'a repair'; BEGIN; SELECT FROM organisations FOR UPDATE").unwrap();
    let refused = until(names_holder, &mut send);
    assert!(refused.status == 503 && names_holder(&refused), "{} {}", refused.status, refused.text());
    holder.batch_execute("ROLLBACK").unwrap();
    wait_until_idle(&app.database);
    assert_eq!(app.database.count("invitations WHERE email = 'jo@clinic.example'"), 0);
    assert_eq!(until(is_served, &mut send).status, 200, "the session goes on");
    assert_eq!(app.database.count("invitations WHERE email = 'jo@clinic.example'"), 1);
}

/// Returns whether an answer names the holder, and how to end it.
fn names_holder(answer: &Response) -> bool {
    is_named(&answer.text().replace("&#34;", "\""))
}

/// Returns whether an answer says more than that the machine is busy.
fn is_served(answer: &Response) -> bool {
    answer.status != 503
}

/// The first answer of this kind, or the last one: on a busy machine nobody may have looked in time, or a password
/// takes too long to hash.
fn until(is_it: fn(&Response) -> bool, mut send: impl FnMut() -> Response) -> Response {
    (1..TRIES).map(|_| send()).find(is_it).unwrap_or_else(send)
}

/// A service, and a session that holds rows which it needs.
struct Holding {
    start: fn(&MadeUpProvider) -> TestApp,
    holder: fn(&TestApp) -> PgConnection,
    lock: fn(&str) -> String,
}

fn refuse_what_is_held(holding: &Holding) {
    let hash = &hash_of_password();
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            scope.spawn(move || {
                let provider = MadeUpProvider::start();
                let app = (holding.start)(&provider);
                for (number, page) in PAGES.iter().enumerate().skip(first).step_by(AT_ONCE) {
                    let visit = Visit::begin(&app, &provider, (number, hash), page.0);
                    be_refused(&app, page, (holding.holder)(&app), &(holding.lock)(page.1), &visit.form(page));
                }
            });
        }
    });
}

/// The hash of the password of all, which takes long to make.
fn hash_of_password() -> String {
    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_DEADLINE", "20s"));
    drop(app.member("ada@clinic.example"));
    app.database.texts("SELECT password_hash FROM members").pop().unwrap()
}

/// Sends a form while the session holds the rows, and when it has let them go.
fn be_refused(app: &TestApp, page: &Page, mut holder: PgConnection, lock: &str, send: &dyn Fn() -> Response) {
    let before = changeable(&app.database);
    holder.batch_execute(&format!("SET application_name = 'a repair'; BEGIN; {lock}")).unwrap();
    let refused = until(names_holder, send);
    let text = refused.text();
    assert!(
        refused.status == 503 && names_holder(&refused),
        "{page:?}: {} {:?} {text}",
        refused.status,
        refused.header("location")
    );
    assert!(
        text.contains("nothing was changed") && text.matches("pg_terminate_backend(").count() == 1,
        "{page:?}: {text}"
    );
    holder.batch_execute("ROLLBACK").unwrap();
    wait_until_idle(&app.database);
    assert_eq!(changeable(&app.database), before, "{page:?}");
    let done = until(is_served, send);
    assert!([200, 303].contains(&done.status), "{page:?}: {} {}", done.status, done.text());
    assert_ne!(changeable(&app.database), before, "{page:?}: {:?}", done.header("location"));
}

/// An administrator of an organisation of her own, who is about to send a form.
struct Visit<'a> {
    app: &'a TestApp,
    provider: &'a MadeUpProvider,
    clinic: Clinic,
    key: String,
    ada: Member,
    email: String,
    device: Option<Device>,
    secret: Option<TotpSecret>,
}

impl<'a> Visit<'a> {
    /// With a colleague who is signed in, an invitation, other sessions, and whatever the route is about.
    fn begin(app: &'a TestApp, provider: &'a MadeUpProvider, (number, hash): (usize, &str), route: &str) -> Self {
        let (clinic, email) = (app.other_clinic(), format!("ada{number}@clinic.example"));
        let organisation = clinic.organisation;
        let prepare = format!(
            "INSERT INTO members (id, email, email_folded, name, password_hash)
                VALUES (gen_random_uuid(), '{email}', '{email}', 'Ada', '{hash}');
             INSERT INTO members (id, email, email_folded, name, totp_secret, totp_used_step)
                VALUES (gen_random_uuid(), 'grace{number}@a.example', 'grace{number}@a.example', 'Grace', '\\x00', 0);
             INSERT INTO memberships SELECT '{organisation}', id, 'administrator', now() FROM members
                WHERE email IN ('{email}', 'grace{number}@a.example');
             INSERT INTO sessions (token_digest, member_id, started_at, last_used_at, organisation_id)
                SELECT sha256(member_id::text::bytea), member_id, now(), now(), organisation_id FROM memberships
                WHERE organisation_id = '{organisation}';
             INSERT INTO sessions (token_digest, member_id, started_at, last_used_at, organisation_id, confirmed_at)
                SELECT sha256('{number:064}'), id, now(), now(), '{organisation}', now() FROM members
                WHERE email = '{email}';
             INSERT INTO invitations (token_digest, organisation_id, email, expires_at, role, is_mailed)
                VALUES (sha256('{number}'), '{organisation}', 'kim@clinic.example', now() + interval '1 day', 'auditor', true)"
        );
        app.database.connect().batch_execute(&prepare).unwrap();
        let (client, cookie) = (app.service.client(), format!("__Host-intake-session={number:064}"));
        let mut ada = Member { client, cookie, form_token: String::new() };
        ada.form_token = form_token(&ada.get("/settings/account").text());
        let (device, secret, key) = (None, None, clinic.key().0.to_string());
        let mut visit = Self { app, provider, clinic, key, ada, email, device, secret };
        visit.prepare(route);
        visit
    }

    /// Makes what only this route is about.
    fn prepare(&mut self, route: &str) {
        let (app, organisation) = (self.app, self.clinic.organisation);
        let (ada, a_day) = (format!("FROM members WHERE email = '{}'", self.email), "now() + interval '1 day'");
        let sql = match route {
            "/choose-organisation" => {
                let other = app.other_clinic().organisation;
                format!("INSERT INTO memberships SELECT '{other}', id, 'auditor', now() {ada}")
            }
            "/confirm-email/{token}" => {
                format!("INSERT INTO email_changes SELECT id, 'new@clinic.example', sha256('{TOKEN}'), {a_day} {ada}")
            }
            "/reset-password/{token}" => format!(
                "INSERT INTO password_resets (member_id, token_digest, expires_at, is_asked_by_stranger, is_mailed)
                 SELECT id, sha256('{TOKEN}'), {a_day}, false, true {ada}"
            ),
            "/settings/policies/stop-requiring-two-step-sign-in" => {
                format!("UPDATE organisations SET second_factor_required = true WHERE id = '{organisation}'")
            }
            _ if route.contains("/resume") => {
                format!("UPDATE api_keys SET paused_at = now(), stopped_in = '{STOP}' WHERE id = '{}'", self.key)
            }
            _ => "SELECT".to_owned(),
        };
        match route {
            "/settings/account/passkeys/new" => {}
            "/sign-in/provider/return" => drop(self.provider.link(app, &self.ada, &self.email)),
            "/sign-in/code" | "/settings/account/recovery-codes" => {
                self.secret = Some(self.ada.turn_on_second_factor());
            }
            _ if route.contains("passkey") => self.device = Some(Device::of(app, &self.email)),
            _ if route.contains("turn-off") || route.contains("two-step") => drop(self.ada.turn_on_second_factor()),
            _ => {}
        }
        app.database.connect().batch_execute(&sql).unwrap();
    }

    /// The id that stands for a name in braces, or for a word of a form.
    fn id(&self, name: &str) -> String {
        let organisation = self.clinic.organisation;
        let of_grace = format!(
            "memberships JOIN members ON id = member_id WHERE name = 'Grace' AND organisation_id = '{organisation}'"
        );
        let query = match name {
            "key" => return self.key.clone(),
            "token" => return TOKEN.to_owned(),
            "member" => format!("SELECT id::text FROM {of_grace}"),
            "invitation" => {
                format!(
                    "SELECT encode(token_digest, 'hex') FROM invitations WHERE organisation_id = '{organisation}' AND email LIKE 'kim%'"
                )
            }
            "passkey" => format!("SELECT encode(digest, 'hex') FROM passkeys WHERE credential = '{}'", self.email),
            "session" => format!(
                "SELECT encode(token_digest, 'hex') FROM sessions JOIN members ON id = member_id
                 WHERE email = '{}' AND token_digest = sha256(member_id::text::bytea)",
                self.email
            ),
            "other" => format!(
                "SELECT organisation_id::text FROM memberships JOIN members ON id = member_id
                 WHERE email = '{}' AND organisation_id <> '{organisation}'",
                self.email
            ),
            _ => panic!("{name}"),
        };
        self.app.database.texts(&query).pop().unwrap()
    }

    /// Returns what sends the form of a page.
    fn form<'b>(&'b self, (route, _, form): &Page) -> Box<dyn Fn() -> Response + 'b> {
        let (app, client, origin) = (self.app, self.app.service.client(), self.app.url(""));
        let sign = move |page: &str| self.device.as_ref().unwrap().sign(page, &origin, PRESENT_AND_VERIFIED);
        match *route {
            "/invitations/{token}" => {
                let path = app.invite_into(&self.clinic, &format!("jo.{}", self.email));
                Box::new(move || accept(&client, &path, "Jo"))
            }
            "/sign-in" => {
                let form = format!("email={}&{}", self.email.replace('@', "%40"), password_field(PASSWORD));
                Box::new(move || post(&client, "/sign-in", &[], &form))
            }
            "/sign-in/code" => {
                let waiting = SignIn::after_the_password(app, &self.email);
                let code = self.secret.as_ref().unwrap().code_at(edge::now());
                let form = format!("form_token={}&code={code}", form_token(&waiting.page));
                Box::new(move || waiting.send("/sign-in/code", &form))
            }
            "/sign-in/code/passkey" => {
                let waiting = SignIn::after_the_password(app, &self.email);
                let form = sign(&waiting.page);
                Box::new(move || waiting.send("/sign-in/code/passkey", &form))
            }
            "/sign-in/passkey/use" => {
                let waiting = SignIn::alone(app);
                let form = sign(&waiting.page);
                Box::new(move || waiting.send("/sign-in/passkey/use", &form))
            }
            "/sign-in/provider/return" => self.come_back(form.strip_prefix("from ").unwrap()),
            _ => self.own_form(route, form, &sign),
        }
    }

    /// The same for a page of a member.
    fn own_form<'b>(
        &'b self,
        route: &str,
        form: &str,
        sign: &dyn Fn(&str) -> String,
    ) -> Box<dyn Fn() -> Response + 'b> {
        let path = fill(route, |name| self.id(name));
        let form = match route {
            "/settings/account/second-factor" => {
                format!("code={}", self.ada.offered_secret().code_at(edge::now()))
            }
            "/settings/account/passkeys/new" => registration(&self.ada.get(route).text(), &self.app.url("")),
            "/settings/confirm/passkey" => {
                let unconfirm = format!(
                    "UPDATE sessions SET confirmed_at = NULL FROM members WHERE id = member_id AND email = '{}'",
                    self.email
                );
                self.app.database.connect().batch_execute(&unconfirm).unwrap();
                let form = sign(&self.ada.get("/settings/confirm").text());
                return Box::new(move || post(&self.ada.client, &path, &[("Cookie", &self.ada.cookie)], &form));
            }
            "/choose-organisation" => form.replace("OTHER", &self.id("other")),
            _ => form.replace("KEY", &self.key).replace("STOP", STOP),
        };
        Box::new(move || self.ada.post(&path, &form))
    }

    /// Goes to the provider of single sign-on from a page, and comes back.
    fn come_back<'b>(&'b self, from: &str) -> Box<dyn Fn() -> Response + 'b> {
        let guest = format!("jo.{}", self.email);
        let (from, email) = match from {
            "/invitations/{token}/provider" => {
                (format!("{}/provider", self.app.invite_into(&self.clinic, &guest)), guest)
            }
            _ => (from.to_owned(), self.email.clone()),
        };
        let cookies = if from.starts_with("/settings") { self.ada.cookie.clone() } else { String::new() };
        Box::new(move || self.provider.go(self.app, &from, &cookies, &email))
    }
}

/// A form by which a device that makes a passkey for the challenge of a page registers it.
fn registration(page: &str, origin: &str) -> String {
    let challenge = between(page, "data-challenge=\"", "\"");
    let client_data =
        format!(r#"{{"type":"webauthn.create","challenge":"{challenge}","origin":"{origin}","crossOrigin":false}}"#);
    let credential = b"a new passkey";
    let described = [&[0_u8; 4 + 16][..], &[0, 13], credential].concat();
    let data = [digest(&SHA256, b"localhost").as_ref(), &[PRESENT_AND_VERIFIED | 0b0100_0000], &described].concat();
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    format!(
        "name=Phone&credential={}&client_data={}&authenticator_data={}&public_key={ED25519}{}",
        encode(credential),
        encode(client_data.as_bytes()),
        encode(&data),
        encode(&[4; 32])
    )
}
