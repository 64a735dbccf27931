//! Quality of the patients that a key created, from the counts of its answers: no value is among them, and no small
//! number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use time::Date;

use crate::keys::answer::{AnswerCode, AnswerCount, REPLAYED};
use crate::quality::doubt::Doubt;

/// Fewer patients than these are not counted, because they could point to a person.
pub const COUNTED_MIN: u64 = 5;

/// Number of patients that a key created, and of those with each doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyQuality {
    /// All patients that it created. None: some, but fewer than [`COUNTED_MIN`].
    pub patients: Option<u64>,
    /// The doubts about any of them, the most frequent first, and none where the patients are not counted. None: about
    /// fewer than [`COUNTED_MIN`].
    pub doubts: Vec<(Doubt, Option<u64>)>,
}

impl KeyQuality {
    /// Reads the counts of a key's answers, of which those with the code `created` are about patients.
    #[must_use]
    pub fn new(answers: &[AnswerCount], created: AnswerCode) -> Self {
        let patients = patients_of(answers, created);
        if (1..COUNTED_MIN).contains(&patients) {
            return Self { patients: None, doubts: Vec::new() };
        }
        let mut doubts: BTreeMap<Doubt, u64> = BTreeMap::new();
        doubts_of(answers, created).for_each(|(_, doubt, count)| *doubts.entry(doubt).or_default() += count);
        let mut doubts: Vec<_> = doubts.into_iter().collect();
        doubts.sort_by_key(|(_, count)| Reverse(*count));
        let counted = |(doubt, count)| (doubt, Some(count).filter(|count| *count >= COUNTED_MIN));
        Self { patients: Some(patients), doubts: doubts.into_iter().map(counted).collect() }
    }
}

/// Patients with one doubt that a key created on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoubtCount {
    /// The day, in the zone that the organisation had when they were counted.
    pub day: Date,
    /// The doubt.
    pub doubt: Doubt,
    /// Number of these patients, at least [`COUNTED_MIN`].
    pub count: u64,
}

impl DoubtCount {
    /// Reads them from the counts of a key's answers, of which those with the code `created` are about patients: by
    /// day, then in the order of [`Doubt::all`]. Smaller counts are left out.
    #[must_use]
    pub fn list(answers: &[AnswerCount], created: AnswerCode) -> Vec<Self> {
        let mut counts: BTreeMap<(Date, Doubt), u64> = BTreeMap::new();
        doubts_of(answers, created).for_each(|(day, doubt, count)| *counts.entry((day, doubt)).or_default() += count);
        let counted = counts.into_iter().filter(|(_, count)| *count >= COUNTED_MIN);
        counted.map(|((day, doubt), count)| Self { day, doubt, count }).collect()
    }
}

/// The doubts among these counts, each with its day and number of patients.
fn doubts_of(answers: &[AnswerCount], created: AnswerCode) -> impl Iterator<Item = (Date, Doubt, u64)> {
    let about_patients = answers.iter().filter(move |answer| answer.code == created);
    about_patients.filter_map(|answer| Some((answer.day, Doubt::named(answer.field.as_deref()?)?, answer.count)))
}

/// Number of patients that a key created, from the counts of its answers: those with the code `created`, without those
/// that repeated an earlier one.
#[must_use]
pub fn patients_of(answers: &[AnswerCount], created: AnswerCode) -> u64 {
    let counted = |name: Option<&str>| -> u64 {
        let of_name = answers.iter().filter(|answer| answer.code == created && answer.field.as_deref() == name);
        of_name.map(|answer| answer.count).sum()
    };
    counted(None).saturating_sub(counted(Some(REPLAYED)))
}
