//! Two patients, and what is said of them.

use intake_domain::{Field, FoldedPatient, OrganisationId, PairRank, PatientId, StoredPatient, search_pairs};
use time::macros::datetime;

use super::people::{TWINS, Values};

/// First and last name, birth date, telephone and street.
type Written = [&'static str; 5];

fn folded(number: usize, written: Written) -> FoldedPatient {
    FoldedPatient::new(&stored(number, written))
}

pub(super) fn stored(number: usize, written: Written) -> StoredPatient {
    let at = datetime!(2026-11-25 0:00 UTC);
    let mut values = Values::from_fn(|_| None);
    let fields = [Field::FirstName, Field::LastName, Field::DateOfBirth, Field::PhoneNumber, Field::AddressLine1];
    for (field, text) in fields.into_iter().zip(written) {
        values[field] = Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    let random = std::array::from_fn(|place| u8::try_from(number >> (8 * (9 - place)).min(63) & 255).unwrap());
    let (id, organisation_id) = (PatientId::new(at, random), OrganisationId::new(at, [0; 10]));
    StoredPatient { id, organisation_id, values, created_at: at, updated_at: at, key_id: None }
}

/// Rank and reasons of the two, or nothing.
fn said(one: Written, other: Written) -> String {
    let search = search_pairs(&[folded(1, one), folded(2, other)]);
    let text = search.pairs.iter().map(|pair| {
        let reasons: Vec<_> = pair.reasons.iter().map(ToString::to_string).collect();
        format!("{}: {}", pair.rank, reasons.join(" "))
    });
    text.collect()
}

#[test]
fn each_pair_has_its_rank_and_reasons() {
    let ada = ["Ada", "Lovelace", "1968-03-12", "+61491570006", "12 High Street"];
    for (other, expected) in [
        (["ADA", "Lovelace ", "1968-03-12", "+610491570006", ""], "high: same-names same-birth-date same-phone"),
        (["Ada", "Lovelase", "1968-03-12", "+61355500000", ""], "high: similar-names same-birth-date"),
        (["Lovelace", "Ada", "1968-03-12", "+61355500000", ""], "high: swapped-names same-birth-date"),
        (["Ada", "King", "1968-03-12", "+61491570006", ""], "high: other-last-name same-birth-date same-phone"),
        (["Ada", "Lovelace", "1968-12-03", "", "12 high st"], "high: same-names similar-birth-date same-address"),
        // Twins, other relatives, and people of one name.
        (["Eva", "Lovelace", "1968-03-12", "+61491570006", ""], "low: other-first-name same-birth-date same-phone"),
        (["Eva", "Lovelace", "1998-04-20", "+61491570006", "12 High St"], ""),
        (["Ada", "Lovelace", "1998-04-20", "+61491570006", "12 High St"], ""),
        (["Ada", "Lovelace", "1969-03-12", "+61355500000", "1 Low Road"], ""),
        (["Ada", "King", "1968-03-12", "+61355500000", "1 Low Road"], ""),
        (["Eva", "King", "1968-03-12", "+61491570006", "12 High St"], ""),
    ] {
        assert_eq!(said(ada, other), expected, "{other:?}");
        assert_eq!(said(other, ada), expected, "{other:?}");
    }
}

#[test]
fn names_of_one_person_are_similar_and_names_of_twins_are_not() {
    let born = |first, last| [first, last, "1980-06-01", "+61491570006", ""];
    let rank = |one, other| said(one, other).split(':').next().unwrap().to_owned();
    for (one, other, expected) in [
        (born("Margaret", "Ng"), born("Peggy", "Ng"), "high"),
        (born("Mary-Jane", "O’Neill"), born("maryjane", "ONeill"), "high"),
        (born("Mary Jane", "Tran"), born("Mary", "Tran"), "high"),
        (born("Onlyname", "Suharto"), born("Suharto", "Suharto"), "high"),
        (born(".", "Suharto"), born("Onlyname", "Suharto"), "high"),
        (born("Siobhán", "Smith-Jones"), born("Siobhan", "Jones"), "high"),
        (born("Christine", "Ng"), born("Christopher", "Ng"), "low"),
        (born("Minh", "Tran"), born("Linh", "Tran"), "low"),
        (born("Jayden", "Smith"), born("Aiden", "Smith"), "low"),
    ] {
        assert_eq!(rank(one, other), expected, "{one:?} {other:?}");
    }
}

#[test]
fn two_names_of_a_few_other_letters_are_twins_and_no_typing_error() {
    let same = |first| [first, "Ng", "1980-06-01", "+61491570006", "12 High Street"];
    for [one, other] in TWINS {
        let expected = "low: other-first-name same-birth-date same-phone same-address";
        assert_eq!(said(same(one), same(other)), expected, "{one} {other}");
        let elsewhere = [other, "Ng", "1980-06-01", "+61355500000", "1 Low Road"];
        assert_eq!(said(same(one), elsewhere), "", "{one} {other}");
    }
    for (one, other) in [("Margaret", "Margarte"), ("Alexandra", "Alexanda"), ("Daniel", "Danil"), ("Thanh", "Thahn")] {
        assert!(said(same(one), same(other)).starts_with("high: similar-names"), "{one} {other}");
    }
}

/// Several other patients have the name, which is on no list.
#[test]
fn two_usual_names_are_no_typing_error() {
    let twins = ["Tamsyn", "Tamsin"].map(|first| [first, "Ng", "1980-06-01", "+61491570006", ""]);
    let others = ["Tamsyn", "Tamsin"].into_iter().flat_map(|first| {
        [[first, "Hill", "1950-01-02", "+61355500001", ""], [first, "Wood", "1962-11-30", "+61355500002", ""]]
    });
    let patients: Vec<_> =
        twins.into_iter().chain(others).enumerate().map(|(number, written)| folded(number, written)).collect();
    assert_eq!(search_pairs(&patients).pairs.first().unwrap().rank, PairRank::Low);
}

#[test]
fn a_birthday_and_a_telephone_of_thousands_do_not_multiply_the_work() {
    let names = ["Ada", "Eva", "Mia", "Leo", "Max", "Tom", "Ben", "Sue"];
    let mut patients: Vec<_> =
        (0..8_000).map(|number| folded(number, [names[number % 8], "Ng", "1970-01-01", "+61400000000", ""])).collect();
    // Every name has a thousand patients, which are skipped: eight groups by first and one by last name, whatever they
    // share.
    let search = search_pairs(&patients);
    assert_eq!((search.pairs.len(), search.skipped_groups.len()), (0, 9));
    patients.extend([8_000, 8_001].map(|number| folded(number, ["Zoë", "Ng", "1970-01-01", "+61400000000", ""])));
    assert_eq!(search_pairs(&patients).pairs.len(), 1);
}
