//! Whatever is sent as a body: no panic, and what is accepted is what was sent.
#![no_main]

use intake_domain::NewPatient;
use intake_http::bench::decode_and_validate;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use time::macros::datetime;

fuzz_target!(|body: &[u8]| {
    let Some(patient) = decode_and_validate(body, datetime!(2026-01-01 0:00 UTC)) else { return };
    let sent: Value = serde_json::from_slice(body).expect("what is accepted is JSON");
    let day = patient.date_of_birth();
    let day = format!("{:04}-{:02}-{:02}", day.year(), u8::from(day.month()), day.day());
    type Field = fn(&NewPatient) -> Option<&str>;
    let optional: [(&str, Field); 7] = [
        ("email", NewPatient::email),
        ("addressLine1", NewPatient::address_line1),
        ("addressLine2", NewPatient::address_line2),
        ("suburb", NewPatient::suburb),
        ("state", NewPatient::state),
        ("postcode", NewPatient::postcode),
        ("country", NewPatient::country),
    ];
    assert_eq!(sent["firstName"], patient.first_name());
    assert_eq!(sent["lastName"], patient.last_name());
    assert_eq!(sent["phoneNumber"], patient.phone_number());
    assert_eq!(sent["dateOfBirth"], day);
    for (member, field) in optional {
        assert_eq!(sent[member].as_str(), field(&patient), "{member}");
    }
});
