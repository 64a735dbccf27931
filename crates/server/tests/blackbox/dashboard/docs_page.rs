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

#[test]
fn code_is_beside_the_text_where_there_is_room() {
    for browser in Browser::each() {
        let app = TestApp::start();
        browser.open(&app.url("/docs"));
        browser.wait_until("return document.querySelectorAll('article .code-head button').length > 20", true);
        // The right end of the texts, the left end of the code, and the right end of the page.
        let columns = "const edges = (selector, side) => [...document.querySelectorAll(selector)]
                .filter((one) => one.getClientRects().length).map((one) => one.getBoundingClientRect()[side]);
            const code = 'article section:not([data-needs-script]) .code';
            return [Math.max(...edges('article p:not(.tabs *)', 'right')), Math.min(...edges(code, 'left')),
                Math.max(...edges(code, 'right')), innerWidth];";
        for (width, is_beside) in [(1_280, false), (1_440, true), (1_920, true)] {
            browser.on_a_screen(width);
            wait_for(&format!("code at its place at {width} px in {browser:?}"), || {
                let [text, left, right, page]: [f64; 4] = serde_json::from_value(browser.run(columns)).unwrap();
                page == f64::from(width) && (left > text) == is_beside && right <= page && right - left >= 380.0
            });
        }
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
fn each_operation_is_tried_from_its_section() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    let key = app.key().expose();
    for (path, answer) in [
        ("/patients/validate", "{\"data\":null,\"meta\":{}}"),
        ("/patients", "\"firstName\":\"Ada\""),
        ("/key", "\"organisationName\":"),
        ("/key/refusals", "{\"data\":["),
        ("/key/quality", "{\"data\":[],"),
        ("/key/days/YYYY-MM-DD", "\"digest\":"),
    ] {
        let method = if path.starts_with("/patients") { "POST" } else { "GET" };
        browser.open(&app.url("/docs"));
        browser.press(&format!("Try {method} /api/v1{path}"));
        assert_eq!(browser.run("return document.activeElement.id"), json!("try-it-key"), "{path}");
        let is_body_shown = browser.run("return document.getElementById('try-it-body').offsetParent !== null");
        assert_eq!(is_body_shown, json!(method == "POST"), "{path}");
        browser.fill("API key", key);
        let status = if path == "/patients" { "201 Created" } else { "200 OK" };
        let answered = send(&browser, status);
        assert!(answered.contains(answer), "{path}: {answered}");
    }
}

#[test]
fn the_first_screen_holds_a_request_and_the_answer_that_it_gets() {
    let app = TestApp::start();
    let page = get(&app, "/docs", &[]).text();
    let first = page.split_once("class=\"first-call\"").unwrap().1.split("<article>").next().unwrap();
    let text = first.replace("&#34;", "\"").replace("&#39;", "'");
    let code = |name: &str| {
        let block = text.split_once(&format!("data-name=\"{name}")).unwrap().1;
        block.split_once("<code>").unwrap().1.split("</code>").next().unwrap().to_owned()
    };
    let (sent, expected) = (code("Request"), code("Answer: 201 Created"));
    assert!(sent.starts_with(&format!("curl {} ", app.url("/api/v1/patients"))), "{sent}");
    assert!(sent.contains("--header \"Authorization: Bearer intake_demo_…\""), "{sent}");
    let body = sent.split('\'').nth(1).unwrap();
    let created = app.create(&serde_json::from_str(body).unwrap());
    assert_eq!(created.status, 201, "{}", created.text());
    let values = |answer: serde_json::Value| {
        let mut values = answer["data"].as_object().unwrap().clone();
        for name in ["id", "organisationId", "createdAt", "updatedAt"] {
            assert!(values.remove(name).is_some(), "{name}");
        }
        values
    };
    assert_eq!(values(created.json()), values(serde_json::from_str(&expected).unwrap()));
}

#[test]
fn the_contents_mark_the_section_that_is_read() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    let current = "return [...document.querySelectorAll('#docs-toc [aria-current]')].map((link) => link.textContent)";
    browser.open(&app.url("/docs"));
    for section in ["#safe-retry", "#limits", "#1-settings"] {
        let _ = browser.run(&format!("location.hash = '{section}'"));
        let name =
            browser.run(&format!("return document.querySelector('#docs-toc a[href=\"{section}\"]').textContent"));
        wait_for(section, || browser.run(current) == json!([name]));
    }
}

#[test]
fn a_result_of_the_search_shows_the_words_around_it() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    browser.fill("Search this page", "surrogate pair");
    let snippets = "return [...document.querySelectorAll('#docs-results .hint')].map((one) => one.textContent)";
    let found = browser.run(snippets);
    let [snippet] = &found.as_array().unwrap()[..] else { panic!("{found}") };
    let snippet = snippet.as_str().unwrap();
    assert!(snippet.contains("surrogate pair") && snippet.chars().count() < 200, "{snippet}");
}

#[test]
fn a_phone_is_shown_no_keys_of_a_keyboard() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    let hint = || browser.run("return document.getElementById('docs-search').placeholder");
    for (width, expected) in [(1_280, "/ or Ctrl-K"), (360, "Search"), (1_280, "/ or Ctrl-K")] {
        browser.on_a_screen(width);
        wait_for(expected, || hint() == json!(expected));
    }
}

#[test]
fn code_says_its_language_and_is_copied_from_the_same_line() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.open(&app.url("/docs"));
    let heads = browser.run(
        "return [...document.querySelectorAll('.docs pre')].map((block) => block.previousElementSibling)
            .filter((head) => !head.dataset.name || head.querySelector('button')?.textContent !== 'Copy').length",
    );
    assert_eq!(heads, json!(0));
    let request = browser.run(
        "return [...document.querySelectorAll('pre[data-language=http]')].find((one) => one.textContent.startsWith('POST')).textContent",
    );
    assert!(request.as_str().unwrap().contains("\n  \"lastName\": \"Lovelace\",\n"), "{request}");
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
    for file in ["api.md", "errors.md", "integrating.md", "CHANGELOG.md"] {
        assert!(!text.contains(&format!("]({file}")) && !text.contains(&format!("](../{file}")), "{file}");
    }
    assert!(text.contains("](/docs#simulate-failures)"));
    let llms = get(&app, "/llms.txt", &[]);
    assert_eq!(llms.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(llms.text().starts_with("# intake\n"));
    let linked: Vec<_> =
        llms.text().split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned()).collect();
    assert_eq!(linked.len(), 3);
    for address in linked {
        assert_eq!(get(&app, address.strip_prefix(&app.url("")).unwrap(), &[]).status, 200, "{address}");
    }
    let changes = get(&app, "/docs/changes.atom", &[]);
    assert_eq!(changes.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    let own = format!("<link rel=\"self\" type=\"application/atom+xml\" href=\"{}\"/>", app.url("/docs/changes.atom"));
    assert!(changes.text().contains(&own), "{}", changes.text());
    assert!(get(&app, "/docs", &[]).text().contains("href=\"/docs/changes.atom\""));
    assert_eq!(get(&app, "/docs.md", &[("If-None-Match", markdown.header("etag").unwrap())]).status, 304);
}

#[test]
fn the_collection_for_postman_checks_and_creates_a_patient_with_nothing_but_a_key() {
    let app = TestApp::start();
    let served = get(&app, "/docs/postman.json", &[]);
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    let collection = served.json();
    let [base, key, day] = [0, 1, 2].map(|index| &collection["variable"][index]);
    assert_eq!((&base["value"], &key["key"]), (&json!(app.url("/api/v1")), &json!("apiKey")));
    assert_eq!(collection["auth"]["bearer"][0]["value"], "{{apiKey}}");
    let requests = collection["item"].as_array().unwrap();
    for (item, status) in requests.iter().zip([200, 201, 200, 200, 200, 200]) {
        let request = &item["request"];
        let path = request["url"]["raw"].as_str().unwrap().replace("{{baseUrl}}", "/api/v1");
        let path = path.replace("{{day}}", day["value"].as_str().unwrap());
        let bearer = format!("Bearer {}", app.key().expose());
        let mut headers = vec![("Authorization", bearer.as_str())];
        let own = request["header"].as_array().unwrap();
        headers.extend(own.iter().map(|header| (header["key"].as_str().unwrap(), header["value"].as_str().unwrap())));
        let (method, body) = (request["method"].as_str().unwrap(), request["body"]["raw"].as_str().unwrap_or_default());
        let answer = app.service.client().send(&intake_test_support::request(method, &path, &headers, body.as_bytes()));
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!((requests.len(), app.patients()), (6, 1));
}

#[test]
fn head_is_answered_like_get_without_a_body_and_documents_say_what_they_accept() {
    let app = TestApp::start();
    let documents = ["/docs", "/docs.md", "/docs/postman.json", "/llms.txt", "/api/v1/openapi.json"];
    for path in documents.into_iter().chain(["/", "/sign-in", "/nothing"]) {
        let got = get(&app, path, &[]);
        let mut connection = app.service.client().connect();
        connection.write(&request("HEAD", path, &[], b""));
        let head = connection.read_head();
        assert_eq!(head.status, got.status, "{path}");
        for name in ["content-type", "content-length", "etag", "cache-control", "location"] {
            assert_eq!(head.header(name), got.header(name), "{path}: {name}");
        }
        let next = connection.exchange(&request("OPTIONS", "/docs", &[], b""));
        assert_eq!((next.status, next.header("allow")), (204, Some("GET, HEAD, OPTIONS")), "after {path}");
    }
    for path in documents {
        let refused = app.service.client().send(&request("POST", path, &[], b""));
        crate::assert_problem(&refused, 405, "Method Not Allowed", "This path accepts only GET and HEAD requests");
        assert_eq!(refused.header("allow"), Some("GET, HEAD, OPTIONS"), "{path}");
    }
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
fn the_contents_begin_below_the_header_and_the_first_request_is_whole() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = TestApp::start();
        browser.open(&app.url("/docs"));
        browser.on_a_screen(1_280);
        wait_for("the screen", || browser.run("return innerWidth") == 1_280);
        let shown = browser.run(
            "const left = (selector) => document.querySelector(selector).getBoundingClientRect().left;
             return [Math.abs(left('.mark') - left('#docs-search')) < 1,
                 document.querySelector('.exchange pre').scrollWidth <= document.querySelector('.exchange pre').clientWidth,
                 [...document.querySelectorAll('.code-number')].filter((one) => /:$/.test(one.previousSibling?.data ?? '')
                     && /^\\//.test(one.nextSibling?.data ?? '')).map((one) => one.textContent)]",
        );
        assert_eq!(shown, json!([true, true, []]), "{browser:?}");
    }
}

#[test]
fn the_menu_of_a_phone_shows_where_its_reader_is() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.on_a_screen(360);
    app.join(&browser, "Ada", "ada@clinic.example");
    for path in ["/docs", "/help", "/settings/account"] {
        browser.open(&app.url(path));
        // It fades at its right edge.
        let right = "return document.querySelector('.bar nav [aria-current]').getBoundingClientRect().right";
        wait_for(&format!("the part of {path} in sight"), || browser.run(right).as_f64().unwrap() <= 300.0);
    }
}
