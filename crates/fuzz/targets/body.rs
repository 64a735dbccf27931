//! Any body: no panic, and what is accepted is what was sent.
#![no_main]

use std::collections::BTreeMap;

use intake_domain::{Field, PatientDraft, day};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use time::macros::datetime;

fuzz_target!(|body: &[u8]| {
    let Ok(draft) = PatientDraft::from_json(body) else { return };
    let Ok(patient) = draft.validate(datetime!(2026-01-01 0:00 UTC)) else { return };
    // What is not looked at stays as it is: a number too large for any type is JSON all the same.
    let sent: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).expect("what is accepted is JSON");
    let sent = |member: &str| -> Option<String> {
        serde_json::from_str(sent.get(member)?.get()).expect("each field is a text or null")
    };
    for &field in Field::ALL {
        assert_eq!(sent(field.name()).as_deref(), patient.get(field), "{field:?}");
    }
    assert_eq!(patient.get(Field::DateOfBirth), Some(day(patient.date_of_birth()).as_str()));
});
