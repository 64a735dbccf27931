//! Who makes up codes keeps nobody else out of single sign-on, however many addresses they have.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use intake_test_support::{Client, Response, request, wait_for};

use crate::accounts::single_sign_on::made_up_provider::{MadeUpProvider, Pace, Round, begin};
use crate::fixtures::{OverWhenDropped, TestApp};

const STRANGERS: usize = 12;
const SIGN_INS: usize = 10;
const AT_HOME: &str = "203.0.113.2";

/// Comes back with a code, from this address as a trusted proxy tells it.
fn come_back(client: &Client, address: &str, round: &Round) -> Response {
    let headers = [
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-For", address),
        ("Cookie", &round.cookie),
        ("Accept", "text/html"),
    ];
    let path = format!("/sign-in/provider/return?code=the-code&state={}", round.state);
    client.send(&request("GET", &path, &headers, b""))
}

/// Signs in again and again while strangers come back with made-up codes; gives the answers.
fn sign_in_in_a_flood(
    provider: &MadeUpProvider,
    app: &TestApp,
    address: &str,
    stranger: impl Fn(usize) -> String + Sync,
) -> Vec<u16> {
    let client = app.service.plain_client();
    let (is_over, tries) = (AtomicBool::new(false), AtomicUsize::new(0));
    let round = begin(app, "/sign-in/provider", "");
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        for _ in 0..STRANGERS {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let number = tries.fetch_add(1, Relaxed);
                    assert_ne!(come_back(&client, &stranger(number), &round).status, 303);
                }
            });
        }
        wait_for("a flood", || tries.load(Relaxed) > 4 * STRANGERS);
        let answers = (0..SIGN_INS).map(|_| {
            let round = begin(app, "/sign-in/provider", "");
            let truth = provider.truth("ann@clinic.example", &round);
            provider.plan().claims = truth;
            come_back(&client, address, &round).status
        });
        let answers = answers.collect();
        drop(over);
        answers
    })
}

fn start(provider: &MadeUpProvider) -> TestApp {
    let app = TestApp::start_with(|builder| provider.settings(builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1")));
    provider.member(&app, "ann@clinic.example");
    provider.plan().tokens = Pace::Slow;
    app
}

#[test]
fn made_up_codes_from_every_network_of_a_customer_keep_nobody_else_waiting() {
    let provider = MadeUpProvider::start();
    let app = start(&provider);
    let of_one_customer = |number| format!("2001:db8:0:{:x}::1", number % 256);
    assert_eq!(sign_in_in_a_flood(&provider, &app, AT_HOME, of_one_customer), [303; SIGN_INS]);
}

#[test]
fn made_up_codes_from_everywhere_keep_nobody_out_of_a_familiar_network() {
    let provider = MadeUpProvider::start();
    let app = start(&provider);
    let round = begin(&app, "/sign-in/provider", "");
    provider.plan().claims = provider.truth("ann@clinic.example", &round);
    assert_eq!(come_back(&app.service.plain_client(), AT_HOME, &round).status, 303);
    let of_many = |number| format!("2001:db8:{number:x}::1");
    assert_eq!(sign_in_in_a_flood(&provider, &app, AT_HOME, of_many), [303; SIGN_INS]);
}
