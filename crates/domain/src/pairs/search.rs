//! Finds the pairs among all patients of a register. Only patients that share a birth date, or most of one and a
//! telephone, email address or street, are compared, so that the work grows with the register and not with its square.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ids::PatientId;
use crate::pairs::compare::{DATE_PARTS, PairRank, Resemblance, compare};
use crate::pairs::folded::FoldedPatient;

/// The most patients that are all compared with one another: a large family, and not everyone born on 1 January or the
/// residents of a nursing home. These are compared if they share a name, too.
const GROUP_MAX: usize = 100;
/// Number of patients with a first name from which on it is taken for a name, and not for a typing error.
const USUAL_NAME_MIN: u64 = 3;

/// Two patients that may be one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The patients, the one with the smaller id first.
    pub ids: [PatientId; 2],
    /// On which side of the line they are.
    pub rank: PairRank,
    /// Everything that they have in common, and the name in which they differ.
    pub reasons: Vec<Resemblance>,
}

/// The pairs of a register, or those of some of its patients.
#[derive(Debug, Default)]
pub struct PairSearch {
    /// High ranks first, then by the ids.
    pub pairs: Vec<Pair>,
    /// Number of patients among which they were searched.
    pub patients: usize,
    /// Groups that are too large to be compared, each by a digest of its patients: more with one name and one birth
    /// date than a person can have records, for example.
    pub skipped_groups: HashSet<u64>,
}

impl PairSearch {
    /// Adds what another search has found. A pair that both have found is there once.
    pub fn add(&mut self, other: Self) {
        self.pairs.extend(other.pairs);
        self.pairs.sort_by_key(|pair| (pair.rank, pair.ids));
        self.pairs.dedup_by_key(|pair| pair.ids);
        self.patients += other.patients;
        self.skipped_groups.extend(other.skipped_groups);
    }
}

/// Finds the pairs among these patients.
#[must_use]
pub fn search_pairs(patients: &[FoldedPatient]) -> PairSearch {
    let names = patients.iter().map(|patient| (patient.first.letters.as_str(), 1));
    search(patients, &|_| true, usual_names(names))
}

/// The names that are no typing error, given how many patients have each. A name may be there several times.
pub(super) fn usual_names<'a>(counted: impl Iterator<Item = (&'a str, u64)>) -> HashSet<&'a str> {
    let mut counts = HashMap::new();
    for (name, count) in counted {
        *counts.entry(name).or_insert(0) += count;
    }
    counts.into_iter().filter(|(_, count)| *count >= USUAL_NAME_MIN).map(|(name, _)| name).collect()
}

/// Finds the pairs with at least one wanted patient.
pub(super) fn search(
    patients: &[FoldedPatient],
    is_wanted: &dyn Fn(&FoldedPatient) -> bool,
    usual_names: HashSet<&str>,
) -> PairSearch {
    let (found, skipped_groups) = (HashSet::new(), HashSet::new());
    let mut search = Search { is_wanted, usual_names, found, pairs: Vec::new(), skipped_groups };
    search.by(patients, &|patient| patient.birth_date.map(|date| key(&date)));
    let contacts: [fn(&FoldedPatient) -> Option<&String>; 3] =
        [|patient| Some(&patient.phone), |patient| patient.email.as_ref(), |patient| patient.street.as_ref()];
    for part in DATE_PARTS {
        for contact in contacts {
            // Not all who have the contact: of them a search for newcomers reads only those with such a part.
            search.by(patients, &|patient| Some(key(&(part(patient.birth_date?), contact(patient)?))));
        }
    }
    let Search { mut pairs, skipped_groups, .. } = search;
    pairs.sort_by_key(|pair| (pair.rank, pair.ids));
    PairSearch { pairs, patients: patients.len(), skipped_groups }
}

/// A digest of what patients have in common. If two differ and have one digest, they are only compared in vain.
fn key(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

struct Search<'a> {
    is_wanted: &'a dyn Fn(&FoldedPatient) -> bool,
    usual_names: HashSet<&'a str>,
    /// Ids of the pairs, which several groups can have.
    found: HashSet<[PatientId; 2]>,
    pairs: Vec<Pair>,
    skipped_groups: HashSet<u64>,
}

impl Search<'_> {
    /// Compares patients with one key, and in a large group those who share a name, too.
    fn by(&mut self, patients: &[FoldedPatient], shared: &dyn Fn(&FoldedPatient) -> Option<u64>) {
        for group in groups(patients.iter(), shared) {
            if group.len() <= GROUP_MAX {
                self.compare_all(&group);
                continue;
            }
            let by_first = groups(group.iter().copied(), &|patient| Some(key(&patient.first.letters)));
            let by_last = groups(group.iter().copied(), &|patient| Some(key(&patient.last.letters)));
            for part in by_first.into_iter().chain(by_last) {
                if part.len() <= GROUP_MAX {
                    self.compare_all(&part);
                } else if part.iter().any(|patient| (self.is_wanted)(patient)) {
                    self.skipped_groups.insert(key(&part.iter().map(|patient| patient.id).collect::<BTreeSet<_>>()));
                }
            }
        }
    }

    fn compare_all(&mut self, group: &[&FoldedPatient]) {
        for (at, one) in group.iter().enumerate() {
            let is_wanted = (self.is_wanted)(one);
            for other in group.iter().skip(at + 1).filter(|other| is_wanted || (self.is_wanted)(other)) {
                if let Some((rank, reasons)) = compare(one, other, &self.usual_names) {
                    let mut ids = [one.id, other.id];
                    ids.sort();
                    if self.found.insert(ids) {
                        self.pairs.push(Pair { ids, rank, reasons });
                    }
                }
            }
        }
    }
}

/// Patients with the same key, where there are several.
fn groups<'a>(
    patients: impl Iterator<Item = &'a FoldedPatient>,
    shared: &dyn Fn(&FoldedPatient) -> Option<u64>,
) -> Vec<Vec<&'a FoldedPatient>> {
    let mut groups = HashMap::<u64, Vec<_>>::new();
    for patient in patients {
        if let Some(key) = shared(patient) {
            groups.entry(key).or_default().push(patient);
        }
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}
