//! The command line of `intake-import`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use intake_domain::Field;

use crate::dates::DateFormat;

/// Number of requests that may be under way at a time: the report is read with this in mind.
pub(crate) const IN_FLIGHT_MAX: u16 = 256;

/// Creates a patient for each row of a file, through the API, each once, however often it is run.
#[derive(Parser)]
#[command(name = "intake-import", version)]
pub(crate) struct Arguments {
    /// A .csv file with a header, or a .jsonl file with one patient in each line; both in UTF-8
    pub(crate) file: PathBuf,
    /// The address of the service, which begins with `https://`
    #[arg(long, required_unless_present = "check")]
    pub(crate) url: Option<String>,
    /// A file that holds an API key and nothing else
    #[arg(long, value_name = "FILE", required_unless_present = "check")]
    pub(crate) key_file: Option<PathBuf>,
    /// Check all rows and send nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Which field a column holds, where its header is not the field's name; "HEADER=" leaves the column out
    #[arg(long, value_name = "HEADER=field")]
    pub(crate) map: Vec<Mapping>,
    /// Format of dates in the file, for example DD/MM/YYYY or D.M.YYYY
    #[arg(long, value_name = "FORMAT", default_value = "YYYY-MM-DD")]
    pub(crate) date_format: DateFormat,
    /// Rewrite Australian phone numbers, such as (02) 5550 1234, as +61255501234; the report says where
    #[arg(long)]
    pub(crate) australian_phones: bool,
    /// Character between the cells of a .csv file
    #[arg(long, value_name = "CHARACTER", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: u8,
    /// File for the report, as CSV: rows that were created, with their ids, and rows that were refused, and why
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The report was written with another key of the same organisation
    #[arg(long, requires = "report")]
    pub(crate) key_replaced: bool,
    /// Rows that were created under this name are not created again; choose another to create the same rows once more
    #[arg(long, value_name = "NAME", default_value = "import")]
    pub(crate) run: String,
    /// Number of requests under way at a time
    #[arg(long, value_name = "NUMBER", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=i64::from(IN_FLIGHT_MAX)))]
    pub(crate) in_flight: u16,
    /// Trust only the certificate authorities in this PEM file, for example .intake/tls/ca.pem in development
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}

/// Which field a column holds; none leaves the column out.
#[derive(Clone)]
pub(crate) struct Mapping {
    pub(crate) header: String,
    pub(crate) field: Option<Field>,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The header may hold an equals sign; the name of a field cannot.
        let (header, field) = text.rsplit_once('=').ok_or("write HEADER=field")?;
        let field = match field.trim() {
            "" => None,
            name => Some(name.parse::<Field>().map_err(|error| error.to_string())?),
        };
        Ok(Self { header: header.trim().to_owned(), field })
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [one] if !one.is_ascii_alphanumeric() && !b"\"\r\n".contains(one) => Ok(*one),
        _ => Err("one character such as ; or \\t is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use intake_test_support::{completed_by_bash, write_manual};

    use super::*;

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
        assert_eq!(completed_by_bash(&folder, "intake-import", &["--australian"]), ["--australian-phones"]);
    }
}
