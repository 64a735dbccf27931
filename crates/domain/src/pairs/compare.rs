//! Compares two patients. Without a birth date that is equal, or wrong in one part, there is no pair: relatives share
//! the rest.

use std::collections::HashSet;
use std::fmt;

use crate::pairs::folded::{FoldedName, FoldedPatient};
use crate::pairs::nicknames::{are_of_one_name, are_two_names};

/// Shorter names differ by a letter without a typing error: Li and Le.
const MISTYPED_LETTERS_MIN: usize = 3;
/// Number of letters from which on a name may have two typing errors.
const TWO_ERRORS_LETTERS_MIN: usize = 8;

/// Rank of a pair. The line is between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PairRank {
    /// Probably one person.
    High,
    /// Probably twins: one last name, birth date, and address or telephone, but two first names.
    Low,
}

impl fmt::Display for PairRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::High => "high",
            Self::Low => "low",
        })
    }
}

/// Something that two patients have in common, or in which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the word of each says what it is")]
pub enum Resemblance {
    SameNames,
    SimilarNames,
    SwappedNames,
    OtherFirstName,
    OtherLastName,
    SameBirthDate,
    SimilarBirthDate,
    SamePhone,
    SameEmail,
    SameAddress,
}

impl fmt::Display for Resemblance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameNames => "same-names",
            Self::SimilarNames => "similar-names",
            Self::SwappedNames => "swapped-names",
            Self::OtherFirstName => "other-first-name",
            Self::OtherLastName => "other-last-name",
            Self::SameBirthDate => "same-birth-date",
            Self::SimilarBirthDate => "similar-birth-date",
            Self::SamePhone => "same-phone",
            Self::SameEmail => "same-email",
            Self::SameAddress => "same-address",
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Same,
    Similar,
    Different,
}

/// Returns the rank and the reasons, if the two may be one person or twins. A first name is usual if several other
/// patients have it: two usual names are no typing error, but Alexander and Alexandra.
pub(super) fn compare(
    one: &FoldedPatient,
    other: &FoldedPatient,
    usual_names: &HashSet<&str>,
) -> Option<(PairRank, Vec<Resemblance>)> {
    use Likeness::{Different, Same, Similar};
    use Resemblance as R;

    let birth = birth_dates(one, other);
    let birth_reason = match birth {
        Same => R::SameBirthDate,
        Similar => R::SimilarBirthDate,
        Different => return None,
    };
    let contacts = contacts(one, other);
    let (is_certain, is_shared) = (birth == Same, !contacts.is_empty());
    let first = first_names(&one.first, &other.first, usual_names);
    let last = last_names(&one.last, &other.last);
    let (names, rank) = match (first, last) {
        (Same, Same) if is_certain || is_shared => (R::SameNames, PairRank::High),
        (Same, Similar) | (Similar, Same) if is_certain || is_shared => (R::SimilarNames, PairRank::High),
        (Similar, Similar) if is_certain && is_shared => (R::SimilarNames, PairRank::High),
        _ if are_swapped(one, other) && (is_certain || is_shared) => (R::SwappedNames, PairRank::High),
        (Same | Similar, Different) if is_certain && is_shared => (R::OtherLastName, PairRank::High),
        (Different, Same | Similar) if is_certain && is_shared => (R::OtherFirstName, PairRank::Low),
        _ => return None,
    };
    Some((rank, [names, birth_reason].into_iter().chain(contacts).collect()))
}

/// Parts that similar birth dates share: all but the day, the month, the year, or the order of day and month.
pub(super) const DATE_PARTS: [fn([u16; 3]) -> [u16; 3]; 4] = [
    |[year, month, _]| [year, month, 0],
    |[year, _, day]| [year, 0, day],
    |[_, month, day]| [0, month, day],
    |[year, month, day]| [year, month.min(day), month.max(day)],
];

/// Similar: one of year, month and day differs, the year by one digit; or day and month have changed places.
fn birth_dates(one: &FoldedPatient, other: &FoldedPatient) -> Likeness {
    let (Some(one), Some(other)) = (one.birth_date, other.birth_date) else { return Likeness::Different };
    if one == other {
        return Likeness::Same;
    }
    let ([year, ..], [other_year, ..]) = (one, other);
    let is_similar = (year == other_year || differ_in_one_digit(year, other_year))
        && DATE_PARTS.iter().any(|part| part(one) == part(other));
    if is_similar { Likeness::Similar } else { Likeness::Different }
}

fn differ_in_one_digit(one: u16, other: u16) -> bool {
    [1, 10, 100, 1000].iter().filter(|place| one / **place % 10 != other / **place % 10).count() == 1
}

fn contacts(one: &FoldedPatient, other: &FoldedPatient) -> Vec<Resemblance> {
    let is_same_postcode = one.postcode.as_ref().zip(other.postcode.as_ref()).is_none_or(|(one, other)| one == other);
    let found = [
        (Resemblance::SamePhone, !one.phone.is_empty() && one.phone == other.phone),
        (Resemblance::SameEmail, one.email.is_some() && one.email == other.email),
        (Resemblance::SameAddress, one.street.is_some() && one.street == other.street && is_same_postcode),
    ];
    found.into_iter().filter_map(|(reason, is_same)| is_same.then_some(reason)).collect()
}

fn first_names(one: &FoldedName, other: &FoldedName, usual_names: &HashSet<&str>) -> Likeness {
    if one.letters == other.letters {
        return Likeness::Same;
    }
    // Names of twins rhyme, and typing errors seldom hit the first letter.
    let begin_alike = one.letters.chars().next() == other.letters.chars().next();
    let are_usual = || [one, other].iter().all(|name| usual_names.contains(name.letters.as_str()));
    let are_two = || are_usual() || are_two_names(&one.letters, &other.letters);
    let is_mistyped = begin_alike && is_mistyped(&one.letters, &other.letters) && !are_two();
    let is_similar = is_mistyped || are_of_one_name(&one.letters, &other.letters) || is_part(one, other);
    if is_similar { Likeness::Similar } else { Likeness::Different }
}

fn last_names(one: &FoldedName, other: &FoldedName) -> Likeness {
    if one.letters == other.letters {
        Likeness::Same
    } else if is_mistyped(&one.letters, &other.letters) || is_part(one, other) {
        Likeness::Similar
    } else {
        Likeness::Different
    }
}

fn is_mistyped(one: &str, other: &str) -> bool {
    let (one_length, other_length) = (one.chars().count(), other.chars().count());
    let longer = one_length.max(other_length);
    let errors_max = if longer >= TWO_ERRORS_LETTERS_MIN { 2 } else { 1 };
    longer >= MISTYPED_LETTERS_MIN
        && one_length.abs_diff(other_length) <= errors_max
        && strsim::osa_distance(one, other) <= errors_max
}

/// Returns whether one name is the other without some of its words: Smith and Smith-Jones.
fn is_part(one: &FoldedName, other: &FoldedName) -> bool {
    let (short, long) = if one.words.len() < other.words.len() { (one, other) } else { (other, one) };
    !short.words.is_empty() && short.words.len() < long.words.len() && {
        let has = |word: &String| long.words.contains(word);
        short.words.iter().all(has)
    }
}

fn are_swapped(one: &FoldedPatient, other: &FoldedPatient) -> bool {
    let likeness = [last_names(&one.first, &other.last), last_names(&one.last, &other.first)];
    likeness.contains(&Likeness::Same) && !likeness.contains(&Likeness::Different)
}
