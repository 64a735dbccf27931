//! The pictures of documents show the pages of today: a list beside them has the digests of the pictures, and of the
//! templates and styles from which they were made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use intake_test_support::Browser;
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::dashboard::key_list::{LIST, on_a_window, with_fifty_keys};
use crate::dashboard::pages::keys_of_every_kind;
use crate::fixtures::{TestApp, create_key};

const STYLE: &str = "crates/dashboard/assets/style.css";
const KEY_STYLE: &str = "crates/dashboard/assets/key.css";
const DOCS_STYLE: &str = "crates/dashboard/assets/docs.css";
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

/// Pictures of some pages, which are made together.
struct Album {
    /// In the form of `sha256sum --check`, with paths from the root of the repository.
    list: &'static str,
    /// The document that shows them. The service itself shows dark ones in place of light ones.
    document: &'static str,
    /// Templates of the pages.
    pages: &'static [&'static str],
    styles: &'static [&'static str],
    /// The names of the pictures in docs/images.
    pictures: Vec<String>,
    take: fn(&Browser),
    /// The most that all pictures take, in bytes.
    size_max: usize,
}

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

impl Album {
    /// The list as it should be.
    fn digests(&self) -> String {
        let mut shown: BTreeSet<String> = self.styles.iter().map(|style| (*style).to_owned()).collect();
        self.pages.iter().for_each(|page| add_templates(page, &mut shown));
        assert!(shown.len() > 5, "{shown:?}");
        let pictures = self.pictures.iter().map(|name| format!("docs/images/{name}"));
        let digest_of = |path: String| {
            let digest = digest(&SHA256, &fs::read(in_root(&path)).unwrap_or_default());
            let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}  {path}\n")
        };
        shown.into_iter().chain(pictures).map(digest_of).collect()
    }

    fn check(&self) {
        let document = fs::read_to_string(in_root(self.document)).unwrap();
        let light = self.pictures.iter().map(|name| name.replace("-dark.", "-light."));
        let missing: Vec<_> = light.filter(|name| !document.contains(name)).collect();
        assert!(missing.is_empty(), "{} does not show {missing:?}", self.document);
        let (listed, expected) = (fs::read_to_string(in_root(self.list)).unwrap_or_default(), self.digests());
        if listed != expected {
            let changed: Vec<_> = expected.lines().filter(|line| !listed.contains(line)).collect();
            assert!(
                std::env::var_os("UPDATE_DOCS").is_some(),
                "changed since the pictures were made: {changed:#?}. With a browser, `UPDATE_DOCS=1 cargo test -p intake \
                 --test blackbox -- pictures_of` makes them again"
            );
            let Some(browser) = Browser::start() else { return };
            (self.take)(&browser);
            fs::write(in_root(self.list), self.digests()).unwrap();
        }
        let sizes = self.pictures.iter().map(|name| fs::read(in_root(&format!("docs/images/{name}"))).unwrap().len());
        let size: usize = sizes.sum();
        assert!(size <= self.size_max, "{size} bytes");
    }
}

fn save(browser: &Browser, name: &str) {
    fs::write(in_root(&format!("docs/images/{name}")), browser.screenshot()).unwrap();
}

/// Takes a picture of this window in light and in dark colours.
fn save_both(browser: &Browser, name: &str, (width, height): (u32, u32)) {
    on_a_window(browser, width, height);
    for scheme in ["light", "dark"] {
        browser.emulate("screen", &[("prefers-color-scheme", scheme)]);
        save(browser, &format!("{name}-{scheme}.png"));
    }
    browser.emulate("screen", &[]);
}

#[test]
fn the_pictures_of_the_readme_show_the_page_of_today() {
    let album = Album {
        list: "docs/images/api-keys.sha256",
        document: "README.md",
        pages: &["api_keys/list.html"],
        styles: &[STYLE],
        pictures: ["light", "dark"].map(|scheme| format!("api-keys-{scheme}.png")).to_vec(),
        take: take_the_list,
        size_max: 300_000,
    };
    album.check();
}

fn take_the_list(browser: &Browser) {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_PUBLIC_URL", "https://intake.harbour.example"));
    app.join(browser, "Ada Lovelace", "ada@clinic.example");
    keys_of_every_kind(&app, browser);
    app.database.connect().batch_execute(KEYS).unwrap();
    browser.open(&app.url(LIST));
    let _ = browser.run("document.querySelector('.first-steps details').open = true");
    browser.press("Hide first steps");
    browser.wait_for("First steps are hidden");
    browser.open(&app.url(LIST));
    browser.wait_for("Pathology results");
    save_both(browser, "api-keys", (1_240, 840));
}

#[test]
fn the_pictures_of_help_show_the_pages_of_today() {
    let both = |name: &str| ["light", "dark"].map(|scheme| format!("help-{name}-{scheme}.png"));
    let album = Album {
        list: "docs/images/help.sha256",
        document: "docs/clinics.md",
        pages: &["api_keys/list.html", "api_keys/created.html", "api_keys/replace.html"],
        styles: &[STYLE, KEY_STYLE],
        pictures: ["keys", "created", "replace"].into_iter().flat_map(both).collect(),
        take: take_help,
        size_max: 6 * 60_000,
    };
    album.check();
}

fn take_help(browser: &Browser) {
    let app = with_fifty_keys(browser);
    let without_bar = || drop(browser.run("document.querySelector('.bar').hidden = true"));
    browser.tell("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    browser.open(&app.url(LIST));
    without_bar();
    save_both(browser, "help-keys", (760, 380));
    browser.open(&app.url(LIST));
    drop(create_key(browser, "HotDoc booking"));
    without_bar();
    // Nobody should copy it.
    let _ = browser.run("document.getElementById('key').value = 'intake_demo_' + '•'.repeat(24)");
    save_both(browser, "help-created", (760, 460));
    browser.open(&app.url(LIST));
    let key = browser.run("return document.querySelector('tbody th a').getAttribute('href')");
    browser.open(&app.url(&format!("{}/replace", key.as_str().unwrap())));
    without_bar();
    save_both(browser, "help-replace", (760, 480));
}

/// Six pages with the widths at which each was photographed before they were drawn anew.
const BEFORE: [(&str, &[u32]); 6] = [
    ("keys", &[360, 1_280]),
    ("key", &[1_280]),
    ("create", &[1_280, 1_920]),
    ("created", &[1_280]),
    ("members", &[1_280]),
    ("docs", &[360, 1_280, 1_920]),
];

/// Screens with their heights, and how much smaller their pictures are.
const SCREENS: [(u32, u32, f64); 3] = [(360, 740, 0.75), (1_280, 800, 0.5), (1_920, 1_080, 0.375)];

#[test]
fn the_pictures_of_six_pages_show_them_before_and_after() {
    let before =
        BEFORE.iter().flat_map(|(page, widths)| widths.iter().map(move |width| format!("before-{page}-{width}.png")));
    let after = BEFORE.iter().flat_map(|(page, _)| SCREENS.map(|(width, ..)| format!("after-{page}-{width}.png")));
    let album = Album {
        list: "docs/images/after.sha256",
        document: "docs/CONTRIBUTING.md",
        pages: &[
            "api_keys/list.html",
            "api_keys/usage.html",
            "api_keys/new.html",
            "api_keys/created.html",
            "members/list.html",
            "docs/page.html",
        ],
        styles: &[STYLE, KEY_STYLE, DOCS_STYLE],
        pictures: before.chain(after).collect(),
        take: take_six_pages,
        size_max: 1_200_000,
    };
    album.check();
}

fn take_six_pages(browser: &Browser) {
    let app = with_fifty_keys(browser);
    browser.open(&app.url(LIST));
    let key = browser.run("return document.querySelector('tbody tr:has(.spark .refused) th a').getAttribute('href')");
    let key = key.as_str().unwrap().to_owned();
    for (page, _) in BEFORE {
        match page {
            "keys" => browser.open(&app.url(LIST)),
            "key" => browser.open(&app.url(&key)),
            "create" => browser.open(&app.url("/settings/api-keys/new")),
            "created" => {
                browser.open(&app.url(LIST));
                drop(create_key(browser, "HotDoc booking"));
            }
            "members" => browser.open(&app.url("/settings/members")),
            _ => browser.open(&app.url("/docs")),
        }
        for (width, height, scale) in SCREENS {
            let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false });
            browser.tell("Emulation.setDeviceMetricsOverride", &metrics);
            save(browser, &format!("after-{page}-{width}.png"));
        }
    }
}
