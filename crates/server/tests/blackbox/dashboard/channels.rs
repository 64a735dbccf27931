//! Patients by channel: counts of all keys of an organisation, for each of its members.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, patient, wait_for};
use serde_json::json;

use crate::fixtures::{Member, TestApp, between};
use crate::patient_with;

const CHANNELS: &str = "/settings/api-keys/channels";

#[test]
fn patients_of_each_key_are_counted_and_nothing_else() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = app.other_clinic();
    assert!(ada.get(CHANNELS).text().contains("No patient was received in the last 30 days."));
    let [busy, quiet, unused] = [(); 3].map(|()| app.clinic.key());
    assert!(!ada.get("/settings/api-keys").text().contains(CHANNELS));
    for _ in 0..3 {
        assert_eq!(app.service.create(&busy.1, &patient()).status, 201);
    }
    let body = patient().to_string();
    for _ in 0..2 {
        assert_eq!(app.service.create_with(&quiet.1, &[("Idempotency-Key", "once")], body.as_bytes()).status, 201);
    }
    assert_eq!(app.service.create(&quiet.1, &patient_with("phoneNumber", "0412")).status, 422);
    assert_eq!(app.service.create(&elsewhere.key().1, &patient()).status, 201);
    app.clinic.revoke(busy.0);
    let counted = "key_answers WHERE (status, field, count) IN ((201, '', 3), (201, '', 2), (201, 'replayed', 1))";
    wait_for("the counts", || app.database.count(counted) == 3);
    let page = ada.get(CHANNELS).text();
    let rows: Vec<_> = page.split("<th scope=\"row\">").skip(1).collect();
    let numbers = [("All keys", "4", "100%"), (busy.1.hint(), "3", "75%"), (quiet.1.hint(), "1", "25%")];
    assert_eq!(rows.len(), numbers.len(), "{page}");
    for (row, (name, total, share)) in rows.iter().zip(numbers) {
        assert!(row.contains(name) && row.contains(&format!("<strong>{total}</strong>")), "{row}");
        assert!(row.contains(&format!(">{share}</td>")), "{row}");
    }
    assert!(!page.contains(unused.1.hint()) && page.contains("1 key that could send patients sent none."), "{page}");
    assert!(ada.get("/settings/api-keys").text().contains(&format!("href=\"{CHANNELS}\">Patients by channel</a>")));
    let auditor = Member::join(app.service.client(), &ada.invite_as("olga@clinic.example", "auditor"), "Olga");
    assert!(auditor.get(CHANNELS).text().contains("<strong>4</strong>"));
    let file = auditor.get(&format!("{CHANNELS}.csv"));
    assert!(
        file.header("content-disposition").unwrap().contains("\"patients-by-channel-test-clinic-"),
        "{}",
        file.text()
    );
    let text = file.text();
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(rows[0], "\u{FEFF}\"Day\",\"Key\",\"Last characters\",\"Vendor contact\",\"Key ID\",\"Patients\"");
    for (row, ((id, key), patients)) in rows[1..].iter().zip([(&busy, 3), (&quiet, 1)]) {
        let end = format!(",\"Test key\",\"{}\",\"\",\"{id}\",\"{patients}\"", key.hint());
        assert!(row.ends_with(&end), "{row}");
    }
    assert_eq!(rows.len(), 3, "{text}");
}

#[test]
fn ten_keys_are_shown_the_others_folded_and_shares_add_up_to_a_hundred() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    for _ in 0..12 {
        let _ = app.clinic.key();
    }
    let counts = "UPDATE api_keys SET contact = CASE name WHEN 'Test key' THEN 'Acme <02>' END;
        INSERT INTO key_answers SELECT organisation_id, id, day, day, 201, '', 7
        FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS today";
    app.database.connect().batch_execute(counts).unwrap();
    let page = ada.get(CHANNELS).text();
    let (shown, folded) = page.split_once("<summary>2 more keys</summary>").unwrap();
    let rows = |part: &str| part.matches("data-label=\"Share\"").count();
    assert_eq!([shown, folded].map(rows), [11, 2], "{page}");
    let shares = page.split("data-label=\"Share\">").skip(2).map(|rest| rest.split('%').next().unwrap());
    assert_eq!(shares.map(|share| share.parse::<u32>().unwrap()).sum::<u32>(), 100, "{page}");
    let vendors = between(&page, "aria-label=\"Patients by vendor contact\"", "</table>");
    assert!(vendors.contains("Acme &#60;02&#62;") && vendors.contains("<strong>84</strong>"), "{vendors}");
}

#[test]
fn numbers_of_channels_are_in_sight_and_names_have_their_column() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        for _ in 0..3 {
            let _ = app.clinic.key();
        }
        let counts = "UPDATE api_keys SET contact = 'Illawarra Web Works, webmaster@illawarrafamily.example',
                name = 'Web form of the surgery in Dapto';
            INSERT INTO key_answers SELECT organisation_id, id, day - age, day - age, 201, '', 1234
            FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS today, generate_series(0, 29) AS age";
        app.database.connect().batch_execute(counts).unwrap();
        browser.open(&app.url(CHANNELS));
        for width in [360, 768, 900, 1_280, 1_920] {
            browser.on_a_screen(width);
            wait_for("the screen", || browser.run("return innerWidth") == width);
            let shown = browser.run(
                "const all = (selector) => [...document.querySelectorAll(selector)];
                 const numbers = all('[aria-label=\"Patients by vendor contact\"] .number, .channels .number');
                 const isTable = (one) => getComputedStyle(one).display === 'table-cell';
                 return [all('.scroll').filter((one) => one.scrollWidth > one.clientWidth).length,
                     numbers.length > 20,
                     numbers.filter((one) => one.getBoundingClientRect().right > innerWidth).length,
                     numbers.filter((one) => isTable(one) && getComputedStyle(one).textAlign !== 'right').length,
                     innerWidth < 1280 || all('.channels th a').every((one) => one.getBoundingClientRect().height < 30)]",
            );
            assert_eq!(shown, json!([0, true, 0, 0, true]), "{width} px in {browser:?}");
        }
    }
}

#[test]
fn a_person_reads_who_sends_how_many() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    let (_, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    wait_for("the use", || app.database.count("key_uses WHERE last_used_at IS NOT NULL") == 1);
    wait_for("the count", || app.database.count("key_answers WHERE status = 201 AND field = ''") == 1);
    browser.open(&app.url("/settings/api-keys"));
    browser.press("Patients by channel");
    browser.wait_for("All keys");
    browser.press("Test key");
    browser.wait_for("Requests in the last 30 days");
}
