//! Every line of the rule table: what is accepted comes back unchanged, what is refused names its field and rule.

use intake_domain::{FieldFault, NewPatient, PatientDraft, Sent};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use time::macros::datetime;

use crate::fixtures::NOW;

const CHARACTERS: &str = "must not contain control characters or bidirectional overrides";
const FIELDS: [&str; 11] = PatientDraft::FIELDS;

fn minimal() -> PatientDraft<'static> {
    PatientDraft {
        first_name: "Ada".into(),
        last_name: "Lovelace".into(),
        phone_number: "+61412345678".into(),
        date_of_birth: "1985-03-21".into(),
        ..PatientDraft::default()
    }
}

fn with(field: &str, sent: impl Into<Sent<'static>>) -> Result<NewPatient, Vec<FieldFault>> {
    let mut draft = minimal();
    *draft.field_mut(field).expect("a field of the draft") = sent.into();
    draft.validate(NOW)
}

/// The one fault that a value causes.
fn fault(field: &str, sent: impl Into<Sent<'static>>) -> String {
    let faults = with(field, sent).expect_err("the value breaks a rule");
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].field, Some(field));
    faults[0].message.to_string()
}

/// What a valid patient holds for a field.
fn held(patient: &NewPatient, field: &str) -> Option<String> {
    let text = match field {
        "firstName" => Some(patient.first_name()),
        "lastName" => Some(patient.last_name()),
        "phoneNumber" => Some(patient.phone_number()),
        "dateOfBirth" => return Some(patient.date_of_birth().to_string()),
        "email" => patient.email(),
        "addressLine1" => patient.address_line1(),
        "addressLine2" => patient.address_line2(),
        "suburb" => patient.suburb(),
        "state" => patient.state(),
        "postcode" => patient.postcode(),
        "country" => patient.country(),
        _ => None,
    };
    text.map(str::to_owned)
}

#[test]
fn an_empty_draft_lacks_the_four_required_fields_in_order() {
    let faults = PatientDraft::default().validate(NOW).unwrap_err();
    let expected = ["firstName", "lastName", "phoneNumber", "dateOfBirth"].map(|f| FieldFault::of(f, "is required"));
    assert_eq!(faults, expected);
}

#[test]
fn every_broken_field_is_named_once_in_the_order_of_the_fields() {
    let mut draft = PatientDraft::default();
    for field in FIELDS {
        *draft.field_mut(field).unwrap() = Sent::NotText;
    }
    assert_eq!(draft.validate(NOW).unwrap_err(), FIELDS.map(|f| FieldFault::of(f, "must be a string")));
}

#[test]
fn optional_fields_may_be_left_out() {
    let patient = minimal().validate(NOW).unwrap();
    for field in &FIELDS[4..] {
        assert_eq!(held(&patient, field), None, "{field}");
    }
}

#[test]
fn lengths_are_counted_in_code_points() {
    let limits = [("firstName", 255), ("lastName", 255), ("addressLine1", 255), ("addressLine2", 255)];
    for (field, max) in limits.into_iter().chain([("suburb", 100), ("state", 50), ("postcode", 20)]) {
        for letter in ["a", "é", "語", "😀"] {
            let longest = letter.repeat(max);
            assert_eq!(held(&with(field, longest.clone()).unwrap(), field), Some(longest.clone()));
            assert!(fault(field, longest + letter).contains(&format!("{max} characters")), "{field}");
        }
    }
}

#[test]
fn an_empty_text_is_kept_in_an_address_and_refused_elsewhere() {
    for field in ["addressLine1", "addressLine2", "suburb", "state", "postcode"] {
        assert_eq!(held(&with(field, "").unwrap(), field), Some(String::new()));
    }
    for field in ["firstName", "lastName", "phoneNumber", "dateOfBirth", "email", "country"] {
        assert_ne!(fault(field, ""), "is required", "{field}");
    }
}

#[test]
fn a_name_with_nothing_to_see_is_blank() {
    for name in [" ", "\t\n", "\u{A0}", "\u{200B}", "\u{FEFF}\u{2060}", "\u{3000}", "\u{AD}", "\u{3164}", "\u{200E} "] {
        assert_eq!(fault("firstName", name), "must not be blank", "{name:?}");
        assert_eq!(fault("lastName", name), "must not be blank", "{name:?}");
    }
    assert!(with("firstName", " Ada\u{200D} ").is_ok());
}

#[test]
fn control_and_bidirectional_characters_are_refused_in_every_text() {
    for field in FIELDS {
        for c in ['\0', '\u{1}', '\n', '\u{7F}', '\u{80}', '\u{9F}', '\u{202A}', '\u{202E}', '\u{2066}', '\u{2069}'] {
            let message = fault(field, format!("a{c}b"));
            if !["phoneNumber", "dateOfBirth", "country"].contains(&field) {
                assert_eq!(message, CHARACTERS, "{field} {c:?}");
            }
        }
    }
    assert!(with("firstName", "شيماء\u{200F}").is_ok(), "a mark of direction is part of ordinary text");
}

#[test]
fn length_is_told_before_characters() {
    assert_eq!(fault("suburb", "\0".repeat(101)), "must be at most 100 characters long");
    assert_eq!(fault("firstName", "\0".repeat(256)), "must be 1 to 255 characters long");
}

#[test]
fn a_phone_number_is_e_164_in_ascii_digits() {
    for good in ["+61412345678", "+12", "+123456789012345", "+999999999999999"] {
        assert_eq!(held(&with("phoneNumber", good).unwrap(), "phoneNumber").unwrap(), good);
    }
    let bad = [
        "61412345678",
        "+0412345678",
        "+1",
        "+",
        "",
        "+1234567890123456",
        "+61 412 345 678",
        "+61412345678\n",
        " +61412345678",
        "+6١٢",
        "+６１２",
        "++61412345678",
        "+61-412",
        "+61412345678\u{200B}",
        "0412345678",
        "+6a1",
    ];
    for phone in bad {
        let message = fault("phoneNumber", phone);
        assert!(message.starts_with("E.164 format is required, for example +"), "{phone}: {message}");
    }
}

#[test]
fn a_date_of_birth_has_exactly_one_form() {
    for bad in [
        "",
        "1985-3-21",
        "21-03-1985",
        "1985/03/21",
        "1985-03-21T00:00:00Z",
        "1985-03-2１",
        "+1985-03-21",
        "19850321",
        "1985-03-21 ",
        "985-03-21",
        "-985-03-21",
        "12025-01-01",
    ] {
        assert!(fault("dateOfBirth", bad).contains("YYYY-MM-DD"), "{bad}");
    }
}

#[test]
fn a_date_of_birth_exists_in_the_calendar() {
    for bad in ["1985-02-29", "1900-02-29", "1985-13-01", "1985-00-10", "1985-04-31", "1985-01-00", "2025-02-30"] {
        assert_eq!(fault("dateOfBirth", bad), "must be a day that exists in the calendar", "{bad}");
    }
    assert!(with("dateOfBirth", "2000-02-29").is_ok());
    assert!(with("dateOfBirth", "1984-02-29").is_ok());
}

#[test]
fn a_date_of_birth_is_neither_ancient_nor_in_the_future() {
    assert!(with("dateOfBirth", "1850-01-01").is_ok());
    assert_eq!(fault("dateOfBirth", "1849-12-31"), "must not be before 1850-01-01");
    assert_eq!(fault("dateOfBirth", "0000-01-01"), "must not be before 1850-01-01");
    let born = |day: &'static str, now| PatientDraft { date_of_birth: day.into(), ..minimal() }.validate(now);
    assert!(born("2025-12-03", datetime!(2025-12-03 9:59:59.999 UTC)).is_ok());
    assert!(born("2025-12-04", datetime!(2025-12-03 9:59:59.999 UTC)).is_err());
    assert!(born("2025-12-04", datetime!(2025-12-03 10:00 UTC)).is_ok(), "the fourth has begun at UTC+14");
    assert!(born("2025-12-05", datetime!(2025-12-03 23:59 UTC)).is_err());
    assert!(born("2025-12-04", datetime!(2025-12-02 22:00 -12)).is_ok(), "the caller's offset does not matter");
}

#[test]
fn an_email_address_has_html5_syntax_and_a_dot_in_its_domain() {
    let longest = format!("{}@{}.au", "a".repeat(64), ["b".repeat(62), "c".repeat(62), "d".repeat(60)].join("."));
    assert_eq!(longest.len(), 254);
    let good = [
        "a@b.co",
        "o'brien+test@mail.example.com.au",
        "Ada.Lovelace@Example.COM",
        "!#$%&'*+/=?^_`{|}~-@x.y",
        ".a.@b-c.d",
        longest.as_str(),
    ];
    for address in good {
        assert_eq!(held(&with("email", address.to_owned()).unwrap(), "email").unwrap(), address);
    }
    let bad = [
        "a",
        "@",
        "a@",
        "@b.co",
        "a@b",
        "a@b.",
        "a@.b",
        "a@b..c",
        "a b@c.d",
        "a@b c.d",
        "a@-b.c",
        "a@b-.c",
        "a@b@c.d",
        "é@b.co",
        "a@é.co",
        "a@b.c ",
        "\"a\"@b.co",
        "a@[127.0.0.1]",
        "a,b@c.d",
    ];
    for address in bad {
        assert_eq!(fault("email", address), "must be a valid email address", "{address}");
    }
    assert_eq!(fault("email", format!("a@{}.co", "b".repeat(64))), "must be a valid email address");
    assert_eq!(fault("email", format!("x{longest}")), "must be 1 to 254 characters long");
}

#[test]
fn the_country_is_au() {
    assert!(with("country", "AU").is_ok());
    for bad in ["au", "NZ", "AUS", " AU", "Australia", ""] {
        assert_eq!(fault("country", bad), "must be AU", "{bad}");
    }
}

#[test]
fn nothing_prints_a_patients_values() {
    let draft = minimal();
    let shown = format!("{draft:?} {:?}", draft.clone().validate(NOW).unwrap());
    for value in ["Ada", "Lovelace", "+61412345678", "1985"] {
        assert!(!shown.contains(value), "{shown}");
    }
}

fn text_of_at_most(max: usize) -> impl Strategy<Value = String> {
    let allowed = any::<char>().prop_filter("allowed in texts", |c| {
        !c.is_control() && !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    });
    proptest::collection::vec(allowed, 0..=max).prop_map(String::from_iter)
}

fn label() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?"
}

proptest! {
    #[test]
    fn every_accepted_value_comes_back_unchanged(
        name in text_of_at_most(254).prop_map(|text| format!("{text}x")),
        phone in r"\+[1-9][0-9]{1,14}",
        birth in (1850..2025_i32, 1..=366_u16).prop_filter_map("a day", |(y, d)| time::Date::from_ordinal_date(y, d).ok()),
        email in ("[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,30}", label(), label()).prop_map(|(l, a, b)| format!("{l}@{a}.{b}")),
        lines in [text_of_at_most(255), text_of_at_most(255)],
        suburb in text_of_at_most(100),
        state in text_of_at_most(50),
        postcode in text_of_at_most(20),
        country in prop_oneof![Just(None), Just(Some("AU"))],
    ) {
        let draft = PatientDraft {
            first_name: name.as_str().into(),
            last_name: name.as_str().into(),
            phone_number: phone.as_str().into(),
            date_of_birth: birth.to_string().into(),
            email: email.as_str().into(),
            address_line1: lines[0].as_str().into(),
            address_line2: lines[1].as_str().into(),
            suburb: suburb.as_str().into(),
            state: state.as_str().into(),
            postcode: postcode.as_str().into(),
            country: country.map(Sent::from).unwrap_or_default(),
        };
        let patient = draft.validate(NOW).unwrap();
        prop_assert_eq!(patient.first_name(), name.as_str());
        prop_assert_eq!(patient.last_name(), name);
        prop_assert_eq!(patient.phone_number(), phone);
        prop_assert_eq!(patient.date_of_birth(), birth);
        prop_assert_eq!(patient.email(), Some(email.as_str()));
        prop_assert_eq!(patient.address_line1(), Some(lines[0].as_str()));
        prop_assert_eq!(patient.address_line2(), Some(lines[1].as_str()));
        prop_assert_eq!(patient.suburb(), Some(suburb.as_str()));
        prop_assert_eq!(patient.state(), Some(state.as_str()));
        prop_assert_eq!(patient.postcode(), Some(postcode.as_str()));
        prop_assert_eq!(patient.country(), country);
    }

    #[test]
    fn no_text_makes_validation_panic_or_come_back_in_a_message(text in "\\PC{12,40}") {
        for field in FIELDS {
            if let Err(faults) = with(field, text.clone()) {
                prop_assert!(faults.iter().all(|fault| !fault.message.contains(&text)));
            }
        }
    }
}
