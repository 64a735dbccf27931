//! Quality of the patients of a key: counted when they arrive, shown on the key's page, and no value is kept.

use intake_domain::day;
use intake_edge as edge;
use intake_test_support::{patient, wait_for};
use serde_json::{Value, json};

use crate::api::own_key;
use crate::dashboard::key_page::rows;
use crate::fixtures::TestApp;
use crate::patient_with;

#[test]
fn one_to_four_patients_are_neither_counted_nor_described() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let created = |count: usize| {
        assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "+610491570006")).status, 201);
        let counted = format!("key_answers WHERE field = 'zero-after-country-code' AND count = {count}");
        wait_for("the count", || app.database.count(&counted) == 1);
        own_key::get(&app.service, &key, "/api/v1/key/quality").json()["data"].take()
    };
    for count in 1..5 {
        assert_eq!(created(count), json!([]));
    }
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(!page.contains("Quality of the patients") && !page.contains("fewer than 5"), "{page}");
    let date = day(edge::now().date());
    let counted = |mark| json!({ "date": date, "mark": mark, "count": 5 });
    assert_eq!(created(5), json!([counted("zero-after-country-code"), counted("no-address")]));
}

#[test]
fn the_page_of_a_key_counts_what_may_be_wrong_with_its_patients() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (_, other) = app.clinic.key();
    let [trunk_zero, short] =
        ["+610491570006", "+6149157000"].map(|number| patient_with("phoneNumber", number).to_string());
    let send = |retry: &str, body: &str| app.service.create_with(&key, &[("Idempotency-Key", retry)], body.as_bytes());
    for number in 0..5 {
        assert_eq!(send(&format!("zero-{number}"), &trunk_zero).status, 201);
        assert_eq!(send(&format!("short-{number}"), &short).status, 201);
        // An answer that is repeated is no other patient, and a refused one is none.
        assert_eq!(send(&format!("zero-{number}"), &trunk_zero).status, 201);
        assert_eq!(send(&format!("never-{number}"), &patient_with("country", "XX").to_string()).status, 422);
    }
    assert_eq!(send("state", &patient_with("state", "Northern Territory").to_string()).status, 201);
    assert_eq!(send("good", &patient().to_string()).status, 201);
    let counted = "key_answers WHERE status = 201 AND field IN ('zero-after-country-code', 'unusual-number', 'state')";
    wait_for("the counts", || app.database.count(counted) == 3);

    let shown = rows(&ada, id, "Quality of the patients");
    assert!(shown[0].contains("no address | 12 | Send the address"), "{shown:?}");
    assert!(shown[1].contains("nobody can dial | 5 | Leave out the 0"), "{shown:?}");
    assert!(shown[2].contains("of no area and no mobile | 5 | Ask for the whole number"), "{shown:?}");
    assert!(shown[3].contains("a state that is not a code such as NSW | fewer than 5 | Send ACT"), "{shown:?}");
    assert_eq!(shown.len(), 4, "{shown:?}");
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(page.contains("may be wrong with the 12 patients that were received"), "{page}");
    assert!(!page.contains("Northern Territory") && !page.contains("0491570006"), "{page}");
    let list = ada.get("/settings/api-keys").text();
    assert_eq!(list.matches("can&#39;t be dialled").count(), 1, "the other key has none: {list}");
    assert!(list.contains(">Check numbers<") && list.contains("10 of 12 numbers can&#39;t be dialled"), "{list}");
    let asked = own_key::get(&app.service, &key, "/api/v1/key/quality");
    assert_eq!(asked.status, 200, "{}", asked.text());
    let asked = asked.json();
    assert_eq!(asked["meta"], json!({}));
    let counted = asked["data"].as_array().unwrap().iter().map(|one| json!([one["mark"], one["count"]]));
    let expected = json!([["zero-after-country-code", 5], ["unusual-number", 5], ["no-address", 12]]);
    assert_eq!(counted.collect::<Value>(), expected, "no count under five");
    let of_other = own_key::get(&app.service, &other, "/api/v1/key/quality").json();
    assert_eq!(of_other["data"], json!([]));
    assert_eq!(rows(&ada, id, "Refusals").len(), 1, "a doubt is no reason for a refusal");
}
