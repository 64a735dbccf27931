//! How pages look: nothing is cut off, on any screen and paper, whatever things are called; and a check of
//! accessibility finds nothing on any page, in light, dark and forced colours.

use diesel::connection::SimpleConnection;
use intake_infra::embedded::Packages;
use intake_test_support::{Browser, Prerequisite, is_nightly, leave_out, wait_for};
use serde_json::json;

use crate::accounts::single_sign_on::made_up_provider::MadeUpProvider;
use crate::accounts::single_sign_on::signed_in;
use crate::commands::organisations::done;
use crate::dashboard::pages::{join_another_organisation, keys_of_every_kind, pages_without_ids, visit_every_page};
use crate::fixtures::{TestApp, confirm_identity};

/// The check of accessibility, which a test puts into each page.
const AXE: Prerequisite = Prerequisite {
    subject: "accessibility",
    need: "axe-core",
    packages: Packages {
        apt: "apt-get install npm && crates/server/tests/blackbox/tools/install",
        dnf: "dnf install npm && crates/server/tests/blackbox/tools/install",
        brew: "brew install npm && crates/server/tests/blackbox/tools/install",
    },
};
/// Paper of the size A4 within its margins.
const PAPER: u32 = 718;

#[test]
fn every_page_works_without_scripts_and_is_no_wider_than_a_phone() {
    let Some(browser) = Browser::without_scripts() else { return };
    let phone = json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true });
    browser.tell("Emulation.setDeviceMetricsOverride", &phone);
    let app = TestApp::start();
    name_organisation(&app, &"Longname".repeat(12));
    // A page is laid out anew some time after the window has changed.
    visit_every_page(&app, &browser, &"Ada".repeat(33), &"Long".repeat(25), &|page| {
        wait_for(&format!("a narrow page: {page}"), || page_width(&browser) <= 360);
    });
}

#[test]
fn nothing_that_cannot_be_scrolled_is_a_stop_of_the_tab_key() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    keys_of_every_kind(&app, &browser);
    let key = key_page(&app, &browser, "Front desk");
    for path in pages_without_ids().iter().chain([&key]) {
        browser.open(&app.url(path));
        let stops = "return [...document.querySelectorAll('[tabindex=\"0\"]')]
            .filter((one) => !one.matches('a, button') && one.scrollHeight <= one.clientHeight && one.scrollWidth <= one.clientWidth)
            .map((one) => one.outerHTML)";
        assert_eq!(browser.run(stops), json!([]), "{path}");
    }
}

/// Shows the page in light, dark and forced colours.
fn in_every_scheme(browser: &Browser, look: impl Fn(&str)) {
    for scheme in ["light", "dark"] {
        browser.emulate("screen", &[("prefers-color-scheme", scheme)]);
        look(scheme);
    }
    browser.emulate("screen", &[("forced-colors", "active"), ("prefers-color-scheme", "dark")]);
    look("forced");
    browser.emulate("screen", &[]);
}

pub(crate) fn page_width(browser: &Browser) -> u64 {
    browser.run("return document.documentElement.scrollWidth").as_u64().unwrap()
}

fn name_organisation(app: &TestApp, name: &str) {
    app.database.connect().batch_execute(&format!("UPDATE organisations SET name = '{name}'")).unwrap();
}

/// Names as they come: of many words, of one, of other scripts.
fn add_keys_with_odd_names(app: &TestApp) {
    let arabic = "مفتاح الاستقبال في العيادة ".repeat(4).chars().take(100).collect();
    let names: [String; 3] = ["Long".repeat(25), arabic, "🏥🩺💉".repeat(33)];
    for name in names {
        let insert = format!(
            "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, expires_at, created_by)
             SELECT gen_random_uuid(), id, '{name}', sha256('{name}'::bytea), 'aB3x', now(), now() + interval '5 days', '{name}'
             FROM organisations;
             INSERT INTO key_uses SELECT organisation_id, id, now() - interval '40 days', now() FROM api_keys WHERE name = '{name}';"
        );
        app.database.connect().batch_execute(&insert).unwrap();
    }
}

/// Script that finds what is cut off on the page: what can be pressed in a table and is not within it, a table that is
/// wider than its place, a text that leaves its cell, cards and tables of different widths, a button in two lines, and
/// a word of usual length or a group of an address that is broken.
const CUT_OFF: &str = "
    const faults = [];
    for (const place of document.querySelectorAll('.scroll')) {
        if (place.scrollWidth > place.clientWidth) faults.push('a table of ' + place.scrollWidth + ' in ' + place.clientWidth);
        const outer = place.getBoundingClientRect();
        for (const button of place.querySelectorAll(':is(button, a):not(a.more, .menu *)')) {
            const inner = button.getBoundingClientRect();
            if (matchMedia('print').matches && button.localName === 'button') continue;
            if (inner.width === 0 || inner.left < outer.left || inner.right > outer.right) faults.push(button.ariaLabel ?? button.textContent);
        }
    }
    const linesOf = (text, from, length) => {
        const range = document.createRange();
        range.setStart(text, from);
        range.setEnd(text, from + length);
        return [...range.getClientRects()].filter((line) => line.width > 0);
    };
    const columns = [...document.querySelectorAll('main > :is(.card:has(.plot), .scroll, .empty, .first-steps)')];
    const widths = new Set(columns.filter((one) => one.getClientRects().length).map((one) => Math.round(one.getBoundingClientRect().width)));
    if (widths.size > 1) faults.push('columns of ' + [...widths]);
    for (const one of document.querySelectorAll('button, .button, .wordmark, .environment, .switch')) {
        const range = document.createRange();
        range.selectNodeContents(one);
        const lines = new Set([...range.getClientRects()].filter((line) => line.width > 0).map((line) => Math.round(line.top)));
        if (lines.size > 1) faults.push('in two lines: ' + one.textContent);
    }
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (text.parentElement.closest('details:not([open]), .hidden')) continue;
        // A card has no cells.
        const inside = text.parentElement.closest('td, th');
        const isCard = inside && getComputedStyle(inside.parentElement).display === 'grid';
        const cell = (isCard ? inside.parentElement : inside)?.getBoundingClientRect();
        if (cell && linesOf(text, 0, text.length).some((line) => line.left < cell.left - 1 || line.right > cell.right + 1))
            faults.push('outside its cell: ' + text.data);
        if (text.parentElement.closest('pre, code')) continue;
        for (const word of text.data.matchAll(/(?<![^\\s])[A-Za-z,.…]{2,18}(?![^\\s])|[0-9a-f]{1,4}:/g)) {
            const lines = new Set(linesOf(text, word.index, word[0].length).map((line) => Math.round(line.top)));
            if (lines.size > 1) faults.push('broken: ' + word[0]);
        }
    }
    return faults;";

#[test]
fn nothing_is_cut_off_on_any_screen_with_and_without_scripts() {
    let plain = is_nightly().then(Browser::without_scripts).flatten().map(|browser| (browser, "without scripts"));
    for (browser, name) in Browser::each().map(|browser| (browser, "with scripts")).chain(plain) {
        let app = TestApp::start();
        app.join(&browser, &"Ada Lovelace ".repeat(8)[..100], &format!("{}@clinic.example", "a".repeat(60)));
        name_organisation(&app, &"Harbour Clinic ".repeat(7)[..100]);
        keys_of_every_kind(&app, &browser);
        add_keys_with_odd_names(&app);
        join_another_organisation(&app);
        browser.open(&app.url("/settings/confirm?next=/settings/members/invite"));
        confirm_identity(&browser);
        browser.wait_for("Invite a member");
        browser.fill("Email", &format!("{}@clinic.example", "b".repeat(60)));
        browser.press("Create invitation link");
        browser.wait_for("won't be shown again");
        let key = key_page(&app, &browser, "Integration");
        far_away(&app);
        let look_at = |path: &str| {
            browser.open(&app.url(path));
            // 320, 512 and 640 are screens of 640, 1,024 and 1,280 px at 200 %.
            for width in [320, 360, 512, 640, 768, 1_024, 1_280, 1_920] {
                browser.on_a_screen(width);
                let is_forced_too = is_nightly() || width == 360;
                for colours in ["none", "active"].into_iter().take(1 + usize::from(is_forced_too)) {
                    browser.emulate("screen", &[("forced-colors", colours)]);
                    assert_whole(
                        &browser,
                        width,
                        &format!("{path} at {width} px in {browser:?} {name}, forced colours: {colours}"),
                    );
                }
            }
            browser.emulate("print", &[]);
            browser.on_a_screen(PAPER);
            assert_whole(&browser, PAPER, &format!("{path} on paper in {browser:?} {name}"));
        };
        pages_without_ids().iter().chain([&key]).for_each(|path| look_at(path));
        app.database.connect().batch_execute("UPDATE memberships SET role = 'auditor'").unwrap();
        look_at("/settings/api-keys");
    }
}

/// Another session and an entry of activity from the longest addresses.
fn far_away(app: &TestApp) {
    let far = "INSERT INTO sessions (token_digest, member_id, started_at, last_used_at, browser, address)
        SELECT sha256(''), member_id, started_at, last_used_at, browser, '2001:db8:1111:2222:3333:4444:5555:6666' FROM sessions
            WHERE browser IS NOT NULL LIMIT 1;
        INSERT INTO audit_entries (organisation_id, id, at, action, actor, subject, recorded_in, address)
        SELECT id, gen_random_uuid(), now(), 'signed_in', 'Ada', 'Ada', 0, '2001:db8:1111:2222:3333:4444:5555:6666'
            FROM organisations;";
    app.database.connect().batch_execute(far).unwrap();
}

#[test]
fn content_that_is_cut_off_is_noticed() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    keys_of_every_kind(&app, &browser);
    browser.open(&app.url("/settings/api-keys"));
    assert_eq!(browser.run(CUT_OFF), json!([]));
    let _ = browser.run("document.querySelector('.scroll').style.width = '300px'");
    let faults = browser.run(CUT_OFF).to_string();
    for fault in ["Actions for", "a table of", "columns of"] {
        assert!(faults.contains(fault), "{fault}: {faults}");
    }
    let _ = browser.run("document.querySelector('.lead').style.width = '1ch'; document.querySelector('.lead').style.overflowWrap = 'anywhere'");
    assert!(browser.run(CUT_OFF).to_string().contains("broken: affecting"));
    let _ = browser.run(
        "const hint = document.querySelector('td time'); hint.style.position = 'relative'; hint.style.left = '20rem'",
    );
    assert!(browser.run(CUT_OFF).to_string().contains("outside its cell: "));
    let _ = browser.run("document.querySelector('.sign-out button').style.whiteSpace = 'normal'; document.querySelector('.sign-out button').style.width = '1rem'");
    assert!(browser.run(CUT_OFF).to_string().contains("in two lines: Sign out"));
}

#[test]
fn a_status_has_a_form_as_well_as_a_colour() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    keys_of_every_kind(&app, &browser);
    browser.open(&app.url("/settings/api-keys?show=all"));
    let forms = browser.run(
        "const forms = {};
         for (const one of document.querySelectorAll('td .status'))
             forms[one.textContent] = one.querySelector('.icon use').getAttribute('href').split('#')[1];
         return forms",
    );
    assert_eq!(forms, json!({ "Active": "dot", "Expired": "clock", "Replace now": "warning", "Revoked": "cross" }));
    // A symbol that could not be loaded would have no form.
    let sizes =
        "return [...document.querySelectorAll('td .status use')].filter((one) => one.getBBox().width < 1).length";
    browser.wait_until(sizes, 0);
}

/// The address of the page of the first key that is found by this name.
fn key_page(app: &TestApp, browser: &Browser, name: &str) -> String {
    browser.open(&app.url(&format!("/settings/api-keys?show=all&q={name}")));
    let link = browser.run("return document.querySelector('tbody th a').getAttribute('href')");
    link.as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_whole(browser: &Browser, width: u32, place: &str) {
    // A page is laid out anew some time after the window has changed.
    wait_for(&format!("a page that does not scroll sideways: {place}"), || page_width(browser) <= u64::from(width));
    assert_eq!(browser.run(CUT_OFF), json!([]), "{place}");
}

/// Pictures of every page, for people who work on their looks: `INTAKE_SCREENSHOTS=folder cargo test pictures`.
#[test]
fn pictures() {
    let Some(folder) = std::env::var_os("INTAKE_SCREENSHOTS") else { return };
    for browser in Browser::each() {
        let folder = std::path::Path::new(&folder).join(format!("{browser:?}"));
        std::fs::create_dir_all(&folder).unwrap();
        let app = TestApp::start();
        visit_every_page(&app, &browser, "Ada Lovelace", "Reception", &|page| {
            let name = page.replace(['{', '}'], "").trim_start_matches('/').replace(['/', ' '], "-");
            in_every_scheme(&browser, |scheme| {
                for width in [360, 768, 1_280, 1_920] {
                    browser.on_a_screen(width);
                    std::fs::write(folder.join(format!("{name}-{scheme}-{width}.png")), browser.screenshot()).unwrap();
                }
            });
        });
    }
}

/// The pages of single sign-on, with passwords and without them, of allowed networks and of the maximum key age.
/// `INTAKE_SCREENSHOTS=folder` makes pictures of them.
#[test]
fn pages_of_single_sign_on_and_of_limited_keys_are_whole() {
    let Some(browser) = Browser::start() else { return };
    let provider = MadeUpProvider::start();
    for switch in ["on", "off"] {
        let app = TestApp::start_with(|builder| provider.settings(builder).setting("INTAKE_PASSWORDS", switch));
        name_organisation(&app, "Harbour Clinic");
        let join = |email: &str| {
            let invitation = app.invite(email);
            signed_in(&app, &provider.go(&app, &format!("{invitation}/provider"), "", email))
        };
        let (mut ann, _bob) = (join("ann@clinic.example"), join("bob@clinic.example"));
        let invitation = app.invite("grace@clinic.example");
        browser.tell("Network.clearBrowserCookies", &json!({}));
        let missing = "/sign-in/provider/return?code=x&state=y".to_owned();
        let mut strangers = vec!["/sign-in".to_owned(), invitation, missing];
        strangers.extend((switch == "off").then(|| "/reset-password/used".to_owned()));
        look_at(&app, &browser, switch, &strangers);
        let take = |cookie: &str| {
            let (name, value) = cookie.split_once('=').unwrap();
            let cookie = json!({ "name": name, "value": value, "url": app.url("/"), "path": "/", "secure": true });
            browser.tell("Network.setCookie", &cookie);
        };
        take(&ann.cookie);
        look_at(&app, &browser, switch, &["/settings/confirm?next=/settings/members".to_owned()]);
        let confirmed = provider.go(&app, "/settings/confirm/provider", &ann.cookie, "ann@clinic.example");
        assert_eq!(confirmed.status, 303);
        ann.go_on(&confirmed);
        take(&ann.cookie);

        let organisation = app.clinic.organisation.to_string();
        let create = ["key", "create", "--organisation", &organisation];
        let key = done(&app, &[&create[..], &["--name", "Front desk", "--allow", NETWORKS]].concat());
        for name in ["Pathology", "Registration", "Transfers"] {
            done(&app, &[&create[..], &["--name", name]].concat());
        }
        let ends = "UPDATE organisations SET key_days_max = 90;
            UPDATE api_keys SET expires_at = date_trunc('day', now(), 'UTC') + interval '365 days' WHERE name = 'Pathology';
            UPDATE api_keys SET expires_at = now() + interval '40 days' WHERE name = 'Registration';
            UPDATE api_keys SET expires_at = date_trunc('day', now(), 'UTC') + interval '5 days' WHERE name = 'Transfers'";
        app.database.connect().batch_execute(ends).unwrap();
        let key = format!("/settings/api-keys/{}", key["id"].as_str().unwrap());
        let bob = ann.page_about("bob@clinic.example", "").trim_end_matches('/').to_owned();
        let mut pages = [
            "account",
            "account/provider",
            "account/name",
            "account/email",
            "account/passkeys/new",
            "account/second-factor",
        ]
        .iter()
        .chain(&["members", "members/invite", "policies", "policies/key-age", "api-keys", "api-keys/new", "activity"])
        .map(|page| format!("/settings/{page}"))
        .collect::<Vec<_>>();
        pages.extend([bob, key.clone(), format!("{key}/networks"), format!("{key}/replace")]);
        pages.extend((switch == "off").then(|| "/settings/account/password".to_owned()));
        look_at(&app, &browser, switch, &pages);
        browser.open(&app.url("/settings/api-keys"));
        browser.on_a_screen(1_280);
        let ends = "[...document.querySelectorAll('[data-label=Expires] time')]";
        let heights =
            browser.run(&format!("return {ends}.map((end) => Math.round(end.getBoundingClientRect().height))"));
        let heights: Vec<u64> = serde_json::from_value(heights).unwrap();
        assert!(heights.len() == 3 && heights.iter().all(|height| *height < 30), "each end in one line: {heights:?}");
        let scheme = browser.run("return getComputedStyle(document.documentElement).colorScheme");
        assert_eq!(scheme, "light dark", "scrollbars follow it");
    }
}

const NETWORKS: &str = "203.0.113.7,198.51.100.0/24,2001:db8:85a3::/48,2001:db8:1234:5678:9abc:def0:1234:5678";

/// Looks at these pages on every screen.
fn look_at(app: &TestApp, browser: &Browser, switch: &str, pages: &[String]) {
    let folder = std::env::var_os("INTAKE_SCREENSHOTS").map(std::path::PathBuf::from);
    for path in pages {
        browser.open(&app.url(path));
        for width in [360, 768, 1_280, 1_920] {
            browser.on_a_screen(width);
            assert_whole(browser, width, &format!("{path} at {width} px, passwords {switch}"));
            let Some(folder) = &folder else { continue };
            let name: String = path.chars().map(|c| if c.is_ascii_alphabetic() { c } else { '-' }).take(60).collect();
            for scheme in ["light", "dark"] {
                browser.emulate("screen", &[("prefers-color-scheme", scheme)]);
                let file = folder.join(format!("{switch}{name}-{scheme}-{width}.png"));
                std::fs::write(file, browser.screenshot()).unwrap();
            }
        }
    }
}

#[test]
fn no_page_keeps_anybody_out() {
    let axe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/npm/node_modules/axe-core/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(axe) else {
        leave_out(&AXE);
        return;
    };
    // A layout for narrow screens and one for wide ones, and each night those between and beyond.
    let widths = if is_nightly() { &[360, 768, 1_280, 1_920][..] } else { &[360, 1_280][..] };
    let firefox = is_nightly().then(Browser::firefox).flatten();
    for (browser, widths) in [(Browser::start(), widths), (firefox, &[1_280][..])] {
        let Some(browser) = browser else { continue };
        let app = TestApp::start();
        visit_every_page(&app, &browser, "Ada", "Reception", &|page| {
            let _ = browser.run(&axe);
            for width in widths {
                browser.on_a_screen(*width);
                wait_for("the screen", || browser.run("return innerWidth") == *width);
                let check = |scheme: &str| {
                    let place = format!("{page} at {width} px in {scheme} in {browser:?}");
                    assert_eq!(violations(&browser, scheme), json!([]), "{place}");
                };
                // The colours are the same at every width, and what is there is the same in every scheme.
                match (is_nightly(), width) {
                    (true, _) => in_every_scheme(&browser, check),
                    (false, 360) => {
                        check("light");
                        browser.emulate("screen", &[("prefers-color-scheme", "dark")]);
                        check("dark");
                        browser.emulate("screen", &[]);
                    }
                    _ => check("forced"),
                }
            }
        });
    }
}

/// Returns what axe finds. Dark differs from light by its colours alone.
fn violations(browser: &Browser, scheme: &str) -> serde_json::Value {
    let options = match scheme {
        "dark" => json!({ "runOnly": ["color-contrast", "link-in-text-block"] }),
        // Chosen colours are not the page's, and what is read of them is not what is painted.
        "forced" => json!({ "rules": { "color-contrast": { "enabled": false } } }),
        _ => json!({}),
    };
    browser.run(&format!(
        "return axe.run({options}).then((all) =>
             all.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.html + ' ' + (node.any[0]?.message ?? '')).join(' ')));"
    ))
}
