//! A provider that lies, is slow or is away, and browsers that come back with what is not theirs: nobody gets in, and
//! nobody waits for long.

use std::thread;
use std::time::{Duration, Instant};

use intake_edge as edge;
use intake_test_support::{Response, request, wait_for};
use serde_json::{Value, json};

use crate::accounts::single_sign_on::made_up_provider::{MadeUpProvider, Pace, Plan, Round, begin, come_back};
use crate::fixtures::{PASSWORD, TestApp, password_field, post};

/// Time that a provider takes which hangs or trickles, and is not given up.
const OTHERWISE: Duration = Duration::from_secs(60);

/// A change of what the provider says.
type Lie = Box<dyn Fn(&mut Plan)>;

#[track_caller]
fn assert_refused(answer: &Response, status: u16, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    assert!(answer.all("set-cookie").iter().all(|cookie| !cookie.contains("__Host-intake-session=")), "{what}");
    let page = answer.text();
    assert!(page.contains("<h1>") && page.contains("Back to sign in"), "{what}: words and a way back: {page}");
}

#[test]
fn no_lie_lets_anybody_in() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    let now = edge::now().unix_timestamp();
    let claim = |name: &'static str, value: Value| move |plan: &mut Plan| plan.claims[name] = value.clone();
    let lies: [(&str, Lie); 21] = [
        ("a key that is not the provider's", Box::new(|plan| plan.signs_with = 1)),
        ("no signature", Box::new(|plan| plan.algorithm = "none")),
        ("a signature that the client could make", Box::new(|plan| plan.algorithm = "HS256")),
        ("a signature of another kind", Box::new(|plan| plan.algorithm = "RS256")),
        ("another issuer", Box::new(claim("iss", json!("https://login.example")))),
        ("another client", Box::new(claim("aud", json!("another")))),
        ("another client as well", Box::new(claim("aud", json!(["intake", "another"])))),
        ("another round", Box::new(claim("nonce", json!("another")))),
        ("no round", Box::new(claim("nonce", json!(null)))),
        ("too old", Box::new(claim("exp", json!(now - 1)))),
        ("not valid yet", Box::new(claim("nbf", json!(now + 3600)))),
        ("made later", Box::new(claim("iat", json!(now + 3600)))),
        ("made long ago", Box::new(claim("iat", json!(now - 3600)))),
        ("for another party", Box::new(claim("azp", json!("another")))),
        ("signed in there later", Box::new(claim("auth_time", json!(now + 3600)))),
        ("nobody", Box::new(claim("sub", json!("")))),
        ("an address that is not verified", Box::new(claim("email_verified", json!(false)))),
        ("an address of which nothing is said", Box::new(claim("email_verified", json!(null)))),
        ("a word for yes", Box::new(claim("email_verified", json!("true")))),
        ("no address", Box::new(claim("email", json!("ann")))),
        ("a longer address", Box::new(claim("email", json!("ann@clinic.example\u{0}")))),
    ];
    for (what, lie) in lies {
        let round = begin(&app, "/sign-in/provider", "");
        let truth = provider.truth("ann@clinic.example", &round);
        {
            let mut plan = provider.plan();
            (plan.claims, plan.algorithm, plan.signs_with) = (truth, "ES256", 0);
            lie(&mut plan);
        }
        assert_refused(&come_back(&app, &round, ""), 403, what);
    }
    let log = app.service.output();
    assert!(!log.contains("ann@clinic.example") && !log.contains("the-code"), "{log}");
}

#[test]
fn what_is_said_later_counts_if_it_is_about_the_same_person() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    for (person, is_verified, status) in
        [("ann@clinic.example", true, 303), ("bob", true, 403), ("ann@clinic.example", false, 403)]
    {
        let round = begin(&app, "/sign-in/provider", "");
        let mut claims = provider.truth("ann@clinic.example", &round);
        claims["sub"] = json!("ann@clinic.example");
        claims.as_object_mut().unwrap().remove("email");
        let later = json!({ "sub": person, "email": "ann@clinic.example", "email_verified": is_verified });
        (provider.plan().claims, provider.plan().told_later) = (claims, None);
        provider.plan().told_later = Some(later);
        assert_eq!(come_back(&app, &round, "").status, status, "{person} {is_verified}");
    }
}

/// Entra ID says that the directory owns the domain, and not that the address is verified.
#[test]
fn an_address_of_a_domain_that_the_directory_owns_counts_unless_it_is_said_to_be_unverified() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    for (owned, verified, status) in [
        (json!(true), json!(null), 303),
        (json!("1"), json!(null), 303),
        (json!(1), json!(null), 303),
        (json!(false), json!(null), 403),
        (json!("0"), json!(null), 403),
        (json!(true), json!(false), 403),
    ] {
        let round = begin(&app, "/sign-in/provider", "");
        let mut claims = provider.truth("ann@clinic.example", &round);
        (claims["xms_edov"], claims["email_verified"]) = (owned.clone(), verified.clone());
        provider.plan().claims = claims;
        assert_eq!(come_back(&app, &round, "").status, status, "{owned} {verified}");
    }
}

#[test]
fn what_belongs_to_another_browser_is_refused_and_nothing_works_twice() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    let [mine, other] = [(); 2].map(|()| begin(&app, "/sign-in/provider", ""));
    provider.plan().claims = provider.truth("ann@clinic.example", &other);
    let mixed =
        Round { cookie: mine.cookie.clone(), address: String::new(), state: other.state.clone(), nonce: String::new() };
    assert_refused(&come_back(&app, &mixed, ""), 400, "another browser's state");
    let without = Round { cookie: "a=b".to_owned(), ..mixed };
    assert_refused(&come_back(&app, &without, ""), 400, "no cookie");
    // The token of another round, though the state is this browser's.
    assert_refused(&come_back(&app, &mine, ""), 403, "another round's token");
    let asked = provider.plan().asked.len();
    let denied = format!("/sign-in/provider/return?error=access_denied&state={}", mine.state);
    let denied = app.service.client().send(&request("GET", &denied, &[("Cookie", &mine.cookie)], b""));
    assert_refused(&denied, 403, "the provider refuses");
    assert_eq!(provider.plan().asked.len(), asked, "nothing was asked for it");
    // The cookie of a round ends with it.
    let round = begin(&app, "/sign-in/provider", "");
    provider.plan().claims = provider.truth("ann@clinic.example", &round);
    let signed_in = come_back(&app, &round, "");
    assert_eq!(signed_in.status, 303);
    let ended = |cookie: &&&str| cookie.starts_with("__Host-intake-provider=;") && cookie.contains("Max-Age=0");
    assert!(signed_in.all("set-cookie").iter().any(|cookie| ended(&cookie)));
    for cookie in begin_cookie_attributes(&app) {
        assert!(["Path=/", "Secure", "HttpOnly", "SameSite=Lax", "Max-Age=600"].contains(&cookie.as_str()), "{cookie}");
    }
}

fn begin_cookie_attributes(app: &TestApp) -> Vec<String> {
    let left = app.service.client().send(&request("GET", "/sign-in/provider", &[], b""));
    let cookie = left.all("set-cookie")[0];
    cookie.split("; ").skip(1).map(str::to_owned).collect()
}

#[test]
fn a_link_of_another_site_leads_to_the_page_and_not_to_the_provider() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let invitation = app.invite("ann@clinic.example");
    for (from, page) in
        [("/sign-in/provider", "/sign-in".to_owned()), (&format!("{invitation}/provider"), invitation.clone())]
    {
        for (site, is_led_on) in [("cross-site", false), ("same-site", false), ("same-origin", true), ("none", true)] {
            let headers = [("Sec-Fetch-Site", site)];
            let answer = app.service.client().send(&request("GET", from, &headers, b""));
            let location = answer.header("location").unwrap();
            assert_eq!((location == page, location.starts_with("http:")), (!is_led_on, is_led_on), "{from} {site}");
        }
    }
}

#[test]
fn new_keys_of_the_provider_are_fetched_when_they_are_first_used() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.member(&app, "ann@clinic.example");
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 303);
    let documents = || provider.plan().asked.iter().filter(|line| line.contains("/.well-known/")).count();
    assert_eq!(documents(), 1);
    (provider.plan().signs_with, provider.plan().publishes) = (1, 0);
    provider.plan().publishes = 1;
    // Tokens of unknown keys can be made up: the provider is not asked for keys with each.
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 403);
    assert_eq!(documents(), 1);
    thread::sleep(Duration::from_secs(31));
    assert_eq!(provider.sign_in(&app, "ann@clinic.example").status, 303);
    assert_eq!(documents(), 2);
}

#[test]
fn a_provider_that_is_slow_floods_or_leads_elsewhere_is_given_up_within_seconds() {
    thread::scope(|scope| {
        for pace in [Pace::Hangs, Pace::Trickles, Pace::Floods, Pace::Redirects] {
            scope.spawn(move || assert_given_up(pace));
        }
    });
}

fn assert_given_up(pace: Pace) {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    let ask = || app.service.client().send(&request("GET", "/sign-in/provider", &[], b""));
    provider.plan().document = pace;
    let began = Instant::now();
    assert_refused(&ask(), 503, "the document");
    assert!(began.elapsed() < OTHERWISE / 2, "{pace:?}: {:?}", began.elapsed());
    // What has just failed is not tried again.
    let asked = provider.plan().asked.len();
    assert_refused(&ask(), 503, "the document again");
    assert_eq!(provider.plan().asked.len(), asked, "{pace:?}");
    provider.plan().document = Pace::AtOnce;
    wait_for("another try", || ask().status != 503);
    let round = begin(&app, "/sign-in/provider", "");
    provider.plan().tokens = pace;
    let began = Instant::now();
    let refused = come_back(&app, &round, "");
    assert!([403, 503].contains(&refused.status), "{pace:?}: {}", refused.text());
    assert!(began.elapsed() < OTHERWISE / 2, "{pace:?}: {:?}", began.elapsed());
    assert!(provider.plan().asked.iter().all(|line| !line.contains("/elsewhere")), "no redirection is followed");
}

#[test]
fn another_issuer_in_the_document_is_refused() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    provider.plan().issuer = Some("https://login.example");
    let refused = app.service.client().send(&request("GET", "/sign-in/provider", &[], b""));
    assert_refused(&refused, 503, "another issuer");
}

/// Steps that hang hold a bounded number of threads and nobody else: passwords and the interface go on.
#[test]
fn a_crowd_that_waits_for_a_hanging_provider_keeps_nobody_out() {
    let provider = MadeUpProvider::start();
    let app = provider.with_service();
    app.member("ann@clinic.example");
    let round = begin(&app, "/sign-in/provider", "");
    provider.plan().tokens = Pace::Hangs;
    let began = Instant::now();
    thread::scope(|scope| {
        let crowd: Vec<_> = (0..40).map(|_| scope.spawn(|| come_back(&app, &round, "").status)).collect();
        let hanging = || provider.plan().asked.iter().filter(|line| line.contains("/token")).count();
        wait_for("a crowd at the provider", || hanging() > 0);
        let form = format!("email=ann%40clinic.example&{}", password_field(PASSWORD));
        assert_eq!(post(&app.service.client(), "/sign-in", &[], &form).status, 303);
        assert_eq!(app.create(&intake_test_support::patient()).status, 201);
        assert!(crowd.iter().any(|one| !one.is_finished()), "they were answered before the crowd was");
        for one in crowd {
            assert_eq!(one.join().unwrap(), 503);
        }
        // Eight wait at once, and on a busy machine eight more after them.
        assert!(hanging() <= 16, "{} of 40 requests reached the provider", hanging());
    });
    // Five seconds in the queue and six at the provider. One after the other they would wait for four minutes.
    assert!(began.elapsed() < 2 * OTHERWISE, "{:?}", began.elapsed());
}

#[test]
fn a_provider_that_is_away_gets_a_page_and_passwords_go_on() {
    let provider = MadeUpProvider::start();
    let app =
        TestApp::start_with(|builder| provider.settings(builder).setting("INTAKE_OIDC_ISSUER", "http://127.0.0.1:9"));
    let refused = app.service.client().send(&request("GET", "/sign-in/provider", &[], b""));
    assert_refused(&refused, 503, "away");
    assert!(refused.text().contains("Harbour Login doesn&#39;t answer"), "{}", refused.text());
    app.member("ann@clinic.example");
}
