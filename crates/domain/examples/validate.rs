//! Validates a patient the way another service would: all faults at once, or a patient that keeps every rule.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use intake_domain::{Field, PatientDraft};
use time::macros::datetime;

fn main() {
    let draft = PatientDraft::default()
        .with(Field::FirstName, "Ada")
        .with(Field::LastName, "Lovelace")
        .with(Field::PhoneNumber, "0412 345 678");
    match draft.validate(datetime!(2025-12-03 10:30 UTC)) {
        Ok(patient) => println!("valid, born {}", patient.date_of_birth()),
        Err(faults) => println!("{faults}"),
    }
}
