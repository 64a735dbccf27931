//! What protects the dashboard: its cookie, its headers, its forms, and the walls between organisations. Without a
//! browser, because an attacker does not keep to what a browser allows.

use std::collections::BTreeMap;

use intake_domain::KeyId;
use intake_test_support::{request, wait_for};

use crate::dashboard::pages::{PASSKEY_OF_EACH_MEMBER, all_routes, fill, id_on_page, routes, walled_routes};
use crate::fixtures::{Member, PASSWORD, TestApp, between, password_field, post};

/// A form with the fields of all forms. The password is not Ada's.
fn everything(key: &KeyId) -> String {
    format!(
        "name=k&note=n&contact=c&networks=::1&days=9&zone=UTC&email=e%40e.co&organisation=x&id={key}&ends_after=now&code=0&password=x&new_password=x&role=key-manager&credential=x&client_data=x&authenticator_data=x&public_key=x&signature=x"
    )
}

#[test]
fn the_cookie_is_for_this_host_over_https_and_out_of_reach_for_scripts() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let signed_in = post(&ada.client, "/sign-in", &[], &form);
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-intake-session="), "{cookie}");
    for attribute in ["; Path=/", "; Secure", "; HttpOnly", "; SameSite=Lax", "; Max-Age=604800"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    let again = Member::signed_in(ada.client.clone(), &signed_in);
    assert_ne!(again.cookie, ada.cookie, "a token for each sign-in");
    let token = ada.cookie.split_once('=').unwrap().1;
    assert_eq!(app.database.tables_that_hold(token), [""; 0]);
    let out = again.post("/sign-out", "");
    assert!(out.all("set-cookie")[0].contains("Max-Age=0"));
    assert_eq!(again.get("/settings/account").status, 303, "the session itself has ended");
    assert_eq!(ada.get("/settings/account").status, 200, "the other one has not");
}

#[test]
fn every_page_carries_the_policy() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let pages = routes().into_iter().filter(|(method, _)| *method == "GET").map(|(_, path)| path);
    let others = ["/nothing", "/assets/style.css", "/assets/none"].map(str::to_owned);
    for path in pages.chain(others) {
        let response = ada.get(&fill(&path, |_| "x".to_owned()));
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        // The documentation is the same for everybody.
        let is_shared = path.starts_with("/docs") || path == "/llms.txt";
        let kept = if is_shared { "no-cache" } else { "no-store" };
        let expected = [
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", kept),
            ("x-content-type-options", "nosniff"),
            ("strict-transport-security", "max-age=31536000"),
        ];
        for (name, value) in expected {
            assert_eq!(response.header(name), Some(value), "{path}");
        }
        assert!(response.header("permissions-policy").is_some());
    }
    let page = ada.get("/settings/api-keys/new").text();
    assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("onclick"), "nothing is inline");
}

#[test]
fn every_path_refuses_other_methods_and_names_its_own() {
    const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "get"];

    let app = TestApp::start();
    let client = app.service.client();
    let document = client.send(&request("GET", "/api/v1/openapi.json", &[], b"")).json();
    let operations = document["paths"].as_object().unwrap().iter().map(|(path, methods)| {
        let method = if methods.get("post").is_some() { "POST" } else { "GET" };
        (method, format!("/api/v1{path}"))
    });
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for (method, path) in all_routes().into_iter().chain(operations) {
        paths.entry(path).or_default().push(method);
    }
    assert!(paths.contains_key("/assets/{name}") && paths.contains_key("/api/v1/key"), "{paths:?}");
    for (path, mut allowed) in paths {
        if allowed.contains(&"GET") {
            allowed.insert(1, "HEAD");
        }
        let allow = [&*allowed, &["OPTIONS"]].concat().join(", ");
        let path = fill(&path, |_| "x".to_owned());
        let asked = client.send(&request("OPTIONS", &path, &[], b""));
        assert_eq!((asked.status, asked.header("allow")), (204, Some(&*allow)), "{path}");
        let ask = |method, accept| {
            let mut connection = client.connect();
            connection.write(&request(method, &path, &[("Accept", accept)], b""));
            if method == "HEAD" { connection.read_head() } else { connection.read() }
        };
        for method in METHODS.into_iter().filter(|method| !allowed.contains(method)) {
            let (page, problem) = (ask(method, "text/html"), ask(method, "*/*"));
            for refused in [&page, &problem] {
                assert_eq!((refused.status, refused.header("allow")), (405, Some(&*allow)), "{method} {path}");
            }
            let types = [page, problem].map(|refused| refused.header("content-type").unwrap().to_owned());
            let of_page = if path.starts_with("/api/") { "application/json" } else { "text/html; charset=utf-8" };
            assert_eq!(types, [of_page, "application/json"], "{method} {path}");
        }
        if allowed.contains(&"HEAD") {
            assert_eq!(ask("HEAD", "*/*").status, ask("GET", "*/*").status, "{path}");
        }
    }
}

#[test]
fn visitors_are_led_to_the_sign_in_page_or_refused() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (key, _) = app.clinic.key();
    let member = app.database.count("members");
    assert_eq!(member, 1);
    for cookie in [
        "",
        "__Host-intake-session=",
        "__Host-intake-session=x",
        &format!("__Host-intake-session={}", "0".repeat(64)),
        "=;;=;",
        "a=b; __Host-intake-session=é",
    ] {
        for (method, path) in walled_routes() {
            let path = fill(&path, |_| key.to_string());
            let headers = [("Cookie", cookie), ("Content-Type", "application/x-www-form-urlencoded")];
            let form = format!("form_token={}&{}", ada.form_token, everything(&key));
            let body = if method == "POST" { form.as_bytes() } else { b"" };
            let response = ada.client.send(&request(method, &path, &headers, body));
            let location = response.header("location").unwrap();
            assert!(response.status == 303 && location.split('?').next() == Some("/sign-in"), "{method} {path}");
        }
    }
    assert_eq!((app.database.count("api_keys"), app.database.count("invitations")), (1, 1), "nothing was changed");
}

#[test]
fn another_organisations_keys_and_members_are_not_there() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    let (own_key, _) = app.clinic.key();
    let (foreign_key, foreign_secret) = elsewhere.key();
    for member in [&ada, &eve] {
        assert_eq!(member.post("/settings/members/invite", "email=grace%40third.example").status, 200);
    }
    app.database.connect().batch_execute(PASSKEY_OF_EACH_MEMBER).unwrap();
    let lists = |member: &Member| {
        let others = ["/settings/members", "/settings/account"].map(|path| member.get(path).text());
        [member.get("/settings/api-keys").text(), others.concat()]
    };
    let (own, foreign) = (lists(&ada), lists(&eve));
    let at = |path: &str, [keys, others]: &[String; 2]| fill(path, |name| id_on_page(name, keys, others));
    for (method, path) in walled_routes().into_iter().filter(|(_, path)| path.contains('{')) {
        let ask = |path: &str| {
            if method == "POST" { ada.post(path, &everything(&own_key)) } else { ada.get(path) }
        };
        assert_eq!(ask(&at(&path, &foreign)).status, 404, "{method} {path}");
        assert_eq!(ask(&fill(&path, |_| "nonsense".to_owned())).status, 404, "{method} {path}");
        if method == "GET" {
            assert_ne!(ask(&at(&path, &own)).status, 404, "{method} {path}");
        }
    }
    assert_eq!(app.database.count("invitations WHERE accepted_by IS NULL"), 2, "nothing was withdrawn");
    assert_eq!(eve.get("/settings/account").status, 200, "nobody was signed out");
    assert_eq!(app.service.create(&foreign_secret, &intake_test_support::patient()).status, 201, "nothing was revoked");
    for path in ["/settings/api-keys", "/settings/members", "/settings/activity"] {
        let page = ada.get(path).text();
        assert!(!page.contains("elsewhere.example") && !page.contains(&foreign_key.to_string()), "{path}");
    }
}

#[test]
fn a_form_of_another_session_changes_nothing() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let eve = app.member_of(&app.other_clinic(), "eve@elsewhere.example");
    let (key, _) = app.clinic.key();
    let member = between(&ada.get("/settings/members").text(), "id=\"member-", "\"");
    for (_, path) in walled_routes().into_iter().filter(|(method, _)| *method == "POST") {
        let path = fill(&path, |name| if name == "member" { member.clone() } else { key.to_string() });
        for token in ["", "x", eve.form_token.as_str()] {
            let form = format!("form_token={token}&{}", everything(&key));
            let response = post(&ada.client, &path, &[("Cookie", &ada.cookie)], &form);
            assert_eq!(response.status, 403, "{path}");
            assert!(response.text().contains("out of date"), "{path}");
        }
        let response = post(&ada.client, &path, &[("Cookie", &ada.cookie)], "nonsense");
        assert_eq!(response.status, 400, "{path}");
    }
    assert_eq!((app.database.count("api_keys"), app.database.count("invitations")), (1, 2));
    assert_eq!(ada.get("/settings/account").status, 200);
}

#[test]
fn no_other_site_can_ask_for_a_change() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let form = format!("form_token={}&email=grace%40clinic.example", ada.form_token);
    let send = |header: (&str, &str)| {
        post(&ada.client, "/settings/members/invite", &[("Cookie", &ada.cookie), header], &form).status
    };
    for header in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Origin", "https://evil.example"),
        ("Origin", "http://localhost"),
        ("Origin", "null"),
    ] {
        assert_eq!(send(header), 403, "{header:?}");
    }
    for header in [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "none"), ("Origin", "https://localhost")] {
        assert_eq!(send(header), 200, "{header:?}");
    }
    let sign_in = post(&ada.client, "/sign-in", &[("Sec-Fetch-Site", "cross-site")], "email=a%40b.co&password=x");
    assert_eq!(sign_in.status, 403);
}

#[test]
fn a_form_that_is_sent_twice_makes_one_key() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let page = ada.get("/settings/api-keys/new").text();
    let id = between(&page, "name=\"id\" value=\"", "\"");
    let form = format!("id={id}&name=Twice&expires=");
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let racers = (0..8).map(|_| scope.spawn(|| ada.post("/settings/api-keys", &form).status));
        racers.collect::<Vec<_>>().into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(app.database.count("api_keys"), 1);
    assert_eq!(app.database.count("audit_entries WHERE action = 'key_created'"), 1);
}

#[test]
fn the_audit_log_can_only_grow() {
    use diesel::Connection;
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let _ada = app.member("ada@clinic.example");
    let mut connection = diesel::pg::PgConnection::establish(app.database.service.expose()).unwrap();
    for forbidden in ["UPDATE audit_entries SET actor = 'Eve'", "DELETE FROM audit_entries", "TRUNCATE audit_entries"] {
        assert!(connection.batch_execute(forbidden).is_err(), "{forbidden}");
    }
    assert!(app.database.count("audit_entries") >= 2);
}

#[test]
fn a_session_ends_when_it_was_idle_or_is_old() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let age = |column: &str, by: &str| {
        let sql = format!("UPDATE sessions SET {column} = now() - interval '{by}'");
        app.database.connect().batch_execute(&sql).unwrap();
    };
    age("last_used_at", "11 hours 59 minutes");
    assert_eq!(ada.get("/settings/account").status, 200);
    wait_for("the use to count", || {
        app.database.count("sessions WHERE last_used_at > now() - interval '1 minute'") == 1
    });
    age("last_used_at", "12 hours 1 minute");
    assert_eq!(ada.get("/settings/account").status, 303);
    age("last_used_at", "1 minute");
    age("started_at", "6 days 23 hours");
    assert_eq!(ada.get("/settings/account").status, 200);
    age("started_at", "7 days 1 minute");
    assert_eq!(ada.get("/settings/account").status, 303);
}

#[test]
fn the_audit_log_shows_entries_of_a_newer_program() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let newer = "UPDATE audit_entries SET action = 'key_lent' WHERE action = 'member_joined'";
    app.database.connect().batch_execute(newer).unwrap();
    let activity = ada.get("/settings/activity").text();
    assert!(activity.contains("key lent: <strong>ada@clinic.example</strong>"), "{activity}");
}

#[test]
fn a_page_that_fails_is_logged_once_with_its_cause() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    app.database.connect().batch_execute("UPDATE members SET name = ''").unwrap();
    let failed = ada.get("/settings/account");
    assert_eq!(failed.status, 500);
    let request_id = failed.header("x-request-id").unwrap();
    let errors = || app.service.output().lines().filter(|line| line.contains("ERROR")).map(str::to_owned).collect();
    wait_for("the line", || !Vec::<String>::is_empty(&errors()));
    let lines: Vec<String> = errors();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains(request_id) && lines[0].contains("must be 1 to 100 characters long"), "{lines:?}");
}

#[test]
fn expired_rows_are_removed_some_time_after_the_start() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let dead = "INSERT INTO sessions SELECT 'dead', id, now() - interval '8 days', now() FROM members";
    app.database.connect().batch_execute(dead).unwrap();
    wait_for("the dead session to go", || app.database.count("sessions") == 1);
    assert_eq!(ada.get("/settings/account").status, 200, "the other one is alive");
}

#[test]
fn an_organisation_has_no_more_keys_and_people_than_it_may_have() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let id = app.clinic.organisation;
    let almost_full = format!(
        "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, revoked_at)
            SELECT gen_random_uuid(), '{id}', 'k', sha256(n::text::bytea), 'abcd', now(),
                CASE WHEN n >= 499 THEN now() END FROM generate_series(0, 599) AS n;
         INSERT INTO invitations (token_digest, organisation_id, email, expires_at, is_mailed)
            SELECT sha256(n::text::bytea), '{id}', 'a@b.co',
                now() + CASE WHEN n < 498 THEN 1 ELSE -1 END * interval '1 hour', false
            FROM generate_series(0, 599) AS n;"
    );
    app.database.connect().batch_execute(&almost_full).unwrap();
    let create = || {
        let page = ada.get("/settings/api-keys/new").text();
        let id = between(&page, "name=\"id\" value=\"", "\"");
        ada.post("/settings/api-keys", &format!("id={id}&name=k&expires="))
    };
    let invite = |name: &str| ada.post("/settings/members/invite", &format!("email={name}%40clinic.example"));
    assert_eq!((create().status, invite("grace").status), (200, 200), "the last ones");
    assert_eq!(invite("grace").status, 200, "in the place of the earlier one");
    let (key, invitation) = (create(), invite("mary"));
    assert_eq!((key.status, invitation.status), (409, 409));
    assert!(key.text().contains("limit of active keys"));
    assert!(invitation.text().contains("500 members and open invitations, which is the limit"));
    let active = "api_keys WHERE revoked_at IS NULL";
    let open = "invitations WHERE accepted_by IS NULL AND expires_at > now()";
    assert_eq!((app.database.count(active), app.database.count(open)), (500, 499));
}
