//! A table of a CSV file, a workbook of Excel or a spreadsheet of `OpenDocument`: its header, and the rows below it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use anyhow::{Context, anyhow, bail};

use crate::arguments::{Arguments, header_in_one_line};
use crate::columns::{Columns, Content, OTHER_DELIMITERS, csv_header, say_delimiter};
use crate::counted::counted;
use crate::strict_csv::{Broken, Cells, StrictCsv};
use crate::workbook::{Cell, Sheet};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The rows of a table.
pub(crate) enum Table {
    Csv(Box<StrictCsv<BufReader<File>>>),
    Sheet(Sheet),
}

/// The content of a row, or why it cannot be read.
type RowContent = Result<Option<Content>, String>;

impl Table {
    /// The file, read up to its header: the row that is named, or else the first that is not empty.
    pub(crate) fn open(arguments: &Arguments) -> anyhow::Result<(Self, Vec<String>)> {
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
    pub(crate) fn begin(arguments: &Arguments) -> anyhow::Result<Self> {
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
    pub(crate) fn has_comma(mut self, column: usize) -> io::Result<bool> {
        while let Some((_, cells)) = self.cells()? {
            if cells.get(column).is_some_and(|cell| cell.contains(',')) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Number and cells of the next row, each in one line. A cell that cannot be read is empty.
    pub(crate) fn cells(&mut self) -> io::Result<Option<(u64, Vec<String>)>> {
        Ok(match self {
            Self::Csv(reader) => {
                let text = |cell: &[u8]| header_in_one_line(&String::from_utf8_lossy(cell));
                let cells = reader.next_filled(|row| row.map(|cells| cells.iter().map(text).collect()))?;
                cells.map(|cells| (reader.row, cells.unwrap_or_default()))
            }
            Self::Sheet(sheet) => sheet.next().map(|(row, cells)| {
                let text = |cell: Cell| header_in_one_line(&cell.unwrap_or_default());
                (row, cells.into_iter().map(text).collect())
            }),
        })
    }

    /// Number, end and content of the next row. A row that is the header again has no content.
    pub(crate) fn next(&mut self, columns: &Columns) -> io::Result<Option<(u64, u64, RowContent)>> {
        match self {
            Self::Csv(reader) => {
                let read = |row: Result<&Cells, Broken>| {
                    row.map_err(|why| why.to_string()).and_then(|row| csv_content(row, columns))
                };
                let content = reader.next_filled(read)?;
                Ok(content.map(|content| (reader.row, reader.read, content)))
            }
            Self::Sheet(sheet) => Ok(sheet.next().map(|(row, cells)| {
                let is_header =
                    columns.is_header(cells.iter().map(|cell| cell.as_deref().unwrap_or_default().as_bytes()));
                let cells = cells.iter().map(|cell| cell.as_deref().map_err(|why| *why));
                (row, row, if is_header { Ok(None) } else { columns.content(cells).map(Some) })
            })),
        }
    }
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// The file, read up to its text.
pub(crate) fn opened(path: &Path) -> anyhow::Result<BufReader<File>> {
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

/// The content of a row; none where it is the header again.
fn csv_content(cells: &Cells, columns: &Columns) -> Result<Option<Content>, String> {
    if cells.len() != columns.count() {
        let cells_counted = counted(cells.len() as u64, "cell");
        return Err(format!("has {cells_counted}, and the header has {}{}", columns.count(), cells.span()));
    }
    if columns.is_header(cells.iter()) {
        return Ok(None);
    }
    let texts = cells.iter().map(|cell| std::str::from_utf8(cell).map_err(|_| "is not UTF-8: save the file as UTF-8"));
    columns.content(texts).map(Some)
}
