//! Whatever is sent as a body: no panic, and what is accepted is what was sent.
#![no_main]

use std::collections::BTreeMap;

use intake_domain::NewPatient;
use intake_http::bench::decode_and_validate;
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use time::macros::datetime;

fuzz_target!(|body: &[u8]| {
    let Some(patient) = decode_and_validate(body, datetime!(2026-01-01 0:00 UTC)) else { return };
    // What is not looked at stays as it is: a number too large for any type is JSON all the same.
    let sent: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).expect("what is accepted is JSON");
    let sent = |member: &str| -> Option<String> {
        serde_json::from_str(sent.get(member)?.get()).expect("each field is a text or null")
    };
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
    assert_eq!(sent("firstName").as_deref(), Some(patient.first_name()));
    assert_eq!(sent("lastName").as_deref(), Some(patient.last_name()));
    assert_eq!(sent("phoneNumber").as_deref(), Some(patient.phone_number()));
    assert_eq!(sent("dateOfBirth"), Some(day));
    for (member, field) in optional {
        assert_eq!(sent(member).as_deref(), field(&patient), "{member}");
    }
});
