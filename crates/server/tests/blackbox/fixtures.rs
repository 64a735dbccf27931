//! What the tests start from: the program, a running service with an organisation, and a member of it who is signed in
//! without a browser. Whatever else a test needs it makes itself.

mod in_time;
mod terminal;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment, KeyFormat, TotpSecret};
use intake_edge as edge;
use intake_infra::SERVICE_ROLE;
use intake_test_support::{
    Browser, Client, Clinic, Response, RoundTripCounter, Service, ServiceBuilder, TestDatabase, is_nightly, request,
    wait_for,
};
use serde_json::{Value, json};

pub(crate) use in_time::{in_time, time_of};
pub(crate) use terminal::Terminal;

/// The password of every member.
pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// A service in development over a database of its own, with an organisation.
pub(crate) struct TestApp {
    pub(crate) service: Service,
    pub(crate) clinic: Clinic,
    pub(crate) database: TestDatabase,
    key: OnceLock<ApiKey>,
}

/// A member who is signed in, as a program without a browser.
pub(crate) struct Member {
    pub(crate) client: Client,
    /// The cookie of the session, as it is sent back.
    pub(crate) cookie: String,
    pub(crate) form_token: String,
}

impl TestApp {
    pub(crate) fn start() -> Self {
        Self::start_with(|builder| builder)
    }

    pub(crate) fn start_with(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::new();
        Self::new(settings(service(&database)).start(), database)
    }

    /// The same over PostgreSQL alone, wherever other tests run.
    pub(crate) fn on_one_server(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::on_one_server();
        Self::new(settings(service(&database)).start(), database)
    }

    /// The same with full durability.
    pub(crate) fn durable(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::durable();
        Self::new(settings(service(&database)).start(), database)
    }

    /// A service that reaches its database through a proxy, which counts round trips and can make the database hang.
    pub(crate) fn behind_a_proxy(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> (RoundTripCounter, Self) {
        let database = TestDatabase::on_one_server();
        let proxy = RoundTripCounter::before(&database.socket_folder());
        let url = proxy.url(SERVICE_ROLE, database.name());
        let service = settings(program().database_urls(&url, &database.owner)).start();
        (proxy, Self::new(service, database))
    }

    fn new(service: Service, database: TestDatabase) -> Self {
        let clinic = Clinic::open(&database.service, Environment::Development);
        Self { service, clinic, database, key: OnceLock::new() }
    }

    /// An active key of the organisation, made when first asked for.
    pub(crate) fn key(&self) -> &ApiKey {
        self.key.get_or_init(|| self.clinic.key().1)
    }

    /// Another organisation in the same register.
    pub(crate) fn other_clinic(&self) -> Clinic {
        Clinic::open(&self.database.service, Environment::Development)
    }

    pub(crate) fn create(&self, patient: &Value) -> Response {
        self.service.create(self.key(), patient)
    }

    pub(crate) fn send_body(&self, body: impl AsRef<[u8]>) -> Response {
        self.service.create_with(self.key(), &[], body.as_ref())
    }

    pub(crate) fn patients(&self) -> i64 {
        self.database.count("patients")
    }

    /// The address of a path, for browsers.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.service.https.unwrap().port())
    }

    /// Invites a person into the organisation as an operator does; returns the invitation's path.
    pub(crate) fn invite(&self, email: &str) -> String {
        self.invite_into(&self.clinic, email)
    }

    pub(crate) fn invite_into(&self, clinic: &Clinic, email: &str) -> String {
        self.link_for("invite", clinic, email)
    }

    /// Makes a reset link for a member as an operator does; gives its path.
    pub(crate) fn reset_password(&self, email: &str) -> String {
        self.link_for("reset-password", &self.clinic, email)
    }

    fn link_for(&self, command: &str, clinic: &Clinic, email: &str) -> String {
        let id = clinic.organisation.to_string();
        let arguments = ["member", command, "--json", "--organisation", &id, "--email", email];
        let command = service(&self.database).setting("INTAKE_PUBLIC_URL", self.url(""));
        let output = arguments.iter().fold(command, |command, argument| command.argument(argument)).run();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        let names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((names, &value["email"]), (vec!["email", "expiresAt", "link"], &json!(email)));
        value["link"].as_str().unwrap().strip_prefix(&self.url("")).unwrap().to_owned()
    }

    /// A person who joins the organisation and is signed in.
    pub(crate) fn member(&self, email: &str) -> Member {
        self.member_of(&self.clinic, email)
    }

    /// The same for another organisation.
    pub(crate) fn member_of(&self, clinic: &Clinic, email: &str) -> Member {
        Member::join(self.service.client(), &self.invite_into(clinic, email), &name_of(email))
    }

    /// Joins the organisation in a browser.
    pub(crate) fn join(&self, browser: &Browser, name: &str, email: &str) {
        browser.open(&self.url(&self.invite(email)));
        accept_invitation(browser, name);
    }

    pub(crate) fn sign_in(&self, browser: &Browser, email: &str, password: &str) {
        browser.open(&self.url("/sign-in"));
        browser.fill("Email", email);
        browser.fill("Password", password);
        browser.press("Sign in");
    }

    /// Turns it on for the member whose browser this is; `look` is called while its page is there.
    pub(crate) fn turn_on_second_factor(&self, browser: &Browser, look: impl FnOnce()) {
        browser.open(&self.url("/settings/account/second-factor"));
        if browser.text().contains("Confirm it's you") {
            confirm_identity(browser);
        }
        browser.wait_for("Scan this");
        look();
        let shown = browser.run("return document.querySelector('.setup-key').textContent");
        let secret = app_secret(shown.as_str().unwrap());
        browser.fill("Code that the app shows", &secret.code_at(edge::now()));
        browser.press("Turn on");
        browser.wait_for("they won't be shown again");
    }
}

impl Member {
    /// Accepts the invitation at this path.
    pub(crate) fn join(client: Client, invitation: &str, name: &str) -> Self {
        let joined = accept(&client, invitation, name);
        assert_eq!(joined.status, 303, "{}", joined.text());
        let mut member = Self::signed_in(client, &joined);
        assert_eq!(member.confirm_identity(PASSWORD, "").status, 303);
        member
    }

    /// Confirms in this session who they are, by the password and, if there is an app, its code.
    pub(crate) fn confirm_identity(&mut self, password: &str, code: &str) -> Response {
        let code = if code.is_empty() { String::new() } else { format!("&code={code}") };
        let answer = self.post("/settings/confirm", &format!("{}{code}", password_field(password)));
        self.go_on(&answer);
        answer
    }

    /// Goes on under the token that an answer gave to the session, if it gave one.
    pub(crate) fn go_on(&mut self, answer: &Response) {
        if answer.all("set-cookie").first().is_some_and(|cookie| cookie.starts_with("__Host-intake-session=")) {
            self.cookie = cookie(answer);
            self.form_token = form_token(&self.get("/settings/account").text());
        }
    }

    /// The member that this answer has signed in.
    pub(crate) fn signed_in(client: Client, answer: &Response) -> Self {
        let cookie = cookie(answer);
        let page = client.send(&request("GET", "/settings/account", &[("Cookie", &cookie)], b"")).text();
        Self { client, cookie, form_token: form_token(&page) }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.client.send(&request("GET", path, &[("Cookie", &self.cookie), ("Accept", "text/html")], b""))
    }

    /// The page to which an answer leads, with its notice.
    pub(crate) fn follow(&self, answer: &Response) -> String {
        let cookies = format!("{}; {}", self.cookie, cookie(answer));
        let path = answer.header("location").unwrap();
        self.client.send(&request("GET", path, &[("Cookie", &cookies), ("Accept", "text/html")], b"")).text()
    }

    pub(crate) fn post(&self, path: &str, form: &str) -> Response {
        let form = format!("form_token={}&{form}", self.form_token);
        post(&self.client, path, &[("Cookie", &self.cookie)], &form)
    }

    /// Does what a page asks about, in a session that was confirmed.
    pub(crate) fn confirm(&self, path: &str) -> Response {
        self.post(path, "")
    }

    /// Makes an invitation on the page for it; gives its path.
    pub(crate) fn invite(&self, email: &str) -> String {
        self.invite_as(email, "administrator")
    }

    pub(crate) fn invite_as(&self, email: &str, role: &str) -> String {
        let page =
            self.post("/settings/members/invite", &format!("email={}&role={role}", email.replace('@', "%40"))).text();
        let link = between(&page, "id=\"link\" value=\"", "\"");
        link[link.find("/invitations/").unwrap()..].to_owned()
    }

    /// The path of a page about another member, or about this one.
    pub(crate) fn page_about(&self, name: &str, page: &str) -> String {
        let list = self.get("/settings/members").text();
        let is_about = |row: &&str| row.contains(&format!(">{name}<")) || row.contains(&format!(">{name} <"));
        let row = list.split("<tr>").skip(1).find(is_about);
        format!("/settings/members/{}/{page}", between(row.unwrap(), "id=\"member-", "\""))
    }

    /// The secret that this session is shown for an authenticator app.
    pub(crate) fn offered_secret(&self) -> TotpSecret {
        app_secret(&between(&self.get("/settings/account/second-factor").text(), "class=\"setup-key\">", "<"))
    }

    /// Turns on two-step sign-in by the earliest code that is good: every later one is left for the test.
    pub(crate) fn turn_on_second_factor(&self) -> TotpSecret {
        let secret = self.offered_secret();
        let turn_on = || {
            let code = secret.code_at(edge::now() - time::Duration::seconds(30));
            self.post("/settings/account/second-factor", &format!("code={code}"))
        };
        let answer = turn_on();
        // The half minute in which that code is good may have ended on its way.
        let answer = if answer.status == 200 { answer } else { turn_on() };
        assert_eq!(answer.status, 200, "{}", answer.text());
        secret
    }
}

/// The secret that a page shows in groups.
fn app_secret(shown: &str) -> TotpSecret {
    TotpSecret::from_base32(&shown.replace(' ', "")).unwrap()
}

/// The name that goes with an address in tests: Ada for ada@clinic.example. No two members have the same.
fn name_of(email: &str) -> String {
    let (first, rest) = email.split_once('@').unwrap().0.split_at(1);
    first.to_uppercase() + rest
}

/// Sends the form of the invitation at this path.
pub(crate) fn accept(client: &Client, invitation: &str, name: &str) -> Response {
    post(client, invitation, &[], &format!("name={name}&{}", password_field(PASSWORD)))
}

/// Accepts the invitation that a browser shows, in an organisation without a key.
pub(crate) fn accept_invitation(browser: &Browser, name: &str) {
    browser.fill("Your name", name);
    browser.fill("Password", PASSWORD);
    browser.press("Join");
    browser.wait_for("No API keys yet.");
}

/// Types the password again, where a page asks for it.
pub(crate) fn confirm_identity(browser: &Browser) {
    browser.wait_for("Confirm it's you");
    browser.fill("Your password", PASSWORD);
    browser.press("Confirm");
}

/// Chooses the role of the person who is to be invited.
pub(crate) fn choose_role(browser: &Browser, role: &str) {
    let _ = browser.run(&format!("document.querySelector('input[name=role][value={role}]').click()"));
}

/// Makes every session one in which nobody has confirmed who they are.
pub(crate) fn unconfirm(app: &TestApp) {
    app.database.connect().batch_execute("UPDATE sessions SET confirmed_at = NULL").unwrap();
}

/// Runs a test in a browser with scripts, and each night in one without, each with a service of its own, which Ada has
/// joined.
pub(crate) fn in_each_browser(test: impl Fn(&TestApp, &Browser)) {
    let without_scripts = is_nightly().then(Browser::without_scripts).flatten();
    for browser in Browser::start().iter().chain(&without_scripts) {
        let app = TestApp::start();
        app.join(browser, "Ada", "ada@clinic.example");
        test(&app, browser);
    }
}

/// Makes a key, from any page with a link to do so, and stays where it is shown.
pub(crate) fn create_key(browser: &Browser, name: &str) -> ApiKey {
    browser.press("Create API key");
    browser.fill("Name", name);
    browser.press("Create key");
    browser.wait_for("won't be shown again");
    shown_key(browser)
}

/// Chooses what to do to a key of the list, from its menu.
#[track_caller]
pub(crate) fn choose_action(browser: &Browser, key: &str, action: &str) {
    browser.press(&format!("Actions for {key}"));
    let choose = format!(
        "const items = [...document.querySelectorAll(':popover-open :is(a, button)')];
         const item = items.find((item) => item.textContent === '{action}');
         item?.click();
         return items.map((item) => item.textContent)"
    );
    let items = browser.run(&choose);
    assert!(items.as_array().unwrap().contains(&json!(action)), "{action} is none of {items}");
}

/// The key that the page shows.
pub(crate) fn shown_key(browser: &Browser) -> ApiKey {
    demo_key(&browser.value("Your new key"))
}

/// The key that a text is, in development.
pub(crate) fn demo_key(text: &str) -> ApiKey {
    KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).parse(text).unwrap()
}

pub(crate) fn post(client: &Client, path: &str, headers: &[(&str, &str)], form: &str) -> Response {
    let mut headers = headers.to_vec();
    headers.push(("Content-Type", "application/x-www-form-urlencoded"));
    client.send(&request("POST", path, &headers, form.as_bytes()))
}

/// The field of a form with a password of letters and spaces.
pub(crate) fn password_field(password: &str) -> String {
    format!("password={}", password.replace(' ', "+"))
}

/// The first cookie that an answer sets, as it is sent back.
pub(crate) fn cookie(answer: &Response) -> String {
    answer.all("set-cookie").first().unwrap().split(';').next().unwrap().to_owned()
}

/// Returns what protects the first form of a page.
pub(crate) fn form_token(page: &str) -> String {
    between(page, "name=\"form_token\" value=\"", "\"")
}

/// Returns what stands between two texts on a page.
pub(crate) fn between(page: &str, before: &str, after: &str) -> String {
    page.split_once(before).unwrap().1.split(after).next().unwrap().to_owned()
}

/// Tells threads that go on until something is over that it is: also when the test fails, which would hang otherwise.
pub(crate) struct OverWhenDropped<'a>(pub(crate) &'a AtomicBool);

impl Drop for OverWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Makes the first row of an event like `INSERT ON patients` wait. A sequence `rows_of_` and the table counts the rows.
pub(crate) fn first_row_sleeps(database: &TestDatabase, event: &str, seconds: f32) {
    let (_, table) = event.rsplit_once(' ').unwrap();
    let sql = format!(
        "CREATE SEQUENCE rows_of_{table};
         CREATE FUNCTION sleep_on_{table}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
            BEGIN IF nextval('rows_of_{table}') = 1 THEN PERFORM pg_sleep({seconds}); END IF; RETURN NEW; END $$;
         CREATE TRIGGER sleep BEFORE {event} FOR EACH ROW EXECUTE FUNCTION sleep_on_{table}()"
    );
    database.connect().batch_execute(&sql).unwrap();
}

/// Waits until this many statements wait for a lock in the database.
pub(crate) fn wait_for_lock_waits(database: &TestDatabase, count: i64) {
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait_for("statements that wait for a lock", || database.count(waits) >= count);
}

/// Waits until nothing that a service or command began is at work in the database any more.
pub(crate) fn wait_until_idle(database: &TestDatabase) {
    let busy = "pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
        AND state <> 'idle' AND pid <> pg_backend_pid()";
    wait_for("work in the database to end", || database.count(busy) == 0);
}

/// Keeps tests apart of which one takes all of the machine and another looks at the clock.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program of this build, or another one, such as a release build whose memory is to be measured.
pub(crate) fn program() -> ServiceBuilder {
    let other = std::env::var("INTAKE_TEST_PROGRAM");
    let program = other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_intake"));
    ServiceBuilder::new(program)
}

pub(crate) fn service(database: &TestDatabase) -> ServiceBuilder {
    program().database(database)
}

/// The same in production, behind a proxy on this machine.
pub(crate) fn in_production(builder: ServiceBuilder) -> ServiceBuilder {
    let builder = builder.setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1");
    // A database that forgets is refused as such.
    // And nobody waits for a load balancer.
    builder.setting("INTAKE_DURABILITY", "").setting("INTAKE_DRAIN_DELAY", "0s")
}
