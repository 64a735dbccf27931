//! The documentation at `/docs`: for everybody, with the service's own address, and with a form that sends requests
//! where nothing is real.

use std::collections::HashSet;

use intake_test_support::{Browser, Response, TestDatabase, request, wait_for};
use serde_json::json;

use crate::dashboard::layout::page_width;
use crate::fixtures::{TestApp, in_production, service};

fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Response {
    app.service.client().send(&request("GET", path, headers, b""))
}

/// The values of an attribute on a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    page.split(&format!(" {attribute}=\"")).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn the_documentation_is_served_to_everybody_and_asked_for_again_cheaply() {
    let app = TestApp::start();
    let served = get(&app, "/docs", &[]);
    assert_eq!((served.status, served.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(served.header("cache-control"), Some("no-cache"));
    let page = served.text();
    assert!(page.contains(&app.url("/api/v1")) && page.contains("intake_demo_"), "{page}");
    let tag = served.header("etag").unwrap();
    let again = get(&app, "/docs", &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.text(), again.header("etag")), (304, String::new(), Some(tag)));
    assert_eq!(get(&app, "/docs", &[("If-None-Match", "\"other\"")]).status, 200);
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let app = TestApp::start();
    let page = get(&app, "/docs", &[]).text();
    let ids = values(&page, "id");
    let different: HashSet<_> = ids.iter().copied().collect();
    assert_eq!(different.len(), ids.len(), "{ids:?}");
    let (contents, text) = page.split_once("<article>").unwrap();
    assert!(values(contents, "href").len() > 10 && values(text, "href").len() > 10);
    let origin = app.url("");
    for link in values(&page, "href") {
        if let Some(id) = link.strip_prefix('#') {
            assert!(different.contains(id), "{link}");
        } else if let Some(path) = link.strip_prefix(&origin).or_else(|| link.starts_with('/').then_some(link)) {
            // Pages for members lead to the sign-in page.
            assert!([200, 303].contains(&get(&app, path, &[]).status), "{link}");
        } else {
            assert!(link.starts_with("https://"), "{link}");
        }
    }
}

#[test]
fn production_documents_its_own_address_and_has_no_form_to_try_requests() {
    let database = TestDatabase::durable();
    let service = in_production(service(&database)).setting("INTAKE_PUBLIC_URL", "https://intake.example").start();
    let served = service.plain_client().send(&request("GET", "/docs", &[("X-Forwarded-Proto", "https")], b""));
    assert_eq!(served.status, 200);
    let page = served.text();
    assert!(page.contains("https://intake.example/api/v1") && page.contains("intake_live_…"), "{page}");
    for other in ["Bearer intake_demo_", "try-it", "<form"] {
        assert!(!page.contains(other), "{other} in {page}");
    }
}

/// Sends what stands in the form; gives what the page shows of the answer, which has this status.
fn send(browser: &Browser, status: &str) -> String {
    browser.press("Send");
    let shown = |id: &str| {
        browser.run(&format!("return document.getElementById('{id}').textContent")).as_str().unwrap().to_owned()
    };
    wait_for(status, || shown("try-it-status") == status);
    let answer = shown("try-it-answer");
    assert!(answer.starts_with(&format!("{status}\n")), "{answer}");
    answer
}

#[test]
fn a_request_is_tried_from_the_page_and_its_key_stays_in_its_field() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    let refused = send(&browser, "401 Unauthorized");
    assert!(refused.contains("\nwww-authenticate: Bearer realm=\"intake\"\n"), "{refused}");

    let key = app.key().expose();
    browser.fill("API key", key);
    let checked = send(&browser, "200 OK");
    assert!(checked.ends_with("\n\n{\"data\":null,\"meta\":{}}"), "{checked}");
    for header in ["x-request-id", "ratelimit", "cache-control"] {
        assert!(checked.contains(&format!("\n{header}: ")), "{checked}");
    }
    assert_eq!(app.patients(), 0, "the dry run is what is tried unless the other is chosen");

    browser.fill("Body", r#"{"firstName":"Ada","emial":"x","phoneNumber":"0412"}"#);
    let _ = browser.run("document.getElementById('try-it-strict').click()");
    let faults = send(&browser, "422 Validation Error");
    assert!(faults.contains(r#"{"path":["phoneNumber"],"message":"E.164 format is required"#), "{faults}");
    assert!(faults.contains("did you mean email?"), "{faults}");

    browser.reload();
    browser.fill("API key", key);
    let _ = browser.run("document.getElementById('try-it-create').click()");
    browser.fill("Idempotency-Key", "docs-1");
    let created = send(&browser, "201 Created");
    assert!(created.contains(r#""firstName":"Ada""#), "{created}");
    assert_eq!(app.patients(), 1);
    let sent = browser.run("return document.getElementById('try-it-request').textContent");
    let sent = sent.as_str().unwrap();
    assert!(sent.starts_with(&format!("POST {}\n", app.url("/api/v1/patients"))), "{sent}");
    assert!(sent.contains("\nIdempotency-Key: docs-1\n"), "{sent}");

    assert_eq!(browser.url(), app.url("/docs"));
    let kept = browser.run(
        "return [document.documentElement.outerHTML, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join()",
    );
    assert!(!kept.as_str().unwrap().contains(key));
}

#[test]
fn a_key_of_production_is_not_sent() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    browser.fill("API key", "intake_live_0");
    browser.press("Send");
    browser.wait_for("It was not sent.");
    assert_eq!(browser.run("return document.getElementById('try-it-exchange').hidden"), json!(true));
}

#[test]
fn the_page_is_searched_and_shown_whole_again() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    browser.fill("Search this page", "surrogate pair");
    browser.wait_for("\n1 section\n");
    let text = browser.text();
    assert!(text.contains("half of a surrogate pair") && text.contains("400 Bad Request"), "{text}");
    assert!(!text.contains("Strict mode") && !text.contains("a header that is broken"), "{text}");
    // A link leads to its section, which the search has hidden.
    let _ = browser.run("location.hash = '#limits'");
    browser.wait_for("Beyond it");
    assert_eq!(browser.value("Search this page"), "");
    // Words are found from their beginning on: not "rate" in "generate".
    browser.fill("Search this page", "enerate");
    browser.wait_for("Nothing found");
    browser.fill("Search this page", "zzzz");
    browser.wait_for("Nothing found");
    browser.fill("Search this page", "\u{E00C}");
    browser.wait_for("Strict mode");
    assert_eq!(browser.run("return document.querySelectorAll('article mark').length"), json!(0));
}

/// The best results for these words, as the page ranks them.
fn ranked(browser: &Browser, words: &str) -> String {
    browser.fill("Search this page", words);
    let first = "return document.querySelector('#docs-results a')?.textContent ?? ''";
    browser.run(first).as_str().unwrap().to_owned()
}

#[test]
fn a_search_finds_the_section_that_is_about_it_by_any_of_its_names() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    for (words, about) in [
        ("rate limit", "Limits"),
        ("idempotency", "Safe retry"),
        ("golang", "4. Send each patient once › Go"),
        ("c#", "4. Send each patient once › C#"),
        ("postman", "6. Generate a client"),
        ("dob", "Create a patient › Fields"),
    ] {
        assert_eq!(ranked(&browser, words), about, "{words}");
    }
    let words = "cors|gzip|http/2|webhook|sdk|ruby|birthdate|emoji|dedup|max length|maxlength|bulk|support|pagination";
    for words in words.split('|') {
        assert_ne!(ranked(&browser, words), "", "{words}");
    }
}

#[test]
fn keys_of_the_keyboard_lead_to_the_search() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    let focus = || browser.run("return document.activeElement.id");
    for keys in ["/", "\u{E009}k"] {
        assert_ne!(focus(), json!("docs-search"), "before {keys:?}");
        browser.keys(keys);
        assert_eq!(focus(), json!("docs-search"), "{keys:?}");
        // In the field, a slash is a slash.
        browser.keys("/p");
        assert_eq!(browser.value("Search this page"), "/p");
        let _ = browser.run("document.activeElement.blur()");
    }
}

#[test]
fn one_language_is_shown_and_remembered() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    assert!(browser.text().contains("import httpx") && !browser.text().contains("AllowAutoRedirect"));
    let choose = "[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'C#').click()";
    let _ = browser.run(choose);
    assert!(browser.text().contains("AllowAutoRedirect") && !browser.text().contains("import random"));
    browser.reload();
    assert!(browser.text().contains("AllowAutoRedirect"));
    // A link leads to another language all the same.
    let _ = browser.run("location.hash = '#ruby'");
    browser.wait_for("Net::HTTP.start");
    let copied = "return document.querySelector('#ruby-panel pre').textContent.startsWith('# create_patient.rb\\n')";
    assert_eq!(browser.run(copied), json!(true), "colours change no text");
}

#[test]
fn a_row_can_be_linked_to() {
    let app = TestApp::start();
    let page = get(&app, "/docs", &[]).text();
    for row in ["422-validation-error-is-required", "every-status-503", "fields-phonenumber"] {
        assert!(page.contains(&format!("<tr id=\"{row}\">")) && page.contains(&format!("href=\"#{row}\"")), "{row}");
    }
}

#[test]
fn the_text_of_the_page_is_served_to_programs() {
    let app = TestApp::start();
    let markdown = get(&app, "/docs.md", &[]);
    assert_eq!(markdown.header("content-type"), Some("text/markdown; charset=utf-8"));
    let text = markdown.text();
    assert!(
        text.contains(&app.url("/api/v1")) && text.contains("## 2. The first patient") && text.contains("# Changelog")
    );
    for file in ["api.md", "integrating.md", "CHANGELOG.md"] {
        assert!(!text.contains(&format!("]({file}")) && !text.contains(&format!("](../{file}")), "{file}");
    }
    assert!(text.contains("](/docs#failures-to-order)"));
    let llms = get(&app, "/llms.txt", &[]);
    assert_eq!(llms.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(llms.text().ends_with(&text) && llms.text().starts_with("# intake\n"));
    assert_eq!(get(&app, "/docs.md", &[("If-None-Match", markdown.header("etag").unwrap())]).status, 304);
}

#[test]
fn the_page_is_whole_without_scripts_and_has_nothing_that_needs_them() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    browser.wait_for("On this page");
    let text = browser.text();
    assert!(text.contains("E.164 format is required") && text.contains("Versions and compatibility"), "{text}");
    for dead in ["Try it", "Search this page", "Send"] {
        assert!(!text.lines().any(|line| line.trim() == dead), "{dead} in {text}");
    }
}

#[test]
fn the_page_is_no_wider_than_any_screen() {
    for browser in Browser::each() {
        let app = TestApp::start();
        browser.open(&app.url("/docs"));
        for width in [320, 768, 1_024, 1_280, 1_920] {
            browser.on_a_screen(width);
            wait_for(&format!("a page of {width} px in {browser:?}"), || page_width(&browser) <= u64::from(width));
        }
    }
}

#[test]
fn the_menu_of_a_phone_shows_where_its_reader_is() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.on_a_screen(360);
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.open(&app.url("/docs"));
    let right = "return document.querySelector('.bar nav [aria-current]').getBoundingClientRect().right";
    wait_for("Documentation in sight", || browser.run(right).as_f64().unwrap() <= 360.0);
}
