//! Finds the pairs of patients that came since an earlier search. The work grows with their number: nobody is read
//! but those who may be one person with one of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::feed::mark::{FeedScope, Mark};
use crate::feed::patient_feed::FeedError;
use crate::pairs::clues::PairClues;
use crate::pairs::compare::PairRank;
use crate::pairs::folded::{FoldedName, FoldedPatient};
use crate::pairs::register::PairRegister;
use crate::pairs::search::{PairSearch, search, usual_names};

/// Finds the pairs with at least one of these patients, which the mark saw.
pub fn search_newcomers(
    register: &mut dyn PairRegister,
    scope: &FeedScope,
    until: &Mark,
    newcomers: &[FoldedPatient],
) -> Result<PairSearch, FeedError> {
    let patients = read_resembling(register, scope, until, &PairClues::new(newcomers))?;
    let ids: HashSet<_> = newcomers.iter().map(|patient| patient.id).collect();
    let is_newcomer = |patient: &FoldedPatient| ids.contains(&patient.id);
    // Where no name is usual, the most pairs are found. Only their names are worth counting.
    let found = search(&patients, &is_newcomer, HashSet::new());
    let initials = doubtful_initials(&found, &patients);
    if initials.is_empty() {
        return Ok(found);
    }
    let counted: Vec<_> = register
        .first_names(scope, until, &initials)?
        .into_iter()
        .map(|(name, count)| (FoldedName::new(&name).letters, count))
        .collect();
    let usual_names = usual_names(counted.iter().map(|(name, count)| (name.as_str(), *count)));
    Ok(search(&patients, &is_newcomer, usual_names))
}

fn read_resembling(
    register: &mut dyn PairRegister,
    scope: &FeedScope,
    until: &Mark,
    clues: &PairClues,
) -> Result<Vec<FoldedPatient>, FeedError> {
    let (mut patients, mut after) = (Vec::new(), None);
    loop {
        let page = register.resembling(scope, until, clues, after)?;
        patients.extend(page.items.iter().map(FoldedPatient::new));
        after = page.continued_after;
        if after.is_none() {
            return Ok(patients);
        }
    }
}

/// First letters of first names that are taken for one name with a typing error.
fn doubtful_initials(found: &PairSearch, patients: &[FoldedPatient]) -> Vec<String> {
    let names: HashMap<_, _> = patients.iter().map(|patient| (patient.id, &patient.first.letters)).collect();
    let high = found.pairs.iter().filter(|pair| pair.rank == PairRank::High).map(|pair| pair.ids);
    let differing = high.filter(|[one, other]| names.get(one) != names.get(other)).flatten();
    let initials: BTreeSet<_> = differing.filter_map(|id| names.get(&id)?.chars().next()).collect();
    initials.into_iter().map(String::from).collect()
}
