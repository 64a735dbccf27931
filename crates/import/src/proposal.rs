//! The options that bring in the most rows of a file without guessing. Reads the file several times, and sends nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Write as _, stderr, stdout};

use anyhow::Context;
use intake_domain::Field;
use intake_domain::conversions::{Conversion, DateForm, is_placeholder, trimmed};

use crate::arguments::{Arguments, Comma, Held, Mapping, Setting};
use crate::check::now;
use crate::convert::How;
use crate::counted::counted;
use crate::date_forms::{DateForms, Majority, until};
use crate::header_row::header;
use crate::headers::{left_out, meant, options, quoted, suggested};
use crate::rows::Rows;
use crate::suspicions::LOOK;
use crate::trial::Trial;
use crate::workbook::SERIALS;

/// Options, and what they would do.
pub(crate) struct Proposal {
    arguments: Arguments,
    dates: Vec<String>,
    /// The form of most dates, the options with it alone, and how many rows these would bring in.
    alone: Option<(DateForm, Arguments, u64)>,
    /// Forms of dates with years of two digits.
    short_dates: Vec<DateForm>,
    /// Facts that only people know of the file, and how many rows each would bring.
    advice: Vec<String>,
    trial: Trial,
}

impl Proposal {
    pub(crate) fn make(arguments: &Arguments) -> anyhow::Result<Self> {
        let mut arguments = arguments.clone();
        let Some(header) = header(&mut arguments)? else { return Self::with_columns(&arguments)?.advising(arguments) };
        let header: Vec<_> = header.iter().map(String::as_str).collect();
        let given = arguments.map.len();
        arguments.map.extend(suggested(&header, &arguments.map));
        Self::with_columns(&arguments)?.with_other_columns(&arguments, given)?.advising(arguments)
    }

    /// The better of these and of other columns, where the mappings behind the given ones leave a choice.
    fn with_other_columns(mut self, arguments: &Arguments, given: usize) -> anyhow::Result<Self> {
        // Another column may hold the same field, and more of it: a mobile number instead of one at home.
        for left_out in given..arguments.map.len() {
            let mut other = self.arguments.map.clone();
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
                Ok(other) if other.trial.valid > self.trial.valid => self = other,
                // The column may be of a field that a header names exactly.
                _ => {}
            }
        }
        // And who has no mobile number may have one at home.
        for other in given..arguments.map.len() {
            let Some((map, is_first)) = with_other_phone(&self.arguments.map, other) else { continue };
            let other = Self::with_columns(&Arguments { map, ..arguments.clone() })?;
            if other.trial.valid > self.trial.valid || is_first && other.trial.valid == self.trial.valid {
                self = other;
            }
        }
        Ok(self)
    }

    /// Adds what only people know, and how many rows would arrive if it were so.
    fn advising(mut self, arguments: Arguments) -> anyhow::Result<Self> {
        let given = Arguments { map: self.arguments.map.clone(), ..arguments };
        let (last, mut cases) = (now().year(), Vec::new());
        if given.map.iter().any(|mapping| mapping.held == Held::Names) {
            let meant = "each name without a comma begins with the first name".to_owned();
            let other = Arguments { first_name_first: true, ..given.clone() };
            cases.push((meant, "--first-name-first".to_owned(), other));
        }
        if !self.short_dates.is_empty() {
            let short: Vec<_> = self.short_dates.iter().filter_map(|form| until(last, form)).collect();
            let options: Vec<_> = short.iter().map(|form| format!("--date-format {}", quoted(form.as_str()))).collect();
            let date_format = [&given.date_format[..], &short].concat();
            let meant = format!("years of two digits are {} to {last}", last - 99);
            cases.push((meant, options.join(" "), Arguments { date_format, ..given }));
        }
        for (meant, options, arguments) in cases {
            let (rows, valid) = (Self::with_columns(&arguments)?.trial.valid, self.trial.valid);
            if rows > valid {
                let would = format!("{rows} would arrive, instead of {valid}");
                self.advice.push(format!("if {meant}, {would}: propose again with {options}"));
            }
        }
        Ok(self)
    }

    /// The best options for these columns.
    fn with_columns(arguments: &Arguments) -> anyhow::Result<Self> {
        let Evidence { words, forms, serial, comma } = Evidence::read(arguments)?;
        let mut proposed = Arguments { comma, ..arguments.clone() };
        proposed.empty.extend(words.into_iter().filter(|word| !arguments.empty.contains(word)));
        proposed.date_format.extend(forms.proved().into_iter().filter(|form| !arguments.date_format.contains(form)));
        let all = Arguments {
            trim: true,
            one_line: true,
            plain_quotes: true,
            drop_titles: true,
            drop_nicknames: true,
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
            || comma.is_some()
                && Trial::run(&Arguments { plain_quotes: arguments.plain_quotes, ..all.clone() })?.valid < valid;
        proposed.drop_titles |= is_used(&[How::TitleDropped]);
        proposed.drop_nicknames |= is_used(&[How::NicknameDropped]);
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
        let (trial, dates, short_dates) = (Trial::run(&proposed)?, forms.notes(serial), forms.short());
        Ok(Self { trial, dates, alone, short_dates, advice: Vec::new(), arguments: proposed })
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
        for line in left_out(&self.arguments.map).iter().chain(&self.trial.repeated_headers) {
            writeln!(text, "{line}")?;
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
        for advice in &self.advice {
            writeln!(text, "{advice}")?;
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
            (self.drop_nicknames, "--drop-nicknames"),
            (self.first_name_first, "--first-name-first"),
            (self.australian_phones, "--australian-phones"),
            (self.australian_places, "--australian-places"),
        ];
        words.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned()));
        words.extend(Some(options(map)).filter(|maps| !maps.is_empty()));
        words.join(" ")
    }
}

/// The mappings with another column of phone numbers, and whether it is read first, as a mobile number is.
fn with_other_phone(mappings: &[Mapping], other: usize) -> Option<(Vec<Mapping>, bool)> {
    let mut map = mappings.to_vec();
    let phone = Held::Field(Field::PhoneNumber);
    let is_mobile = |mapping: &Mapping| ["mob", "cell"].iter().any(|word| mapping.header.to_lowercase().contains(word));
    let main = map.iter_mut().find(|mapping| mapping.held == phone).filter(|main| !is_mobile(main));
    let is_free = |mapping: &&Mapping| mapping.held == Held::Nothing && meant(&mapping.header) == Some(phone);
    let is_first = is_mobile(mappings.get(other).filter(is_free)?) && main.is_some();
    main.into_iter().filter(|_| is_first).for_each(|main| main.held = Held::OtherPhone);
    map.get_mut(other)?.held = if is_first { phone } else { Held::OtherPhone };
    Some((map, is_first))
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
    /// Order of the names without a comma, where a column holds both names.
    comma: Option<Comma>,
}

impl Evidence {
    fn read(arguments: &Arguments) -> anyhow::Result<Self> {
        let (mut words, mut forms) = (BTreeSet::new(), DateForms::beside(&arguments.date_format));
        let mut rows = Rows::of(arguments)?;
        while let Some(row) = rows.next()? {
            let Ok((texts, _)) = row.content else { continue };
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
        let (serial, comma) = (rows.serial().unwrap_or(SERIALS[0]), rows.comma());
        Ok(Self { words, forms, serial, comma })
    }
}
