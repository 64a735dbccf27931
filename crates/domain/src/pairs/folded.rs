//! A patient as it is compared.

use std::fmt;

use crate::conversions::is_placeholder;
use crate::ids::PatientId;
use crate::pairs::fold::words;
use crate::patients::field::Field;
use crate::patients::stored::StoredPatient;

/// First name of a person who has one name, by convention in Australia.
const ONLY_NAME: &str = "onlyname";
/// Words of an address that stand only before the number of a unit.
const UNITS: [&str; 7] = ["unit", "u", "flat", "apt", "apartment", "no", "number"];
/// Words of an address with their usual abbreviations.
const ABBREVIATIONS: [(&str, &str); 15] = [
    ("street", "st"),
    ("road", "rd"),
    ("avenue", "ave"),
    ("av", "ave"),
    ("court", "ct"),
    ("crt", "ct"),
    ("drive", "dr"),
    ("place", "pl"),
    ("crescent", "cres"),
    ("parade", "pde"),
    ("terrace", "tce"),
    ("highway", "hwy"),
    ("lane", "ln"),
    ("boulevard", "blvd"),
    ("circuit", "cct"),
];

/// A patient's values, folded to be compared with those of other patients. Prints none of them.
pub struct FoldedPatient {
    pub(super) id: PatientId,
    pub(super) first: FoldedName,
    pub(super) last: FoldedName,
    /// Year, month and day.
    pub(super) birth_date: Option<[u16; 3]>,
    pub(super) phone: String,
    pub(super) email: Option<String>,
    /// Words of both lines.
    pub(super) street: Option<String>,
    pub(super) postcode: Option<String>,
}

/// A name as its words, and without the spaces between them.
pub(super) struct FoldedName {
    pub(super) words: Vec<String>,
    pub(super) letters: String,
}

impl FoldedName {
    pub(super) fn new(text: &str) -> Self {
        let words = words(text);
        Self { letters: words.concat(), words }
    }
}

impl FoldedPatient {
    /// Folds what is compared.
    #[must_use]
    pub fn new(patient: &StoredPatient) -> Self {
        let text = |field: Field| patient.values[field].as_deref().unwrap_or_default();
        let (last, mut first) = (FoldedName::new(text(Field::LastName)), FoldedName::new(text(Field::FirstName)));
        // Some write a person's only name twice, or a full stop.
        if first.letters.is_empty() || first.letters == last.letters || is_placeholder(text(Field::FirstName)) {
            first = FoldedName::new(ONLY_NAME);
        }
        let lines = [text(Field::AddressLine1), text(Field::AddressLine2)].join(" ");
        let postcode = words(text(Field::Postcode)).concat();
        Self {
            id: patient.id,
            first,
            last,
            birth_date: date_parts(text(Field::DateOfBirth)),
            phone: phone_digits(text(Field::PhoneNumber)),
            email: patient.values[Field::Email].as_deref().map(|email| email.trim().to_lowercase()),
            street: street(&lines),
            postcode: Some(postcode).filter(|code| !code.is_empty()),
        }
    }
}

impl fmt::Debug for FoldedPatient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FoldedPatient({}, …)", self.id)
    }
}

fn date_parts(text: &str) -> Option<[u16; 3]> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// Digits after the plus sign. The 0 of a call within Australia is left out.
fn phone_digits(number: &str) -> String {
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    digits.strip_prefix("610").map_or(digits.clone(), |national| format!("61{national}"))
}

/// The words of an address, abbreviated. None: no number, which tells too little.
fn street(lines: &str) -> Option<String> {
    // U3 and Unit 3 are the same: a letter before digits begins a word.
    let mut spaced = String::with_capacity(lines.len());
    let mut before = ' ';
    for letter in lines.chars() {
        if before.is_alphabetic() && letter.is_ascii_digit() {
            spaced.push(' ');
        }
        spaced.push(letter);
        before = letter;
    }
    let short = |word: String| ABBREVIATIONS.iter().find(|(long, _)| *long == word).map_or(word, |(_, s)| (*s).into());
    let kept = words(&spaced).into_iter().filter(|word| !UNITS.contains(&word.as_str())).map(short);
    let text = kept.collect::<Vec<_>>().join(" ");
    text.contains(|letter: char| letter.is_ascii_digit()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_are_equal_however_they_are_written() {
        for (one, other) in [
            ("Unit 3, 12 High Street", "U3/12 high st."),
            ("Flat 4 / 7 Ocean Parade", "4/7 OCEAN PDE"),
            ("12A Station Road", "12a Station Rd"),
        ] {
            assert!(street(one).is_some() && street(one) == street(other), "{one}");
        }
        assert!(street("12 High Street") != street("21 High Street"));
        assert_eq!(street("NO FIXED ADDRESS"), None);
        assert_eq!(phone_digits("+610491570006"), phone_digits("+61491570006"));
        assert_eq!(date_parts("1968-03-12"), Some([1968, 3, 12]));
        assert_eq!(date_parts("1968"), None);
    }
}
