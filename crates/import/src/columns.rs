//! Which field of a patient each column of a CSV file holds.

use anyhow::{Context, anyhow, bail};
use intake_domain::conversions::{Conversion, is_placeholder, trimmed};
use intake_domain::{Field, UnknownField};

use crate::arguments::{Arguments, Held, Mapping, header_in_one_line};
use crate::convert::{Change, How, Texts};
use crate::headers::{OF_THE_REGISTER, options, suggested};
use crate::names::{Splitting, split};
use crate::strict_csv::{Broken, Cells, Fault};

/// Mark of a text that a spreadsheet would take for a formula, in the files of `intake export`.
const NO_FORMULA: char = '\'';

/// Other characters that may stand between cells: the character, how it is written for `--delimiter`, and its
/// name.
pub(crate) const OTHER_DELIMITERS: [(char, &str, &str); 4] =
    [(';', ";", "semicolons"), ('\t', "\\t", "tabs"), ('|', "|", "vertical bars"), (',', ",", "commas")];

/// Texts of a row, and those that are not the content of a cell in a column of their own.
pub(crate) type Content = (Texts, Vec<Change>);

/// The columns of a file.
#[derive(Debug)]
pub(crate) struct Columns {
    header: Vec<String>,
    held: Vec<Held>,
    /// Words that stand for no value.
    empty: Vec<String>,
    /// True if `intake export` has written the file, which marks texts that a spreadsheet would take for formulas.
    pub(crate) are_exported: bool,
    pub(crate) splitting: Splitting,
}

impl Columns {
    /// Reads the header. A column that is no field is a fault, so that nothing is left out by mistake; all faults are
    /// reported.
    pub(crate) fn read(header: &[&str], arguments: &Arguments) -> anyhow::Result<Self> {
        let mappings = &arguments.map;
        if let Some(unused) = mappings.iter().find(|mapping| !header.contains(&mapping.header.as_str())) {
            bail!("--map: there is no column {:?}", unused.header);
        }
        let (mut held, mut faults) = (Vec::new(), Vec::new());
        for name in header {
            let mapping = mappings.iter().find(|mapping| mapping.header == *name);
            held.push(match mapping {
                Some(mapping) => mapping.held,
                None if OF_THE_REGISTER.contains(name) => Held::Nothing,
                None => match name.parse() {
                    Ok(field) => Held::Field(field),
                    Err(unknown) => {
                        faults.push(format!("the column {name:?} {}", UnknownField::message(&unknown)));
                        Held::Nothing
                    }
                },
            });
        }
        for field in Field::ALL.iter().copied() {
            let columns = held.iter().filter(|held| held.holds(field)).count();
            let is_set = arguments.set.iter().any(|setting| setting.field == field);
            if columns > 1 {
                faults.push(format!("two columns hold {}: leave one out with --map", field.name()));
            } else if columns == 0 && field.definition().is_required && !is_set {
                let name = field.name();
                faults.push(format!("no column holds {name}: name it with --map \"HEADER={name}\""));
            }
        }
        if held.iter().filter(|held| **held == Held::StreetNumber).count() > 1 {
            faults.push("two columns hold the street's number: leave one out with --map".to_owned());
        }
        if !faults.is_empty() {
            faults.extend(advice(header, arguments, &held));
            let lines = faults.into_iter();
            bail!("the header does not fit:{}", lines.map(|line| format!("\n  {line}")).collect::<String>());
        }
        let are_exported = OF_THE_REGISTER.iter().all(|name| header.contains(name)) && mappings.is_empty();
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Ok(Self { header, held, empty: arguments.empty.clone(), are_exported, splitting: Splitting::of(arguments) })
    }

    /// Returns how many columns there are.
    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    /// The place of the column that holds both names.
    pub(crate) fn names(&self) -> Option<usize> {
        self.held.iter().position(|held| *held == Held::Names)
    }

    /// Returns whether the row is the header again, as where pages of a list were joined.
    pub(crate) fn is_header<'a>(&self, cells: impl Iterator<Item = &'a [u8]>) -> bool {
        let cells = cells.map(|cell| header_in_one_line(&String::from_utf8_lossy(cell)));
        cells.eq(self.header.iter().map(String::as_str))
    }

    /// The content of a row, from its cells in the order of the columns, or why one of them cannot be read.
    pub(crate) fn content<'a>(&self, cells: impl Iterator<Item = Result<&'a str, &'a str>>) -> Result<Content, String> {
        let (mut texts, mut changes, mut others, mut number) = (Texts::default(), Vec::new(), Vec::new(), None);
        for (held, cell) in self.held.iter().zip(cells) {
            match (held, cell) {
                (Held::Nothing, _) | (_, Ok("")) => {}
                (Held::Field(field), Ok(cell)) => {
                    let text = if self.are_exported { cell.strip_prefix(NO_FORMULA).unwrap_or(cell) } else { cell };
                    texts[*field] = Some(text.to_owned());
                }
                (Held::Names, Ok(cell)) => {
                    let [first, last] = split(cell, self.splitting)?;
                    texts[Field::FirstName] = Some(first);
                    texts[Field::LastName] = Some(last);
                    changes.extend([Field::FirstName, Field::LastName].map(|field| Change { field, how: How::Split }));
                }
                (Held::OtherPhone, Ok(cell)) => others.push(cell),
                (Held::StreetNumber, Ok(cell)) => number = Some(cell),
                (Held::Field(field), Err(why)) => return Err(format!("{} {why}", field.name())),
                (Held::OtherPhone, Err(why)) => return Err(format!("the other phone number {why}")),
                (Held::StreetNumber, Err(why)) => return Err(format!("the street's number {why}")),
                (Held::Names, Err(why)) => return Err(format!("the column of both names {why}")),
            }
        }
        let is_blank =
            |text: &String| trimmed(text) == Conversion::Converted(String::new()) || self.empty.contains(text);
        for other in others {
            let number = &mut texts[Field::PhoneNumber];
            if number.as_ref().is_none_or(is_blank) {
                *number = Some(other.to_owned());
                changes.push(Change { field: Field::PhoneNumber, how: How::Elsewhere });
            }
        }
        if let Some(number) = number.map(str::to_owned).filter(|number| !is_blank(number) && !is_placeholder(number)) {
            let street = texts[Field::AddressLine1].take().filter(|street| !is_blank(street));
            texts[Field::AddressLine1] = Some(street.map_or(number.clone(), |street| format!("{number} {street}")));
            changes.push(Change { field: Field::AddressLine1, how: How::Numbered });
        }
        Ok((texts, changes))
    }
}

/// Returns what to do about a header that does not fit. A column that nobody can name is left out only where the others
/// hold what every patient needs.
fn advice(header: &[&str], arguments: &Arguments, held: &[Held]) -> Vec<String> {
    let suggested = suggested(header, &arguments.map);
    let (unknown, named): (Vec<_>, Vec<_>) = suggested.iter().partition(|mapping| mapping.held == Held::Nothing);
    let is_there = |field: Field| {
        let is_set = arguments.set.iter().any(|setting| setting.field == field);
        is_set || held.iter().chain(named.iter().map(|mapping| &mapping.held)).any(|held| held.holds(field))
    };
    let required = Field::ALL.iter().copied().filter(|field| field.definition().is_required);
    let missing: Vec<_> = required.filter(|field| !is_there(*field)).map(Field::name).collect();
    let ready = |mappings: &[Mapping]| format!("to begin with: {}", options(mappings));
    let owned = |mappings: &[&Mapping]| mappings.iter().map(|mapping| (*mapping).clone()).collect::<Vec<_>>();
    if missing.is_empty() {
        return (!suggested.is_empty()).then(|| ready(&suggested)).into_iter().collect();
    }
    let named_alone = (!named.is_empty()).then(|| ready(&owned(&named)));
    let left_out = arguments.map.iter().filter(|mapping| mapping.held == Held::Nothing);
    let unknown: Vec<_> = left_out.chain(unknown).map(|mapping| format!("{:?}", mapping.header)).collect();
    let is_any_known = !named.is_empty() || held.iter().any(|held| *held != Held::Nothing);
    let other = if !is_any_known {
        Some("if the header is further down, name its row with --header-row".to_owned())
    } else {
        (!unknown.is_empty()).then(|| format!("one of these may hold {}: {}", missing.join(" or "), unknown.join(", ")))
    };
    named_alone.into_iter().chain(other).collect()
}

/// The header of a CSV file.
pub(crate) fn csv_header(header: Result<&Cells, Broken>) -> anyhow::Result<Vec<String>> {
    let cells = header.map_err(|broken| {
        anyhow!("the header cannot be read: {}", delimiter_hint(&broken).unwrap_or(broken.to_string()))
    })?;
    let texts = cells.iter().map(std::str::from_utf8);
    let header = texts.collect::<Result<Vec<_>, _>>().context("the header is not UTF-8: save the file as UTF-8")?;
    if let [only] = header.as_slice()
        && let Some(hint) = OTHER_DELIMITERS.iter().find(|(character, ..)| only.contains(*character)).map(say_delimiter)
    {
        bail!("the header has one cell: {hint}");
    }
    Ok(header.into_iter().map(header_in_one_line).collect())
}

/// Returns what to do about a header whose first quoted cell is not followed by the delimiter but by another one.
fn delimiter_hint(broken: &Broken) -> Option<String> {
    let Fault::TextAfterQuote { text, .. } = broken.fault else { return None };
    OTHER_DELIMITERS.iter().find(|(character, ..)| *character == char::from(text)).map(say_delimiter)
}

pub(crate) fn say_delimiter((_, written, noun): &(char, &str, &str)) -> String {
    format!("if {noun} stand between the cells, say so with --delimiter '{written}'")
}
