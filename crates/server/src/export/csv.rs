//! Patients as a table (RFC 4180, UTF-8) that is safe to open in a spreadsheet and can be read back exactly: one
//! leading apostrophe stands before every value that a spreadsheet might take for a formula, before every value that
//! begins with an apostrophe, and for the empty text; an empty cell is no value. Readers remove one leading
//! apostrophe.

use intake_domain::{Erasure, FeedToken, Field, Patient, StoredPatient, timestamp};

/// Characters that make a spreadsheet compute a value instead of showing it, and the apostrophe itself.
const ESCAPED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];

/// The columns that a followed stream has behind those of a patient: when it was erased, and the token after what came
/// before.
const STREAMED: [&str; 2] = ["erasedAt", "next"];

/// The head of a file of patients, or of a followed stream.
pub(crate) fn head(is_followed: bool) -> anyhow::Result<String> {
    let fields = Field::RETURNED.iter().map(|field| field.name());
    let others = ["organisationId", "isIdentified", "createdAt", "updatedAt"];
    let streamed = STREAMED.into_iter().filter(|_| is_followed);
    line(["id"].into_iter().chain(fields).chain(others).chain(streamed).map(str::to_owned))
}

pub(crate) fn patient(patient: &StoredPatient, is_followed: bool) -> anyhow::Result<String> {
    let fields = Field::RETURNED.iter().map(|&field| cell(patient.values[field].as_deref()));
    let others = [
        patient.organisation_id.to_string(),
        Patient::IS_IDENTIFIED.to_string(),
        timestamp(patient.created_at),
        timestamp(patient.updated_at),
    ];
    let streamed = STREAMED.into_iter().filter(|_| is_followed).map(|_| String::new());
    line([patient.id.to_string()].into_iter().chain(fields).chain(others).chain(streamed))
}

/// An erasure in a followed stream.
pub(crate) fn followed_erasure(erasure: &Erasure) -> anyhow::Result<String> {
    streamed(erasure.id.to_string(), [timestamp(erasure.erased_at), String::new()])
}

/// A token in a followed stream.
pub(crate) fn token(token: FeedToken) -> anyhow::Result<String> {
    streamed(String::new(), [String::new(), token.to_string()])
}

fn streamed(id: String, cells: [String; 2]) -> anyhow::Result<String> {
    // Nothing of a patient but its id.
    let others = Field::RETURNED.len() + 4;
    line([id].into_iter().chain(std::iter::repeat_n(String::new(), others)).chain(cells))
}

/// The head of a file of erasures.
pub(crate) fn erasures_head() -> anyhow::Result<String> {
    line(["id".to_owned(), "erasedAt".to_owned()])
}

pub(crate) fn erasure(erasure: &Erasure) -> anyhow::Result<String> {
    line([erasure.id.to_string(), timestamp(erasure.erased_at)])
}

fn cell(value: Option<&str>) -> String {
    match value {
        None => String::new(),
        Some(text) if text.is_empty() || text.starts_with(ESCAPED) => format!("'{text}"),
        Some(text) => text.to_owned(),
    }
}

fn line(cells: impl IntoIterator<Item = String>) -> anyhow::Result<String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells)?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn read_back(cell: &str) -> Option<&str> {
        if cell.is_empty() { None } else { Some(cell.strip_prefix('\'').unwrap_or(cell)) }
    }

    #[test]
    fn no_value_is_lost_and_none_is_a_formula() {
        for (value, expected) in [
            (None, ""),
            (Some(""), "'"),
            (Some("Ada"), "Ada"),
            (Some("'t Hooft"), "''t Hooft"),
            (Some("+61412345678"), "'+61412345678"),
            (Some("=1+1"), "'=1+1"),
            (Some("O'Brien"), "O'Brien"),
        ] {
            assert_eq!(cell(value), expected);
            assert_eq!(read_back(expected), value);
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(values: [Option<String>; 3]) {
            let text = line(values.iter().map(|value| cell(value.as_deref()))).unwrap();
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let read = reader.records().next().unwrap().unwrap();
            for (value, cell) in values.iter().zip(&read) {
                prop_assert_eq!(read_back(cell), value.as_deref());
                prop_assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']));
            }
        }
    }
}
