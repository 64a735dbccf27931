//! Odd values in every query parameter and every field of every form are answered at once, and cost the database
//! nothing: no statement fails, no connection is replaced. The names are read from the sources of the pages.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use diesel::connection::SimpleConnection;
use intake_test_support::{Connection, Response, is_nightly, request};

use crate::dashboard::pages::{DECLARED_IN, PASSKEY_OF_EACH_MEMBER, fill, id_on_page, routes};
use crate::fixtures::{Member, TestApp};

/// Encoded as in an address or a form.
const ODD: [&str; 10] = [
    "%00",
    "a%FF",
    "%E2%80%A8",
    "%zz",
    "-1",
    "99999999999999999999",
    "-9999-01-01",
    "0000-01-01",
    "10000-01-01",
    "ffffffff-ffff-7fff-bfff-ffffffffffff",
];
/// As long as fits into the head of a request, or into a form.
const LONG: usize = 12_000;
/// Which answers are in order. Where a password is asked for, it is wrong, and soon tried too often.
const IN_ORDER: [u16; 9] = [200, 303, 400, 401, 403, 404, 409, 422, 429];
/// Days at both ends of the calendar, and text that is no UTF-8.
const COMBINED: [&str; 7] = [
    "q=%ED%A0%80",
    "q=%",
    "from=31/12/-1",
    "from=9999-12-31&until=9999-12-31",
    "from=0001-01-01",
    "lasts=date&expires=9999-12-31",
    "lasts=65535&expires=",
];

/// A route, and the names of what its handler reads.
struct Page {
    method: &'static str,
    path: String,
    names: BTreeSet<String>,
}

/// The names of the fields of each struct of a source that is read from a query or a form.
fn read_structs(source: &str) -> Vec<Vec<String>> {
    let declared =
        source.split("#[derive(").skip(1).filter(|rest| rest.split(")]").next().unwrap().contains("Deserialize"));
    let structs = declared.filter_map(|rest| rest.split_once("struct ")).filter_map(|(_, rest)| {
        let (name, body) = rest.split_once(" {\n")?;
        let lines = body.split("\n}").next()?.lines().map(|line| line.trim().trim_start_matches("pub(crate) "));
        let fields = lines.filter(|line| !line.starts_with(['#', '/'])).filter_map(|line| line.split_once(": "));
        (!name.contains('(')).then(|| fields.map(|(field, _)| field.to_owned()).collect())
    });
    structs.collect()
}

/// The names that the handlers of a folder may read: those of its own structs, and of those that all pages share.
fn names_of(folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in [folder, "page"] {
        for entry in Path::new(DECLARED_IN).join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(read_structs(&fs::read_to_string(path).unwrap()).into_iter().flatten());
            }
        }
    }
    names
}

fn pages() -> Vec<Page> {
    let (account, keys, members) = (names_of("account"), names_of("api_keys"), names_of("members"));
    let (activity, others) = (names_of("activity"), names_of(""));
    let pages = routes().into_iter().map(|(method, path)| {
        let names = match path.split('/').nth(if path.starts_with("/settings/") { 2 } else { 1 }).unwrap() {
            "activity" | "activity.csv" => &activity,
            "api-keys" | "first-steps" | "settings" | "" => &keys,
            "members" | "invitations" => &members,
            "docs" | "docs.md" | "llms.txt" => &others,
            _ => &account,
        };
        Page { method, path, names: names.clone() }
    });
    pages.collect()
}

/// A clinic in which the pages about a key, a member, a passkey and the like exist.
struct Clinic {
    app: TestApp,
    ada: Member,
    keys: String,
    others: String,
    tokens: [(&'static str, String); 3],
    connection: RefCell<Connection>,
}

impl Clinic {
    fn new() -> Self {
        let app = TestApp::start();
        let (ada, grace) = (app.member("ada@clinic.example"), app.member("grace@clinic.example"));
        drop(grace);
        let _ = app.clinic.key();
        let mailed = "a".repeat(64);
        let change = format!(
            "INSERT INTO email_changes SELECT id, 'g@clinic.example', sha256('{mailed}'), now() + interval '1 hour'
                FROM members WHERE email = 'grace@clinic.example'"
        );
        app.database.connect().batch_execute(&format!("{PASSKEY_OF_EACH_MEMBER}; {change}")).unwrap();
        let last = |path: String| path.rsplit('/').next().unwrap().to_owned();
        let tokens = [
            ("/invitations/", last(app.invite("jo@clinic.example"))),
            ("/reset-password/", last(app.reset_password("grace@clinic.example"))),
            ("/confirm-email/", mailed),
        ];
        let keys = ada.get("/settings/api-keys").text();
        let others = ["/settings/members", "/settings/account"].map(|path| ada.get(path).text()).concat();
        let save = "CREATE SCHEMA saved; CREATE TABLE saved.members AS TABLE members;
            CREATE TABLE saved.memberships AS TABLE memberships; CREATE TABLE saved.sessions AS TABLE sessions";
        app.database.connect().batch_execute(save).unwrap();
        let connection = RefCell::new(ada.client.connect());
        Self { app, ada, keys, others, tokens, connection }
    }

    fn path(&self, route: &str) -> String {
        let token = || self.tokens.iter().find(|(begin, _)| route.starts_with(begin)).unwrap().1.clone();
        fill(route, |name| if name == "token" { token() } else { id_on_page(name, &self.keys, &self.others) })
    }

    /// Signs the members in again, whatever the page before has done.
    fn restore(&self) {
        let again = "INSERT INTO members SELECT * FROM saved.members ON CONFLICT DO NOTHING;
            INSERT INTO memberships SELECT * FROM saved.memberships ON CONFLICT DO NOTHING;
            INSERT INTO sessions SELECT * FROM saved.sessions ON CONFLICT DO NOTHING;
            UPDATE sessions SET confirmed_at = now(), last_used_at = now();
            UPDATE organisations SET second_factor_required = false, key_days_max = NULL";
        self.app.database.connect().batch_execute(again).unwrap();
        assert_eq!(self.ada.get("/settings/account").status, 200, "Ada is signed in");
    }

    fn send(&self, page: &Page, values: &str) -> Response {
        let (path, cookie) = (self.path(&page.path), ("Cookie", self.ada.cookie.as_str()));
        if page.method == "GET" {
            return self.exchange(&request(
                "GET",
                &format!("{path}?{values}"),
                &[cookie, ("Accept", "text/html")],
                b"",
            ));
        }
        // The first of two fields of one name counts in no form: both are refused. So each is there once.
        let odd: Vec<_> = values.split('&').filter_map(|field| field.split_once('=')).map(|(name, _)| name).collect();
        let form = self.form();
        let sound = form.split('&').filter(|field| !odd.contains(&field.split('=').next().unwrap()));
        let form = sound.chain([values]).collect::<Vec<_>>().join("&");
        let headers = [cookie, ("Content-Type", "application/x-www-form-urlencoded")];
        self.exchange(&request("POST", &path, &headers, form.as_bytes()))
    }

    /// Sends a request over the connection of the one before, if that is still open.
    fn exchange(&self, request: &[u8]) -> Response {
        let mut connection = self.connection.borrow_mut();
        let answer = connection.exchange(request);
        if answer.header("connection") == Some("close") {
            *connection = self.ada.client.connect();
        }
        answer
    }

    /// The fields of all forms.
    fn form(&self) -> String {
        format!(
            "form_token={}&name=k&note=n&contact=c&networks=::1&days=9&email=e%40e.co&organisation=x&id={}&ends_after=now&code=0&\
             password=x&new_password=x&role=key-manager&credential=x&client_data=x&authenticator_data=x&public_key=x&\
             signature=x&lasts=never&expires=&zone=UTC&next=",
            self.ada.form_token,
            self.path("{key}")
        )
    }

    /// Failures of the database, as the metrics count them, but for rows that were there already.
    fn failures(&self) -> Vec<String> {
        let metrics = self.app.service.probe("/metrics").text();
        let is_failure = |line: &&str| {
            line.starts_with("intake_database_reconnects_total") || line.starts_with("intake_database_errors_total")
        };
        metrics.lines().filter(is_failure).map(str::to_owned).collect()
    }
}

#[test]
fn odd_values_in_queries_and_forms_are_answered_and_cost_the_database_nothing() {
    let clinic = Clinic::new();
    let before = clinic.failures();
    assert_eq!(before.len(), 6, "{before:?}");
    let long = "x".repeat(LONG);
    let pages = pages();
    let mut sent = 0;
    for (turn, page) in pages.iter().enumerate() {
        clinic.restore();
        let single = page.names.iter().enumerate().flat_map(|(place, name)| {
            // Each night every value in every place, otherwise one in each.
            let (skip, take) = if is_nightly() { (0, ODD.len()) } else { ((turn + place) % ODD.len(), 1) };
            ODD.iter().skip(skip).take(take).map(move |value| format!("{name}={value}"))
        });
        let all = ODD
            .iter()
            .map(|value| page.names.iter().map(|name| format!("{name}={value}")).collect::<Vec<_>>().join("&"));
        let others =
            COMBINED.iter().map(|text| (*text).to_owned()).chain([format!("q={long}"), format!("name={long}")]);
        for values in single.chain(all).chain(others) {
            let answer = clinic.send(page, &values);
            let shown: String = values.chars().take(200).collect();
            let place = format!("{} {} {shown}", page.method, page.path);
            assert!(IN_ORDER.contains(&answer.status), "{place}: {} {}", answer.status, answer.text());
            sent += 1;
        }
        assert_eq!(clinic.failures(), before, "{} {}", page.method, page.path);
    }
    assert!(sent > if is_nightly() { 5_000 } else { 1_000 }, "{sent}");
}
