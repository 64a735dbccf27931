//! The rows of a file, one by one: never more than one of them is in memory here.

use std::fs;
use std::io;
use std::path::PathBuf;

use anyhow::{Context, bail};
use intake_domain::conversions::DateForm;

use crate::arguments::{Arguments, Comma};
use crate::columns::{Columns, Content};
use crate::json_lines::JsonLines;
use crate::table::{Table, extension, opened};
use crate::tally::Count;
use crate::workbook::{SERIALS, Sheet};

/// Titles and remarks above a header are shorter than this.
const ROWS_SEARCHED: usize = 30;

/// A row of the file.
pub(crate) struct Row {
    /// Its number as a spreadsheet shows it: the header is row 1, if no blank lines are before it. In JSON lines, the
    /// line.
    pub(crate) number: u64,
    /// Number of bytes of the file that are read with it.
    pub(crate) end: u64,
    /// Its content, or why it cannot be read.
    pub(crate) content: Result<Content, String>,
}

/// A file of patients.
pub(crate) struct Rows {
    source: Source,
    path: PathBuf,
    size: u64,
}

enum Source {
    Table { table: Table, columns: Columns, repeated: Count },
    JsonLines(JsonLines),
}

impl Rows {
    /// The rows of the file that the command line names, from its beginning.
    pub(crate) fn of(arguments: &Arguments) -> anyhow::Result<Self> {
        Self::open(arguments).with_context(|| arguments.file.display().to_string())
    }

    fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        let size = fs::metadata(&arguments.file)?.len();
        let path = arguments.file.clone();
        if !is_json_lines(arguments) {
            let (table, header) = Table::open(arguments)?;
            let header: Vec<_> = header.iter().map(String::as_str).collect();
            let mut columns = Columns::read(&header, arguments)?;
            if let Some(names) = columns.names() {
                columns.splitting.comma = match arguments.comma {
                    Some(comma) => comma,
                    None if header.get(names).is_some_and(|name| name.contains(',')) => Comma::Named,
                    None if !arguments.first_name_first && Table::open(arguments)?.0.has_comma(names)? => Comma::Usual,
                    None => Comma::Optional,
                };
            }
            let size = if let Table::Sheet(sheet) = &table { sheet.size } else { size };
            if let Table::Sheet(Sheet { serial: Some(own), .. }) = &table {
                let is_other = |form: &DateForm| SERIALS.contains(&form.as_str()) && form.as_str() != *own;
                if arguments.date_format.iter().any(is_other) {
                    bail!("the workbook counts days otherwise: write --date-format '{own}'");
                }
            }
            return Ok(Self { source: Source::Table { table, columns, repeated: Count::default() }, path, size });
        }
        if arguments.header_row.is_some() {
            bail!("--header-row is for files with a header");
        }
        if !arguments.map.is_empty() {
            bail!("--map is for files with a header; in JSON lines, name the properties like the fields");
        }
        let lines = JsonLines::new(opened(&arguments.file)?);
        Ok(Self { source: Source::JsonLines(lines), path, size })
    }

    /// The header of the file; none in JSON lines.
    pub(crate) fn header(arguments: &Arguments) -> anyhow::Result<Option<Vec<String>>> {
        if is_json_lines(arguments) {
            return Ok(None);
        }
        let table = Table::open(arguments).with_context(|| arguments.file.display().to_string())?;
        Ok(Some(table.1))
    }

    /// Returns whether one character stands between the cells of the file.
    pub(crate) fn have_delimiter(arguments: &Arguments) -> bool {
        extension(&arguments.file) == "csv"
    }

    /// Number and cells of each of the first rows of a table.
    pub(crate) fn beginning(arguments: &Arguments) -> anyhow::Result<Vec<(u64, Vec<String>)>> {
        let mut table = Table::begin(arguments)?;
        let rows = std::iter::from_fn(|| table.cells().transpose());
        Ok(rows.take(ROWS_SEARCHED).collect::<Result<_, _>>()?)
    }

    /// The form in which a bare number would be a day, if the file says so.
    pub(crate) fn serial(&self) -> Option<&'static str> {
        match &self.source {
            Source::Table { table: Table::Sheet(sheet), .. } => sheet.serial,
            _ => None,
        }
    }

    /// Returns whether the names without a comma have an order; none where no column holds both names.
    pub(crate) fn comma(&self) -> Option<Comma> {
        match &self.source {
            Source::Table { columns, .. } => columns.names().map(|_| columns.splitting.comma),
            Source::JsonLines(_) => None,
        }
    }

    /// The rows that are the header again, of those that were read.
    pub(crate) fn repeated_headers(&self) -> Option<String> {
        match &self.source {
            Source::Table { repeated, .. } if repeated.rows > 0 => {
                Some(format!("the header again, passed over: {repeated}"))
            }
            _ => None,
        }
    }

    /// The size of the file, as its rows count their ends.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The next row; none after the last one.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Row>> {
        self.source.next().with_context(|| self.path.display().to_string())
    }
}

impl Source {
    fn next(&mut self) -> io::Result<Option<Row>> {
        match self {
            Self::Table { table, columns, repeated } => loop {
                let Some((number, end, content)) = table.next(columns)? else { return Ok(None) };
                match content.transpose() {
                    Some(content) => return Ok(Some(Row { number, end, content })),
                    None => repeated.add(number, 1),
                }
            },
            Self::JsonLines(lines) => loop {
                if !lines.next()? {
                    return Ok(None);
                }
                if let Some(texts) = lines.texts().transpose() {
                    let content = texts.map(|texts| (texts, Vec::new()));
                    return Ok(Some(Row { number: lines.number, end: lines.read, content }));
                }
            },
        }
    }
}

fn is_json_lines(arguments: &Arguments) -> bool {
    ["jsonl", "ndjson"].contains(&extension(&arguments.file).as_str())
}
