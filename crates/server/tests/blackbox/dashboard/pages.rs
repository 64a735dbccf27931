//! Every page of the dashboard, read from where its routes are declared, and a tour that shows each of them in a
//! browser. A new page is tried by every test that goes by this list; one that the tour cannot reach by itself fails
//! it.

use std::path::Path;

use intake_test_support::{Browser, patient};

use crate::accounts::single_sign_on::made_up_provider::{MadeUpProvider, Round};
use crate::fixtures::{PASSWORD, TestApp, accept_invitation, between, confirm_identity, create_key, unconfirm};

/// The folder of the sources that declare the routes.
pub(crate) const DECLARED_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../dashboard/src");

/// A method and a path, in which `{key}` and the like stand for ids.
pub(crate) type Route = (&'static str, String);

/// Every route of the dashboard but those of the assets, which are the same for everybody.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = all_routes();
    routes.retain(|(_, path)| !path.starts_with("/assets/"));
    routes
}

/// Every route of the dashboard.
pub(crate) fn all_routes() -> Vec<Route> {
    let mut routes = Vec::new();
    let mut folders = vec![Path::new(DECLARED_IN).to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                routes.extend(declared_in(&std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    routes.sort();
    routes
}

/// Those that only a member who is signed in may ask for.
pub(crate) fn walled_routes() -> Vec<Route> {
    let walled: Vec<_> = routes()
        .into_iter()
        .filter(|(_, path)| {
            path.starts_with("/settings") || ["/sign-out", "/choose-organisation"].contains(&path.as_str())
        })
        .collect();
    assert!(walled.contains(&("POST", "/settings/members/{member}/remove".to_owned())), "{walled:?}");
    walled
}

/// A path with an id for each of its names in braces.
pub(crate) fn fill(path: &str, id: impl Fn(&str) -> String) -> String {
    let parts = path.split('/').map(|part| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
        Some(name) => id(name),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

fn declared_in(source: &str) -> Vec<Route> {
    for other in ["web::resource(", ".route(", "#[get(", "#[post("] {
        assert!(!source.contains(other), "routes are declared with {other}..): read them here, too");
    }
    let source: String = source.chars().filter(|c| !c.is_whitespace()).collect();
    let declared = |call, method| {
        let routes = source.split(call).skip(1).filter_map(move |rest| {
            // What looks something up, in a map or in headers, is called with one argument.
            let first = rest.split_once(['(', ',', ')']).filter(|(first, _)| rest[first.len()..].starts_with(','))?.0;
            let path = first.strip_prefix('"').and_then(|path| path.strip_suffix('"'));
            Some((
                method,
                path.unwrap_or_else(|| panic!("a route that is declared in another way: {first}")).to_owned(),
            ))
        });
        routes.collect::<Vec<_>>()
    };
    [declared(".get(", "GET"), declared(".post(", "POST")].concat()
}

/// State that must exist before a browser can see a page.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nobody,
    AnInvitation,
    AResetLink,
    AnEmailChange,
    AnUnconfirmedMember,
    AMember,
    AMemberWithoutSecondFactor,
    AMemberWithSecondFactor,
    ARightPassword,
    AChallenge,
}

/// None for what nobody looks at: it leads elsewhere, is a file, or scripts ask for it.
fn needs(path: &str) -> Option<Needs> {
    match path {
        "/sign-in" | "/docs" | "/help" | "/components" => Some(Needs::Nobody),
        "/invitations/{token}" => Some(Needs::AnInvitation),
        "/reset-password/{token}" => Some(Needs::AResetLink),
        "/confirm-email/{token}" => Some(Needs::AnEmailChange),
        "/sign-in/code" => Some(Needs::ARightPassword),
        "/sign-in/passkey" => Some(Needs::AChallenge),
        "/settings/confirm" => Some(Needs::AnUnconfirmedMember),
        "/settings/account/second-factor" => Some(Needs::AMemberWithoutSecondFactor),
        "/settings/account/second-factor/turn-off"
        | "/settings/account/recovery-codes"
        | "/settings/policies/require-two-step-sign-in" => Some(Needs::AMemberWithSecondFactor),
        "/"
        | "/docs.md"
        | "/docs/changes.atom"
        | "/docs/postman.json"
        | "/llms.txt"
        // It exists only where mails are sent.
        | "/forgotten-password"
        // Ways to the provider of single sign-on, and back.
        | "/sign-in/provider"
        | "/sign-in/provider/return"
        | "/invitations/{token}/provider"
        | "/settings/confirm/provider"
        // Looked at where single sign-on is.
        | "/settings/account/provider"
        | "/settings"
        | "/settings/activity.csv"
        | "/settings/api-keys/channels.csv"
        // The page of marked keys, which the tour shows by itself.
        | "/settings/api-keys/selected"
        | "/settings/api-keys/{key}/first-use" => None,
        _ if path.starts_with("/settings/") || path == "/choose-organisation" => Some(Needs::AMember),
        _ => panic!("{path} is a page that the tour does not know: say what it needs"),
    }
}

fn pages(needed: Needs) -> Vec<String> {
    let routes = routes().into_iter().filter(|(method, path)| *method == "GET" && needs(path) == Some(needed));
    routes.map(|(_, path)| path).collect()
}

/// The pages that any member can open, none of which is about one key or one person.
pub(crate) fn pages_without_ids() -> Vec<String> {
    pages(Needs::AMember).into_iter().filter(|path| !path.contains('{')).collect()
}

/// Opens one page after the other and stays a while.
struct Tour<'a> {
    app: &'a TestApp,
    browser: &'a Browser,
    look: &'a dyn Fn(&str),
    seen: Vec<Needs>,
}

impl Tour<'_> {
    fn open(&self, path: &str, expected_status: u16) {
        self.browser.open(&self.app.url(path));
        let status = self.browser.run("return performance.getEntriesByType('navigation')[0].responseStatus");
        assert_eq!(status, expected_status, "{path}");
        assert_eq!(self.browser.url(), self.app.url(path), "the browser was led elsewhere");
    }

    /// Looks at all pages that need no more than there is.
    fn look_at(&mut self, needed: Needs, id: impl Fn(&str) -> String) {
        for page in pages(needed) {
            self.open(&fill(&page, &id), 200);
            (self.look)(&page);
        }
        self.seen.push(needed);
    }
}

/// Shows every page that there is, and what else a member may see: faults, and what a form leads to. `look` is called
/// at each with its name. The member and the key have the names that are given.
pub(crate) fn visit_every_page(app: &TestApp, browser: &Browser, member: &str, key: &str, look: &dyn Fn(&str)) {
    use diesel::connection::SimpleConnection;

    let mut tour = Tour { app, browser, look, seen: Vec::new() };
    let no_id = |name: &str| panic!("{{{name}}} of a page that nobody is signed in for: say where it comes from");
    tour.look_at(Needs::Nobody, no_id);
    browser.open(&app.url("/sign-in"));
    browser.press("Use a passkey instead");
    browser.wait_for("Your browser will ask");
    tour.look_at(Needs::AChallenge, no_id);
    let invitation = app.invite("ada@clinic.example");
    let token = invitation.trim_start_matches("/invitations/");
    tour.look_at(Needs::AnInvitation, |_| token.to_owned());
    accept_invitation(browser, member);
    look("no key yet");
    join_another_organisation(app);
    let created = create_key(browser, key);
    look("a new key");
    let has_scripts = browser.text().contains("Waiting for the first request");
    assert_eq!(app.service.create(&created, &patient()).status, 201);
    if has_scripts {
        browser.wait_for("First request received.");
    }
    keys_of_every_kind(app, browser);
    drop(app.member("grace@clinic.example"));
    tour.look_at(Needs::AnUnconfirmedMember, no_id);
    confirm_identity(browser);
    browser.wait_for("Address for the vendor");
    tour.open("/settings/members/invite", 200);
    browser.fill("Email", "mary@clinic.example");
    browser.press("Create invitation link");
    browser.wait_for("won't be shown again");
    look("a new invitation");
    let reset = app.reset_password("grace@clinic.example");
    tour.look_at(Needs::AResetLink, |_| reset.trim_start_matches("/reset-password/").to_owned());
    let mailed = "a".repeat(64);
    let change = "INSERT INTO email_changes SELECT id, 'grace.hopper@clinic.example', sha256('{mailed}'), now() + interval '1 hour'
        FROM members WHERE email = 'grace@clinic.example'";
    app.database.connect().batch_execute(&change.replace("{mailed}", &mailed)).unwrap();
    tour.look_at(Needs::AnEmailChange, |_| mailed.clone());
    for missing in ["/nothing", "/settings/nothing", "/invitations/used", "/reset-password/used"] {
        tour.open(missing, 404);
        look(missing);
    }

    let html = |path: &str| {
        browser.open(&app.url(path));
        browser.run("return document.documentElement.outerHTML").as_str().unwrap().to_owned()
    };
    app.database.connect().batch_execute(PASSKEY_OF_EACH_MEMBER).unwrap();
    let (keys, others) = (html("/settings/api-keys"), html("/settings/members") + &html("/settings/account"));
    look("a second factor by passkey");
    let row = keys.split("<tr").find(|row| row.contains(key)).unwrap();
    tour.look_at(Needs::AMember, |name| id_on_page(name, row, &others));
    tour.open("/settings/api-keys/select?marked=all", 200);
    let revoke = browser.run("return document.querySelector('[value=revoke]').textContent");
    browser.press(revoke.as_str().unwrap());
    browser.wait_for("This can't be undone.");
    look("revoking several keys");
    tour.look_at(Needs::AMemberWithoutSecondFactor, no_id);
    app.turn_on_second_factor(browser, || ());
    look("recovery codes");
    let confirmed =
        |at: &str| app.database.connect().batch_execute(&format!("UPDATE sessions SET confirmed_at = {at}")).unwrap();
    confirmed("NULL");
    tour.open("/settings/confirm", 200);
    look("confirming with a second factor");
    confirmed("now()");
    tour.look_at(Needs::AMemberWithSecondFactor, no_id);
    let session =
        "INSERT INTO sessions SELECT sha256(''), member_id, started_at, last_used_at, browser, address FROM sessions
        WHERE browser IS NOT NULL";
    app.database.connect().batch_execute(session).unwrap();
    tour.open("/settings/account", 200);
    look("an account with a second factor");
    tour.open("/settings/policies/require-two-step-sign-in", 200);
    browser.press("Require it");
    browser.wait_for("Required for everyone.");
    look("two-step sign-in required");

    browser.press("Sign out");
    browser.wait_for("New here?");
    app.sign_in(browser, "ada@clinic.example", PASSWORD);
    browser.wait_for("Enter your code");
    tour.look_at(Needs::ARightPassword, no_id);
    visit_as_key_manager(&tour);
    browser.press("Sign out");
    browser.wait_for("New here?");
    visit_single_sign_on(browser, look);
    for (_, path) in routes().iter().filter(|(method, _)| *method == "GET") {
        assert!(needs(path).is_none_or(|needs| tour.seen.contains(&needs)), "{path} is not on the tour");
    }
}

/// Shows what a key manager sees who has to turn on two-step sign-in.
fn visit_as_key_manager(tour: &Tour<'_>) {
    use diesel::connection::SimpleConnection;

    let Tour { app, browser, look, .. } = tour;
    let demoted = "UPDATE memberships SET role = 'key-manager' FROM members
        WHERE id = member_id AND email = 'grace@clinic.example'";
    app.database.connect().batch_execute(demoted).unwrap();
    app.database.connect().batch_execute("DELETE FROM passkeys").unwrap();
    app.sign_in(browser, "grace@clinic.example", PASSWORD);
    browser.wait_for("requires two-step sign-in for everyone");
    look("a required second factor");
    app.turn_on_second_factor(browser, || ());
    tour.open("/settings/members", 403);
    look("for administrators only");
    tour.open("/settings/account", 200);
    look("the account of a key manager");
    app.database.connect().batch_execute("UPDATE memberships SET role = 'auditor' WHERE role = 'key-manager'").unwrap();
    for list in ["/settings/api-keys", "/settings/members"] {
        tour.open(list, 200);
        look(&format!("{list} of an auditor"));
        let row = browser.run("return document.querySelector('tbody th a').getAttribute('href')");
        tour.open(row.as_str().unwrap(), 200);
        look(&format!("a row of {list} of an auditor"));
    }
    tour.open("/settings/api-keys/new", 403);
    look("auditors change nothing");
}

/// Shows what single sign-on adds to the pages of a service that has it.
fn visit_single_sign_on(browser: &Browser, look: &dyn Fn(&str)) {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let come_back = |from: &str, email: &str, words: &str| {
        browser.open(&app.url(from));
        let left = browser.url();
        assert!(left.starts_with(&provider.issuer()), "{left}");
        let parameter =
            |name: &str| left.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)).unwrap().to_owned();
        let [state, nonce] = ["state=", "nonce="].map(parameter);
        let round = Round { cookie: String::new(), address: String::new(), state, nonce };
        provider.plan().claims = provider.truth(email, &round);
        browser.open(&app.url(&format!("/sign-in/provider/return?code=a-code&state={}", round.state)));
        browser.wait_for(words);
    };
    browser.open(&app.url("/sign-in"));
    browser.wait_for("Sign in with Harbour Login");
    look("signing in by single sign-on");
    come_back("/sign-in/provider", "ann@clinic.example", "No account for ann@clinic.example");
    look("an unknown address of the provider");
    app.join(browser, "Bob", "bob@clinic.example");
    browser.open(&app.url("/settings/account"));
    browser.wait_for("Not linked.");
    look("an account that is not linked");
    browser.press("Link single sign-on");
    confirm_identity(browser);
    browser.wait_for("Continue with Harbour Login");
    look("linking an account");
    come_back("/settings/account/provider?begin=yes", "ann@clinic.example", "Your account wasn't linked");
    look("another address than that of the account");
    come_back("/settings/account/provider?begin=yes", "bob@clinic.example", "Single sign-on is linked");
    browser.press("Sign out");
    browser.wait_for("New here?");
    let invitation = app.invite("ann@clinic.example");
    browser.open(&app.url(&invitation));
    browser.wait_for("Join with Harbour Login");
    look("joining by single sign-on");
    come_back(&format!("{invitation}/provider"), "ann@clinic.example", "No API keys yet.");
    browser.open(&app.url("/settings/confirm"));
    browser.wait_for("Confirm with Harbour Login");
    look("confirming by single sign-on");
    come_back("/settings/confirm/provider?next=/settings/account/second-factor", "ann@clinic.example", "Scan this");
    app.turn_on_second_factor(browser, || ());
    unconfirm(&app);
    come_back("/settings/confirm/provider", "ann@clinic.example", "Now enter your code");
    look("confirming by single sign-on with a second factor");
    browser.open(&app.url("/settings/account"));
    browser.wait_for("by single sign-on");
    look("a session by single sign-on");
    browser.press("Sign out");
    browser.wait_for("New here?");
    let other = app.member_of(&app.other_clinic(), "ann@clinic.example");
    assert_eq!(provider.link(&app, &other, "ann@clinic.example").status, 303);
    come_back("/sign-in/provider", "ann@clinic.example", "Choose an organisation");
    look("several accounts with an address");
}

/// Gives each member a passkey that nobody holds.
pub(crate) const PASSKEY_OF_EACH_MEMBER: &str =
    "INSERT INTO passkeys (digest, member_id, credential, public_key, name, created_at)
    SELECT sha256(id::text::bytea), id, 'credential', 'key', 'Work laptop', now() FROM members";

/// The id that stands for a name in braces: of the first key, open invitation, passkey or session, or of the last
/// member, that the list of keys or the other pages show.
pub(crate) fn id_on_page(name: &str, keys: &str, others: &str) -> String {
    match name {
        "key" => between(keys, "<th scope=\"row\"><a href=\"/settings/api-keys/", "\"").chars().take(36).collect(),
        // The last one: some pages are not about oneself.
        "member" => others.rsplit_once("id=\"member-").unwrap().1.split('"').next().unwrap().to_owned(),
        "invitation" => between(others, "/settings/members/invitations/", "/"),
        "passkey" => between(others, "id=\"passkey-", "\""),
        "session" => between(others, "id=\"session-", "\""),
        _ => panic!("{{{name}}} in a path: say on which page its id is found"),
    }
}

/// Adds every member to another organisation as well, so that they can switch.
pub(crate) fn join_another_organisation(app: &TestApp) {
    use diesel::connection::SimpleConnection;

    let join = "INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Hillside Clinic');
        INSERT INTO memberships SELECT organisations.id, members.id, 'administrator', now()
            FROM organisations, members ON CONFLICT DO NOTHING";
    app.database.connect().batch_execute(join).unwrap();
}

/// Gives keys to an organisation in every state that the list can show, one under the longest name.
pub(crate) fn keys_of_every_kind(app: &TestApp, browser: &Browser) {
    use diesel::connection::SimpleConnection;

    let longest =
        "Integration of the front desk with the booking system of the other house by the harbour, as agreed ".repeat(2);
    for name in [&longest[..100], "Booking system", "Front desk", "Referral import", "Laboratory"] {
        browser.open(&app.url("/settings/api-keys"));
        create_key(browser, name);
    }
    app.database.connect().batch_execute(
        "UPDATE api_keys SET expires_at = now() + interval '300 days' WHERE name LIKE 'Integration%' OR name = 'Front desk';
         UPDATE api_keys SET contact = repeat('Acme Bookings, 02 5550 1234 ', 5) WHERE name LIKE 'Integration%' OR name = 'Front desk';
         UPDATE organisations SET key_days_max = 365;
         UPDATE api_keys SET allowed_networks = ARRAY['203.0.113.0/24', '2001:db8:1111:2222:3333:4444:5555:0/112']::cidr[]
            WHERE name LIKE 'Integration%';
         INSERT INTO key_refusals SELECT organisation_id, id, now(), repeat('r', 128), 401, 'elsewhere', '2001:db8:1111:2222:3333:4444:5555:6666'
            FROM api_keys WHERE name LIKE 'Integration%';
         UPDATE api_keys SET created_at = now() - interval '9 days', expires_at = now() - interval '1 hour' WHERE name = 'Booking system';
         UPDATE api_keys SET revoked_at = now(), revoked_by = created_by WHERE name = 'Referral import';
         INSERT INTO key_uses SELECT organisation_id, id, now() - interval '3 hours', now() FROM api_keys WHERE name = 'Front desk';",
    ).unwrap();
}

#[test]
fn routes_are_found_however_they_are_laid_out() {
    let source = "pages\n.get(\"/b/{id}\", b)\n.post(\n    \"/a\",\n    page::a,\n)\nheaders.get(NAME)";
    assert_eq!(declared_in(source), [("GET", "/b/{id}".to_owned()), ("POST", "/a".to_owned())]);
    assert!(routes().contains(&("GET", "/settings/api-keys".to_owned())));
}

#[test]
#[should_panic(expected = "declared in another way")]
fn a_route_that_cannot_be_read_is_not_passed_over() {
    let _ = declared_in("pages.get(NEW_PAGE, page)");
}

#[test]
#[should_panic(expected = "say what it needs")]
fn a_page_that_the_tour_does_not_know_is_not_passed_over() {
    let _ = needs("/welcome");
}
