//! Finds the header of a table for a proposal: the character between its cells, and its row where titles stand above.

use anyhow::bail;

use crate::arguments::Arguments;
use crate::headers::fields_named;
use crate::rows::Rows;

/// Characters between cells that are tried where the given one does not fit.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// A row below others is taken for the header only if it names more fields than a title or a remark does.
const FIELDS_MIN: usize = 3;

/// The rows that may be the header, with one character between cells.
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
    let others = if Rows::have_delimiter(arguments) { &DELIMITERS[..] } else { &[] };
    let given = find(arguments);
    let others = others.iter().map(|delimiter| find(&Arguments { delimiter: *delimiter, ..arguments.clone() }));
    let found = others.fold(given, |best, other| if other.rank() > best.rank() { other } else { best });
    match found.rows.as_slice() {
        _ if found.is_first || found.fields < FIELDS_MIN => {}
        [(row, _)] => arguments.header_row = Some(*row),
        rows => {
            let rows: Vec<_> = rows.iter().map(|(row, _)| format!("row {row}")).collect();
            bail!(
                "{}: the header is not the first row: name its row with --header-row: {} may be it",
                arguments.file.display(),
                rows.join(" or ")
            );
        }
    }
    arguments.delimiter = found.delimiter;
    Rows::header(arguments)
}

/// The rows that name most fields.
fn find(arguments: &Arguments) -> Found {
    let beginning = match arguments.header_row {
        Some(row) => Rows::header(arguments).map(|header| header.map(|cells| (row, cells)).into_iter().collect()),
        None => Rows::beginning(arguments),
    };
    // What cannot be read is reported where the header is.
    let mut rows: Vec<_> = beginning.unwrap_or_default();
    let fields = rows.iter().map(|(_, cells)| fields_named(cells)).max().unwrap_or_default();
    let first = rows.first().map(|(row, _)| *row);
    rows.retain(|(_, cells)| fields_named(cells) == fields);
    let is_first = rows.first().map(|(row, _)| *row) == first;
    rows.dedup_by(|later, earlier| later.1 == earlier.1);
    Found { delimiter: arguments.delimiter, fields, rows, is_first }
}

impl Found {
    /// Returns how likely it is: without a named field, a header of several cells rather than one of a single cell.
    fn rank(&self) -> (usize, bool) {
        (self.fields, self.rows.first().is_some_and(|(_, cells)| cells.len() > 1))
    }
}
