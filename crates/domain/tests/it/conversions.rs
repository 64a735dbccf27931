//! Every case of `tests/conversions.json`, which other programs can be held against too, and what holds for all texts.

use intake_domain::conversions::{
    Conversion, DateForm, country, date, email, is_placeholder, phone_number, state, trimmed, unquoted,
};
use intake_domain::{FaultKind, Field, PatientDraft};
use proptest::prelude::{prop_assert, proptest};
use serde_json::Value;

use crate::fixtures::NOW;

fn convert(case: &Value, raw: &str) -> Conversion {
    match case["conversion"].as_str().unwrap() {
        "phone_number" => phone_number(raw),
        "date" => {
            let forms = case["forms"].as_array().unwrap().iter().map(|form| form.as_str().unwrap().parse().unwrap());
            date(raw, &forms.collect::<Vec<DateForm>>())
        }
        "country" => country(raw),
        "state" => state(raw),
        "trimmed" => trimmed(raw),
        "unquoted" => unquoted(raw),
        "email" => email(raw),
        "placeholder" if is_placeholder(raw) => Conversion::Converted(String::new()),
        "placeholder" => Conversion::Unchanged,
        other => unreachable!("{other}"),
    }
}

#[test]
fn every_case_of_the_table_is_converted_as_it_says() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../conversions.json")).unwrap();
    for case in &cases {
        let raw = case["raw"].as_str().unwrap();
        let expected = match case["result"].as_str() {
            None => Conversion::Unclear,
            Some(result) if result == raw && !(raw.is_empty()) => Conversion::Unchanged,
            Some(result) => Conversion::Converted(result.to_owned()),
        };
        assert!(convert(case, raw) == expected, "{case}: {:?}", convert(case, raw));
    }
}

#[test]
fn a_form_that_leaves_something_to_guess_is_refused() {
    let forms = [
        "",
        "DD/MM",
        "D/M/YY",
        "D/M/YYYY from 1926",
        "D/M/YY from 26",
        "DD/DD/YYYY",
        "dd/mm/yyyy",
        "serial",
        "serial 1901",
    ];
    for form in forms {
        assert!(form.parse::<DateForm>().is_err(), "{form}");
    }
}

type Convert<'a> = &'a dyn Fn(&str) -> Conversion;

/// Returns whether the register takes the value, apart from a day that does not exist or lies outside its limits.
fn is_taken(field: Field, value: &str) -> bool {
    let faults = PatientDraft::default().with(field, value).validate(NOW).unwrap_err();
    faults.as_slice().iter().all(|fault| {
        fault.field != Some(field)
            || matches!(fault.kind, FaultKind::NoSuchDay | FaultKind::TooEarly { .. } | FaultKind::InTheFuture)
    })
}

proptest! {
    #[test]
    fn a_converted_value_is_valid_and_stays_as_it_is(
        text in r"[ \u{a0}+]{0,2}(0|61|0061|\+61|\(0)?[0-9 ()./-]{0,14}|\PC{0,12}|[a-zA-Z. ]{2,9}|[a-z’]{1,5}@[a-z]{1,3}\.[a-z]{2}",
    ) {
        let forms: Vec<DateForm> =
            ["D/M/YYYY", "D-MMM-YYYY", "D.M.YY from 1926", "serial 1900"].map(|form| form.parse().unwrap()).to_vec();
        let dates = |text: &str| date(text, &forms);
        let conversions: [(Field, Convert<'_>); 5] = [
            (Field::PhoneNumber, &phone_number),
            (Field::DateOfBirth, &dates),
            (Field::Country, &country),
            (Field::State, &state),
            (Field::Email, &email),
        ];
        for (field, convert) in conversions {
            if let Conversion::Converted(value) = convert(&text) {
                prop_assert!(is_taken(field, &value), "{field:?}: {text:?}");
                prop_assert!(convert(&value) == Conversion::Unchanged, "{field:?}: {text:?}");
            }
        }
    }
}
