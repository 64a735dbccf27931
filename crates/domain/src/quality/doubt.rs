//! Signs that a valid patient is not what a clinic needs: a number that nobody can dial, a placeholder as a name. A
//! doubt refuses and changes nothing. It is yes or no, so doubts can be counted where values must not be kept.

use time::OffsetDateTime;

use crate::patients::field::Field;
use crate::patients::patient::NewPatient;
#[cfg(feature = "access")]
use crate::patients::stored::StoredPatient;
use crate::quality::signs::{
    CAPITAL, DIGIT, NOTE, SMALL, SPACE, begins_with_title, has_outer_spaces, has_plain_ends, is_in_one_case,
    is_made_up_address, is_postcode, is_quoted, is_state, kinds_of, stands_for_none,
};

/// The greatest age that anyone has reached.
const OLDEST_YEARS: i32 = 122;

/// Each doubt with its name, its meaning and its remedy, in the order of their numbers.
const TEXTS: [(Doubt, [&str; 3]); 18] = [
    (
        Doubt::ZeroAfterCountryCode,
        [
            "zero-after-country-code",
            "a phone number with a 0 after +61, which nobody can dial",
            "Leave out the 0: +61491570006 for 0491 570 006.",
        ],
    ),
    (
        Doubt::UnusualNumber,
        [
            "unusual-number",
            "an Australian phone number without nine digits after +61, or of no area and no mobile",
            "Ask for the whole number. Numbers that begin with 13, 1300 or 1800 cannot be dialled from abroad.",
        ],
    ),
    (
        Doubt::PlaceholderName,
        [
            "placeholder-name",
            "a placeholder as a name, such as N/A, - or Test",
            "Ask for the name, and do not send a patient without one.",
        ],
    ),
    (
        Doubt::EqualNames,
        [
            "equal-names",
            "a last name equal to the first name",
            "Check that each field of the form goes into its own field. For a person with one name, see the guide.",
        ],
    ),
    (Doubt::QuotedName, ["quoted-name", "quotes round a name", "Remove the quotes that an export has added."]),
    (Doubt::DigitInName, ["digit-in-name", "a digit in a name", "Check which column is sent as the name."]),
    (Doubt::TitleInName, ["title-in-name", "a title before a name", "Leave out titles such as Mr or Dr."]),
    (Doubt::NoteInName, ["note-in-name", "brackets or signs of a note in a name", "Send the name alone."]),
    (
        Doubt::CapitalNames,
        ["capital-names", "names in capitals alone, or without any", "Send names as people write them: Ada Lovelace."],
    ),
    (
        Doubt::OuterSpaces,
        [
            "outer-spaces",
            "spaces at the beginning or end of a value",
            "Remove them before sending: the register keeps values as they are sent.",
        ],
    ),
    (
        Doubt::PlaceholderValue,
        ["placeholder-value", "a placeholder in an optional field, such as N/A or -", "Leave out the field instead."],
    ),
    (
        Doubt::PlaceholderEmail,
        [
            "placeholder-email",
            "a made-up email address, such as noemail@example.com",
            "Leave out the email address instead.",
        ],
    ),
    (
        Doubt::Postcode,
        [
            "postcode",
            "a postcode without four digits",
            "Send four digits as a text, with the leading 0 of 0800. Leave it out for an address abroad.",
        ],
    ),
    (
        Doubt::State,
        [
            "state",
            "a state that is not a code such as NSW",
            "Send ACT, NSW, NT, QLD, SA, TAS, VIC, WA or OTHER, or leave it out.",
        ],
    ),
    (
        Doubt::BornFirstJanuary,
        [
            "born-1-january",
            "1 January as date of birth",
            "Check that the form does not fill it in. If the person's documents say so, it is right.",
        ],
    ),
    (
        Doubt::BornToday,
        ["born-today", "the day of the request as date of birth", "Check that the form does not fill in today."],
    ),
    (Doubt::TooOld, ["too-old", "a date of birth more than 122 years ago", "Check the century."]),
    (
        Doubt::NoAddress,
        [
            "no-address",
            "no address",
            "Send the address: with name and date of birth it tells people apart at the desk.",
        ],
    ),
];

/// A sign that a value may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the meaning of each says what it is")]
pub enum Doubt {
    ZeroAfterCountryCode,
    UnusualNumber,
    PlaceholderName,
    EqualNames,
    QuotedName,
    DigitInName,
    TitleInName,
    NoteInName,
    CapitalNames,
    OuterSpaces,
    PlaceholderValue,
    PlaceholderEmail,
    Postcode,
    State,
    BornFirstJanuary,
    BornToday,
    TooOld,
    NoAddress,
}

impl Doubt {
    /// Every doubt.
    pub fn all() -> impl Iterator<Item = Self> {
        TEXTS.iter().map(|(doubt, _)| *doubt)
    }

    /// Short name, which does not change.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.text(0)
    }

    /// End of the sentence "38 of 412 patients have …".
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.text(1)
    }

    /// Advice for the sender.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        self.text(2)
    }

    /// The doubt of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|doubt| doubt.name() == name)
    }

    fn text(self, index: usize) -> &'static str {
        TEXTS.get(self as usize).and_then(|(_, texts)| texts.get(index)).copied().unwrap_or_default()
    }
}

impl NewPatient {
    /// The doubts about this patient, in the order of [`Doubt::all`].
    // A function of its own in the program, so that `just bench-parts` can count its instructions.
    #[inline(never)]
    pub fn doubts(&self, now: OffsetDateTime) -> impl Iterator<Item = Doubt> + use<> {
        let (names, bytes) = ([self.first_name(), self.last_name()], |field| self.bytes(field));
        let digits = bytes(Field::PhoneNumber).and_then(|number| number.strip_prefix(b"+61")).unwrap_or_default();
        let (line, email, born) = (bytes(Field::AddressLine1), bytes(Field::Email), self.date_of_birth());
        // Neither a rule nor another doubt excludes placeholders there.
        let free = [line, bytes(Field::AddressLine2), bytes(Field::Suburb)];
        let (state, postcode) = (bytes(Field::State), bytes(Field::Postcode));
        // The rules of the other fields allow no outer spaces.
        let kinds = names.map(|name| kinds_of(name.as_bytes()));
        let all_kinds = kinds[0] | kinds[1];
        let have_both = kinds.iter().any(|kinds| kinds & (CAPITAL | SMALL) == CAPITAL | SMALL);
        let are_plain = names.iter().all(|name| has_plain_ends(name.as_bytes()));
        let is_spaced = !are_plain && names.iter().any(|name| has_outer_spaces(name.as_bytes()))
            || free.iter().chain([&state, &postcode]).any(|text| text.is_some_and(has_outer_spaces));
        let any_name = |holds: fn(&str) -> bool| names.iter().any(|name| holds(name));

        let mut found = 0_u32;
        let mut note = |doubt: Doubt, holds: bool| found |= u32::from(holds) << doubt as u32;
        note(Doubt::ZeroAfterCountryCode, digits.first() == Some(&b'0'));
        note(
            Doubt::UnusualNumber,
            !matches!(digits, [] | [b'0', ..] | [b'2'..=b'5' | b'7' | b'8', _, _, _, _, _, _, _, _]),
        );
        note(Doubt::PlaceholderName, names.iter().any(|name| stands_for_none(name.as_bytes())));
        note(Doubt::EqualNames, names[0].eq_ignore_ascii_case(names[1]));
        note(Doubt::QuotedName, !are_plain && any_name(is_quoted));
        note(Doubt::DigitInName, all_kinds & DIGIT != 0);
        note(
            Doubt::TitleInName,
            names.iter().zip(kinds).any(|(name, kinds)| kinds & SPACE != 0 && begins_with_title(name)),
        );
        note(Doubt::NoteInName, all_kinds & NOTE != 0);
        note(Doubt::CapitalNames, !have_both && names.iter().all(|name| is_in_one_case(name)));
        note(Doubt::OuterSpaces, is_spaced);
        note(Doubt::PlaceholderValue, free.iter().any(|text| text.is_some_and(stands_for_none)));
        note(Doubt::PlaceholderEmail, email.is_some_and(is_made_up_address));
        note(Doubt::Postcode, postcode.is_some_and(|text| !is_postcode(text)));
        note(Doubt::State, state.is_some_and(|text| !is_state(text)));
        note(Doubt::BornFirstJanuary, born.ordinal() == 1);
        note(Doubt::BornToday, born >= now.date());
        note(Doubt::TooOld, born.year() < now.year() - OLDEST_YEARS);
        note(Doubt::NoAddress, line.is_none());
        std::iter::from_fn(move || {
            let (doubt, _) = TEXTS.get(found.trailing_zeros() as usize)?;
            found &= found - 1;
            Some(*doubt)
        })
    }
}

#[cfg(feature = "access")]
impl StoredPatient {
    /// Returns whether the address has the form of an Australian one: a line, a state by its code and a postcode of
    /// four digits, as far as they are given. None without an address.
    #[must_use]
    pub fn has_australian_address(&self) -> Option<bool> {
        let text = |field: Field| self.values[field].as_deref().filter(|text| !text.trim().is_empty());
        let lines = [text(Field::AddressLine1), text(Field::AddressLine2)];
        let (state, postcode) = (text(Field::State), text(Field::Postcode));
        let has_any = lines.iter().chain([&text(Field::Suburb), &state, &postcode]).any(Option::is_some);
        let is_so = lines.iter().any(Option::is_some)
            && state.is_none_or(|text| is_state(text.as_bytes()))
            && postcode.is_none_or(|text| is_postcode(text.as_bytes()));
        has_any.then_some(is_so)
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;
    use crate::patients::draft::PatientDraft;
    use crate::patients::sent::Sent;

    const NOW: OffsetDateTime = datetime!(2026-11-26 10:30 UTC);

    /// A patient without doubts.
    fn whole() -> PatientDraft<'static> {
        [
            (Field::FirstName, "Ada"),
            (Field::LastName, "Lovelace"),
            (Field::PhoneNumber, "+61491570006"),
            (Field::DateOfBirth, "1985-12-10"),
            (Field::Email, "ada@clinic.example"),
            (Field::AddressLine1, "1 Harbour Street"),
            (Field::State, "NT"),
            (Field::Postcode, "0800"),
        ]
        .into_iter()
        .fold(PatientDraft::default(), |draft, (field, text)| draft.with(field, text))
    }

    fn doubts_of(draft: PatientDraft<'_>) -> Vec<&'static str> {
        draft.validate(NOW).unwrap().doubts(NOW).map(Doubt::name).collect()
    }

    #[test]
    fn a_patient_as_a_clinic_needs_it_has_none() {
        assert_eq!(doubts_of(whole()), [""; 0]);
        for (field, text) in [
            (Field::PhoneNumber, "+442079460000"),
            (Field::PhoneNumber, "+61255501234"),
            (Field::FirstName, "Jo"),
            (Field::FirstName, "李"),
            (Field::LastName, "O'Brien"),
            (Field::LastName, "d'Arc"),
            (Field::LastName, "Na"),
            (Field::LastName, "Master"),
            (Field::FirstName, "Mary Jane"),
            (Field::DateOfBirth, "1904-11-26"),
        ] {
            assert_eq!(doubts_of(whole().with(field, text)), [""; 0], "{text}");
        }
    }

    #[test]
    fn each_doubt_is_found_alone() {
        let mut found: Vec<_> = [
            (Field::PhoneNumber, "+610491570006", "zero-after-country-code"),
            (Field::PhoneNumber, "+6149157000", "unusual-number"),
            (Field::PhoneNumber, "+611300975707", "unusual-number"),
            (Field::FirstName, "N/A", "placeholder-name"),
            (Field::LastName, ".", "placeholder-name"),
            (Field::LastName, "Test", "placeholder-name"),
            (Field::LastName, "ADA", "equal-names"),
            (Field::FirstName, "\"Ada\"", "quoted-name"),
            (Field::LastName, "Lovelace2", "digit-in-name"),
            (Field::FirstName, "Mr Nadia", "title-in-name"),
            (Field::LastName, "dr. Smythe", "title-in-name"),
            (Field::LastName, "Smith (deceased)", "note-in-name"),
            (Field::FirstName, "J & M", "note-in-name"),
            (Field::AddressLine1, "1 Harbour Street ", "outer-spaces"),
            (Field::Suburb, "N/A", "placeholder-value"),
            (Field::Email, "noemail@clinic.example", "placeholder-email"),
            (Field::Email, "ada@example.com", "placeholder-email"),
            (Field::Postcode, "800", "postcode"),
            (Field::State, "Northern Territory", "state"),
            (Field::State, "nt", "state"),
            (Field::DateOfBirth, "1985-01-01", "born-1-january"),
            (Field::DateOfBirth, "2026-11-26", "born-today"),
            (Field::DateOfBirth, "1890-02-03", "too-old"),
        ]
        .into_iter()
        .map(|(field, text, doubt)| {
            assert_eq!(doubts_of(whole().with(field, text)), [doubt], "{text}");
            doubt
        })
        .collect();
        assert_eq!(
            doubts_of(whole().with(Field::FirstName, "ADA").with(Field::LastName, "LOVELACE")),
            ["capital-names"]
        );
        assert_eq!(doubts_of(whole().with(Field::AddressLine1, Sent::Nothing)), ["no-address"]);
        found.extend(["capital-names", "no-address"]);
        assert!(Doubt::all().all(|doubt| found.contains(&doubt.name()) && Doubt::named(doubt.name()) == Some(doubt)));
        assert!(Doubt::all().enumerate().all(|(number, doubt)| number == doubt as usize));
    }
}
