//! Validates a patient the way another service would: all faults at once, or a patient that keeps every rule.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use intake_domain::{PatientDraft, Sent};
use time::macros::datetime;

fn main() {
    let mut draft = PatientDraft::default();
    for (field, value) in [("firstName", "Ada"), ("lastName", "Lovelace"), ("phoneNumber", "0412 345 678")] {
        if let Some(sent) = draft.field_mut(field) {
            *sent = Sent::from(value);
        }
    }
    match draft.validate(datetime!(2025-12-03 10:30 UTC)) {
        Ok(patient) => println!("valid, born {}", patient.date_of_birth()),
        Err(faults) => {
            for fault in faults {
                println!("{}: {}", fault.field.unwrap_or("patient"), fault.message);
            }
        }
    }
}
