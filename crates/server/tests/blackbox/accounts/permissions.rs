//! What each role may open and change. Every route of the dashboard is decided here: a route without a decision fails
//! the tests, and so does a page with a link or a form that its reader may not use.

use diesel::connection::SimpleConnection;
use intake_test_support::Response;

use crate::dashboard::pages::{PASSKEY_OF_EACH_MEMBER, fill, id_on_page, walled_routes};
use crate::fixtures::{Member, TestApp, between, wait_for_lock_waits};

#[derive(Clone, Copy, Debug, PartialEq)]
enum May {
    Everyone,
    ManageKeys,
    SeeEverything,
    Administer,
}

const ROLES: [(&str, [May; 3]); 3] = [
    ("key-manager", [May::Everyone, May::ManageKeys, May::ManageKeys]),
    ("auditor", [May::Everyone, May::SeeEverything, May::SeeEverything]),
    ("administrator", [May::ManageKeys, May::SeeEverything, May::Administer]),
];

fn may(role: &str, route: (&str, &str)) -> bool {
    let (_, allowed) = ROLES.iter().find(|(name, _)| *name == role).unwrap();
    let needed = needed(route);
    needed == May::Everyone || allowed.contains(&needed)
}

fn needed(route: (&str, &str)) -> May {
    let (method, path) = route;
    match path {
        "/choose-organisation"
        | "/sign-out"
        | "/settings"
        | "/settings/confirm"
        | "/settings/confirm/passkey"
        | "/settings/confirm/provider"
        | "/settings/account"
        | "/settings/account/email"
        | "/settings/account/name"
        | "/settings/account/passkeys/new"
        | "/settings/account/passkeys/{passkey}/remove"
        | "/settings/account/password"
        | "/settings/account/provider"
        | "/settings/account/recovery-codes"
        | "/settings/account/second-factor"
        | "/settings/account/second-factor/turn-off"
        | "/settings/account/sessions/end-others"
        | "/settings/account/sessions/{session}/end"
        | "/settings/api-keys/{key}"
        | "/settings/api-keys/{key}/first-use"
        | "/settings/api-keys/channels"
        | "/settings/api-keys/channels.csv" => May::Everyone,
        "/settings/api-keys" if method == "GET" => May::Everyone,
        "/settings/api-keys"
        | "/settings/api-keys/new"
        | "/settings/api-keys/{key}/contact"
        | "/settings/api-keys/select"
        | "/settings/api-keys/selected"
        | "/settings/api-keys/{key}/networks"
        | "/settings/api-keys/{key}/note"
        | "/settings/api-keys/resume-paused"
        | "/settings/api-keys/{key}/pause"
        | "/settings/api-keys/{key}/rename"
        | "/settings/api-keys/{key}/replace"
        | "/settings/api-keys/{key}/resume"
        | "/settings/api-keys/{key}/revoke" => May::ManageKeys,
        "/settings/activity"
        | "/settings/activity.csv"
        | "/settings/members"
        | "/settings/members/{member}"
        | "/settings/policies" => May::SeeEverything,
        "/settings/first-steps"
        | "/settings/api-keys/resume-stopped"
        | "/settings/api-keys/stop-all"
        | "/settings/members/invite"
        | "/settings/members/invitations/{invitation}/resend"
        | "/settings/members/invitations/{invitation}/withdraw"
        | "/settings/policies/key-age"
        | "/settings/policies/time-zone"
        | "/settings/policies/require-two-step-sign-in"
        | "/settings/policies/stop-requiring-two-step-sign-in"
        | "/settings/members/{member}/end-sessions"
        | "/settings/members/{member}/remove"
        | "/settings/members/{member}/reset-password"
        | "/settings/members/{member}/reset-second-factor"
        | "/settings/members/{member}/role" => May::Administer,
        _ => panic!("{method} {path} is a route without a decision: say who may use it"),
    }
}

/// An organisation with a member of each role, keys of every state, and an open invitation.
struct Clinic {
    app: TestApp,
    members: [(&'static str, Member); 3],
    keys: String,
    others: String,
}

impl Clinic {
    fn new() -> Self {
        let app = TestApp::start();
        let ada = app.member("ada@clinic.example");
        let join =
            |email: &str, role: &str, name: &str| Member::join(app.service.client(), &ada.invite_as(email, role), name);
        let grace = join("grace@clinic.example", "key-manager", "Grace");
        let mary = join("mary@clinic.example", "auditor", "Mary");
        let _ = app.clinic.key();
        drop(app.invite("jo@clinic.example"));
        app.database.connect().batch_execute(PASSKEY_OF_EACH_MEMBER).unwrap();
        let keys = ada.get("/settings/api-keys").text();
        let others = ["/settings/members", "/settings/account"].map(|path| ada.get(path).text()).concat();
        Self { app, members: [("administrator", ada), ("key-manager", grace), ("auditor", mary)], keys, others }
    }

    fn path(&self, route: &str) -> String {
        fill(route, |name| id_on_page(name, &self.keys, &self.others))
    }

    /// A form that would do something, were it not for the role.
    fn form(&self) -> String {
        let key = self.path("{key}");
        format!(
            "name=k&note=n&contact=c&networks=::1&days=9&email=e%40e.co&organisation=x&id={key}&ends_after=now&code=0&password=x&new_password=x&\
             role=administrator&credential=x&client_data=x&authenticator_data=x&public_key=x&signature=x&zone=UTC"
        )
    }
}

#[test]
fn every_route_answers_each_role_as_decided() {
    let clinic = Clinic::new();
    let Clinic { app, members, .. } = &clinic;
    let changes = || app.database.count("audit_entries WHERE action NOT IN ('role_refused', 'form_refused')");
    let before = changes();
    for (role, member) in members {
        for (method, route) in walled_routes() {
            let place = format!("{method} {route} as {role}");
            let path = clinic.path(&route);
            if may(role, (method, &route)) {
                // The role is looked at before the form, whose token is another session's.
                if method == "POST" {
                    let form = format!("form_token=x&{}", clinic.form());
                    let answer = crate::fixtures::post(&member.client, &path, &[("Cookie", &member.cookie)], &form);
                    assert!(answer.status == 403 && answer.text().contains("out of date"), "{place}");
                } else {
                    assert_ne!(member.get(&path).status, 403, "{place}");
                }
            } else {
                let answer = if method == "POST" { member.post(&path, &clinic.form()) } else { member.get(&path) };
                assert_refused(&answer, role, &place);
            }
        }
    }
    assert_eq!(changes(), before, "nothing was changed");
}

/// The page says why in words, within the frame of the others.
#[track_caller]
fn assert_refused(answer: &Response, role: &str, place: &str) {
    let title = if role == "auditor" { "Auditors can&#39;t change this" } else { "For administrators only" };
    let page = answer.text();
    assert!(answer.status == 403 && page.contains(title), "{place}: {} {page}", answer.status);
    let is_auditors =
        ["/settings/activity", "/settings/members", "/settings/policies"].iter().any(|path| place.ends_with(path));
    if role == "key-manager" && is_auditors && place.starts_with("key-manager GET") {
        assert!(page.contains("Only administrators and auditors can see this page."), "{place}: {page}");
    }
    assert!(page.contains("aria-label=\"Settings\"") && page.contains("Sign out"), "{place}: {page}");
}

#[test]
fn no_page_offers_what_its_reader_may_not_do() {
    let clinic = Clinic::new();
    let Clinic { app, members, .. } = &clinic;
    let key = clinic.path("/settings/api-keys/{key}");
    let change = |sql: &str| app.database.connect().batch_execute(sql).unwrap();
    let offered = |role: &str, page: &str| {
        let offered = offers(page);
        for (method, path) in &offered {
            let route = route_of(method, path);
            assert!(
                route.is_none_or(|route| may(role, (method, &route))),
                "{role} is offered {method} {path}:\n{page}"
            );
        }
        offered.len()
    };
    for (role, member) in members {
        let mut count = 0;
        for (_, route) in
            walled_routes().iter().filter(|(method, route)| *method == "GET" && may(role, (method, route)))
        {
            count += offered(role, &member.get(&clinic.path(route)).text());
        }
        assert!(count > 60, "{role}: {count}");
        for state in
            ["paused_at = now()", "paused_at = NULL, expires_at = now() + interval '1 day'", "expires_at = NULL"]
        {
            change(&format!("UPDATE api_keys SET {state}"));
            offered(role, &member.get(&key).text());
            offered(role, &member.get("/settings/api-keys").text());
        }
        change("UPDATE organisations SET second_factor_required = true");
        offered(role, &member.get("/settings/members").text());
        offered(role, &member.get("/settings/policies").text());
        change("UPDATE organisations SET second_factor_required = false");
    }
    let auditor = &members[2].1;
    for (path, shown) in [
        ("/settings/members", "jo@clinic.example"),
        ("/settings/activity", "invited <strong>mary@clinic.example"),
        ("/settings/activity.csv", "mary@clinic.example"),
        ("/settings/account", "<dd>Auditor</dd>"),
        (&key, "Activity of this key"),
    ] {
        assert!(auditor.get(path).text().contains(shown), "{path}");
    }
}

/// Returns where the links and forms of a page lead.
fn offers(page: &str) -> Vec<(&'static str, String)> {
    let mut offers = Vec::new();
    for tag in page.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let attribute = |name: &str| tag.split_once(name).map(|(_, rest)| rest.split('"').next().unwrap());
        let method = if tag.starts_with("form method=\"post\"") { "POST" } else { "GET" };
        if let Some(path) = attribute(" href=\"").or_else(|| attribute(" action=\"")) {
            offers.push((method, path.split(['?', '#']).next().unwrap().to_owned()));
        }
    }
    offers
}

/// The route that a path leads to. None: it is not behind the sign-in.
fn route_of(method: &str, path: &str) -> Option<String> {
    let fits = |route: &String| {
        let (ours, theirs): (Vec<_>, Vec<_>) = (route.split('/').collect(), path.split('/').collect());
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(our, their)| our == their || our.starts_with('{'))
    };
    let routes = walled_routes().into_iter().filter(|(declared, route)| *declared == method && fits(route));
    let found = routes.map(|(_, route)| route).min_by_key(|route| route.matches('{').count());
    assert!(found.is_some() || !path.starts_with("/settings"), "{method} {path} leads nowhere");
    found
}

#[test]
#[should_panic(expected = "a route without a decision")]
fn a_route_without_a_decision_is_not_passed_over() {
    let _ = needed(("POST", "/settings/members/{member}/promote"));
}

/// The member gets another role after the page was asked for, and before the change.
pub(crate) fn while_the_role_becomes(
    role: &str,
    name: &str,
    app: &TestApp,
    ask: impl FnOnce() -> Response + Send,
) -> Response {
    let mut connection = app.database.connect();
    let set = |role: &str| {
        format!("UPDATE memberships SET role = '{role}' FROM members WHERE id = member_id AND name = '{name}'")
    };
    connection.batch_execute(&format!("BEGIN; {}", set(role))).unwrap();
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(ask);
        wait_for_lock_waits(&app.database, 1);
        connection.batch_execute("COMMIT").unwrap();
        asked.join().unwrap()
    });
    connection.batch_execute(&set("administrator")).unwrap();
    answer
}

#[test]
fn a_member_who_just_became_an_auditor_changes_no_key() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (key, _) = app.clinic.key();
    let (paused, _) = app.clinic.key();
    assert_eq!(ada.post(&format!("/settings/api-keys/{paused}/pause"), "").status, 303);
    let id = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let keys = "SELECT api_keys::text FROM api_keys ORDER BY id";
    let before = app.database.texts(keys);
    for (path, form) in [
        ("/settings/api-keys".to_owned(), format!("id={id}&name=k&expires=")),
        (format!("/settings/api-keys/{key}/replace"), format!("id={id}&ends_after=now&lasts=same&expires=")),
        (format!("/settings/api-keys/{key}/rename"), "name=k".to_owned()),
        (format!("/settings/api-keys/{key}/note"), "note=n".to_owned()),
        (format!("/settings/api-keys/{key}/contact"), "contact=c".to_owned()),
        (format!("/settings/api-keys/{key}/networks"), "networks=::1".to_owned()),
        (format!("/settings/api-keys/{key}/pause"), String::new()),
        (format!("/settings/api-keys/{paused}/resume"), String::new()),
        (format!("/settings/api-keys/{key}/revoke"), String::new()),
        ("/settings/api-keys/selected".to_owned(), format!("do=pause&key={key}")),
        ("/settings/api-keys/selected".to_owned(), format!("do=revoke&key={key}")),
    ] {
        let refused = while_the_role_becomes("auditor", "Ada", &app, || ada.post(&path, &form));
        assert_refused(&refused, "auditor", &path);
    }
    assert_eq!(app.database.texts(keys), before);
}
