//! The list of keys at a glance: what is seen of fifty keys in the first window, what is pressed to get to each, and
//! that its numbers are true.

use std::collections::{BTreeMap, BTreeSet};

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, patient, request, wait_for};
use serde_json::{Value, json};

use crate::fixtures::{Member, TestApp, between, choose_action, create_key};
use crate::patient_with;

pub(crate) const LIST: &str = "/settings/api-keys";
const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
const ESCAPE: &str = "\u{E00C}";
const DOWN: &str = "\u{E015}";

/// Fifty keys as a clinic has them: busy, quiet, refused, paused, replaced, about to expire, and never used.
const FIFTY_KEYS: &str = "
    INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, expires_at, created_by)
    SELECT gen_random_uuid(), organisations.id, names[1 + n % 10] || CASE WHEN n < 10 THEN '' ELSE ' ' || n END,
        sha256(n::text::bytea), substr(md5(n::text), 1, 4), now() - n * interval '7 days',
        CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN now() + (1 + n / 10) * interval '1 day 2 hours'
            ELSE date_trunc('day', now()) + n * interval '9 days' END, 'Theodora Papadopoulos-Konstantinidis'
    FROM organisations, generate_series(0, 49) AS n, (SELECT ARRAY['HotDoc booking', 'WorkCover intake form',
        'Diabetes educator', 'Telehealth (Coviu)', 'Pathology results of the laboratory at the other end of the harbour',
        'HealthEngine online bookings', 'Mental-health nurse triage', 'Referral import', 'Website form', 'Check-in kiosk']
        AS names) AS all_names;
    INSERT INTO key_uses (organisation_id, key_id, last_used_at)
    SELECT organisation_id, id, now() - interval '25 minutes' * (1 + get_byte(digest, 0)) FROM api_keys
        WHERE get_byte(digest, 1) > 40 AND name <> 'Website form';
    INSERT INTO key_answers (organisation_id, key_id, day, local_day, status, field, count)
    SELECT organisation_id, key_id, day, day, status, '',
        CASE status WHEN 201 THEN 1 + (get_byte(digest, n) * (7 - n % 7)) / 9 ELSE 1 + get_byte(digest, 31 - n) / 20 END
    FROM key_uses JOIN api_keys USING (organisation_id) CROSS JOIN generate_series(0, 29) AS n,
        LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day) AS days, unnest(ARRAY[201, 422]) AS status
        WHERE key_id = id AND (status = 201 OR get_byte(digest, n) < 50);
    INSERT INTO key_answers (organisation_id, key_id, day, local_day, status, field, count)
    SELECT organisation_id, id, day, day, 422, field, 12 FROM api_keys, generate_series(0, 1) AS n,
        LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day) AS days, unnest(ARRAY['', 'phoneNumber']) AS field WHERE name = 'Website form';
    UPDATE api_keys SET paused_at = now() - interval '3 hours', paused_by = 'Ada' WHERE name IN ('Referral import', 'Check-in kiosk 49');
    UPDATE api_keys SET replaces = (SELECT id FROM api_keys WHERE name = 'HotDoc booking 20'), name = 'HotDoc booking 20'
        WHERE name = 'HotDoc booking';";

pub(crate) fn with_fifty_keys(browser: &Browser) -> TestApp {
    let app = TestApp::start();
    app.join(browser, "Karen Whitfield", "karen@clinic.example");
    let named = "UPDATE organisations SET name = 'Bayside Family Practice';";
    app.database.connect().batch_execute(&format!("{named}{FIFTY_KEYS}")).unwrap();
    app
}

pub(crate) fn on_a_window(browser: &Browser, width: u32, height: u32) {
    let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
    browser.tell("Emulation.setDeviceMetricsOverride", &metrics);
}

/// Heights of the rows, and the number of them that are whole in the first window.
fn rows_in_window(browser: &Browser) -> (Vec<f64>, usize) {
    let rows = browser.run(
        "const places = [...document.querySelectorAll('tbody tr')].map((row) => row.getBoundingClientRect());
         return [places.map((place) => place.height), places.filter((place) => place.bottom <= innerHeight).length]",
    );
    serde_json::from_value(rows).unwrap()
}

#[test]
fn the_chart_of_a_key_and_its_refusals_are_seen_on_every_screen() {
    for browser in Browser::each() {
        let app = with_fifty_keys(&browser);
        browser.open(&app.url(LIST));
        for width in [360, 512, 768, 1_024, 1_280, 1_920] {
            browser.on_a_screen(width);
            wait_for("the screen", || browser.run("return innerWidth") == width);
            let shown = browser.run(
                "const all = (selector) => [...document.querySelectorAll(`tbody ${selector}`)];
                 const isWhole = (one) => one.scrollWidth <= one.clientWidth || getComputedStyle(one).display === 'inline';
                 return [all('.spark').filter((one) => one.getBoundingClientRect().width >= 60).length,
                     all('.spark .refused').length > 5,
                     all('.count').filter((one) => one.getClientRects().length === 0 || !isWhole(one)).map((one) => one.textContent)]",
            );
            assert_eq!(shown, json!([50, true, []]), "{width} px in {browser:?}");
        }
    }
}

#[test]
fn a_key_is_two_lines_high_and_the_first_window_shows_seven_or_three_on_a_phone() {
    for browser in Browser::each() {
        let app = with_fifty_keys(&browser);
        app.database.connect().batch_execute("UPDATE api_keys SET note = repeat('x', 500)").unwrap();
        for (width, height, row, keys) in [(1_280, 800, 58.0, 7), (768, 1_024, 58.0, 7), (360, 740, 90.0, 3)] {
            browser.on_a_screen(width);
            if !format!("{browser:?}").contains("Firefox") {
                on_a_window(&browser, width, height);
            }
            browser.open(&app.url(LIST));
            wait_for("the screen", || browser.run("return innerWidth") == width);
            let (heights, shown) = rows_in_window(&browser);
            assert!(heights.len() == 50 && heights.iter().all(|height| *height <= row), "{width}: {heights:?}");
            assert!(shown >= keys || browser.run("return innerHeight") != height, "{width}: {shown}");
        }
    }
}

/// The name of what has the focus.
const FOCUSED: &str = "const one = document.activeElement;
    return one === document.body ? '' : one.ariaLabel ?? (one.textContent.trim() || one.name)";

#[test]
fn fifty_keys_take_at_most_sixty_steps_and_the_arrow_keys_move_between_them() {
    let Some(browser) = Browser::start() else { return };
    let app = with_fifty_keys(&browser);
    browser.open(&app.url(LIST));
    let focused = || browser.run(FOCUSED).as_str().unwrap().to_owned();
    let mut steps = Vec::new();
    while steps.len() <= 60 {
        browser.keys(TAB);
        let name = focused();
        if name.is_empty() || steps.first() == Some(&name) {
            break;
        }
        steps.push(name);
    }
    assert!(steps.len() <= 60, "{steps:?}");
    let at = |name: &str| steps.iter().position(|step| step == name).unwrap_or_else(|| panic!("{name}: {steps:?}"));
    assert!(at("Help") < at("Sign out") && at("Sign out") < at("Create API key"), "{steps:?}");
    assert_eq!(at("HotDoc booking 20") + 1, at("Actions for HotDoc booking 20"), "{steps:?}");
    assert!(!steps.contains(&"WorkCover intake form".to_owned()), "one row alone: {steps:?}");

    let _ = browser.run("document.querySelector('tbody th a').focus()");
    let names = browser.run("return [...document.querySelectorAll('tbody th a')].map((link) => link.textContent)");
    for row in [1, 2, 3] {
        browser.keys(DOWN);
        assert_eq!(focused(), names[row].as_str().unwrap());
    }
    browser.keys(TAB);
    assert_eq!(focused(), format!("Actions for {}", names[3].as_str().unwrap()));
    browser.keys(DOWN);
    assert_eq!(focused(), format!("Actions for {}", names[4].as_str().unwrap()));
    browser.keys(ENTER);
    browser.keys(DOWN);
    assert_eq!(focused(), "Replace", "an open menu comes before the next row");
}

#[test]
fn the_menu_of_a_key_works_by_keyboard_and_is_below_its_button() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        create_key(&browser, "Front desk");
        browser.open(&app.url(LIST));
        let focused = || browser.run(FOCUSED);
        let _ = browser.run("document.querySelector('tbody th a').focus()");
        browser.keys(TAB);
        assert_eq!(focused(), "Actions for Front desk");
        browser.keys(ENTER);
        let distance = browser.run(
            "const [menu, button] = [':popover-open', '[popovertarget]'].map((one) => document.querySelector(one).getBoundingClientRect());
             return Math.max(Math.abs(menu.top - button.bottom), Math.abs(menu.right - button.right))",
        );
        assert!(distance.as_f64().unwrap() <= 8.0, "{distance} in {browser:?}");
        browser.keys(TAB);
        assert_eq!(focused(), "Replace", "{browser:?}");
        browser.keys(ESCAPE);
        assert_eq!(focused(), "Actions for Front desk", "{browser:?}");
        assert_eq!(browser.run("return document.querySelector(':popover-open')"), Value::Null);
        browser.keys(&format!("{ENTER}{TAB}{TAB}{ENTER}"));
        browser.wait_for("Pause “Front desk”?");
        browser.press("Pause key");
        browser.wait_for("“Front desk” is paused.");
        choose_action(&browser, "Front desk", "Resume");
        browser.wait_for("“Front desk” has been resumed.");
    }
}

#[test]
fn the_menu_of_a_key_works_without_scripts_and_is_a_link_without_menus() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.open(&app.url(LIST));
    choose_action(&browser, "Front desk", "Revoke");
    browser.wait_for("Revoke “Front desk”?");
    browser.open(&app.url(LIST));
    // A browser without menus follows these rules, and not their opposite.
    let conditions =
        "return [...document.styleSheets[0].cssRules].filter((rule) => rule.conditionText?.includes('popover-open'))
        .map((rule) => [rule.conditionText, [...rule.cssRules].map((inner) => inner.selectorText)])";
    let expected = json!([
        ["selector(:popover-open)", ["a.more"]],
        ["not selector(:popover-open)", ["button[popovertarget], .menu:not(.alone)"]]
    ]);
    assert_eq!(browser.run(conditions), expected);
    let link = browser.run("return document.querySelector('a.more').pathname");
    browser.open(&app.url(link.as_str().unwrap()));
    browser.wait_for("Requests in the last 30 days");
    assert!(browser.has("Revoke"));
}

/// The row of the key in the list, as text.
fn row(member: &Member, query: &str, name: &str) -> String {
    let page = member.get(&format!("{LIST}{query}")).text();
    let row = page.split("<tr").find(|row| row.contains(&format!(">{name}</a>")));
    row.unwrap_or_else(|| panic!("{name}: {page}")).to_owned()
}

#[test]
fn the_chart_of_a_key_shows_the_requests_that_were_made() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (idle, _) = app.clinic.key();
    let names =
        format!("UPDATE api_keys SET name = CASE id WHEN '{id}' THEN 'Front desk' WHEN '{idle}' THEN 'Idle' END");
    app.database.connect().batch_execute(&names).unwrap();
    for _ in 0..3 {
        assert_eq!(app.service.create(&key, &patient()).status, 201);
    }
    for _ in 0..2 {
        assert_eq!(app.service.create(&key, &patient_with("email", "none")).status, 422);
    }
    wait_for("the counts", || row(&ada, "", "Front desk").contains("<title>3 accepted, 2 refused</title>"));
    // Five of ten, which is the least that the height stands for, on the last day.
    let shown = row(&ada, "", "Front desk");
    assert!(shown.contains("<path d=\"M118 24v-6\"/><path class=\"refused\" d=\"M118 18v-4\"/>"), "{shown}");
    let earlier =
        "INSERT INTO key_answers SELECT organisation_id, key_id, day - age, day - age, 201, '', 1000 FROM key_answers,
        unnest(ARRAY[29, 30]) AS age WHERE status = 201 AND field = ''";
    app.database.connect().batch_execute(earlier).unwrap();
    let shown = row(&ada, "", "Front desk");
    assert!(
        shown.contains("<title>1,003 accepted, 2 refused</title>") && shown.contains("d=\"M2 24v-22M118"),
        "{shown}"
    );
    let idle = row(&ada, "", "Idle");
    assert!(idle.contains("<title>No requests</title></svg>") && !idle.contains("<path"), "{idle}");
}

#[test]
fn what_needs_attention_is_counted_and_each_count_leads_to_its_keys() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let other = app.other_clinic();
    let _ = other.key();
    let names = [
        "Ends soon",
        "Ends soon, replaced",
        "Ends later",
        "Only refused",
        "Unused",
        "Silent",
        "Busy",
        "Paused",
        "Gone",
        "Over",
    ];
    let mut sql = String::new();
    for name in names {
        let (id, _) = app.clinic.key();
        sql += &format!(
            "UPDATE api_keys SET name = '{name}' WHERE id = '{id}';
             INSERT INTO key_uses (organisation_id, key_id, last_used_at)
             SELECT organisation_id, id, now() - interval '3 days' FROM api_keys
             WHERE id = '{id}' AND '{name}' NOT IN ('Only refused', 'Unused', 'Gone', 'Over');"
        );
    }
    sql += "UPDATE api_keys SET expires_at = now() + interval '6 days' WHERE name LIKE 'Ends soon%' OR name = 'Paused';
        UPDATE api_keys SET expires_at = now() + interval '8 days' WHERE name = 'Ends later';
        UPDATE api_keys SET paused_at = now() WHERE name = 'Paused';
        UPDATE api_keys SET revoked_at = now() WHERE name = 'Gone';
        UPDATE api_keys SET expires_at = now() - interval '6 days' WHERE name = 'Over';
        UPDATE api_keys SET replaces = (SELECT id FROM api_keys WHERE name = 'Ends soon, replaced') WHERE name = 'Busy';
        UPDATE key_uses SET silence_announced_at = now() FROM api_keys WHERE id = key_id AND name = 'Silent';
        UPDATE api_keys SET created_at = now() - interval '15 days';
        INSERT INTO key_answers SELECT organisation_id, id, day, day, 422, '', 5
            FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS today
            WHERE name IN ('Only refused', 'Gone', 'Paused');";
    app.database.connect().batch_execute(&sql).unwrap();
    let page = ada.get(LIST).text();
    let strip = between(&page, "aria-label=\"Needs attention\">", "</ul>");
    let counts: Vec<_> = strip
        .split("<b>")
        .skip(1)
        .map(|one| one.replace("</b>", "").split("</a>").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        counts,
        ["1 expired this week", "1 expires within a week", "1 only gets refusals", "1 never used", "1 silent"]
    );
    let shown = |query: &str| {
        let page = ada.get(&format!("{LIST}?show={query}")).text();
        let names: Vec<_> = names.into_iter().filter(|name| page.contains(&format!(">{name}</a>"))).collect();
        assert!(page.contains(&format!("href=\"{LIST}?show={query}\"")), "{query}");
        (names, page.contains("aria-current=\"true\""))
    };
    for (query, name) in [
        ("lapsed", "Over"),
        ("expiring", "Ends soon"),
        ("refused", "Only refused"),
        ("unused", "Unused"),
        ("silent", "Silent"),
    ] {
        assert_eq!(shown(query), (vec![name], true));
    }
    let page = ada.get(&format!("{LIST}?sort=name")).text();
    let tabs = between(&page, "aria-label=\"Status\">", "</ul>");
    let counts: BTreeMap<_, _> = tabs
        .split("\">")
        .filter_map(|tab| tab.split_once(" <span>"))
        .map(|(word, rest)| (word, rest.split('<').next().unwrap()))
        .collect();
    assert_eq!(counts, BTreeMap::from([("Active", "7"), ("Current", "8"), ("Ended", "2"), ("Paused", "1")]));
    assert_eq!(shown("ended"), (vec!["Gone", "Over"], true));
    assert!(ada.get(&format!("{LIST}?show=revoked")).text().contains(">Gone</a>"), "the address of an earlier version");
}

#[test]
fn the_keys_that_are_counted_are_those_that_are_shown() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let ended = "UPDATE api_keys SET revoked_at = now() WHERE name IN ('Diabetes educator', 'Referral import');
        UPDATE api_keys SET expires_at = now() WHERE name = 'Website form';";
    let more = "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
        SELECT gen_random_uuid(), id, 'Tablet', sha256(n::text::bytea), 'aB3x', now() FROM organisations, generate_series(50, 58) AS n;";
    app.database.connect().batch_execute(&format!("{FIFTY_KEYS}{ended}{more}")).unwrap();
    let (first, second) = (ada.get(LIST).text(), ada.get(&format!("{LIST}?page=2")).text());
    assert!(first.contains(">Current <span>56</span>") && first.contains(">Ended <span>3</span>"), "{first}");
    assert!(first.contains("Page 1 of 2, 59 keys, 3 of them ended<"), "{first}");
    let rows = |page: &str| page.matches("<th scope=\"row\">").count();
    assert_eq!([&first, &second].map(|page| rows(page)), [50, 9]);
    let over = [&first, &second].map(|page| page.matches("<tr class=\"over\"").count());
    assert_eq!(over.iter().sum::<usize>(), 3, "{first}");
    let ended = ada.get(&format!("{LIST}?show=ended")).text();
    assert!(rows(&ended) == 3 && ended.matches("<tr class=\"over\"").count() == 3, "{ended}");
}

/// A key that was refused some time ago, one that is to be installed, and the others.
fn with_a_new_and_a_refused_key(browser: &Browser) -> TestApp {
    let app = with_fifty_keys(browser);
    let (id, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412")).status, 422);
    wait_for("the refusal", || app.database.count("key_refusals") == 1);
    let sql = format!(
        "UPDATE key_refusals SET at = now() - interval '59 minutes 30 seconds';
         UPDATE api_keys SET name = 'HotDoc new patient registration form', created_at = now() WHERE id = '{id}';
         UPDATE api_keys SET created_at = now() WHERE replaces IS NOT NULL;
         DELETE FROM key_uses USING api_keys WHERE key_id = id AND replaces IS NOT NULL;
         DELETE FROM key_answers USING api_keys WHERE key_id = id AND replaces IS NOT NULL;"
    );
    app.database.connect().batch_execute(&sql).unwrap();
    app
}

#[test]
fn no_text_of_the_list_is_clipped_on_a_large_screen() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = with_a_new_and_a_refused_key(&browser);
        browser.open(&app.url(LIST));
        browser.wait_for("refused 59 minutes ago");
        browser.wait_for("New key, not used yet");
        for width in [768, 1_280, 1_920] {
            browser.on_a_screen(width);
            wait_for("the screen", || browser.run("return innerWidth") == width);
            // A tablet shortens what it shows of the use.
            let clipped = browser.run(
                "return [...document.querySelectorAll('td[data-label], td[data-label] .by, td .by:has(a)')]
                     .filter((one) => innerWidth > 1024 || one.matches(':has(a)'))
                     .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight + 1)
                     .map((one) => one.textContent)",
            );
            assert_eq!(clipped, json!([]), "{width} px in {browser:?}");
            let (heights, _) = rows_in_window(&browser);
            assert!(heights.iter().all(|height| *height <= 58.0), "{width}: {heights:?}");
        }
        let status =
            browser.run("return document.querySelector('thead th:nth-child(2)').getBoundingClientRect().width");
        assert!(status.as_f64().unwrap() >= 240.0, "{status}");
    }
}

#[test]
fn a_phone_shows_every_choice_whole() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = with_a_new_and_a_refused_key(&browser);
        let ended = "UPDATE api_keys SET expires_at = now() WHERE name IN ('Check-in kiosk', 'Diabetes educator');
            UPDATE api_keys SET contact = 'Acme' WHERE name LIKE 'HotDoc new%'";
        app.database.connect().batch_execute(ended).unwrap();
        browser.on_a_screen(360);
        browser.open(&app.url(LIST));
        wait_for("the screen", || browser.run("return innerWidth") == 360);
        let shown = browser.run(
            "const all = (selector) => [...document.querySelectorAll(selector)];
             const places = (selector) => all(selector).map((one) => one.getBoundingClientRect());
             const statuses = places('.statuses a');
             const search = document.querySelector('#q');
             const pen = document.createElement('canvas').getContext('2d');
             pen.font = getComputedStyle(search).font;
             const room = search.clientWidth - 2 * parseFloat(getComputedStyle(search).paddingLeft);
             const longest = all('tbody th a').find((one) => one.textContent.startsWith('Pathology results of'));
             return [statuses.length, new Set(statuses.map((one) => one.top)).size,
                 all('.reasons a').every((one) => getComputedStyle(one).borderTopStyle === 'solid'),
                 pen.measureText(search.placeholder).width < room,
                 places('.bar nav a').filter((one) => one.left < 0 || one.right > 360).length,
                 longest.getBoundingClientRect().height > 30,
                 all('tbody tr').filter((row) => row.querySelector('.status').getBoundingClientRect().top - row.getBoundingClientRect().top < 4).length]",
        );
        assert_eq!(shown, json!([4, 1, true, true, 0, true, 0]), "{browser:?}");
    }
}

#[test]
fn days_without_use_are_before_the_button_that_applies_them() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = with_fifty_keys(&browser);
        browser.on_a_screen(1_280);
        browser.open(&app.url(&format!("{LIST}?unused=3")));
        wait_for("the screen", || browser.run("return innerWidth") == 1_280);
        let is_before = browser.run(
            "const [field, button] = ['#unused', '.find button'].map((one) => document.querySelector(one).getBoundingClientRect());
             return [field.right <= button.left, Math.abs(field.top - button.top) < 4]",
        );
        assert_eq!(is_before, json!([true, true]), "{browser:?}");
    }
}

#[test]
fn the_requests_of_today_are_beside_the_last_one() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    app.database
        .connect()
        .batch_execute(&format!("UPDATE api_keys SET name = 'Front desk' WHERE id = '{id}'"))
        .unwrap();
    assert!(!row(&ada, "", "Front desk").contains(" today<"));
    for _ in 0..3 {
        assert_eq!(app.service.create(&key, &patient()).status, 201);
    }
    wait_for("the count", || app.database.count("key_answers WHERE status = 201 AND field = '' AND count = 3") == 1);
    wait_for("the use", || app.database.count("key_uses WHERE last_used_at IS NOT NULL") == 1);
    let shown = row(&ada, "", "Front desk");
    assert!(shown.contains("</time><span class=\"by\">3 today</span></td>"), "{shown}");
}

#[test]
fn the_page_of_a_key_and_the_pages_to_select_it_show_the_status_that_the_list_shows() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    // Accepted and refused requests on each of three days, today among them; `replayed` stands for nothing here.
    let of_days = |id: &str, status: u16, field: &str, count: u32| {
        format!(
            "INSERT INTO key_answers SELECT organisation_id, id, day, day, {status}, '{field}', {count}
             FROM api_keys, generate_series(0, 2) AS n,
                LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day) AS days WHERE id = '{id}';"
        )
    };
    let mut expected = Vec::new();
    for word in ["Replace now", "Only refusals", "Often refused", "Silent", "Check numbers", "Paused", "Active"] {
        let id = app.clinic.key().0.to_string();
        let uses = format!(
            "INSERT INTO key_uses (organisation_id, key_id, last_used_at, sent_in_clear_at, silence_announced_at)
             SELECT organisation_id, id, now() - interval '1 day',
                CASE '{word}' WHEN 'Replace now' THEN now() END, CASE '{word}' WHEN 'Silent' THEN now() END
             FROM api_keys WHERE id = '{id}';"
        );
        let sql = match word {
            "Only refusals" => of_days(&id, 422, "", 2),
            "Often refused" => uses + &of_days(&id, 201, "", 2) + &of_days(&id, 422, "", 2),
            "Check numbers" => uses + &of_days(&id, 201, "", 9) + &of_days(&id, 201, "unusual-number", 9),
            "Paused" => format!("{uses} UPDATE api_keys SET paused_at = now() WHERE id = '{id}';"),
            // Fewer than half.
            "Active" => uses + &of_days(&id, 201, "", 2) + &of_days(&id, 422, "", 1),
            _ => uses,
        };
        app.database.connect().batch_execute(&sql).unwrap();
        expected.push((id, word));
    }
    let list = ada.get(LIST).text();
    let selecting = ada.get(&format!("{LIST}/select?show=all&unused=")).text();
    app.database.connect().batch_execute("UPDATE api_keys SET created_at = now() - interval '15 days'").unwrap();
    for (id, word) in &expected {
        let pill = |page: &str| between(page, "<td><span class=\"status ", "</span>");
        assert!(
            pill(list.split(&format!("href=\"{LIST}/{id}")).nth(1).unwrap()).ends_with(&format!(">{word}")),
            "{word}: {list}"
        );
        let page = ada.get(&format!("{LIST}/{id}")).text();
        assert!(
            between(&page, "<dt>Status</dt><dd><span class=\"status ", "</span>").ends_with(&format!(">{word}")),
            "{word}: {page}"
        );
        if *word != "Only refusals" {
            let row = selecting.split(&format!("value=\"{id}\"")).nth(1).unwrap();
            assert!(pill(row).ends_with(&format!(">{word}")), "{word}: {row}");
        }
    }
    let (often, _) = &expected[2];
    let page = ada.get(&format!("{LIST}/{often}")).text();
    assert!(list.contains("6 of 12 in the last 7 days") && page.contains("6 of 12 in the last 7 days"), "{page}");
}

#[test]
fn a_replaced_key_follows_its_successor_and_each_leads_to_the_other() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let sql = "UPDATE api_keys SET name = 'Old' WHERE name = 'HotDoc booking 20' AND replaces IS NULL;
        UPDATE api_keys SET name = 'New' WHERE replaces IS NOT NULL";
    app.database.connect().batch_execute(&format!("{FIFTY_KEYS}{sql}")).unwrap();
    let page = ada.get(&format!("{LIST}?sort=used")).text();
    let rows: Vec<_> = page.split("<tr").skip(2).collect();
    let new = rows.iter().position(|row| row.contains(">New</a>")).unwrap();
    assert!(rows[new + 1].starts_with(" class=\"nested\"") && rows[new + 1].contains(">Old</a>"), "{}", rows[new + 1]);
    let id_of = |row: &str| {
        between(row, "<th scope=\"row\"><a href=\"/settings/api-keys/", "\"").chars().take(36).collect::<String>()
    };
    let link = format!("<a href=\"{LIST}/{}\">Old key, still working</a>", id_of(rows[new]));
    assert!(rows[new + 1].contains(&link), "{}", rows[new + 1]);
    assert_eq!(page.matches("class=\"nested\"").count(), 1);
}

#[test]
fn no_text_of_a_row_lies_on_another_on_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let app = with_fifty_keys(&browser);
    on_a_window(&browser, 360, 740);
    browser.open(&app.url(LIST));
    let overlaps = browser.run(
        "const texts = [...document.querySelectorAll('.keys tbody tr')].flatMap((row) => {
             const parts = [...row.querySelectorAll('th a, th code, .status, .by, td > time, .actions button')];
             const places = parts.filter((one) => one.getClientRects().length).map((one) => {
                 const range = document.createRange();
                 range.selectNodeContents(one);
                 const [text, shown] = [range.getBoundingClientRect(), one.getBoundingClientRect()];
                 return [one.textContent, { left: text.left, right: text.right,
                     top: Math.max(text.top, shown.top), bottom: Math.min(text.bottom, shown.bottom) }];
             });
             return places.flatMap(([text, one], index) => places.slice(index + 1)
                 .filter(([, other]) => one.left < other.right - 1 && other.left < one.right - 1
                     && one.top < other.bottom - 4 && other.top < one.bottom - 4)
                 .map(([other]) => [text, other]));
         });
         return texts;",
    );
    assert_eq!(overlaps, json!([]));
}

#[test]
fn a_key_is_found_by_who_created_it() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let [(mine, _), (other, _)] = [(); 2].map(|()| app.clinic.key());
    let sql = format!("UPDATE api_keys SET created_by = 'Theodora K.' WHERE id = '{mine}'");
    app.database.connect().batch_execute(&sql).unwrap();
    let found = ada.get(&format!("{LIST}?q=theodora")).text();
    assert!(found.contains(&mine.to_string()) && !found.contains(&other.to_string()), "{found}");
}

#[test]
fn everything_to_press_is_large_enough_for_a_finger() {
    let Some(browser) = Browser::start() else { return };
    let app = with_fifty_keys(&browser);
    for width in [360, 1_280] {
        on_a_window(&browser, width, 800);
        for path in [
            LIST,
            "/settings/members",
            "/settings/members/invite",
            "/settings/policies",
            "/settings/account",
            "/settings/activity",
        ] {
            browser.open(&app.url(path));
            let _ = browser.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })");
            // A link within a sentence is as high as its line.
            let small = browser.run(
                "return [...document.querySelectorAll('a, button, summary, select, input:not([type=hidden])')]
                    .filter((one) => !one.closest('.lead, .hint, .skip, label') && one.getClientRects().length)
                    .filter((one) => { const { width, height } = one.getBoundingClientRect(); return width < 24 || height < 23.5; })
                    .map((one) => one.outerHTML)",
            );
            assert_eq!(small, json!([]), "{path} at {width} px");
        }
    }
}

#[test]
fn a_cold_list_of_fifty_keys_takes_twenty_kilobytes() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    app.database.connect().batch_execute(FIFTY_KEYS).unwrap();
    let load = |path: &str| {
        let headers = [("Cookie", ada.cookie.as_str()), ("Accept", "text/html"), ("Accept-Encoding", "gzip")];
        app.service.client().send(&request("GET", path, &headers, b"")).body.len()
    };
    let page = ada.get(LIST).text();
    let assets = page.split('"').filter(|part| part.starts_with("/assets/"));
    // The symbols of one file are loaded with it.
    let assets: BTreeSet<_> = assets.map(|path| path.split('#').next().unwrap()).collect();
    assert_eq!(assets.len(), 3, "{assets:?}");
    let sizes: Vec<_> = [LIST].into_iter().chain(assets).map(|path| (path, load(path))).collect();
    assert!(sizes.iter().map(|(_, size)| size).sum::<usize>() <= 20_000, "{sizes:?}");
}

/// Pictures of the list, for people who work on its looks: `INTAKE_SCREENSHOTS=folder cargo test pictures`.
#[test]
fn pictures_of_fifty_keys() {
    let Some(folder) = std::env::var_os("INTAKE_SCREENSHOTS") else { return };
    let Some(browser) = Browser::start() else { return };
    let app = with_fifty_keys(&browser);
    browser.open(&app.url(LIST));
    for (scheme, forced) in [("light", "none"), ("dark", "none"), ("dark", "active")] {
        browser.emulate("screen", &[("prefers-color-scheme", scheme), ("forced-colors", forced)]);
        for (width, height) in [(360, 740), (768, 1_024), (1_280, 800), (1_920, 1_080)] {
            on_a_window(&browser, width, height);
            let name = if forced == "active" { "forced" } else { scheme };
            let file = std::path::Path::new(&folder).join(format!("list-{name}-{width}.png"));
            std::fs::write(file, browser.screenshot()).unwrap();
        }
    }
}
