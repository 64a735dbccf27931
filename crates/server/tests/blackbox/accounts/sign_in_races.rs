//! Twelve sign-ins with the old password, in the queue of the password hasher while an account changes: none of them is
//! signed in afterwards. `INTAKE_ROUNDS=50 cargo test --test blackbox -- accounts::sign_in_races` tries it more often
//! than usual; infra's test of the same name always tries the order of the statements that often.

use intake_test_support::{Client, request, wait_for};

use crate::fixtures::{Member, PASSWORD, TestApp, cookie, password_field, post};

const SIGN_INS: usize = 12;
const NEW_PASSWORD: &str = "another horse battery staple";

/// Signs in from a network of its own, so that every sign-in has a place in the queue.
fn sign_in(client: &Client, number: usize, email: &str) -> Option<String> {
    let address = format!("2001:db8:{number:x}::1");
    let headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", address.as_str())];
    let form = format!("email={}&{}", email.replace('@', "%40"), password_field(PASSWORD));
    let answer = post(client, "/sign-in", &headers, &form);
    assert!([303, 401].contains(&answer.status), "{}", answer.text());
    (answer.status == 303).then(|| cookie(&answer))
}

/// The statuses of a page for each sign-in that was answered with a cookie, after the change and all answers.
fn statuses_after(app: &TestApp, email: &str, page: &str, change: impl FnOnce()) -> Vec<u16> {
    let client = app.service.plain_client();
    let cookies: Vec<_> = std::thread::scope(|scope| {
        let client = &client;
        let under_way: Vec<_> =
            (0..SIGN_INS).map(|number| scope.spawn(move || sign_in(client, number, email))).collect();
        wait_for("a queue", || queued(app) >= 4 || under_way.iter().all(std::thread::ScopedJoinHandle::is_finished));
        change();
        under_way.into_iter().filter_map(|one| one.join().unwrap()).collect()
    });
    let open = |cookie: &String| {
        let headers = [("X-Forwarded-Proto", "https"), ("Cookie", cookie), ("Accept", "text/html")];
        client.send(&request("GET", page, &headers, b"")).status
    };
    cookies.iter().map(open).collect()
}

fn queued(app: &TestApp) -> usize {
    let metrics = app.service.probe("/metrics").text();
    let length = metrics.lines().find_map(|line| line.strip_prefix("intake_hashing_queue_length "));
    length.unwrap().parse().unwrap()
}

fn start() -> TestApp {
    TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"))
}

fn each_round(app: &TestApp, try_round: impl Fn(Member, &str)) {
    let asked = std::env::var("INTAKE_ROUNDS").ok();
    for round in 0..asked.map_or(3, |rounds| rounds.parse::<usize>().unwrap()) {
        let email = format!("m{round}@clinic.example");
        try_round(app.member(&email), &email);
    }
}

#[test]
fn a_changed_password_ends_every_sign_in_that_began_before() {
    let app = start();
    each_round(&app, |member, email| {
        let statuses = statuses_after(&app, email, "/settings/account", || {
            let form = format!("new_{}", password_field(NEW_PASSWORD));
            assert_eq!(member.post("/settings/account/password", &form).status, 303, "and never waits behind them");
        });
        assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
        assert_eq!(member.get("/settings/account").status, 200);
    });
}

#[test]
fn a_reset_password_ends_every_sign_in_that_began_before() {
    let app = start();
    each_round(&app, |_, email| {
        let link = app.reset_password(email);
        let statuses = statuses_after(&app, email, "/settings/account", || {
            assert_eq!(post(&app.service.client(), &link, &[], &password_field(NEW_PASSWORD)).status, 303);
        });
        assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
    });
}

#[test]
fn two_step_sign_in_ends_every_sign_in_that_began_without_a_code() {
    let app = start();
    each_round(&app, |member, email| {
        let statuses = statuses_after(&app, email, "/settings/account", || {
            member.turn_on_second_factor();
        });
        assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
        assert_eq!(member.get("/settings/account").status, 200);
    });
}

#[test]
fn a_removed_members_sign_ins_lead_nowhere() {
    let app = start();
    let ada = app.member("ada@clinic.example");
    each_round(&app, |_, email| {
        let name = email.split('@').next().unwrap().to_uppercase();
        let path = ada.page_about(&name, "remove");
        let statuses = statuses_after(&app, email, "/settings/account", || {
            assert_eq!(ada.confirm(&path).status, 303);
        });
        assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
    });
}

#[test]
fn every_sign_in_has_the_role_of_after_the_change() {
    let app = start();
    let ada = app.member("ada@clinic.example");
    each_round(&app, |_, email| {
        let name = email.split('@').next().unwrap().to_uppercase();
        let path = ada.page_about(&name, "role");
        let statuses = statuses_after(&app, email, "/settings/members", || {
            assert_eq!(ada.post(&path, "role=key-manager").status, 303);
        });
        assert!(statuses.len() == SIGN_INS && statuses.iter().all(|status| *status == 403), "{statuses:?}");
    });
}
