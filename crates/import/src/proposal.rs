//! The options that bring in the most rows of a file without guessing. Reads the file several times, and sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Write as _, stderr, stdout};

use anyhow::Context;
use intake_domain::Field;
use intake_domain::conversions::{Conversion, DateForm, is_placeholder, trimmed};

use crate::arguments::{Arguments, Held, Setting};
use crate::check::Checker;
use crate::columns::Texts;
use crate::convert::How;
use crate::counted::counted;
use crate::date_forms::{DateForms, Majority};
use crate::header_row::header;
use crate::headers::{left_out, meant, options, quoted, suggested};
use crate::rows::Rows;
use crate::suspicions::LOOK;
use crate::tally::Tally;
use crate::workbook::SERIALS;

/// The rows that show which part of a name is taken for the last name.
const NAMES_SHOWN: usize = 3;

/// Options, and what they would do.
pub(crate) struct Proposal {
    arguments: Arguments,
    dates: Vec<String>,
    /// The form of most dates, the options with it alone, and how many rows these would bring in.
    alone: Option<(DateForm, Arguments, u64)>,
    /// Number of rows that would arrive if each name without a comma began with the first name.
    first_name_first: Option<u64>,
    trial: Trial,
}

/// Outcome of a check with some options.
#[derive(Default)]
struct Trial {
    rows: u64,
    valid: u64,
    /// Ways in which values of valid rows were changed.
    used: Vec<(Field, How)>,
    changes: Tally,
    /// The first and the last name of the first rows whose names were split.
    names: Vec<String>,
    /// For each change the first row, the value before it and the one that is sent.
    examples: BTreeMap<String, (u64, String, Option<String>)>,
    faults: Tally,
    suspicions: Tally,
}

impl Proposal {
    pub(crate) fn make(arguments: &Arguments) -> anyhow::Result<Self> {
        let mut arguments = arguments.clone();
        let Some(header) = header(&mut arguments)? else { return Self::with_columns(&arguments) };
        let header: Vec<_> = header.iter().map(String::as_str).collect();
        let given = arguments.map.len();
        arguments.map.extend(suggested(&header, &arguments.map));
        let mut best = Self::with_columns(&arguments)?;
        // Another column may hold the same field, and more of it: a mobile number instead of one at home.
        for left_out in given..arguments.map.len() {
            let mut other = best.arguments.map.clone();
            let Some(Held::Field(field)) = other.get(left_out).and_then(|mapping| meant(&mapping.header)) else {
                continue;
            };
            for mapping in other.iter_mut().skip(given).filter(|mapping| mapping.held.holds(field)) {
                mapping.held = Held::Nothing;
            }
            if let Some(mapping) = other.get_mut(left_out) {
                mapping.held = Held::Field(field);
            }
            let other = Arguments { map: other, ..arguments.clone() };
            match Self::with_columns(&other) {
                Ok(other) if other.trial.valid > best.trial.valid => best = other,
                // The column may be of a field that a header names exactly.
                _ => {}
            }
        }
        if best.arguments.map.iter().any(|mapping| mapping.held == Held::Names) {
            let other = Arguments { map: best.arguments.map.clone(), first_name_first: true, ..arguments };
            best.first_name_first =
                Some(Self::with_columns(&other)?.trial.valid).filter(|valid| *valid > best.trial.valid);
        }
        Ok(best)
    }

    /// The best options for these columns.
    fn with_columns(arguments: &Arguments) -> anyhow::Result<Self> {
        let Evidence { words, forms, serial } = Evidence::read(arguments)?;
        let mut proposed = arguments.clone();
        proposed.empty.extend(words.into_iter().filter(|word| !arguments.empty.contains(word)));
        proposed.date_format.extend(forms.proved().into_iter().filter(|form| !arguments.date_format.contains(form)));
        let all = Arguments {
            trim: true,
            one_line: true,
            plain_quotes: true,
            drop_titles: true,
            australian_phones: true,
            australian_places: true,
            drop_invalid: Field::ALL.iter().copied().filter(is_droppable).collect(),
            ..proposed.clone()
        };
        let Trial { used, valid, .. } = Trial::run(&all)?;
        let is_used = |wanted: &[How]| used.iter().any(|(_, how)| wanted.contains(how));
        proposed.trim |= is_used(&[How::Trimmed, How::Blanked]);
        proposed.one_line |= is_used(&[How::Joined]);
        // In a column of both names, quotes keep a name from being split.
        proposed.plain_quotes |= is_used(&[How::Unquoted])
            || Trial::run(&Arguments { plain_quotes: arguments.plain_quotes, ..all.clone() })?.valid < valid;
        proposed.drop_titles |= is_used(&[How::TitleDropped]);
        proposed.australian_phones |= is_used(&[How::PhoneRewritten]);
        proposed.australian_places |= is_used(&[How::PlaceRewritten]);
        let dropped =
            |field: &Field| used.iter().any(|(dropped, how)| dropped == field && matches!(how, How::Dropped(_)));
        proposed.drop_invalid = all
            .drop_invalid
            .into_iter()
            .filter(|field| arguments.drop_invalid.contains(field) || dropped(field))
            .collect();
        let alone = forms.majority().map(|majority| alone(majority, &proposed)).transpose()?;
        let (trial, dates) = (Trial::run(&proposed)?, forms.notes(serial));
        Ok(Self { trial, dates, alone, first_name_first: None, arguments: proposed })
    }

    /// Prints the options as the last line of standard output, and the rest on standard error.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        let Trial { rows, valid, changes, names, examples, faults, suspicions, .. } = &self.trial;
        let mut text = format!(
            "{}: {valid} would arrive, {} stay refused; nothing was sent\n",
            counted(*rows, "row"),
            rows - valid
        );
        if let Some(row) = self.arguments.header_row {
            writeln!(text, "the header is row {row}: nothing above it is imported")?;
        }
        if let Some(left_out) = left_out(&self.arguments.map) {
            writeln!(text, "{left_out}")?;
        }
        let examples = examples.iter().map(|(change, (row, before, after))| {
            let after = after.as_ref().map_or("nothing".to_owned(), |after| format!("{after:?}"));
            format!("  row {row}: {} {before:?} becomes {after}", change.split(':').next().unwrap_or_default())
        });
        let examples: Vec<_> = examples.collect();
        let dates: Vec<_> = self.dates.iter().map(|note| format!("  {note}")).collect();
        let titled =
            |title: &str, lines: &[String]| (!lines.is_empty()).then(|| format!("{title}:\n{}", lines.join("\n")));
        let sections = [
            changes.section("changed by the options", 1),
            titled("for example", &examples),
            titled("names as they would be split, for example", names),
            titled("dates", &dates),
            faults.section("refused, by reason", 1),
            suspicions.section(LOOK, 1),
        ];
        for section in sections.into_iter().flatten() {
            writeln!(text, "{section}")?;
        }
        let command =
            format!("intake-import {} --check --report check.csv", quoted(&self.arguments.file.to_string_lossy()));
        if let Some((form, arguments, rows)) = &self.alone {
            let (meant, options) = (format!("if {} is meant in every row", form.as_str()), arguments.options());
            writeln!(text, "{meant}, {rows} would arrive, instead of {valid}:\n{command} {options}")?;
        }
        if let Some(rows) = self.first_name_first {
            let named = "if each name without a comma begins with the first name";
            writeln!(text, "{named}, {rows} would arrive, instead of {valid}: propose again with --first-name-first")?;
        }
        writeln!(text, "the command that checks each row with the proposed options, and then the options alone:")?;
        let told = write!(stderr(), "{text}");
        let options = self.arguments.options();
        writeln!(stdout(), "{command} {options}\n{options}").context("the options cannot be printed")?;
        told.context("standard error cannot be written")
    }
}

impl Arguments {
    /// The options as a shell takes them.
    fn options(&self) -> String {
        let Self { delimiter, sheet, header_row, map, empty, date_format, set, drop_invalid, .. } = self;
        let mut words = Vec::new();
        let mut with = |option: &str, value: &str| words.push(format!("{option} {}", quoted(value)));
        match delimiter {
            b',' => {}
            b'\t' => with("--delimiter", "\\t"),
            other => with("--delimiter", &char::from(*other).to_string()),
        }
        sheet.iter().for_each(|sheet| with("--sheet", sheet));
        header_row.iter().for_each(|row| with("--header-row", &row.to_string()));
        empty.iter().for_each(|word| with("--empty", word));
        date_format.iter().for_each(|form| with("--date-format", form.as_str()));
        set.iter().for_each(|Setting { field, value }| with("--set", &format!("{}={value}", field.name())));
        if !drop_invalid.is_empty() {
            with("--drop-invalid", &drop_invalid.iter().map(|field| field.name()).collect::<Vec<_>>().join(","));
        }
        let flags = [
            (self.trim, "--trim"),
            (self.one_line, "--one-line"),
            (self.plain_quotes, "--plain-quotes"),
            (self.drop_titles, "--drop-titles"),
            (self.first_name_first, "--first-name-first"),
            (self.australian_phones, "--australian-phones"),
            (self.australian_places, "--australian-places"),
        ];
        words.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned()));
        words.extend(Some(options(map)).filter(|maps| !maps.is_empty()));
        words.join(" ")
    }
}

/// Without its country, an address abroad would look like an Australian one.
fn is_droppable(field: &Field) -> bool {
    !field.definition().is_required && *field != Field::Country
}

/// The options with the form of most dates alone, and how many rows they would bring in.
fn alone(majority: Majority, proposed: &Arguments) -> anyhow::Result<(DateForm, Arguments, u64)> {
    let mut arguments = proposed.clone();
    arguments.date_format.retain(|form| !majority.others.contains(form));
    let rows = Trial::run(&arguments)?.valid;
    Ok((majority.form, arguments, rows))
}

/// Facts that the file itself shows.
struct Evidence {
    /// Words that stand for no value.
    words: BTreeSet<String>,
    forms: DateForms,
    /// The form in which a bare number would be a day.
    serial: &'static str,
}

impl Evidence {
    fn read(arguments: &Arguments) -> anyhow::Result<Self> {
        let (mut words, mut forms) = (BTreeSet::new(), DateForms::beside(&arguments.date_format));
        let mut rows = Rows::of(arguments)?;
        while let Some(row) = rows.next()? {
            let Ok(texts) = row.texts else { continue };
            for &field in Field::ALL {
                let Some(text) = &texts[field] else { continue };
                let text = if let Conversion::Converted(text) = trimmed(text) { text } else { text.clone() };
                if field == Field::DateOfBirth {
                    forms.note(row.number, &text);
                }
                if !text.is_empty() && is_placeholder(&text) {
                    words.insert(text);
                }
            }
        }
        Ok(Self { words, forms, serial: rows.serial().unwrap_or(SERIALS[0]) })
    }
}

impl Trial {
    fn run(arguments: &Arguments) -> anyhow::Result<Self> {
        let (mut trial, mut rows, mut checker) =
            (Self::default(), Rows::of(arguments)?, Checker::new(arguments, None)?);
        while let Some(row) = rows.next()? {
            let before = row.texts.as_ref().ok().cloned();
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
        Ok(trial)
    }
}
