//! The pictures of the README show the page of today: a list beside them has the digests of the pictures, and of the
//! templates and styles from which they were made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use intake_test_support::Browser;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::dashboard::pages::keys_of_every_kind;
use crate::fixtures::TestApp;

/// In the form of `sha256sum --check`, with paths from the root of the repository.
const LIST: &str = "docs/images/api-keys.sha256";
const PICTURES: [(&str, &str); 2] =
    [("light", "docs/images/api-keys-light.png"), ("dark", "docs/images/api-keys-dark.png")];
const PAGE: &str = "api_keys/list.html";
const STYLES: &str = "crates/dashboard/assets/style.css";
/// Keys that look as in a clinic.
const KEYS: &str = "
    UPDATE organisations SET name = 'Harbour Clinic';
    UPDATE api_keys SET name = 'Pathology results' WHERE name LIKE 'Integration%';
    DELETE FROM key_uses;
    INSERT INTO key_uses (organisation_id, key_id, last_used_at)
        SELECT organisation_id, id, now() - interval '20 minutes' * length(name) FROM api_keys;
    INSERT INTO key_answers SELECT organisation_id, id, now()::date - n, now()::date - n, 201, '', 120 + (n * 37) % 90
        FROM api_keys, generate_series(0, 29) AS n;
    INSERT INTO key_answers SELECT organisation_id, id, now()::date - n, now()::date - n, 422, field, 3 + (n * 7) % 11
        FROM api_keys, generate_series(0, 29) AS n, unnest(ARRAY['', 'phoneNumber']) AS field WHERE n % 3 = 0;";

fn in_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Adds a template and all those that it extends or includes.
fn add_templates(name: &str, found: &mut BTreeSet<String>) {
    let path = format!("crates/dashboard/templates/{name}");
    let text = fs::read_to_string(in_root(&path)).unwrap();
    if found.insert(path) {
        for start in ["{% extends \"", "{% include \""] {
            text.split(start).skip(1).for_each(|rest| add_templates(rest.split('"').next().unwrap(), found));
        }
    }
}

/// The list as it should be.
fn digests() -> String {
    let mut shown = BTreeSet::from([STYLES.to_owned()]);
    add_templates(PAGE, &mut shown);
    assert!(shown.len() > 5, "{shown:?}");
    let pictures = PICTURES.iter().map(|(_, path)| (*path).to_owned());
    let digest_of = |path: String| {
        let digest = digest(&SHA256, &fs::read(in_root(&path)).unwrap());
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}  {path}\n")
    };
    shown.into_iter().chain(pictures).map(digest_of).collect()
}

#[test]
fn the_pictures_of_the_readme_show_the_page_of_today() {
    let readme = fs::read_to_string(in_root("README.md")).unwrap();
    assert!(PICTURES.iter().all(|(_, path)| readme.contains(path)));
    let (listed, expected) = (fs::read_to_string(in_root(LIST)).unwrap_or_default(), digests());
    if listed == expected {
        return;
    }
    let changed: Vec<_> = expected.lines().filter(|line| !listed.contains(line)).collect();
    assert!(
        std::env::var_os("UPDATE_DOCS").is_some(),
        "changed since the pictures were made: {changed:#?}. With a browser, `UPDATE_DOCS=1 cargo test -p intake --test \
         blackbox -- pictures_of` makes them again"
    );
    let Some(browser) = Browser::start() else { return };
    take_pictures(&browser);
    fs::write(in_root(LIST), digests()).unwrap();
}

fn take_pictures(browser: &Browser) {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_PUBLIC_URL", "https://intake.harbour.example"));
    app.join(browser, "Ada Lovelace", "ada@clinic.example");
    keys_of_every_kind(&app, browser);
    app.database.connect().batch_execute(KEYS).unwrap();
    browser.open(&app.url("/settings/api-keys"));
    let _ = browser.run("document.querySelector('.first-steps details').open = true");
    browser.press("Hide first steps");
    browser.wait_for("First steps are hidden");
    browser.open(&app.url("/settings/api-keys"));
    browser.wait_for("Pathology results");
    let metrics = json!({ "width": 1_240, "height": 840, "deviceScaleFactor": 1, "mobile": false });
    browser.tell("Emulation.setDeviceMetricsOverride", &metrics);
    for (scheme, path) in PICTURES {
        browser.emulate("screen", &[("prefers-color-scheme", scheme)]);
        fs::write(in_root(path), browser.screenshot()).unwrap();
    }
}
