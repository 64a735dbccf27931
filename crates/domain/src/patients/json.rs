//! From JSON to a draft, in one pass that borrows texts from the JSON. Notes what each field was sent as and judges
//! nothing but the JSON itself; errors tell where, never what.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde_core::de::{Deserialize, Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::patients::draft::PatientDraft;
use crate::patients::field::{ByField, Field};
use crate::patients::json_error::{JsonCause, JsonError, shown};
use crate::patients::sent::Sent;
use crate::patients::unknown_field::UnknownField;

/// Objects round a patient that are looked into: `{"data":{"patient":{…}}}` has two.
const WRAPPERS_MAX: u8 = 2;

/// A patient as JSON: what was sent for the fields, and what else was sent.
///
/// ```
/// use intake_domain::{Field, JsonError, JsonPatient, PatientDraft, UnknownField};
///
/// let json = br#"{"firstName":"Ada","emial":"ada@example.com"}"#;
/// let JsonPatient { draft, unknown } = JsonPatient::from_slice(json)?;
/// assert_eq!(draft[Field::FirstName].text(), Some("Ada"));
///
/// // A strict caller refuses properties that are no fields.
/// let unknown: Vec<_> = unknown.into_iter().map(UnknownField::new).collect();
/// assert_eq!(unknown[0].to_string(), "\"emial\" is not a field of a patient: did you mean email?");
///
/// // A lenient caller takes the draft alone. A fault in the JSON is reported with its place.
/// let error = PatientDraft::from_json(b"{\"firstName\" \"Ada\"}").unwrap_err();
/// assert_eq!(error, JsonError::Malformed { line: 1, column: 14, cause: None });
/// # Ok::<(), JsonError>(())
/// ```
#[derive(Debug)]
pub struct JsonPatient<'a> {
    /// Values that were sent for the fields.
    pub draft: PatientDraft<'a>,
    /// The names of the members that are no fields, in the order sent.
    pub unknown: Vec<Cow<'a, str>>,
}

impl<'a> JsonPatient<'a> {
    /// Takes a JSON object apart.
    pub fn from_slice(json: &'a [u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(json)
            .map_err(|error| JsonError::malformed_at(json, error.valid_up_to(), Some(JsonCause::NotUtf8)))?;
        // Hardly any body has one, and this looks at many bytes at once.
        let has_escapes = json.contains(&b'\\');
        if has_escapes && let Some(index) = lone_surrogate(json) {
            return Err(JsonError::malformed_at(json, index, None));
        }
        let malformed = |error: serde_json::Error| JsonError::malformed(json, &error);
        let mut decoder = Deserializer::from_str(text);
        if !text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{') {
            IgnoredAny::deserialize(&mut decoder).and_then(|_| decoder.end()).map_err(malformed)?;
            return Err(JsonError::NotAnObject);
        }
        let found = decoder.deserialize_map(MembersVisitor { has_escapes }).map_err(malformed)?;
        decoder.end().map_err(malformed)?;
        match found.repeated {
            Some(name) => Err(JsonError::Repeated { name: shown(&name) }),
            None => Ok(found.patient),
        }
    }

    /// The unknown members of this JSON, with what was probably meant by them.
    #[must_use]
    pub fn explain(json: &[u8], unknown: &[Cow<'_, str>]) -> Vec<UnknownField> {
        let values: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(json).unwrap_or_default();
        let held = |name: &str| values.get(name).map_or_else(Vec::new, |value| held_in(value, WRAPPERS_MAX));
        unknown.iter().map(|name| UnknownField::holding(name.as_ref(), held(name))).collect()
    }
}

/// The fields that an object holds, by their names or by those of other software; of an array, its first value. If it
/// holds none, those of what is in it.
fn held_in(value: &RawValue, wrappers: u8) -> Vec<Field> {
    let json = value.get();
    if json.starts_with('[') {
        let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
        return values.first().map_or_else(Vec::new, |first| held_in(first, wrappers));
    }
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(json).unwrap_or_default();
    let is_sent = |value: &RawValue| value.get() != "null";
    let known = members.iter().filter(|(_, value)| is_sent(value)).filter_map(|(name, _)| Field::known_as(name));
    let known: HashSet<_> = known.collect();
    if known.is_empty() && wrappers > 1 {
        return members
            .values()
            .map(|value| held_in(value, wrappers - 1))
            .find(|held| !held.is_empty())
            .unwrap_or_default();
    }
    Field::ALL.iter().copied().filter(|field| known.contains(field)).collect()
}

impl<'a> PatientDraft<'a> {
    /// The draft that a JSON object holds. Members that are no fields are passed over: see [`JsonPatient`] for their
    /// names.
    pub fn from_json(json: &'a [u8]) -> Result<Self, JsonError> {
        JsonPatient::from_slice(json).map(|patient| patient.draft)
    }
}

struct Found<'a> {
    patient: JsonPatient<'a>,
    repeated: Option<Cow<'a, str>>,
}

struct MembersVisitor {
    has_escapes: bool,
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let patient = JsonPatient { draft: PatientDraft::default(), unknown: Vec::new() };
        let mut found = Found { patient, repeated: None };
        let mut seen_fields = ByField::<bool>::default();
        let mut seen_others = HashSet::new();
        while let Some(MemberName(name)) = map.next_key()? {
            let is_repeated = match Field::named(&name) {
                Some(field) => {
                    found
                        .patient
                        .draft
                        .set(field, sent(map.next_value()?, self.has_escapes).map_err(A::Error::custom)?);
                    std::mem::replace(&mut seen_fields[field], true)
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                    found.patient.unknown.push(name.clone());
                    !seen_others.insert(name.clone())
                }
            };
            if is_repeated {
                found.repeated.get_or_insert(name);
            }
        }
        Ok(found)
    }
}

/// Returns what a member's value is, by its first character: its syntax has been checked.
fn sent(value: &RawValue, has_escapes: bool) -> Result<Sent<'_>, serde_json::Error> {
    let raw = value.get();
    if raw == "null" {
        return Ok(Sent::Nothing);
    }
    let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Ok(Sent::NotText);
    };
    if has_escapes && inner.contains('\\') {
        return serde_json::from_str::<String>(raw).map(Sent::from);
    }
    Ok(Sent::from(inner))
}

/// A member's name, borrowed from the JSON unless it is escaped.
struct MemberName<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: serde_core::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = MemberName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

/// Finds half of a pair of UTF-16 code units, which is no character. The decoder looks for it only in texts that it
/// reads, not in those that it skips.
fn lone_surrogate(json: &[u8]) -> Option<usize> {
    let mut place = 0;
    let unit_at = |place: usize| {
        let digits = json.get(place..place + 6)?.strip_prefix(br"\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    while let Some(step) = json.get(place..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        place += step;
        match unit_at(place) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(place + 6), Some(0xDC00..=0xDFFF)) => place += 12,
            Some(0xD800..=0xDFFF) => return Some(place),
            // The character after a backslash is never the start of an escape.
            _ => place += 2,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn draft(json: &[u8]) -> Result<PatientDraft<'_>, JsonError> {
        PatientDraft::from_json(json)
    }

    fn message(json: impl AsRef<[u8]>) -> String {
        draft(json.as_ref()).unwrap_err().to_string()
    }

    #[test]
    fn texts_are_borrowed_unless_escaped() {
        let body = br#"{"firstName":"Zo\u00eb","lastName":"O'Brien","email":null,"suburb":7}"#;
        let draft = draft(body).unwrap();
        assert!(matches!(&draft[Field::FirstName], Sent::Text(Cow::Owned(text)) if text == "Zoë"));
        assert!(matches!(&draft[Field::LastName], Sent::Text(Cow::Borrowed("O'Brien"))));
        let rest = [&draft[Field::Email], &draft[Field::Suburb], &draft[Field::State]];
        assert_eq!(rest, [&Sent::Nothing, &Sent::NotText, &Sent::Nothing]);
    }

    #[test]
    fn every_other_type_is_noted_as_no_text() {
        for value in ["true", "0", "-1.5e3", "1e999", "[]", "{}", r#"["a"]"#, r#"{"a":"b"}"#, "[[[[]]]]"] {
            let body = format!(r#"{{"email":{value}}}"#);
            assert_eq!(draft(body.as_bytes()).unwrap()[Field::Email], Sent::NotText, "{value}");
        }
    }

    #[test]
    fn unknown_members_are_passed_over() {
        let body = br#" {"id":"x","firstName":"A","nested":{"firstName":"B","a":[1,{"firstName":"C"}]},"n":1e999}"#;
        assert_eq!(draft(body).unwrap()[Field::FirstName], Sent::from("A"));
    }

    #[test]
    fn unknown_members_are_named_in_their_order() {
        let body = br#"{"zip":1,"firstName":"A","e\u006dial":{"nested":1}}"#;
        assert_eq!(JsonPatient::from_slice(body).unwrap().unknown, ["zip", "emial"]);
    }

    #[test]
    fn names_are_compared_after_their_escapes_are_read() {
        assert_eq!(draft(br#"{"first\u004eame":"A"}"#).unwrap()[Field::FirstName], Sent::from("A"));
        assert!(message(br#"{"first\u004eame":"A","firstName":"A"}"#).contains("\"firstName\""));
    }

    #[test]
    fn a_member_sent_twice_is_named() {
        assert_eq!(message(r#"{"email":null,"email":"a@b.co"}"#), "the patient contains the property \"email\" twice");
        assert_eq!(message(r#"{"x-1":1,"a":2,"x-1":1}"#), "the patient contains the property \"x-1\" twice");
        assert_eq!(message(r#"{"\n\"":1,"\u000a\"":1}"#), r#"the patient contains the property "\n\"" twice"#);
        let long = "é".repeat(5_000);
        let expected = format!("the patient contains the property \"{}\"… twice", "é".repeat(64));
        assert_eq!(message(format!("{{\"{long}\":1,\"{long}\":1}}")), expected);
        assert!(draft(br#"{"a":{"b":1,"b":2}}"#).is_ok(), "within what is passed over nothing is compared");
    }

    #[test]
    fn malformed_json_is_located_and_never_repeated() {
        let (mark, encoding) = (", because it begins with a byte order mark", ", because it is not in UTF-8");
        let control = ", because it has a line break or another control character inside a text";
        let quotes = ", because it has single or typographic quotes in place of double quotes";
        let empty = ", because it is empty";
        let cases: [(&[u8], &str, &str); 28] = [
            (b"", empty, "line 1 column 1"),
            (b" \r\n", empty, "line 2 column 1"),
            (b"\xEF\xBB\xBF", mark, "line 1 column 1"),
            (b"{", "", "line 1 column 1"),
            (b"{\"firstName\":\"Ada\"", "", "line 1 column 18"),
            (b"{\n \"firstName\" \"Ada\"}", "", "line 2 column 14"),
            (b"{} x", "", "line 1 column 4"),
            (b"{}{}", "", "line 1 column 3"),
            (b"\xEF\xBB\xBF{}", mark, "line 1 column 1"),
            (b"\xFF\xFE{\0}\0", encoding, "line 1 column 1"),
            (b"{\0}\0", encoding, "line 1 column 2"),
            (b"\0{\0}", encoding, "line 1 column 1"),
            (b"{\"a\":\"\n\"}", control, "line 1 column 6"),
            (b"{\"a\":\"x\ty\"}", control, "line 1 column 7"),
            (b"{\"firstName\":\"A\\\"\r\n\"}", control, "line 1 column 17"),
            (b"{\"a\":{\"b\":[\"\x01\"]}}", control, "line 1 column 12"),
            (b"{\"a\" \x01}", "", "line 1 column 6"),
            (b"{\"a\" 1, \"b\":\"\n\"}", "", "line 1 column 6"),
            (b"{\"firstName\":\"\xFF\"}", encoding, "line 1 column 15"),
            (b"{\"a\":\n\"\xC3\x28\"}", encoding, "line 2 column 2"),
            (br#"{"firstName":"\ud800"}"#, "", "line 1 column 15"),
            (br#"{"unknown":"\udc00\ud800"}"#, "", "line 1 column 13"),
            (br#"{"a":"\ud83d\ude00","b":"\ud83dx"}"#, "", "line 1 column 26"),
            (b"{'a':1}", quotes, "line 1 column 2"),
            (b"'{\"a\":1}'", quotes, "line 1 column 1"),
            ("{\n \"a\":“b”}".as_bytes(), quotes, "line 2 column 6"),
            (b"{\"a\":01}", "", "line 1 column 7"),
            (b"[1,", "", "line 1 column 3"),
        ];
        for (body, cause, place) in cases {
            let expected = format!("the patient is not valid JSON{cause}: error at {place}");
            assert_eq!(message(body), expected, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn what_was_sent_in_place_of_a_field_is_recognised() {
        let body = br#"{"phone":"x","p\u0061tient":{"lastName":"L","email":null},"list":[{"surname":"L"},1],"data":"{",
            "body":{"data":{"dob":"x","Phone":1}},"deep":{"a":{"b":{"dob":"x"}}},"none":[]}"#;
        let unknown = JsonPatient::from_slice(body).unwrap().unknown;
        let explained = JsonPatient::explain(body, &unknown);
        let found: Vec<_> = explained.iter().map(|field| (field.name.as_str(), field.meant, &field.held[..])).collect();
        let phone = Some(Field::PhoneNumber);
        assert_eq!(
            found,
            [
                ("phone", phone, &[][..]),
                ("patient", None, &[Field::LastName]),
                ("list", None, &[Field::LastName]),
                ("data", None, &[]),
                ("body", None, &[Field::PhoneNumber, Field::DateOfBirth]),
                ("deep", None, &[]),
                ("none", None, &[]),
            ]
        );
    }

    #[test]
    fn pairs_of_surrogates_and_escaped_backslashes_are_fine() {
        assert_eq!(draft(br#"{"state":"\ud83d\ude00"}"#).unwrap()[Field::State], Sent::from("😀"));
        assert_eq!(draft(br#"{"state":"\\ud800"}"#).unwrap()[Field::State], Sent::from(r"\ud800"));
    }

    #[test]
    fn json_that_is_no_object_is_a_fault_of_the_whole() {
        for body in ["[]", "null", "\"text\"", " 5 ", "1e999", "[{\"firstName\":\"A\"}]"] {
            assert_eq!(draft(body.as_bytes()), Err(JsonError::NotAnObject), "{body}");
        }
        assert_eq!(message("[]"), "the patient must be a JSON object");
    }

    #[test]
    fn deep_nesting_is_harmless() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(30_000), "]".repeat(30_000));
        assert!(draft(deep.as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn every_text_survives(text in any::<String>()) {
            let body = serde_json::to_vec(&serde_json::json!({ "firstName": text })).unwrap();
            let draft = draft(&body).unwrap();
            prop_assert_eq!(draft[Field::FirstName].text(), Some(text.as_str()));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            prop_assert!(draft(&bytes).is_err());
        }

        #[test]
        fn no_json_like_text_makes_it_panic(text in r#"[{}\[\]",:\\u0-9a-f\x00-\x20]{0,60}"#) {
            let _ = draft(text.as_bytes());
        }
    }
}
