//! A sheet of an `.xlsx` or `.ods` file. Cells are read as people see them: days as `YYYY-MM-DD`, whole numbers without
//! a decimal point, and with the zeros that the format of a cell puts before them.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::vec::IntoIter;

use anyhow::{Context, anyhow, bail};
use calamine::{
    Data, DataType as _, Dimensions, ExcelDateTime, Ods, Reader, SheetVisible, StyleRange, Xlsx, open_workbook,
};

/// Ways in which spreadsheets count days.
pub(crate) const SERIALS: [&str; 2] = ["serial 1900", "serial 1904"];
/// Spreadsheets count the days before March 1900 wrongly.
const FIRST_DAY: f64 = 61.0;
/// Numbers up to here are exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The text of a cell, or why it has none.
pub(crate) type Cell = Result<String, &'static str>;

/// The rows of a sheet that are not blank.
pub(crate) struct Sheet {
    rows: IntoIter<(u64, Vec<Cell>)>,
    /// The number of its last row.
    pub(crate) size: u64,
    /// The form in which a bare number would be a day, if the file says so.
    pub(crate) serial: Option<&'static str>,
}

impl Sheet {
    /// Reads the sheet of this name, or the only visible one with content.
    pub(crate) fn read_xlsx(path: &Path, name: Option<&str>) -> anyhow::Result<Self> {
        let mut workbook: Xlsx<BufReader<File>> = open_workbook(path).map_err(unreadable)?;
        let name = chosen(&mut workbook, name)?;
        let merged = workbook.merge_cells_by_sheet_name(&name).map_err(unreadable)?;
        let styles = workbook.worksheet_style(&name).map_err(unreadable)?;
        let sheet = Self::read(&mut workbook, &name, &merged, &styles)?;
        let [from_1900, from_1904] = SERIALS;
        Ok(Self { serial: Some(if workbook.has_1904_epoch() { from_1904 } else { from_1900 }), ..sheet })
    }

    /// Reads the sheet of this name, or the only visible one with content.
    pub(crate) fn read_ods(path: &Path, name: Option<&str>) -> anyhow::Result<Self> {
        let mut workbook: Ods<BufReader<File>> = open_workbook(path).map_err(unreadable)?;
        let name = chosen(&mut workbook, name)?;
        Self::read(&mut workbook, &name, &[], &StyleRange::empty())
    }

    fn read<Book: Reader<BufReader<File>>>(
        workbook: &mut Book,
        name: &str,
        merged: &[Dimensions],
        styles: &StyleRange,
    ) -> anyhow::Result<Self>
    where
        Book::Error: std::fmt::Display,
    {
        let range = workbook.worksheet_range(name).map_err(unreadable)?;
        let formulas = workbook.worksheet_formula(name).map_err(unreadable)?;
        let (first_row, first_column) = range.start().context("the sheet is empty")?;
        let last = [range.end(), formulas.end()].into_iter().flatten();
        let (last_row, last_column) = last.fold((0, 0), |last, end| (last.0.max(end.0), last.1.max(end.1)));
        let read = |place: (u32, u32)| {
            let cell = range.get_value(place).unwrap_or(&Data::Empty);
            let has_formula = formulas.get_value(place).is_some_and(|formula| !formula.is_empty());
            let format = styles.get(place).and_then(|style| style.number_format.as_ref());
            if merged.iter().any(|merged| merged.contains(place.0, place.1)) {
                Err("is in a merged cell: unmerge it")
            } else if has_formula && cell.is_empty() {
                Err("is a formula without a value: open the file in a spreadsheet program and save it")
            } else {
                text(cell, format.map(|format| format.format_code.as_str()))
            }
        };
        let rows = (first_row..=last_row).map(|row| {
            let cells = (first_column..=last_column).map(|column| read((row, column)));
            (u64::from(row) + 1, cells.collect::<Vec<_>>())
        });
        let rows = rows.filter(|(_, cells)| cells.iter().any(|cell| cell.as_ref() != Ok(&String::new())));
        let rows: Vec<_> = rows.collect();
        Ok(Self { rows: rows.into_iter(), size: u64::from(last_row) + 1, serial: None })
    }

    /// The next row with its number; none after the last one.
    pub(crate) fn next(&mut self) -> Option<(u64, Vec<Cell>)> {
        self.rows.next()
    }
}

fn chosen<Book: Reader<BufReader<File>>>(workbook: &mut Book, wanted: Option<&str>) -> anyhow::Result<String>
where
    Book::Error: std::fmt::Display,
{
    let names = workbook.sheet_names();
    if let Some(wanted) = wanted {
        let found = names.iter().find(|name| *name == wanted).cloned();
        return found.with_context(|| format!("it has no sheet {wanted:?}: its sheets are {}", listed(&names)));
    }
    let sheets: Vec<_> = workbook.sheets_metadata().to_vec();
    let mut filled = Vec::new();
    for sheet in sheets.into_iter().filter(|sheet| sheet.visible == SheetVisible::Visible) {
        if !workbook.worksheet_range(&sheet.name).map_err(unreadable)?.is_empty() {
            filled.push(sheet.name);
        }
    }
    match filled.as_slice() {
        [only] => Ok(only.clone()),
        [] => bail!("the file is empty"),
        several => bail!("it has several sheets with content: name one of {} with --sheet", listed(several)),
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

fn unreadable(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("it cannot be read as a spreadsheet: {error}")
}

fn text(cell: &Data, format: Option<&str>) -> Cell {
    match cell {
        Data::Empty => Ok(String::new()),
        Data::String(text) => Ok(text.clone()),
        Data::Int(number) => Ok(number_as_shown(*number as f64, format)),
        Data::Float(number) => Ok(number_as_shown(*number, format)),
        Data::Bool(is_true) => Ok(if *is_true { "TRUE" } else { "FALSE" }.to_owned()),
        Data::DateTime(moment) => moment_as_text(*moment),
        Data::DateTimeIso(text) => Ok(text.strip_suffix("T00:00:00").unwrap_or(text).to_owned()),
        Data::DurationIso(_) => Err(NO_DAY),
        Data::Error(_) => Err("is an error of the spreadsheet, such as #N/A"),
    }
}

const NO_DAY: &str = "is a time, or a day before March 1900, which spreadsheets count wrongly: write it as text";

fn moment_as_text(moment: ExcelDateTime) -> Cell {
    if !moment.is_datetime() || moment.as_f64() < FIRST_DAY {
        return Err(NO_DAY);
    }
    let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
    let day = format!("{year:04}-{month:02}-{day:02}");
    Ok(if (hour, minute, second) == (0, 0, 0) { day } else { format!("{day}T{hour:02}:{minute:02}:{second:02}") })
}

fn number_as_shown(number: f64, format: Option<&str>) -> String {
    if number.fract() != 0.0 || number.abs() > EXACT_MAX {
        return number.to_string();
    }
    let digits = format!("{number:.0}");
    match format.map(|format| format.replace(['\\', '"'], "")) {
        Some(format) if number >= 0.0 && is_of_zeros(&format) => with_zeros(&digits, &format),
        _ => digits,
    }
}

/// Returns whether the format shows all digits of a number and adds zeros, such as `0000 000 000`.
fn is_of_zeros(format: &str) -> bool {
    format.contains("00") && format.chars().all(|character| "0 ()-+".contains(character))
}

fn with_zeros(digits: &str, format: &str) -> String {
    let places = format.matches('0').count();
    let padded = format!("{digits:0>places$}");
    // What does not fit stands before the first place.
    let (more, rest) = padded.split_at(padded.len() - places);
    let mut rest = rest.chars();
    let mut more = Some(more);
    let mut shown = String::new();
    for character in format.chars() {
        if character == '0' {
            shown.push_str(more.take().unwrap_or_default());
            shown.extend(rest.next());
        } else {
            shown.push(character);
        }
    }
    shown
}
