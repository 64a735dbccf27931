//! What is accepted comes back exactly as sent and is stored as sent; what is not is refused at its field.

use std::collections::BTreeSet;

use intake_domain::Field;
use intake_test_support::patient;
use serde_json::{Value, json};

use crate::fixtures::TestApp;
use crate::{fault, faults, patient_with};

/// Fields that the interface promises to answer. The fields of the domain come on top, should there be more of them.
const PROMISED: [&str; 16] = [
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

pub(crate) const REQUIRED: [&str; 4] = ["firstName", "lastName", "phoneNumber", "dateOfBirth"];

/// The fields that a caller may send, in the order of their faults.
pub(crate) fn fields() -> Vec<&'static str> {
    Field::ALL.iter().map(|field| field.name()).collect()
}

pub(crate) fn optional_fields() -> Vec<&'static str> {
    fields().into_iter().filter(|field| !REQUIRED.contains(field)).collect()
}

/// Everything that the answer to a create holds, sorted.
pub(crate) fn answered_members() -> Vec<&'static str> {
    let all: BTreeSet<_> = PROMISED.into_iter().chain(fields()).collect();
    all.into_iter().collect()
}

fn members(data: &Value) -> BTreeSet<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The column of a member.
fn column(member: &str) -> String {
    member.chars().fold(String::new(), |mut column, letter| {
        if letter.is_ascii_uppercase() {
            column.push('_');
        }
        column.push(letter.to_ascii_lowercase());
        column
    })
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
    assert_eq!(members(data), BTreeSet::from_iter(answered_members()));
    for optional in optional_fields() {
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

    let stored = app.database.texts(
        r#"SELECT (to_jsonb(patients) || jsonb_build_object('is_identified', true,
            'created_at', to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
            'updated_at', to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))::text FROM patients"#,
    );
    let stored: Value = serde_json::from_str(&stored[0]).unwrap();
    for (name, value) in data.as_object().unwrap() {
        assert_eq!(&stored[column(name)], value, "{name}");
    }
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
    for field in optional_fields() {
        let response = app.create(&patient_with(field, Value::Null));
        assert_eq!((response.status, &response.json()["data"][field]), (201, &Value::Null), "{field}");
    }
    for field in REQUIRED {
        assert_eq!(fault(&app.create(&patient_with(field, Value::Null)), field), "is required");
        let mut without = patient();
        without.as_object_mut().unwrap().remove(field);
        assert_eq!(fault(&app.create(&without), field), "is required");
    }
}

#[test]
fn a_wrong_type_is_refused_at_its_field() {
    let app = TestApp::start();
    for field in fields() {
        for value in [json!(7), json!(1.5), json!(true), json!([]), json!({}), json!(["a"])] {
            assert_eq!(fault(&app.create(&patient_with(field, value)), field), "must be a string");
        }
    }
    assert_eq!(app.patients(), 0);
}

/// One case for each rule; the domain's tests cover every variant.
#[test]
fn a_broken_rule_is_reported_at_its_field() {
    let app = TestApp::start();
    let rules = [
        ("length in code points", "lastName", "x".repeat(256), "255"),
        ("length in code points", "addressLine2", "é".repeat(256), "255"),
        ("length, nothing trimmed", "postcode", " ".repeat(21), "20"),
        ("an empty name", "firstName", String::new(), "characters"),
        ("an empty email", "email", String::new(), "leave the field out"),
        ("an empty country", "country", String::new(), "leave the field out"),
        ("a blank name", "firstName", " \u{200B}\u{3000}".to_owned(), "must not be blank"),
        ("a control character", "firstName", "A\u{0}a".to_owned(), "control characters"),
        ("a phone pasted from contacts", "phoneNumber", "\u{202A}+61412345678\u{202C}".to_owned(), "bidirectional"),
        ("a name of tabs", "lastName", "\t".to_owned(), "control characters"),
        ("a bidirectional override", "suburb", "\u{202E}abc".to_owned(), "bidirectional"),
        ("phone in E.164", "phoneNumber", "0412345678".to_owned(), "E.164 format is required"),
        ("phone in ASCII digits", "phoneNumber", "+6١٢".to_owned(), "E.164 format is required"),
        ("phone, no newline after it", "phoneNumber", "+61412345678\n".to_owned(), "control characters"),
        ("date of one form", "dateOfBirth", "1985-3-21".to_owned(), "YYYY-MM-DD"),
        ("date in the calendar", "dateOfBirth", "2023-02-29".to_owned(), "real date"),
        ("date from 1850 on", "dateOfBirth", "1849-12-31".to_owned(), "1850-01-01"),
        ("date not in the future", "dateOfBirth", "2999-01-01".to_owned(), "future"),
        ("email with a dot in its domain", "email", "nobody@localhost".to_owned(), "valid email address"),
        ("country", "country", "NZ".to_owned(), "AU"),
    ];
    for (rule, field, value, expected) in rules {
        let message = fault(&app.create(&patient_with(field, value)), field);
        assert!(message.contains(expected), "{rule}: {message}");
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn all_broken_fields_are_listed_at_once_in_order() {
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
    assert_eq!(members(&data), BTreeSet::from_iter(answered_members()));
}

#[test]
fn equal_patients_are_each_created() {
    let app = TestApp::start();
    let first = app.create(&patient()).json()["data"]["id"].clone();
    let second = app.create(&patient()).json()["data"]["id"].clone();
    assert_ne!(first, second);
    assert_eq!(app.patients(), 2);
}
