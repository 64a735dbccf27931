//! What the service computes for a request, apart from the network and the database: `just bench-parts`.
#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use divan::{Bencher, black_box};
use intake_domain::{JsonPatient, NewPatient, Patient};
use intake_http::bench::write_answer;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
const BODIES: [&str; 4] = ["required fields", "every field", "every field escaped", "one fault"];

fn main() {
    divan::main();
}

fn body(name: &str) -> &'static str {
    match name {
        "required fields" => {
            r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10"}"#
        }
        "every field" => {
            r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10","email":"ada@example.com","addressLine1":"12 Analytical Street","addressLine2":null,"suburb":"Carlton","state":"VIC","postcode":"3053","country":"AU"}"#
        }
        "every field escaped" => {
            r#"{"firstName":"Zo\u00eb","lastName":"O\u2019Brien","phoneNumber":"\u002b61412345678","dateOfBirth":"1985\u002d12-10","email":"ada\u0040example.com","addressLine1":"12 \"Analytical\" Street","addressLine2":"\\","suburb":"\u0043arlton","state":"\u0056IC","postcode":"\u0033053","country":"\u0041U"}"#
        }
        _ => r#"{"firstName":"Ada","lastName":" ","phoneNumber":"0412 345 678","dateOfBirth":"1985-12-10"}"#,
    }
}

/// Returns what is done with the body of a request.
fn decode_and_validate(body: &[u8]) -> Option<NewPatient> {
    JsonPatient::from_slice(body).ok()?.draft.validate(NOW).ok()
}

#[divan::bench(args = BODIES)]
fn decoding_and_validation(bencher: Bencher, name: &str) {
    let body = body(name).as_bytes();
    bencher.bench(|| decode_and_validate(black_box(body)));
}

#[divan::bench(args = &BODIES[..3])]
fn writing_the_answer(bencher: Bencher, name: &str) {
    let details = decode_and_validate(body(name).as_bytes()).unwrap();
    let patient = Patient {
        id: Uuid::from_u128(1).into(),
        organisation_id: Uuid::from_u128(2).into(),
        details: &details,
        created_at: NOW,
        updated_at: NOW,
    };
    bencher.bench(|| write_answer(black_box(&patient)));
}
