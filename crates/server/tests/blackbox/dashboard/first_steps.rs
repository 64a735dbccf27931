//! Where one is and what comes next: the environment on every page, the address for integrations, and a list of first
//! steps that ends by itself.

use intake_test_support::{Browser, TestDatabase, patient, request, wait_for};

use crate::dashboard::pages::{fill, routes};
use crate::fixtures::{Member, TestApp, between, create_key, in_production, post, service};
use crate::patient_with;

const FIRST_STEPS: &str = "aria-label=\"First steps\"";

#[test]
fn every_page_names_its_environment() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (key, _) = app.clinic.key();
    let pages = routes().into_iter().filter(|(method, _)| *method == "GET").map(|(_, path)| path);
    let mut seen = 0;
    for path in pages.chain(["/nothing", "/settings/nothing"].map(str::to_owned)) {
        let page = ada.get(&fill(&path, |_| key.to_string()));
        if page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            assert!(page.text().contains("<span class=\"environment development\">Development</span>"), "{path}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
    let refused = post(&ada.client, "/sign-in", &[("Sec-Fetch-Site", "cross-site")], "email=a%40b.co&password=x");
    assert!(refused.status == 403 && refused.text().contains(">Development<"));
}

#[test]
fn production_says_so() {
    let database = TestDatabase::durable();
    let service = in_production(service(&database)).start();
    for path in ["/sign-in", "/docs", "/nothing", "/invitations/x"] {
        let headers = [("X-Forwarded-Proto", "https"), ("Accept", "text/html")];
        let page = service.plain_client().send(&request("GET", path, &headers, b"")).text();
        assert!(page.contains("<span class=\"environment production\">Production</span>"), "{path}: {page}");
        assert!(!page.contains("environment development"), "{path}");
    }
}

#[test]
fn the_address_for_integrations_is_there_to_copy_and_settings_lead_to_the_keys() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.open(&app.url("/settings"));
    browser.wait_for("No API keys yet.");
    assert_eq!(browser.url(), app.url("/settings/api-keys"));
    assert_eq!(browser.value("Address for the vendor"), app.url("/api/v1"));
    browser.press("Copy");
    browser.wait_for("Copied.");
    browser.press("API docs");
    browser.wait_for("API documentation");
    assert_eq!(browser.url(), app.url("/docs"));
}

#[test]
fn the_first_steps_end_when_all_are_done() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let to_do = || ada.get("/settings/api-keys").text().matches("class=\"status open\"").count();
    assert_eq!(to_do(), 4);
    let page = ada.get("/settings/api-keys/new").text();
    let id = between(&page, "name=\"id\" value=\"", "\"");
    let made = ada.post("/settings/api-keys", &format!("id={id}&name=Desk")).text();
    let key = crate::fixtures::demo_key(&between(&made, "id=\"key\" value=\"", "\""));
    assert_eq!(to_do(), 3);
    let waiting = format!("<a href=\"/settings/api-keys/{id}\">Wait for the vendor&#39;s first patient</a>");
    assert!(ada.get("/settings/api-keys").text().contains(&waiting));
    assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412 345 678")).status, 422);
    let refused = "Wait for the vendor&#39;s first patient: all were refused so far (Phone number)";
    wait_for("the refusal", || ada.get("/settings/api-keys").text().contains(refused));
    assert_eq!(to_do(), 3, "a refused request is no success");
    assert!(
        ada.get("/settings/api-keys").text().contains("Only refusals</span><span class=\"by\">Phone number</span>")
    );
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    wait_for("the first use", || to_do() == 2);
    let grace = Member::join(app.service.client(), &ada.invite("grace@clinic.example"), "Grace");
    assert_eq!(to_do(), 1);
    assert!(!ada.get("/settings/api-keys").text().contains("Only refusals"));
    ada.turn_on_second_factor();
    assert!(!ada.get("/settings/api-keys").text().contains(FIRST_STEPS));
    assert!(grace.get("/settings/api-keys").text().contains(FIRST_STEPS), "two-step sign-in is for each of them");
}

#[test]
fn the_first_steps_can_be_hidden() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.wait_for("Turn on two-step sign-in");
    browser.press("Hide first steps");
    browser.wait_for("No API keys yet.");
    let shown = || browser.run("return document.querySelector('.first-steps') !== null") == true;
    assert!(!shown());
    create_key(&browser, "Front desk");
    browser.press("Done");
    assert!(!shown());
}
