//! A check of all rows with some options, for a proposal.

use std::collections::BTreeMap;

use intake_domain::Field;

use crate::arguments::Arguments;
use crate::check::Checker;
use crate::convert::{How, Texts};
use crate::rows::Rows;
use crate::tally::Tally;

/// The rows that show which part of a name is taken for the last name.
const NAMES_SHOWN: usize = 3;

/// Outcome of a check with some options.
#[derive(Default)]
pub(crate) struct Trial {
    pub(crate) rows: u64,
    pub(crate) valid: u64,
    /// Ways in which values of valid rows were changed.
    pub(crate) used: Vec<(Field, How)>,
    pub(crate) changes: Tally,
    /// The first and the last name of the first rows whose names were split.
    pub(crate) names: Vec<String>,
    /// For each change the first row, the value before it and the one that is sent.
    pub(crate) examples: BTreeMap<String, (u64, String, Option<String>)>,
    pub(crate) faults: Tally,
    pub(crate) suspicions: Tally,
    pub(crate) repeated_headers: Option<String>,
}

impl Trial {
    pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Self> {
        let (mut trial, mut rows, mut checker) =
            (Self::default(), Rows::of(arguments)?, Checker::new(arguments, None)?);
        while let Some(row) = rows.next()? {
            let before = row.content.as_ref().ok().map(|(texts, _)| texts.clone());
            let (tag, after) = checker.check(row);
            trial.rows += 1;
            let (after, before) = match (after, before) {
                (Ok(after), Some(before)) => (after, before),
                (Err(faults), _) => {
                    trial.faults.count(tag.row, faults);
                    continue;
                }
                (Ok(_), None) => continue,
            };
            trial.valid += 1;
            trial.changes.count(tag.row, &tag.changes);
            if trial.names.len() < NAMES_SHOWN && tag.changes.iter().any(|change| change.how == How::Split) {
                let [first, last] = [Field::FirstName, Field::LastName].map(|field| after[field].as_deref());
                let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
                trial.names.push(format!("  row {}: firstName {first:?}, lastName {last:?}", tag.row));
            }
            for suspicion in &tag.suspicions {
                trial.suspicions.count_rows(tag.row, suspicion.rows(), &suspicion.with_remedy());
            }
            for change in &tag.changes {
                if !trial.used.contains(&(change.field, change.how)) {
                    trial.used.push((change.field, change.how));
                    let text = |texts: &Texts| texts[change.field].clone();
                    let (before, after) = (text(&before), text(&after));
                    if before != after {
                        let example = (tag.row, before.unwrap_or_default(), after);
                        trial.examples.entry(change.to_string()).or_insert(example);
                    }
                }
            }
        }
        trial.repeated_headers = rows.repeated_headers();
        Ok(trial)
    }
}
