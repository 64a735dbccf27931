//! The requests that are sent: as varied as those of clinics, from several organisations, one in twenty with a fault.

use intake_domain::{ApiKey, Field};
use intake_test_support::create_request;
use serde_json::{Value, json};

/// Number of different requests that are sent in turns, at least.
const COUNT: usize = 1_000;
/// One request in this many has a fault.
const FAULT_EVERY: usize = 20;

const FIRST_NAMES: [&str; 7] = ["Ada", "Zoë", "Nguyễn", "Mary-Jane", "Ōtani", "Bo", "Alexandrina Victoria"];
const LAST_NAMES: [&str; 6] = ["Lovelace", "O'Brien", "de la Cruz", "Li", "Papadopoulos", "Ng"];
const STREETS: [&str; 4] = ["Analytical Street", "Rue de l'Église", "Queen Street", "Nowhere Else Road"];

/// The bodies, each with the index of the key that it is sent with.
fn bodies(keys: usize) -> impl Iterator<Item = (usize, Value)> {
    (0..COUNT.max(keys)).map(move |number| (number % keys, body(number)))
}

/// The lines of a file for `wrk`: an API key, a tab and a body each.
pub(crate) fn lines(keys: &[ApiKey]) -> String {
    let line = |(key, body): (usize, Value)| Some(format!("{}\t{body}\n", keys.get(key)?.expose()));
    bodies(keys.len()).filter_map(line).collect()
}

/// The whole requests with these bodies, byte for byte.
pub(crate) fn whole(keys: &[ApiKey], headers: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let request = |(key, body): (usize, Value)| {
        let key = keys.get(key)?;
        Some(create_request(key, headers, body.to_string().as_bytes()))
    };
    bodies(keys.len()).filter_map(request).collect()
}

/// The whole requests that have no fault.
pub(crate) fn valid(keys: &[ApiKey], headers: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let all = whole(keys, headers).into_iter().enumerate();
    all.filter(|(number, _)| !number.is_multiple_of(FAULT_EVERY)).map(|(_, request)| request).collect()
}

fn body(number: usize) -> Value {
    let pick = |from: &[&str]| from.get(number % from.len()).copied().unwrap_or_default().to_owned();
    // Two in three have an address.
    let is_short = number.is_multiple_of(3);
    let has_fault = number.is_multiple_of(FAULT_EVERY);
    let value = |field: Field| match field {
        Field::FirstName => json!(pick(&FIRST_NAMES)),
        Field::LastName => json!(pick(&LAST_NAMES)),
        Field::PhoneNumber if has_fault => json!("0412 345 678"),
        Field::PhoneNumber => json!(format!("+614{:08}", number * 7_919 % 100_000_000)),
        Field::DateOfBirth => json!(format!("{}-{:02}-{:02}", 1930 + number % 90, 1 + number % 12, 1 + number % 28)),
        _ if is_short => Value::Null,
        Field::Email => json!(format!("patient.{number}@example.com")),
        Field::AddressLine1 => json!(format!("{} {}", 1 + number % 300, pick(&STREETS))),
        Field::AddressLine2 if number.is_multiple_of(2) => json!(format!("Unit {number}")),
        Field::AddressLine2 => Value::Null,
        other => json!(other.definition().example),
    };
    Field::ALL.iter().copied().map(|field| (field.name(), value(field))).collect()
}
