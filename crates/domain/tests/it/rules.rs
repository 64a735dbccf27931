//! Every line of the rule table: what is accepted comes back unchanged, what is refused names its field and rule.

use intake_domain::{FaultKind, Field, FieldFault, FieldFaults, NewPatient, PatientDraft, Rule, Sent, Today};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use time::macros::datetime;

use crate::fixtures::NOW;

const CHARACTERS: &str = "must not contain control characters or bidirectional overrides";

/// Returns what is required, and no more.
fn minimal() -> PatientDraft<'static> {
    let required = Field::ALL.iter().copied().filter(|field| field.definition().is_required);
    required.map(|field| (field, field.definition().example)).collect()
}

fn with(field: Field, sent: impl Into<Sent<'static>>) -> Result<NewPatient, FieldFaults> {
    minimal().with(field, sent).validate(NOW)
}

/// The one fault that a value causes.
fn fault(field: Field, sent: impl Into<Sent<'static>>) -> String {
    let faults = with(field, sent).expect_err("the value breaks a rule");
    assert_eq!(faults.as_slice().len(), 1, "{faults}");
    assert_eq!(faults.as_slice()[0].field, Some(field));
    faults.as_slice()[0].kind.to_string()
}

/// Returns what a valid patient holds for a field.
fn held(patient: &NewPatient, field: Field) -> Option<String> {
    patient.get(field).map(str::to_owned)
}

/// The fields with a rule of that kind.
fn fields(is_of_kind: impl Fn(Rule) -> bool) -> impl Iterator<Item = Field> {
    Field::ALL.iter().copied().filter(move |field| is_of_kind(field.definition().rule))
}

#[test]
fn an_empty_draft_lacks_the_four_required_fields_in_order() {
    let faults = PatientDraft::default().validate(NOW).unwrap_err();
    let required = [Field::FirstName, Field::LastName, Field::PhoneNumber, Field::DateOfBirth];
    assert_eq!(faults.as_slice(), required.map(|field| FieldFault::of(field, FaultKind::Missing)));
}

#[test]
fn every_broken_field_is_named_once_in_the_order_of_the_fields() {
    let draft: PatientDraft<'_> = Field::ALL.iter().copied().map(|field| (field, Sent::NotText)).collect();
    let expected: Vec<_> = Field::ALL.iter().map(|&field| FieldFault::of(field, FaultKind::NotText)).collect();
    assert_eq!(draft.validate(NOW).unwrap_err().as_slice(), expected);
}

#[test]
fn optional_fields_may_be_left_out() {
    let patient = minimal().validate(NOW).unwrap();
    for &field in Field::ALL {
        assert_eq!(held(&patient, field).is_some(), field.definition().is_required, "{field:?}");
    }
}

#[test]
fn lengths_are_counted_in_code_points() {
    for &field in Field::ALL {
        let (Rule::Name { max } | Rule::Text { max }) = field.definition().rule else { continue };
        for letter in ["a", "é", "語", "😀"] {
            let longest = letter.repeat(max);
            assert_eq!(held(&with(field, longest.clone()).unwrap(), field), Some(longest.clone()));
            assert!(fault(field, longest + letter).contains(&format!("{max} characters")), "{field:?}");
        }
    }
}

/// As SPEC and README promise them: to change one here is to break a promise.
#[test]
fn the_limits_are_those_of_the_specification() {
    let limits = [
        (Field::FirstName, 255),
        (Field::LastName, 255),
        (Field::AddressLine1, 255),
        (Field::AddressLine2, 255),
        (Field::Suburb, 100),
        (Field::State, 50),
        (Field::Postcode, 20),
    ];
    for (field, limit) in limits {
        assert!(with(field, "x".repeat(limit)).is_ok(), "{field:?}");
        assert!(with(field, "x".repeat(limit + 1)).is_err(), "{field:?}");
    }
}

#[test]
fn an_empty_text_is_kept_in_an_address_and_refused_elsewhere() {
    for field in fields(|rule| matches!(rule, Rule::Text { .. })) {
        assert_eq!(held(&with(field, "").unwrap(), field), Some(String::new()));
    }
    for field in fields(|rule| !matches!(rule, Rule::Text { .. })) {
        assert_ne!(fault(field, ""), "is required", "{field:?}");
    }
}

#[test]
fn a_name_with_nothing_to_see_is_blank() {
    for name in
        [" ", "\u{A0}", "\u{200B}", "\u{FEFF}\u{2060}", "\u{3000}", "\u{AD}", "\u{3164}", "\u{200E} ", "\u{1D173}"]
    {
        assert_eq!(fault(Field::FirstName, name), "must not be blank", "{name:?}");
        assert_eq!(fault(Field::LastName, name), "must not be blank", "{name:?}");
    }
    assert!(with(Field::FirstName, " Ada\u{200D} ").is_ok());
}

#[test]
fn control_and_bidirectional_characters_are_refused_in_every_text() {
    for &field in Field::ALL {
        for c in ['\0', '\u{1}', '\n', '\u{7F}', '\u{80}', '\u{9F}', '\u{202A}', '\u{202E}', '\u{2066}', '\u{2069}'] {
            assert_eq!(fault(field, format!("a{c}b")), CHARACTERS, "{field:?} {c:?}");
        }
    }
    for (field, pasted) in [
        (Field::PhoneNumber, "\u{202A}+61491570006\u{202C}"),
        (Field::PhoneNumber, "+61412345678\n"),
        (Field::DateOfBirth, "1985-03-21\n"),
        (Field::Country, "AU\t"),
        (Field::FirstName, "\t\n"),
    ] {
        assert_eq!(fault(field, pasted), CHARACTERS, "reported before blank and before the format");
    }
    assert!(with(Field::FirstName, "شيماء\u{200F}").is_ok(), "a mark of direction is part of ordinary text");
}

#[test]
fn length_is_checked_before_characters() {
    assert_eq!(fault(Field::Suburb, "\0".repeat(101)), "must be at most 100 characters long");
    assert_eq!(fault(Field::FirstName, "\0".repeat(256)), "must be 1 to 255 characters long");
}

#[test]
fn a_phone_number_is_e_164_in_ascii_digits() {
    for good in ["+61412345678", "+12", "+123456789012345", "+999999999999999"] {
        assert_eq!(held(&with(Field::PhoneNumber, good).unwrap(), Field::PhoneNumber).unwrap(), good);
    }
    let bad = [
        "61412345678",
        "+0412345678",
        "+1",
        "+",
        "",
        "+1234567890123456",
        "+61 412 345 678",
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
        let message = fault(Field::PhoneNumber, phone);
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
        assert!(fault(Field::DateOfBirth, bad).contains("YYYY-MM-DD"), "{bad}");
    }
}

#[test]
fn a_date_of_birth_exists_in_the_calendar() {
    for bad in ["1985-02-29", "1900-02-29", "1985-13-01", "1985-00-10", "1985-04-31", "1985-01-00", "2025-02-30"] {
        assert_eq!(fault(Field::DateOfBirth, bad), "must be a real date", "{bad}");
    }
    assert!(with(Field::DateOfBirth, "2000-02-29").is_ok());
    assert!(with(Field::DateOfBirth, "1984-02-29").is_ok());
}

#[test]
fn a_date_of_birth_is_neither_ancient_nor_in_the_future() {
    assert!(with(Field::DateOfBirth, "1850-01-01").is_ok());
    assert_eq!(fault(Field::DateOfBirth, "1849-12-31"), "must not be before 1850-01-01");
    assert_eq!(fault(Field::DateOfBirth, "0000-01-01"), "must not be before 1850-01-01");
    let born = |day: &'static str, now| minimal().with(Field::DateOfBirth, day).validate(now);
    assert!(born("2025-12-03", datetime!(2025-12-03 9:59:59.999 UTC)).is_ok());
    assert!(born("2025-12-04", datetime!(2025-12-03 9:59:59.999 UTC)).is_err());
    assert!(born("2025-12-04", datetime!(2025-12-03 10:00 UTC)).is_ok(), "the fourth has begun at UTC+14");
    assert!(born("2025-12-05", datetime!(2025-12-03 23:59 UTC)).is_err());
    assert!(born("2025-12-04", datetime!(2025-12-02 22:00 -12)).is_ok(), "the caller's offset does not matter");
    let on = |day| minimal().with(Field::DateOfBirth, day).validate(Today::new(2025, 12, 3).unwrap());
    assert!(on("2025-12-03").is_ok() && on("2025-12-04").is_err(), "a day is the caller's own");
    assert!(Today::new(2025, 2, 29).is_none());
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
        assert_eq!(held(&with(Field::Email, address.to_owned()).unwrap(), Field::Email).unwrap(), address);
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
        assert_eq!(fault(Field::Email, address), "must be a valid email address", "{address}");
    }
    assert_eq!(fault(Field::Email, format!("a@{}.co", "b".repeat(64))), "must be a valid email address");
    assert_eq!(fault(Field::Email, format!("x{longest}")), "must be 1 to 254 characters long");
}

#[test]
fn the_country_is_au() {
    assert!(with(Field::Country, "AU").is_ok());
    for bad in ["au", "NZ", "AUS", " AU", "Australia"] {
        assert_eq!(fault(Field::Country, bad), "must be AU", "{bad}");
    }
}

#[test]
fn a_blank_optional_field_is_to_be_left_out() {
    for field in [Field::Email, Field::Country] {
        for blank in ["", " ", "\u{a0}\u{200b}"] {
            assert_eq!(fault(field, blank), "must not be blank: leave the field out, or send null", "{blank:?}");
        }
        assert_eq!(fault(field, "\n"), "must not contain control characters or bidirectional overrides");
    }
}

#[test]
fn every_example_keeps_its_rule() {
    for &field in Field::ALL {
        let example = field.definition().example;
        assert_eq!(held(&with(field, example).unwrap(), field).as_deref(), Some(example));
    }
}

#[test]
fn a_pattern_and_its_check_say_the_same() {
    let mut runner = TestRunner::deterministic();
    for &field in Field::ALL {
        let Rule::Pattern { pattern, matches, .. } = field.definition().rule else { continue };
        assert!(pattern.starts_with('^') && pattern.ends_with('$'), "{pattern}");
        let fitting = proptest::string::string_regex(pattern.trim_matches(['^', '$'])).unwrap();
        for _ in 0..500 {
            let text = fitting.new_tree(&mut runner).unwrap().current();
            assert!(matches(&text), "{field:?}: {text}");
            assert!(!matches(&format!("{text}\n")) && !matches(&format!(" {text}")), "{field:?}: {text}");
        }
    }
}

#[test]
fn garde_finds_the_same_faults() {
    let draft = minimal().with(Field::Suburb, "x".repeat(101)).with(Field::Email, Sent::NotText);
    let report = garde::Validate::validate_with(&draft, &Today::from(NOW)).unwrap_err();
    let found: Vec<_> = report.iter().map(|(path, error)| format!("{path}: {error}")).collect();
    assert_eq!(found.join("; "), draft.validate(NOW).unwrap_err().to_string());
    assert!(garde::Validate::validate_with(&minimal(), &Today::from(NOW)).is_ok());
    let several = garde::Validate::validate_with(
        &vec![minimal(), minimal().with(Field::FirstName, Sent::Nothing)],
        &Today::from(NOW),
    );
    assert_eq!(several.unwrap_err().to_string().trim(), "[1].firstName: is required");
}

#[test]
fn nothing_prints_a_patients_values() {
    let draft = minimal();
    let shown = format!("{draft:?} {:?}", draft.clone().validate(NOW).unwrap());
    for value in ["Ada", "Lovelace", "61412345678", "1985"] {
        assert!(!shown.contains(value), "{shown}");
    }
    let named = PatientDraft::default().with(Field::Email, "a@b.co").with(Field::Suburb, Sent::NotText);
    assert_eq!(format!("{named:?}"), "PatientDraft {Email: Text(…), Suburb: NotText}");
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
        country in prop_oneof![Just(None), Just(Some("AU"))],
    ) {
        let birth = birth.to_string();
        let values = |field| match field {
            Field::FirstName | Field::LastName => Some(name.as_str()),
            Field::PhoneNumber => Some(phone.as_str()),
            Field::DateOfBirth => Some(birth.as_str()),
            Field::Email => Some(email.as_str()),
            Field::AddressLine1 => Some(lines[0].as_str()),
            Field::AddressLine2 => Some(lines[1].as_str()),
            Field::Suburb => Some(suburb.as_str()),
            Field::Country => country,
            other => Some(other.definition().example),
        };
        let sent = Field::ALL.iter().copied().filter_map(|field| Some((field, values(field)?)));
        let patient = sent.collect::<PatientDraft<'_>>().validate(NOW).unwrap();
        prop_assert_eq!(patient.date_of_birth().to_string(), birth.as_str());
        for &field in Field::ALL {
            prop_assert_eq!(patient.get(field), values(field));
        }
    }

    #[test]
    fn no_text_makes_validation_panic_or_come_back_in_a_message(text in "\\PC{12,40}") {
        for &field in Field::ALL {
            if let Err(faults) = with(field, text.clone()) {
                prop_assert!(!faults.to_string().contains(&text));
            }
        }
    }
}
