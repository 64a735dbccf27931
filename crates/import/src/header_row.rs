//! Finds the header of a table for a proposal: the character between its cells, and its row where titles stand above.

use anyhow::bail;

use crate::arguments::Arguments;
use crate::headers::fields_named;
use crate::rows::Rows;

/// Characters between cells that are tried where the given one does not fit.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// A row below others is taken for the header only if it names more fields than a title or a remark does.
const FIELDS_MIN: usize = 3;

/// The rows that may be the header.
#[derive(Default)]
struct Found {
    delimiter: u8,
    /// Number of fields that each of them names.
    fields: usize,
    /// Number and cells of each, but for repetitions.
    rows: Vec<(u64, Vec<String>)>,
    /// True if the first row of the table is one of them.
    is_first: bool,
}

/// The header, after the options that it needs were added; none in JSON lines.
pub(crate) fn header(arguments: &mut Arguments) -> anyhow::Result<Option<Vec<String>>> {
    if arguments.header_row.is_none() {
        let found = find(arguments);
        match found.rows.as_slice() {
            _ if found.is_first || found.fields < FIELDS_MIN => {}
            [(row, _)] => {
                arguments.header_row = Some(*row);
                arguments.delimiter = found.delimiter;
            }
            rows => {
                let rows: Vec<_> = rows.iter().map(|(row, _)| format!("row {row}")).collect();
                bail!(
                    "{}: the header is not the first row: name its row with --header-row: {} may be it",
                    arguments.file.display(),
                    rows.join(" or ")
                );
            }
        }
    }
    let found = Rows::header(arguments);
    if matches!(&found, Ok(Some(header)) if header.len() < 2) || found.is_err() {
        for delimiter in DELIMITERS {
            let other = Arguments { delimiter, ..arguments.clone() };
            if let Ok(Some(header)) = Rows::header(&other)
                && header.len() > 1
            {
                *arguments = other;
                return Ok(Some(header));
            }
        }
    }
    found
}

/// The rows that name most fields.
fn find(arguments: &Arguments) -> Found {
    let mut best = Found::default();
    let others = if Rows::have_delimiter(arguments) { &DELIMITERS[..] } else { &[] };
    for &delimiter in [arguments.delimiter].iter().chain(others) {
        // What cannot be read is reported where the header is.
        let beginning = Rows::beginning(&Arguments { delimiter, ..arguments.clone() }).unwrap_or_default();
        let fields = beginning.iter().map(|(_, cells)| fields_named(cells)).max().unwrap_or_default();
        if fields > best.fields {
            let first = beginning.first().map(|(row, _)| *row);
            let mut rows = beginning;
            rows.retain(|(_, cells)| fields_named(cells) == fields);
            let is_first = rows.first().map(|(row, _)| *row) == first;
            rows.dedup_by(|later, earlier| later.1 == earlier.1);
            best = Found { delimiter, fields, rows, is_first };
        }
    }
    best
}
