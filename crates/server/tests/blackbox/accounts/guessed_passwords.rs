//! Who guesses passwords is slowed down, and keeps nobody else out: neither by many tries, nor by many addresses, nor
//! by filling the queue of the password hasher.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use intake_test_support::{Client, ServiceBuilder, patient, wait_for};

use crate::fixtures::{OverWhenDropped, PASSWORD, TestApp, in_time, password_field, post, service};

const ADA: &str = "ada%40clinic.example";
const AT_HOME: &str = "203.0.113.2";
const WRONG: &str = "wrong wrong wrong";
/// Between two tries that come back.
const OF_A_PAIR: Duration = Duration::from_secs(30);
const OF_AN_ACCOUNT: Duration = Duration::from_secs(36);

/// Returns how many of many guesses, one after the other, are looked at; and how many of these may be such that came
/// back meanwhile.
fn looked_at(guesses: usize, comes_back: Duration, is_looked_at: impl FnMut(&usize) -> bool) -> (usize, usize) {
    let started = Instant::now();
    let count = (0..guesses).filter(is_looked_at).count();
    (count, 1 + usize::try_from(started.elapsed().as_secs() / comes_back.as_secs()).unwrap())
}

fn behind_a_trusted_proxy(builder: ServiceBuilder) -> ServiceBuilder {
    builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")
}

/// Ada is a member who has signed in from no address but the test's own.
fn start() -> TestApp {
    let app = TestApp::start_with(behind_a_trusted_proxy);
    drop(app.member("ada@clinic.example"));
    app
}

/// Tries to sign in from an address, as a trusted proxy tells it.
fn sign_in(client: &Client, address: &str, email: &str, password: &str) -> (u16, String) {
    let headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", address)];
    let form = format!("email={email}&{}", password_field(password));
    let response = post(client, "/sign-in", &headers, &form);
    (response.status, response.text())
}

/// Lets strangers try to sign in over and over while the work is done; gives what they were answered. The address and
/// the account of a try come from the numbers of stranger and round.
fn in_a_flood<T>(
    client: &Client,
    strangers: usize,
    address: impl Fn(usize, usize) -> String + Sync,
    work: impl FnOnce() -> T,
) -> (T, Vec<u16>) {
    let (is_over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        let flood: Vec<_> = (0..strangers)
            .map(|number| {
                let (is_over, refused, address) = (&is_over, &refused, &address);
                scope.spawn(move || {
                    let rounds = (0..).take_while(|_| !is_over.load(Relaxed));
                    let try_once = |round| {
                        let email = format!("stranger{number}.{round}%40clinic.example");
                        let status = sign_in(client, &address(number, round), &email, WRONG).0;
                        refused.fetch_add(usize::from(status != 401), Relaxed);
                        status
                    };
                    rounds.map(try_once).collect::<Vec<_>>()
                })
            })
            .collect();
        wait_for("a flood", || refused.load(Relaxed) > 0);
        let done = work();
        drop(over);
        (done, flood.into_iter().flat_map(|one| one.join().unwrap()).collect())
    })
}

fn network_of_their_own(number: usize, round: usize) -> String {
    format!("2001:db8:{number:x}:{round:x}::1")
}

fn addresses_of_one_network(number: usize, round: usize) -> String {
    format!("2001:db8:0:7:{number:x}:{round:x}::")
}

/// Returns how many of ten tries of the owner are let in.
fn let_in(client: &Client, address: &str) -> usize {
    (0..10).filter(|_| sign_in(client, address, ADA, PASSWORD).0 == 303).count()
}

#[test]
fn too_many_wrong_passwords_are_slowed_down_without_locking_the_owner_out() {
    let app = start();
    let client = app.service.plain_client();
    for _ in 0..10 {
        assert_eq!(sign_in(&client, "203.0.113.1", ADA, "wrong").0, 401);
    }
    // While a slow machine looks at these, some come back.
    let mut tries = (0..30).map(|_| sign_in(&client, "203.0.113.1", ADA, "wrong"));
    let (_, page) = tries.find(|(status, _)| *status == 429).unwrap();
    assert!(page.contains("Too many attempts"));
    assert_eq!(sign_in(&client, "203.0.113.1", ADA, PASSWORD).0, 429, "nor is the right one looked at");
    assert_eq!(sign_in(&client, AT_HOME, ADA, PASSWORD).0, 303, "the owner is elsewhere");
    let noted = "audit_entries WHERE action = 'sign_in_failed' AND address = '203.0.113.1'";
    wait_for("every failure to be recorded", || app.database.count(noted) >= 10);
}

#[test]
fn an_ipv6_network_has_no_more_guesses_than_one_address() {
    let app = start();
    let client = app.service.plain_client();
    let is_looked_at = |number: &usize| {
        let address = format!("2001:db8:0:7::{:x}", number % 50);
        sign_in(&client, &address, ADA, WRONG).0 == 401
    };
    let (guessed, came_back) = looked_at(150, OF_A_PAIR, is_looked_at);
    assert!((10..=10 + came_back).contains(&guessed), "{guessed}, of which {came_back} may have come back");
}

#[test]
fn an_account_is_guessed_at_a_hundred_times_from_everywhere_and_its_owner_is_let_in_at_home() {
    let app = start();
    let client = app.service.plain_client();
    assert_eq!(sign_in(&client, AT_HOME, ADA, PASSWORD).0, 303);
    let guess = |number: &usize| sign_in(&client, &network_of_their_own(*number, 0), ADA, WRONG).0 == 401;
    let (guessed, came_back) = looked_at(150, OF_AN_ACCOUNT, guess);
    // Joining and the owner's first try are two of the hundred.
    assert!((98..=100 + came_back).contains(&guessed), "{guessed}, of which {came_back} may have come back");
    assert_eq!(
        sign_in(&client, "203.0.113.77", ADA, PASSWORD).0,
        303,
        "a neighbour of the last address is home as well"
    );
    // After that many guesses none is left, or the one that has just come back.
    let elsewhere = |_| sign_in(&client, "198.51.100.1", ADA, WRONG).0;
    assert!((0..3).map(elsewhere).any(|status| status == 429), "clients elsewhere cannot be distinguished from them");
    let nobody =
        |number: &usize| sign_in(&client, &network_of_their_own(*number, 1), "eve%40clinic.example", WRONG).0 == 401;
    let (guessed, came_back) = looked_at(150, OF_AN_ACCOUNT, nobody);
    assert!((99..=100 + came_back).contains(&guessed), "no wait tells who is a member: {guessed}");
}

#[test]
fn strangers_who_try_every_account_do_not_block_an_owner_on_a_familiar_network() {
    let app = start();
    let client = app.service.plain_client();
    assert_eq!(sign_in(&client, AT_HOME, ADA, PASSWORD).0, 303);
    let refused = |number: &usize| sign_in(&client, AT_HOME, &format!("m{number}%40clinic.example"), WRONG).0 == 429;
    assert_eq!((0..400).filter(refused).take(20).count(), 20);
    assert_eq!(sign_in(&client, AT_HOME, ADA, PASSWORD).0, 303);
    let refused = (0..3).any(|_| sign_in(&client, AT_HOME, ADA, WRONG).0 == 429);
    assert!(refused, "a wrong password at home does not reveal who is a member");
}

#[test]
fn strangers_who_fill_the_line_do_not_block_a_familiar_member() {
    let mut app = start();
    assert_eq!(sign_in(&app.service.plain_client(), AT_HOME, ADA, PASSWORD).0, 303);
    // What is known of a member's networks outlives the program.
    assert!(app.service.stop().success());
    app.service = behind_a_trusted_proxy(service(&app.database)).start();
    let client = app.service.plain_client();
    let (let_in, answers) = in_a_flood(&client, 150, network_of_their_own, || let_in(&client, AT_HOME));
    assert!(answers.contains(&503), "the queue was full");
    assert_eq!(let_in, 10);
}

#[test]
fn strangers_of_one_network_have_one_place_in_line() {
    let app = start();
    let client = app.service.plain_client();
    let (let_in, answers) = in_a_flood(&client, 50, addresses_of_one_network, || let_in(&client, "198.51.100.1"));
    assert_eq!(let_in, 10, "the owner, where nobody knows it");
    assert!(answers.contains(&429) && !answers.contains(&503), "{answers:?}");
}

#[test]
fn a_flood_of_sign_ins_waits_in_line_and_patients_do_not() {
    let app = start();
    let median_of_many = || {
        let mut times: Vec<Duration> = (0..50)
            .map(|_| {
                let started = Instant::now();
                assert_eq!(app.create(&patient()).status, 201);
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[25]
    };
    let client = app.service.plain_client();
    // Beyond what a calm minute would allow.
    in_time(Duration::from_millis(100), || {
        let calm = median_of_many();
        let (flooded, answers) = in_a_flood(&client, 100, network_of_their_own, median_of_many);
        assert!(answers.contains(&503), "{answers:?}");
        assert!(answers.iter().all(|status| [401, 503].contains(status)), "{answers:?}");
        flooded.saturating_sub(calm * 10)
    });
}

#[test]
fn over_https_nobody_speaks_for_another_address() {
    let app = start();
    let client = app.service.client();
    let is_looked_at = |number: &usize| sign_in(&client, &format!("10.{number}.1.1"), ADA, WRONG).0 == 401;
    let (guessed, came_back) = looked_at(20, OF_A_PAIR, is_looked_at);
    // Joining, from this address, is one of the ten.
    assert!((9..=10 + came_back).contains(&guessed), "{guessed}, of which {came_back} may have come back");
    wait_for("a record", || app.database.count("audit_entries WHERE action = 'sign_in_failed'") >= 9);
    assert_eq!(app.database.count("audit_entries WHERE address LIKE '10.%'"), 0);
}
