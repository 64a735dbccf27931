//! The command line of `intake-import`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use intake_domain::conversions::DateForm;
use intake_domain::{Field, UnknownField};

/// Number of requests that may be under way at a time: the report is read with this in mind.
pub(crate) const IN_FLIGHT_MAX: u16 = 256;

/// Import patients from a file. Safe to run again: each row is created once.
#[derive(Clone, Parser)]
#[command(name = "intake-import", version)]
pub(crate) struct Arguments {
    /// .csv, .xlsx or .ods file with a header, or .jsonl file, in UTF-8
    pub(crate) file: PathBuf,
    /// URL of the service, which begins with `https://`
    #[arg(long, required_unless_present_any = ["check", "propose"])]
    pub(crate) url: Option<String>,
    /// File that contains an API key and nothing else
    #[arg(long, value_name = "FILE", required_unless_present_any = ["check", "propose"])]
    pub(crate) key_file: Option<PathBuf>,
    /// Check all rows and send nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Send nothing; print options that bring in most rows without guessing
    #[arg(long, conflicts_with = "check")]
    pub(crate) propose: bool,
    /// Field of a column with another header: "HEADER=" for none, "HEADER=firstName+lastName" for both, "HEADER=before
    /// addressLine1" for a street's number, "HEADER=else phoneNumber" where phoneNumber is blank
    #[arg(long, value_name = "HEADER=field")]
    pub(crate) map: Vec<Mapping>,
    /// Format of dates besides YYYY-MM-DD, such as DD/MM/YYYY, D-MMM-YYYY, "D/M/YY from 1926" or "serial 1900"; 3rd,
    /// "of" and weekdays are read, too
    #[arg(long, value_name = "FORMAT")]
    pub(crate) date_format: Vec<DateForm>,
    /// Remove spaces and invisible marks at the ends of values
    #[arg(long)]
    pub(crate) trim: bool,
    /// Join the lines of an address with commas
    #[arg(long)]
    pub(crate) one_line: bool,
    /// Remove quotes round a name; write ’ in an email address as '
    #[arg(long)]
    pub(crate) plain_quotes: bool,
    /// Leave out a title before a first name, such as Mr or Dr
    #[arg(long)]
    pub(crate) drop_titles: bool,
    /// Leave out a name in brackets after a first name, such as (Bob)
    #[arg(long)]
    pub(crate) drop_nicknames: bool,
    /// Read names without a comma as first and last name, in any column
    #[arg(long)]
    pub(crate) first_name_first: bool,
    /// Text that means no value, exactly as in the file, such as N/A
    #[arg(long, value_name = "WORD")]
    pub(crate) empty: Vec<String>,
    /// Rewrite Australian phone numbers as +61…; remove spaces from others
    #[arg(long)]
    pub(crate) australian_phones: bool,
    /// Rewrite Australia as AU, and names of states as NSW, VIC and so on
    #[arg(long)]
    pub(crate) australian_places: bool,
    /// Value of a field for all rows, such as country=AU
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<Setting>,
    /// Leave out invalid values of these optional fields
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',', value_parser = optional_field)]
    pub(crate) drop_invalid: Vec<Field>,
    /// Sheet of an .xlsx or .ods file, if several have content
    #[arg(long, value_name = "NAME")]
    pub(crate) sheet: Option<String>,
    /// Row that holds the header, as a spreadsheet program counts
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) header_row: Option<u64>,
    /// Column separator of a .csv file
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: u8,
    /// CSV file for the report: ids of created rows, reasons of others
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Continue a report of another key of the same organisation
    #[arg(long, requires = "report")]
    pub(crate) key_replaced: bool,
    /// Name of this import, whose rows are created once
    #[arg(long, value_name = "NAME", default_value = "import")]
    pub(crate) run: String,
    /// Number of requests sent at a time
    #[arg(long, value_name = "NUMBER", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=i64::from(IN_FLIGHT_MAX)))]
    pub(crate) in_flight: u16,
    /// Trust only the certificate authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Found once for a proposal, which reads the file several times.
    #[arg(skip)]
    pub(crate) comma: Option<Comma>,
}

/// Which field a column holds.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) header: String,
    pub(crate) held: Held,
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Nothing that is imported.
    Nothing,
    Field(Field),
    /// A phone number for patients whose own column of numbers is blank.
    OtherPhone,
    /// The number of the street.
    StreetNumber,
    /// The first and the last name.
    Names,
}

impl Held {
    pub(crate) fn holds(self, field: Field) -> bool {
        match self {
            Self::Nothing | Self::OtherPhone | Self::StreetNumber => false,
            Self::Field(held) => held == field,
            Self::Names => [Field::FirstName, Field::LastName].contains(&field),
        }
    }
}

/// A value for all rows.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) field: Field,
    pub(crate) value: String,
}

/// Name of a column of both names, for `--map`.
pub(crate) const NAMES: &str = "firstName+lastName";
/// Name of another column of phone numbers, for `--map`. No other field has one: a placeholder such as "N/A" is no
/// number, so no row was created with it before the option `--empty` was given.
pub(crate) const OTHER_PHONE: &str = "else phoneNumber";
/// Name of a column of street numbers, for `--map`.
pub(crate) const STREET_NUMBER: &str = "before addressLine1";

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The header may hold an equals sign; the name of a field cannot.
        let (header, field) = text.rsplit_once('=').ok_or("write HEADER=field")?;
        let held = match field.trim() {
            "" => Held::Nothing,
            NAMES => Held::Names,
            OTHER_PHONE => Held::OtherPhone,
            STREET_NUMBER => Held::StreetNumber,
            name => Held::Field(name.parse::<Field>().map_err(|error| error.to_string())?),
        };
        Ok(Self { header: header_in_one_line(header), held })
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, value) = text.split_once('=').ok_or("write FIELD=VALUE")?;
        Ok(Self { field: field.parse().map_err(|error: UnknownField| error.to_string())?, value: value.to_owned() })
    }
}

/// A header without the line breaks and spaces that only lay it out.
pub(crate) fn header_in_one_line(header: &str) -> String {
    header.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn optional_field(name: &str) -> Result<Field, String> {
    match name.parse::<Field>() {
        Ok(field) if field.definition().is_required => Err(format!("{name} is required: no row can be without it")),
        field => field.map_err(|error| error.to_string()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [one] if !one.is_ascii_alphanumeric() && !b"\"\r\n".contains(one) => Ok(*one),
        _ => Err("one character such as ; or \\t is needed".to_owned()),
    }
}

/// Names without a comma.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comma {
    /// The first name, then the last one.
    #[default]
    Optional,
    /// Names of any order, because others of the column are "Last, First".
    Usual,
    /// Names of any order, because the header says "Last, First".
    Named,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use intake_test_support::{completed_by_bash, write_manual};

    use super::*;

    #[test]
    fn the_help_fits_on_a_screen() {
        let help = Arguments::command().render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
    }

    #[test]
    fn man_pages_and_completions_are_made_from_the_command_line() {
        let sections: [(&str, &[&str]); 2] = [
            (
                "EXIT STATUS",
                &[
                    "0: every row was created, or is valid. 1: a row was refused, or the program failed. 2: wrong usage.",
                ],
            ),
            ("SEE ALSO", &["intake(1), /usr/share/doc/intake/docs/importing.md"]),
        ];
        let folder = write_manual(&Arguments::command(), &sections);
        assert_eq!(completed_by_bash(&folder, "intake-import", &["--australian-ph"]), ["--australian-phones"]);
    }
}
