//! Pairs of patients that came since: the search finds what a search of the whole register does, and reads only those
//! who may be one person with one of them.

use std::collections::{BTreeMap, HashSet};

use intake_domain::{
    FeedError, FeedScope, Field, FoldedPatient, Mark, Page, PairClues, PairRegister, PairSearch, PatientId,
    StoredPatient, search_newcomers, search_pairs,
};

use super::JUDGED;
use super::examples::stored;
use super::register::Register;

const CAME: usize = 50;

/// A register that counts what is asked of it.
struct Counting<'a> {
    patients: &'a [StoredPatient],
    /// Keys by which each of them is found.
    keys: Vec<Vec<String>>,
    questions: usize,
    read: usize,
}

impl Counting<'_> {
    fn among(patients: &[StoredPatient]) -> Counting<'_> {
        Counting { patients, keys: patients.iter().map(keys).collect(), questions: 0, read: 0 }
    }
}

impl PairRegister for Counting<'_> {
    /// One at a time, as a page can end anywhere.
    fn resembling(
        &mut self,
        _: &FeedScope,
        _: &Mark,
        clues: &PairClues,
        after: Option<PatientId>,
    ) -> Result<Page<StoredPatient>, FeedError> {
        if after.is_none() {
            self.questions += 1;
        }
        let wanted: HashSet<_> = clues.birth_dates.iter().chain(&clues.contacts).collect();
        let fitting =
            self.patients.iter().zip(&self.keys).filter(|(_, keys)| keys.iter().any(|key| wanted.contains(key)));
        let patients =
            fitting.map(|(patient, _)| patient).filter(|patient| after.is_none_or(|after| after < patient.id));
        let items: Vec<_> = patients.take(300).cloned().collect();
        self.read += items.len();
        let continued_after = items.last().map(|last| last.id).filter(|_| items.len() == 300);
        Ok(Page { items, continued_after })
    }

    fn first_names(&mut self, _: &FeedScope, _: &Mark, initials: &[String]) -> Result<Vec<(String, u64)>, FeedError> {
        self.questions += 1;
        let mut counts = BTreeMap::new();
        for name in self.patients.iter().filter_map(|patient| patient.values[Field::FirstName].clone()) {
            let initial = name.chars().next().unwrap().to_ascii_lowercase();
            if !initial.is_ascii_alphanumeric() || initials.contains(&initial.to_string()) {
                *counts.entry(name).or_insert(0) += 1;
            }
        }
        self.read += counts.len();
        Ok(counts.into_iter().collect())
    }
}

/// The birth date, and with a contact its parts and the whole: the clues have day and month in each other's place.
fn keys(patient: &StoredPatient) -> Vec<String> {
    let PairClues { birth_dates, contacts } = PairClues::new(&[FoldedPatient::new(patient)]);
    let with_contact = |clue: &String| clue.split_once('/').map(|(_, contact)| format!("{}/{contact}", birth_dates[0]));
    let whole: Vec<_> = contacts.iter().filter_map(with_contact).collect();
    [birth_dates, contacts, whole].concat()
}

/// The search after these patients came.
fn search(register: &mut Counting<'_>, came: &[&StoredPatient]) -> PairSearch {
    let scope = FeedScope { organisation_id: came[0].organisation_id, key_id: None };
    let until = Mark { token: None, next: 0, running: Vec::new() };
    let came: Vec<_> = came.iter().map(|patient| FoldedPatient::new(patient)).collect();
    search_newcomers(register, &scope, &until, &came).unwrap()
}

#[test]
fn the_search_for_newcomers_finds_what_a_search_of_everyone_does() {
    let patients = Register::new(JUDGED[1]).patients;
    let all = search_pairs(&patients.iter().map(FoldedPatient::new).collect::<Vec<_>>());
    // Every fortieth of the register, with doubles and twins among them.
    let came: Vec<_> = patients.iter().step_by(40).collect();
    let ids: HashSet<_> = came.iter().map(|patient| patient.id).collect();
    let mut expected = all.pairs;
    expected.retain(|pair| pair.ids.iter().any(|id| ids.contains(id)));
    assert!(expected.len() > 20, "{}", expected.len());
    let mut found = PairSearch::default();
    for some in came.chunks(300) {
        found.add(search(&mut Counting::among(&patients), some));
    }
    assert_eq!(found.pairs, expected);
}

#[test]
fn a_search_costs_what_came_and_not_what_there_is() {
    let patients = Register::new(JUDGED[0]).patients;
    let came: Vec<_> = patients.iter().step_by(patients.len() / CAME).collect();
    assert_eq!(came.len(), CAME);
    let mut register = Counting::among(&patients);
    let found = search(&mut register, &came);
    assert!(register.questions <= 2, "{}", register.questions);
    assert!(register.read < CAME * 10 && found.patients < CAME * 5, "{} {}", register.read, found.patients);
    // Those who came, and nobody to compare them with.
    let few: Vec<_> = came.iter().map(|patient| (*patient).clone()).collect();
    assert!(search(&mut Counting::among(&few), &came).patients == CAME);
}

/// Everyone in a nursing home has its telephone, and these have one name. Of them those who were born on one day are
/// too many to be compared.
#[test]
fn a_group_that_is_too_large_for_one_search_is_too_large_for_the_other() {
    let named = |number: usize, date: String| {
        let mut patient = stored(number, ["Mary", "Ng", "", "+61355500001", ""]);
        patient.values[Field::DateOfBirth] = Some(date);
        patient
    };
    let born = |number: usize| format!("19{}-{:02}-{:02}", 20 + number % 60, 1 + number % 12, 1 + number % 28);
    let old = (0..150).map(|number| named(number, born(number)));
    let patients: Vec<_> = old.chain((150..270).map(|number| named(number, "1919-06-29".to_owned()))).collect();
    let all = search_pairs(&patients.iter().map(FoldedPatient::new).collect::<Vec<_>>());
    let mut found = PairSearch::default();
    // The second and the third are of the group that is too large.
    for came in [&patients[149], &patients[150], &patients[151]] {
        found.add(search(&mut Counting::among(&patients), &[came]));
    }
    let mut expected = all.pairs;
    expected.retain(|pair| pair.ids.iter().any(|id| patients[149..152].iter().any(|came| came.id == *id)));
    assert_eq!((found.pairs, found.skipped_groups), (expected, all.skipped_groups));
}
