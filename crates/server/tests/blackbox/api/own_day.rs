//! What a key created on a day: a count and a digest by which its holder finds every patient that the register has
//! lost, and learns nothing else.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, KeyId};
use intake_test_support::{Response, Service, patient, request, wait_for};
use ring::digest::SHA256;
use serde_json::{Value, json};

use crate::api::own_key::get;
use crate::assert_problem;
use crate::commands::organisations::done;
use crate::fixtures::TestApp;

const DAY: &str = "2025-12-03";
/// Milliseconds from the epoch to that day.
const MIDNIGHT: u64 = 1_764_720_000_000;
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const FIRST: &str = "00000000-0000-0000-0000-000000000000";
const LAST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

fn digest<T: AsRef<str>>(ids: &[T]) -> String {
    let text: String = ids.iter().map(|id| format!("{}\n", id.as_ref())).collect();
    ring::digest::digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn day(service: &Service, key: &ApiKey, rest: &str) -> Response {
    get(service, key, &format!("/api/v1/key/days/{rest}"))
}

/// Stores patients of this key, one in each number of milliseconds from midnight on. Returns their ids in order.
fn store(app: &TestApp, key: KeyId, number: u64, every: u64) -> Vec<String> {
    let insert = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at,
            updated_at, key_id)
         SELECT '{}', (lpad(to_hex({MIDNIGHT} + n * {every}), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
                || substr(md5(n::text), 4, 15))::uuid,
            'Ada', 'Lovelace', '+61412345678', '1985-03-21', at, at, '{key}'
         FROM generate_series(0, {number} - 1) AS n, to_timestamp(({MIDNIGHT} + n * {every}) / 1000.0) AS at",
        app.clinic.organisation
    );
    app.database.connect().batch_execute(&insert).unwrap();
    app.database.texts(&format!("SELECT id::text FROM patients WHERE key_id = '{key}' ORDER BY id"))
}

/// The ids that the register has lost of these, found as the guide does it.
fn lost(ask: &dyn Fn(&str, &str) -> Value, ids: &[String], after: &str, until: &str) -> Vec<String> {
    let part = ask(after, until);
    if part["digest"] == digest(ids) {
        return vec![];
    }
    if ids.len() == 1 {
        return ids.to_vec();
    }
    if part["created"] == ids.len() - 1 && ids.len() <= 1_024 {
        let without = |place: usize| [&ids[..place], &ids[place + 1..]].concat();
        let place = (0..ids.len()).find(|place| part["digest"] == digest(&without(*place)));
        return vec![ids[place.unwrap()].clone()];
    }
    let (left, right) = ids.split_at(ids.len() / 2);
    let middle = left.last().unwrap();
    [lost(ask, left, after, middle), lost(ask, right, middle, until)].concat()
}

/// Removes some of this number of patients behind the back of the service. All are found, in few requests.
fn find_gaps(number: u64, removed: i64, requests_for_each: usize) {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (id, key) = app.clinic.key();
    let ids = store(&app, id, number, 86_400_000 / number);
    let whole = json!({ "date": DAY, "created": number, "erased": 0, "digest": digest(&ids) });
    assert_eq!(day(&app.service, &key, DAY).json(), json!({ "data": whole, "meta": {} }));
    // By the primary key: without statistics, each id alone is looked for in all rows.
    let some = format!("SELECT organisation_id, id FROM patients ORDER BY sha256(id::text::bytea) LIMIT {removed}");
    let remove = format!("DELETE FROM patients WHERE (organisation_id, id) IN ({some})");
    app.database.connect().batch_execute(&remove).unwrap();
    let left: BTreeSet<_> = app.database.texts("SELECT id::text FROM patients").into_iter().collect();
    let gaps: Vec<_> = ids.iter().filter(|id| !left.contains(*id)).cloned().collect();
    let (client, asked) = (app.service.client(), Cell::new(0));
    let bearer = format!("Bearer {}", key.expose());
    let connection = RefCell::new(client.connect());
    let ask = |after: &str, until: &str| {
        asked.set(asked.get() + 1);
        let path = format!("/api/v1/key/days/{DAY}?after={after}&until={until}");
        let headers = [("Authorization", bearer.as_str())];
        let answer = connection.borrow_mut().exchange(&request("GET", &path, &headers, b""));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let names: Vec<_> = answer.json()["data"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["created", "date", "digest", "erased"]);
        answer.json()["data"].take()
    };
    assert_eq!(lost(&ask, &ids, FIRST, LAST), gaps);
    assert_eq!(gaps.len(), usize::try_from(removed).unwrap());
    assert!(asked.get() <= requests_for_each * gaps.len(), "{} requests for {removed} of {number}", asked.get());
}

#[test]
fn every_patient_that_is_removed_behind_the_service_is_found_in_few_requests() {
    find_gaps(4_000, 1, 15);
    find_gaps(4_000, 60, 15);
}

#[test]
#[ignore = "just test-all"]
fn a_thousand_patients_of_a_hundred_thousand_are_found_too() {
    find_gaps(100_000, 1_000, 15);
}

#[test]
fn a_day_counts_what_a_key_created_and_what_was_erased_of_it() {
    let app = TestApp::start();
    let (_, key) = app.clinic.key();
    let created: Vec<_> = (0..3).map(|_| app.service.create(&key, &patient()).json()["data"].take()).collect();
    assert_eq!(app.create(&patient()).status, 201, "of another key");
    let mut ids: Vec<_> = created.iter().map(|patient| patient["id"].as_str().unwrap().to_owned()).collect();
    let today = created[0]["createdAt"].as_str().unwrap()[..10].to_owned();
    ids.sort();
    let found = |rest: &str| day(&app.service, &key, &format!("{today}{rest}")).json()["data"].take();
    let data = |created: usize, erased: u64, ids: &[String]| {
        assert_eq!(created, ids.len());
        json!({ "date": today, "created": created, "erased": erased, "digest": digest(ids) })
    };
    assert_eq!(found(""), data(3, 0, &ids));
    assert_eq!(found(&format!("?after={}", ids[0])), data(2, 0, &ids[1..]));
    assert_eq!(found(&format!("?until={}", ids[1].to_uppercase())), data(2, 0, &ids[..2]));
    assert_eq!(found(&format!("?after={}&until={}", ids[0], ids[1])), data(1, 0, &ids[1..2]));
    assert_eq!(found(&format!("?after={}&until={}", ids[1], ids[0])), data(0, 0, &[]));
    let organisation = app.clinic.organisation.to_string();
    done(&app, &["patient", "erase", "--organisation", &organisation, "--patient", &ids[1], "--yes"]);
    assert_eq!(found(""), data(2, 1, &[ids[0].clone(), ids[2].clone()]));
    assert_eq!(found(&format!("?until={}", ids[0])), data(1, 0, &ids[..1]));
    let other = day(&app.service, &key, DAY).json();
    assert_eq!(other["data"], json!({ "date": DAY, "created": 0, "erased": 0, "digest": NOTHING }));
    let elsewhere = day(&app.service, &app.other_clinic().key().1, &today).json();
    assert_eq!(elsewhere["data"], json!({ "date": today, "created": 0, "erased": 0, "digest": NOTHING }));
}

#[test]
fn what_is_no_day_and_no_id_is_refused_after_the_key() {
    let app = TestApp::start();
    let (revoked_id, revoked) = app.clinic.key();
    app.clinic.revoke(revoked_id);
    let no_day = "The day must be a date in the form YYYY-MM-DD, for example 2025-12-03";
    let no_id = "The parameters after and until must be ids of patients, each sent once";
    let no_other = "The only parameters are after and until";
    let ids = format!("{DAY}?after={FIRST}&after={FIRST}");
    let misspelt = format!("{DAY}?after={FIRST}&untill={FIRST}");
    let cases = [
        ("today", no_day),
        ("2025-02-30", no_day),
        ("2025-12-03T00:00:00Z", no_day),
        ("2025-12-03?after=", no_id),
        ("2025-12-03?until=1", no_id),
        ("2025-12-03?until=%00", no_id),
        (&ids, no_id),
        (&misspelt, no_other),
        ("2025-12-03?Canary=1", no_other),
    ];
    for (asked, detail) in cases {
        assert_problem(&day(&app.service, app.key(), asked), 400, "Bad Request", detail);
        crate::assert_unauthorised(&day(&app.service, &revoked, asked));
    }
    assert_eq!(day(&app.service, app.key(), "").status, 404);
    assert_eq!(day(&app.service, app.key(), &format!("{DAY}/")).status, 404);
    wait_for("the refusals", || app.database.count("key_refusals WHERE reason = 'malformed'") == 9);
}
