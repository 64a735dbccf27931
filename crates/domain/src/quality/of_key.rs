//! Quality of the patients that a key created, from the counts of its answers: no value is among them, and no small
//! number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::keys::answer::{AnswerCode, AnswerCount, REPLAYED};
use crate::quality::doubt::Doubt;

/// Fewer patients than these are not counted, because they could point to a person.
pub const COUNTED_MIN: u64 = 5;

/// Number of patients that a key created, and of those with each doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyQuality {
    /// All patients that it created.
    pub patients: u64,
    /// The doubts about any of them, the most frequent first. None: about fewer than [`COUNTED_MIN`].
    pub doubts: Vec<(Doubt, Option<u64>)>,
}

impl KeyQuality {
    /// Reads the counts of a key's answers, of which those with the code `created` are about patients.
    #[must_use]
    pub fn new(answers: &[AnswerCount], created: AnswerCode) -> Self {
        let (mut patients, mut replayed) = (0, 0);
        let mut doubts: BTreeMap<Doubt, u64> = BTreeMap::new();
        for AnswerCount { field, count, .. } in answers.iter().filter(|answer| answer.code == created) {
            match field.as_deref() {
                None => patients += count,
                Some(REPLAYED) => replayed += count,
                Some(name) => {
                    Doubt::named(name).into_iter().for_each(|doubt| *doubts.entry(doubt).or_default() += count);
                }
            }
        }
        let mut doubts: Vec<_> = doubts.into_iter().collect();
        doubts.sort_by_key(|(_, count)| Reverse(*count));
        let counted = |(doubt, count)| (doubt, Some(count).filter(|count| *count >= COUNTED_MIN));
        Self { patients: patients.saturating_sub(replayed), doubts: doubts.into_iter().map(counted).collect() }
    }
}
