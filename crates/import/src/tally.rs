//! Counts of what is said of rows, with the first rows that it is said of.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// The most rows that are named.
const ROWS_NAMED: usize = 3;
/// The most texts that are counted: some name a line of the file, and no two are the same.
const TEXTS_MAX: usize = 1_000;

/// Counts by text.
#[derive(Default)]
pub(crate) struct Tally(BTreeMap<String, Count>);

/// A count of rows. It is shown as the rows that are named.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) rows: u64,
    first: Vec<u64>,
}

impl Tally {
    /// Counts what is said of a row.
    pub(crate) fn count(&mut self, row: u64, said: impl IntoIterator<Item: Display>) {
        for text in said {
            self.count_rows(row, 1, &text);
        }
    }

    /// Counts what is said of several rows, of which this is one.
    pub(crate) fn count_rows(&mut self, row: u64, rows: u64, text: &impl Display) {
        let text = text.to_string();
        if self.0.len() == TEXTS_MAX && !self.0.contains_key(&text) {
            return;
        }
        self.0.entry(text).or_default().add(row, rows);
    }

    /// Those counts that reach a least number of rows, as lines under a title, the largest first; none without any.
    pub(crate) fn section(&self, title: &str, least: u64) -> Option<String> {
        let mut counts: Vec<_> = self.0.iter().filter(|(_, count)| count.rows >= least).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(count.rows));
        let lines = counts.iter().map(|(text, count)| format!("\n  {} {text} ({count})", count.rows));
        (!counts.is_empty()).then(|| format!("{title}:{}", lines.collect::<String>()))
    }
}

impl Count {
    /// Adds several rows, of which this is one.
    pub(crate) fn add(&mut self, row: u64, rows: u64) {
        self.rows += rows;
        // Rows end in another order than they begin.
        let place = self.first.partition_point(|earlier| *earlier < row);
        self.first.insert(place, row);
        self.first.truncate(ROWS_NAMED);
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<_> = self.first.iter().map(ToString::to_string).collect();
        let noun = if self.rows == 1 { "row" } else { "rows" };
        let more = if self.rows > first.len() as u64 { ", …" } else { "" };
        write!(f, "{noun} {}{more}", first.join(", "))
    }
}
