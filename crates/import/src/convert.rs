//! Values changed as the command line says. What cannot be read without guessing stays as it is, and the register's
//! rules refuse it.

use std::fmt;

use intake_domain::conversions::{Conversion, country, date, email, phone_number, state, trimmed, unquoted};
use intake_domain::{ByField, Field, FieldFault};

use crate::arguments::{Arguments, Setting};
use crate::names::{without_nickname, without_title};

/// Texts of a row for each field; none where it has nothing.
pub(crate) type Texts = ByField<Option<String>>;

/// A value that was changed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) field: Field,
    pub(crate) how: How,
}

/// Ways in which a value is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Split,
    /// Taken from another column.
    Elsewhere,
    /// Put together of two columns.
    Numbered,
    Trimmed,
    Joined,
    Unquoted,
    TitleDropped,
    NicknameDropped,
    /// Left out, because there was nothing to see.
    Blanked,
    /// Left out, because of the word that it was.
    Emptied,
    DateRewritten,
    PhoneRewritten,
    PlaceRewritten,
    Set,
    /// Left out, because of this fault.
    Dropped(FieldFault),
}

/// The conversions in their order. Each takes what the one before it made.
const CONVERSIONS: [How; 9] = [
    How::Trimmed,
    How::Joined,
    How::Unquoted,
    How::TitleDropped,
    How::NicknameDropped,
    How::Emptied,
    How::DateRewritten,
    How::PhoneRewritten,
    How::PlaceRewritten,
];

/// Changes the texts of a row, and names each change.
pub(crate) fn convert(arguments: &Arguments, texts: &mut Texts) -> Vec<Change> {
    let mut changes = Vec::new();
    for &field in Field::ALL {
        for how in CONVERSIONS {
            let Some(text) = &texts[field] else { break };
            if let Conversion::Converted(text) = converted(arguments, field, how, text) {
                let how = if how == How::Trimmed && text.is_empty() { How::Blanked } else { how };
                texts[field] = Some(text).filter(|text| !text.is_empty());
                changes.push(Change { field, how });
            }
        }
    }
    for Setting { field, value } in &arguments.set {
        if texts[*field].as_ref() != Some(value) {
            texts[*field] = Some(value.clone());
            changes.push(Change { field: *field, how: How::Set });
        }
    }
    changes
}

fn converted(arguments: &Arguments, field: Field, how: How, text: &str) -> Conversion {
    match (how, field) {
        (How::Trimmed, _) if arguments.trim => trimmed(text),
        (How::Joined, Field::AddressLine1 | Field::AddressLine2) if arguments.one_line => joined(text),
        (How::Unquoted, Field::FirstName | Field::LastName) if arguments.plain_quotes => {
            more_than_trimmed(text, unquoted)
        }
        (How::Unquoted, Field::Email) if arguments.plain_quotes => more_than_trimmed(text, email),
        (How::TitleDropped, Field::FirstName) if arguments.drop_titles => {
            without_title(text).map_or(Conversion::Unchanged, |name| Conversion::Converted(name.to_owned()))
        }
        (How::NicknameDropped, Field::FirstName) if arguments.drop_nicknames => {
            without_nickname(text).map_or(Conversion::Unchanged, |name| Conversion::Converted(name.to_owned()))
        }
        (How::Emptied, _) if arguments.empty.iter().any(|word| word == text) => Conversion::Converted(String::new()),
        (How::DateRewritten, Field::DateOfBirth) if !arguments.date_format.is_empty() => {
            date(text, &arguments.date_format)
        }
        (How::PhoneRewritten, Field::PhoneNumber) if arguments.australian_phones => phone_number(text),
        (How::PlaceRewritten, Field::Country) if arguments.australian_places => country(text),
        (How::PlaceRewritten, Field::State) if arguments.australian_places => state(text),
        _ => Conversion::Unchanged,
    }
}

/// The lines of an address, one after the other.
fn joined(text: &str) -> Conversion {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.len() > 1 { Conversion::Converted(lines.join(", ")) } else { Conversion::Unchanged }
}

/// The conversion, unless it only removes outer spaces, for which there is an option.
fn more_than_trimmed(text: &str, conversion: fn(&str) -> Conversion) -> Conversion {
    let converted = conversion(text);
    if converted == trimmed(text) { Conversion::Unchanged } else { converted }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            How::Split => "split from a column of both names",
            How::Elsewhere => "taken from another column, because its own is blank",
            How::Numbered => "prefixed with the number of another column",
            How::Trimmed => "spaces at its ends removed",
            How::Joined => "line breaks replaced by commas",
            How::Unquoted if self.field == Field::Email => "typographic apostrophe replaced",
            How::Unquoted => "quotes round it removed",
            How::TitleDropped => "title before it left out",
            How::NicknameDropped => "name in brackets after it left out",
            How::Blanked => "left empty, because it was blank",
            How::Emptied => "left empty, because its text stands for no value",
            How::DateRewritten => "rewritten as YYYY-MM-DD",
            How::PhoneRewritten => "rewritten as E.164",
            How::PlaceRewritten => "rewritten as its code",
            How::Set => "set for all rows",
            How::Dropped(fault) => return write!(f, "{}: dropped, because it {}", self.field.name(), fault.kind),
        };
        write!(f, "{}: {how}", self.field.name())
    }
}
