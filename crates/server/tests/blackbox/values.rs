//! What is accepted comes back exactly as sent and is stored as sent; what is not is refused at its field.

use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_test_support::patient;
use serde_json::{Value, json};

use crate::fixtures::TestApp;
use crate::{fault, faults, patient_with};

const MEMBERS: [&str; 16] = [
    "id",
    "firstName",
    "lastName",
    "phoneNumber",
    "email",
    "dateOfBirth",
    "addressLine1",
    "addressLine2",
    "suburb",
    "state",
    "postcode",
    "country",
    "organisationId",
    "isIdentified",
    "createdAt",
    "updatedAt",
];

fn members(data: &Value) -> Vec<&str> {
    let mut names: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_created_patient_has_all_sixteen_fields() {
    let app = TestApp::start();
    let response = app.create(&patient());
    assert_eq!(response.status, 201);
    assert_eq!(response.header("location"), None);
    let body = response.json();
    assert_eq!(body["meta"], json!({}));
    assert_eq!(body.as_object().unwrap().len(), 2);
    let data = &body["data"];
    let mut expected = MEMBERS;
    expected.sort_unstable();
    assert_eq!(members(data), expected);
    for optional in ["email", "addressLine1", "addressLine2", "suburb", "state", "postcode", "country"] {
        assert_eq!(data[optional], Value::Null, "{optional}");
    }
    assert_eq!(data["organisationId"], app.clinic.organisation.to_string());
    assert_eq!(data["isIdentified"], true);
    let id: uuid::Uuid = data["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 7);
}

#[test]
fn every_value_comes_back_and_is_stored_as_sent() {
    let app = TestApp::start();
    let sent = json!({
        "firstName": " Zoë \u{200D}",
        "lastName": "O'Brien-\"Łukasz\" \\ 王小明 👩‍⚕️",
        "phoneNumber": "+999999999999999",
        "dateOfBirth": "2000-02-29",
        "email": "Zoë.O'Brien+a@Mail.Example.com.au".replace('ë', "e"),
        "addressLine1": "",
        "addressLine2": "Unit 1/2 </script> '; DROP TABLE patients; --",
        "suburb": "x".repeat(100),
        "state": "é".repeat(50),
        "postcode": "😀".repeat(20),
        "country": "AU",
    });
    let response = app.create(&sent);
    assert_eq!(response.status, 201, "{}", response.text());
    let data = response.json()["data"].clone();
    for (name, value) in sent.as_object().unwrap() {
        assert_eq!(&data[name], value, "{name}");
    }

    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        stored: String,
    }
    let query = r#"SELECT json_build_object('firstName', first_name, 'lastName', last_name, 'phoneNumber', phone_number,
        'dateOfBirth', date_of_birth, 'email', email, 'addressLine1', address_line1, 'addressLine2', address_line2,
        'suburb', suburb, 'state', state, 'postcode', postcode, 'country', country, 'id', id,
        'organisationId', organisation_id, 'isIdentified', true,
        'createdAt', to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'updatedAt', to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))::text AS stored FROM patients"#;
    let row: Row = diesel::sql_query(query).get_result(&mut app.database.connect()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&row.stored).unwrap(), data);
}

#[test]
fn timestamps_are_utc_milliseconds_and_equal() {
    let app = TestApp::start();
    let data = app.create(&patient()).json()["data"].clone();
    let created_at = data["createdAt"].as_str().unwrap();
    assert_eq!(data["updatedAt"], created_at);
    let form = "0000-00-00T00:00:00.000Z";
    let shape: String = created_at.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, form);
}

#[test]
fn null_is_the_same_as_nothing() {
    let app = TestApp::start();
    for member in ["email", "addressLine1", "addressLine2", "suburb", "state", "postcode", "country"] {
        let response = app.create(&patient_with(member, Value::Null));
        assert_eq!((response.status, &response.json()["data"][member]), (201, &Value::Null), "{member}");
    }
    for member in ["firstName", "lastName", "phoneNumber", "dateOfBirth"] {
        assert_eq!(fault(&app.create(&patient_with(member, Value::Null)), member), "is required");
        let mut without = patient();
        without.as_object_mut().unwrap().remove(member);
        assert_eq!(fault(&app.create(&without), member), "is required");
    }
}

#[test]
fn a_wrong_type_is_refused_at_its_field() {
    let app = TestApp::start();
    for member in &MEMBERS[1..12] {
        for value in [json!(7), json!(1.5), json!(true), json!([]), json!({}), json!(["a"])] {
            assert_eq!(fault(&app.create(&patient_with(member, value)), member), "must be a string");
        }
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn what_breaks_a_rule_is_refused_at_its_field() {
    let app = TestApp::start();
    let cases = [
        ("firstName", json!(""), "characters"),
        ("lastName", json!("x".repeat(256)), "255"),
        ("firstName", json!(" \u{200B}\u{3000}"), "must not be blank"),
        ("firstName", json!("A\u{0}a"), "control characters"),
        ("suburb", json!("\u{202E}abc"), "bidirectional"),
        ("phoneNumber", json!("0412345678"), "E.164 format is required"),
        ("phoneNumber", json!("+6١٢"), "E.164 format is required"),
        ("phoneNumber", json!("+61412345678\n"), "E.164 format is required"),
        ("dateOfBirth", json!("1985-3-21"), "YYYY-MM-DD"),
        ("dateOfBirth", json!("2023-02-29"), "calendar"),
        ("dateOfBirth", json!("1849-12-31"), "1850-01-01"),
        ("dateOfBirth", json!("2999-01-01"), "future"),
        ("email", json!("nobody@localhost"), "valid email address"),
        ("email", json!(""), "characters"),
        ("addressLine1", json!("x".repeat(256)), "255"),
        ("addressLine2", json!("é".repeat(256)), "255"),
        ("suburb", json!("x".repeat(101)), "100"),
        ("state", json!("x".repeat(51)), "50"),
        ("postcode", json!("x".repeat(21)), "20"),
        ("country", json!("NZ"), "AU"),
        ("country", json!(""), "AU"),
    ];
    for (member, value, expected) in cases {
        let message = fault(&app.create(&patient_with(member, value)), member);
        assert!(message.contains(expected), "{member}: {message}");
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn all_broken_fields_are_told_at_once_in_order() {
    let app = TestApp::start();
    let sent = json!({ "country": 1, "email": "x", "phoneNumber": "1", "firstName": "", "state": "x".repeat(51) });
    let paths: Vec<_> = faults(&app.create(&sent)).into_iter().flat_map(|(path, _)| path).collect();
    assert_eq!(paths, ["firstName", "lastName", "phoneNumber", "dateOfBirth", "email", "state", "country"]);
}

#[test]
fn json_that_is_no_object_is_one_fault_without_a_path() {
    let app = TestApp::start();
    for body in ["[]", "null", "7", "\"text\"", "[{\"firstName\":\"Ada\"}]"] {
        let faults = faults(&app.send_body(body));
        assert_eq!(faults, [(vec![], "must be a JSON object".to_owned())], "{body}");
    }
}

#[test]
fn unknown_members_change_nothing() {
    let app = TestApp::start();
    let mut sent = patient();
    for (member, value) in [
        ("id", json!("00000000-0000-7000-8000-000000000000")),
        ("organisationId", json!("00000000-0000-7000-8000-000000000000")),
        ("isIdentified", json!(false)),
        ("createdAt", json!("1999-01-01T00:00:00.000Z")),
        ("updatedAt", json!("1999-01-01T00:00:00.000Z")),
        ("organisation_id", json!("x")),
        ("nested", json!({ "firstName": ["x", { "id": 1 }] })),
    ] {
        sent[member] = value;
    }
    let data = app.create(&sent).json()["data"].clone();
    assert_eq!(data["organisationId"], app.clinic.organisation.to_string());
    assert_eq!(data["isIdentified"], true);
    assert_eq!(data["firstName"], "Ada");
    assert_ne!(data["id"], "00000000-0000-7000-8000-000000000000");
    assert!(data["createdAt"].as_str().unwrap() > "2025");
    assert_eq!(data.as_object().unwrap().len(), 16);
}

#[test]
fn equal_patients_are_each_created() {
    let app = TestApp::start();
    let first = app.create(&patient()).json()["data"]["id"].clone();
    let second = app.create(&patient()).json()["data"]["id"].clone();
    assert_ne!(first, second);
    assert_eq!(app.patients(), 2);
}
