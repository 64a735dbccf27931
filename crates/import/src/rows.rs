//! The rows of a file, one by one: never more than one of them is in memory here.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use intake_domain::conversions::DateForm;

use crate::arguments::{Arguments, header_in_one_line};
use crate::columns::{Columns, OTHER_DELIMITERS, Texts, csv_header, say_delimiter};
use crate::counted::counted;
use crate::json_lines::JsonLines;
use crate::strict_csv::{Broken, Cells, StrictCsv};
use crate::workbook::{Cell, SERIALS, Sheet};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Titles and remarks above a header are shorter than this.
const ROWS_SEARCHED: usize = 30;

/// A row of the file.
pub(crate) struct Row {
    /// Its number as a spreadsheet shows it: the header is row 1, if no blank lines are before it. In JSON lines, the
    /// line.
    pub(crate) number: u64,
    /// Number of bytes of the file that are read with it.
    pub(crate) end: u64,
    /// Its texts, or why it cannot be read.
    pub(crate) texts: Result<Texts, String>,
    /// True if both names stood in one column.
    pub(crate) are_names_split: bool,
}

/// A file of patients.
pub(crate) struct Rows {
    source: Source,
    path: PathBuf,
    size: u64,
}

enum Source {
    Table { table: Table, columns: Columns },
    JsonLines(JsonLines),
}

enum Table {
    Csv(Box<StrictCsv<BufReader<File>>>),
    Sheet(Sheet),
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
                let is_named = header.get(names).is_some_and(|name| name.contains(','));
                columns.splitting.is_comma_required =
                    is_named || !arguments.first_name_first && Table::open(arguments)?.0.has_comma(names)?;
            }
            let size = if let Table::Sheet(sheet) = &table { sheet.size } else { size };
            if let Table::Sheet(Sheet { serial: Some(own), .. }) = &table {
                let is_other = |form: &DateForm| SERIALS.contains(&form.as_str()) && form.as_str() != *own;
                if arguments.date_format.iter().any(is_other) {
                    bail!("the workbook counts days otherwise: write --date-format '{own}'");
                }
            }
            return Ok(Self { source: Source::Table { table, columns }, path, size });
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
            Self::Table { table, columns } => table.next(columns),
            Self::JsonLines(lines) => loop {
                if !lines.next()? {
                    return Ok(None);
                }
                if let Some(texts) = lines.texts().transpose() {
                    return Ok(Some(Row { number: lines.number, end: lines.read, texts, are_names_split: false }));
                }
            },
        }
    }
}

impl Table {
    /// The file, read up to its header: the row that is named, or else the first that is not empty.
    fn open(arguments: &Arguments) -> anyhow::Result<(Self, Vec<String>)> {
        let mut table = Self::begin(arguments)?;
        let wanted = arguments.header_row.unwrap_or_default();
        let check = |row: Option<u64>, nothing: &str| match row {
            _ if wanted > 0 && row != Some(wanted) => bail!("--header-row: row {wanted} is empty"),
            None => bail!("the {nothing} is empty"),
            Some(_) => Ok(()),
        };
        let header = match &mut table {
            Self::Csv(reader) => {
                reader.pass_to(wanted)?;
                let header = reader.next_filled(csv_header).context("the header cannot be read")?;
                check(header.as_ref().map(|_| reader.row), "file")?;
                header.transpose()?.unwrap_or_default()
            }
            Self::Sheet(sheet) => {
                let found = std::iter::from_fn(|| sheet.next()).find(|(row, _)| *row >= wanted);
                check(found.as_ref().map(|(row, _)| *row), "sheet")?;
                let (row, header) = found.unwrap_or_default();
                let header = header.into_iter().collect::<Result<Vec<_>, _>>().map_err(|why| {
                    let further = ". If the header is further down, name its row with --header-row";
                    anyhow!("the header, row {row}: a cell {why}{}", if wanted == 0 { further } else { "" })
                })?;
                header.iter().map(|cell| header_in_one_line(cell)).collect()
            }
        };
        Ok((table, header))
    }

    /// The file, before its first row.
    fn begin(arguments: &Arguments) -> anyhow::Result<Self> {
        let Arguments { file, delimiter, sheet, .. } = arguments;
        Ok(Self::Sheet(match extension(file).as_str() {
            "csv" if sheet.is_some() => bail!("--sheet is for .xlsx and .ods files"),
            "csv" => {
                let mut reader = opened(file)?;
                skip_separator_line(&mut reader, *delimiter)?;
                return Ok(Self::Csv(Box::new(StrictCsv::new(reader, *delimiter))));
            }
            "xlsx" => Sheet::read_xlsx(file, sheet.as_deref())?,
            "ods" => Sheet::read_ods(file, sheet.as_deref())?,
            "xls" => bail!("it is of an old Excel: open it in a spreadsheet program and save it as .xlsx"),
            _ => bail!("its name must end in .csv, .xlsx, .ods or .jsonl"),
        }))
    }

    /// Returns whether a cell of this column holds a comma.
    fn has_comma(mut self, column: usize) -> io::Result<bool> {
        while let Some((_, cells)) = self.cells()? {
            if cells.get(column).is_some_and(|cell| cell.contains(',')) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number and cells of the next row. A cell that cannot be read is empty.
    fn cells(&mut self) -> io::Result<Option<(u64, Vec<String>)>> {
        Ok(match self {
            Self::Csv(reader) => {
                let text = |cell: &[u8]| String::from_utf8_lossy(cell).trim().to_owned();
                let cells = reader.next_filled(|row| row.map(|cells| cells.iter().map(text).collect()))?;
                cells.map(|cells| (reader.row, cells.unwrap_or_default()))
            }
            Self::Sheet(sheet) => sheet.next().map(|(row, cells)| {
                let text = |cell: Cell| cell.unwrap_or_default().trim().to_owned();
                (row, cells.into_iter().map(text).collect())
            }),
        })
    }

    fn next(&mut self, columns: &Columns) -> io::Result<Option<Row>> {
        let (number, end, texts) = match self {
            Self::Csv(reader) => {
                let read = |row: Result<&Cells, Broken>| {
                    row.map_err(|why| why.to_string()).and_then(|row| csv_texts(row, columns))
                };
                let Some(texts) = reader.next_filled(read)? else { return Ok(None) };
                (reader.row, reader.read, texts)
            }
            Self::Sheet(sheet) => {
                let Some((row, cells)) = sheet.next() else { return Ok(None) };
                let cells = cells.iter().map(|cell| cell.as_deref().map_err(|why| *why));
                (row, row, columns.texts(cells))
            }
        };
        Ok(Some(Row { number, end, texts, are_names_split: columns.names().is_some() }))
    }
}

fn is_json_lines(arguments: &Arguments) -> bool {
    ["jsonl", "ndjson"].contains(&extension(&arguments.file).as_str())
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// The file, read up to its text.
fn opened(path: &Path) -> anyhow::Result<BufReader<File>> {
    let mut file = File::open(path)?;
    skip_byte_order_mark(&mut file)?;
    Ok(BufReader::new(file))
}

fn skip_byte_order_mark(file: &mut File) -> anyhow::Result<()> {
    let mut beginning = Vec::new();
    file.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut beginning)?;
    // Without its mark, every other byte of Latin text is zero.
    let is_utf_16 = [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| beginning.starts_with(*mark))
        || matches!(beginning.as_slice(), [one, other, ..] if (*one == 0) != (*other == 0));
    if is_utf_16 {
        bail!("it is UTF-16: save it as UTF-8");
    }
    if beginning != BYTE_ORDER_MARK {
        file.rewind()?;
    }
    Ok(())
}

/// Excel may begin a file with a line such as `sep=,`, which a spreadsheet does not show as a row.
fn skip_separator_line(reader: &mut BufReader<File>, delimiter: u8) -> anyhow::Result<()> {
    let beginning = reader.fill_buf()?;
    let is_line = beginning.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"sep="));
    let (true, Some([separator, b'\r' | b'\n', ..])) = (is_line, beginning.get(4..)) else { return Ok(()) };
    let other = OTHER_DELIMITERS.iter().find(|(character, ..)| *character == char::from(*separator));
    if *separator == delimiter {
        reader.skip_until(b'\n')?;
        Ok(())
    } else {
        bail!(
            "its first line names another separator: {}",
            other.map_or_else(|| "say it with --delimiter".into(), say_delimiter)
        )
    }
}

fn csv_texts(cells: &Cells, columns: &Columns) -> Result<Texts, String> {
    if cells.len() != columns.count() {
        let cells_counted = counted(cells.len() as u64, "cell");
        return Err(format!("has {cells_counted}, and the header has {}{}", columns.count(), cells.span()));
    }
    columns
        .texts(cells.iter().map(|cell| std::str::from_utf8(cell).map_err(|_| "is not UTF-8: save the file as UTF-8")))
}
