//! The requests that are sent: varied as those of clinics are, from several organisations, one in twenty with a fault.

use intake_domain::ApiKey;
use intake_test_support::create_request;
use serde_json::{Value, json};

/// How many different requests take turns.
const COUNT: usize = 1_000;
/// One in so many has a fault.
const FAULT_EVERY: usize = 20;

const FIRST_NAMES: [&str; 7] = ["Ada", "Zoë", "Nguyễn", "Mary-Jane", "Ōtani", "Bo", "Alexandrina Victoria"];
const LAST_NAMES: [&str; 6] = ["Lovelace", "O'Brien", "de la Cruz", "Li", "Papadopoulos", "Ng"];
const STREETS: [&str; 4] = ["Analytical Street", "Rue de l'Église", "Queen Street", "Nowhere Else Road"];

/// The bodies, each with the number of the key that it is sent with.
pub(crate) fn bodies(keys: usize) -> impl Iterator<Item = (usize, Value)> {
    (0..COUNT).map(move |number| (number % keys, body(number)))
}

/// The same as whole requests, byte for byte.
pub(crate) fn whole(keys: &[ApiKey], headers: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let request = |(key, body): (usize, Value)| {
        let key = keys.get(key)?;
        Some(create_request(key, headers, body.to_string().as_bytes()))
    };
    bodies(keys.len()).filter_map(request).collect()
}

/// Those of them that have no fault.
pub(crate) fn valid(keys: &[ApiKey], headers: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let all = whole(keys, headers).into_iter().enumerate();
    all.filter(|(number, _)| !number.is_multiple_of(FAULT_EVERY)).map(|(_, request)| request).collect()
}

fn body(number: usize) -> Value {
    let pick = |from: &[&str]| from.get(number % from.len()).copied().unwrap_or_default().to_owned();
    // Two in three say where they live and how to write to them.
    let told = |value: String| (!number.is_multiple_of(3)).then_some(value);
    let has_fault = number.is_multiple_of(FAULT_EVERY);
    json!({
        "firstName": pick(&FIRST_NAMES),
        "lastName": pick(&LAST_NAMES),
        "phoneNumber": if has_fault { "0412 345 678".to_owned() } else { format!("+614{:08}", number * 7_919 % 100_000_000) },
        "dateOfBirth": format!("{}-{:02}-{:02}", 1930 + number % 90, 1 + number % 12, 1 + number % 28),
        "email": told(format!("patient.{number}@example.com")),
        "addressLine1": told(format!("{} {}", 1 + number % 300, pick(&STREETS))),
        "addressLine2": told(format!("Unit {number}")).filter(|_| number.is_multiple_of(2)),
        "suburb": told("Carlton".to_owned()),
        "state": told("VIC".to_owned()),
        "postcode": told("3053".to_owned()),
        "country": told("AU".to_owned()),
    })
}
