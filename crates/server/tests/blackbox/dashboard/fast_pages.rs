//! Pages on a slow line: static files are kept for a year under names that change with their content, everything is
//! compressed, and a page after the first one takes one or two requests.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, Response, request};

use crate::fixtures::{TestApp, between, create_key};

const KEPT: &str = "public, max-age=31536000, immutable";

fn get(app: &TestApp, path: &str, headers: &[(&str, &str)]) -> Response {
    app.service.client().send(&request("GET", path, headers, b""))
}

#[test]
fn static_files_are_kept_for_a_year_under_the_digest_of_their_content() {
    let app = TestApp::start();
    let page = get(&app, "/sign-in", &[]);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let page = page.text();
    let style = between(&page, "rel=\"stylesheet\" href=\"", "\"");
    assert!(style.starts_with("/assets/style-"), "{style}");
    let served = get(&app, &style, &[]);
    assert_eq!((served.status, served.header("cache-control")), (200, Some(KEPT)));
    let icon = between(&served.text(), "url(\"", "\"");
    assert_eq!(get(&app, &icon, &[]).header("cache-control"), Some(KEPT));
    // A page of another version of the program, during an upgrade, asks for another digest.
    for other in ["/assets/style-0123456789ab.css", "/assets/style.css"] {
        let served = get(&app, other, &[]);
        assert_eq!((served.status, served.header("cache-control")), (200, Some("no-store")), "{other}");
    }
    assert_eq!(get(&app, "/assets/none-0123456789ab.css", &[]).status, 404);
}

#[test]
fn pages_files_documents_and_downloads_are_compressed() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let style = between(&get(&app, "/sign-in", &[]).text(), "rel=\"stylesheet\" href=\"", "\"");
    for number in 0..5 {
        assert_eq!(ada.post("/settings/account/name", &format!("name=Ada+{number}")).status, 303);
    }
    for path in ["/settings/api-keys", "/settings/activity.csv", "/docs", "/docs.md", "/nothing", &style] {
        let headers = [("Cookie", ada.cookie.as_str()), ("Accept", "text/html"), ("Accept-Encoding", "gzip, br")];
        let (plain, small) = (get(&app, path, &headers[..2]), get(&app, path, &headers));
        assert_eq!(
            (plain.header("content-encoding"), small.header("content-encoding")),
            (None, Some("gzip")),
            "{path}"
        );
        assert_eq!(small.header("vary"), Some("Accept-Encoding"), "{path}");
        assert!(small.body.len() < plain.body.len() && small.body.starts_with(&[0x1f, 0x8b]), "{path}");
    }
    let headers = [("Cookie", ada.cookie.as_str()), ("Accept-Encoding", "gzip"), ("Sec-Fetch-Site", "cross-site")];
    assert_eq!(get(&app, "/settings/api-keys", &headers).header("content-encoding"), None, "asked for by another site");
}

#[test]
fn a_list_of_501_keys_takes_ten_kibibytes() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let many = "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, expires_at, created_by)
         SELECT gen_random_uuid(), id, 'Integration ' || md5(n::text), sha256(n::text::bytea), substr(md5(n::text), 1, 4), now(),
             now() + interval '300 days', 'Ada Lovelace of the front desk'
         FROM organisations, generate_series(1, 501) AS n";
    app.database.connect().batch_execute(many).unwrap();
    let headers = [("Cookie", ada.cookie.as_str()), ("Accept-Encoding", "gzip")];
    for path in ["/settings/api-keys", "/settings/api-keys?show=all&sort=name&page=5"] {
        let page = get(&app, path, &headers);
        assert!(page.status == 200 && page.body.len() <= 10 * 1024, "{path}: {} bytes", page.body.len());
    }
}

#[test]
fn a_page_after_the_first_takes_two_requests_at_most() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    drop(create_key(&browser, "Front desk"));
    for path in ["/settings/api-keys", "/settings/members", "/settings/activity", "/settings/account"] {
        browser.open(&app.url(path));
        // What comes from the browser's cache has transferred nothing.
        let loaded = "return performance.getEntriesByType('resource').filter((one) => one.transferSize > 0).map((one) => one.name)";
        let loaded = browser.run(loaded);
        assert!(loaded.as_array().unwrap().len() <= 1, "{path}: {loaded}");
    }
}
