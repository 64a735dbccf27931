//! A file with one patient as JSON in each line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use intake_domain::{FaultKind, Field, FieldFault, JsonError, JsonPatient, Sent, UnknownField};

use crate::convert::Texts;
use crate::headers::OF_THE_REGISTER;
use crate::strict_csv::ROW_BYTES_MAX;

/// A file with one JSON in each line.
pub(crate) struct JsonLines {
    reader: BufReader<File>,
    line: Vec<u8>,
    pub(crate) number: u64,
    pub(crate) read: u64,
}

impl JsonLines {
    pub(crate) fn new(reader: BufReader<File>) -> Self {
        Self { reader, line: Vec::new(), number: 0, read: 0 }
    }

    /// Reads the next line, of which no more than the longest row is kept. Gives whether there was one.
    pub(crate) fn next(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut read = self.reader.by_ref().take(ROW_BYTES_MAX as u64 + 1).read_until(b'\n', &mut self.line)?;
        if self.is_too_long() && !self.line.ends_with(b"\n") {
            read += self.reader.skip_until(b'\n')?;
        }
        self.read += read as u64;
        self.number += 1;
        Ok(read > 0)
    }

    /// The texts of the line; none where it holds no patient.
    pub(crate) fn texts(&self) -> Result<Option<Texts>, String> {
        if self.is_too_long() {
            return Err("the line is longer than 1 MiB".to_owned());
        }
        json_texts(self.line.trim_ascii())
    }

    fn is_too_long(&self) -> bool {
        self.line.len() > ROW_BYTES_MAX
    }
}

/// The texts of a patient as JSON; none where the line holds no patient.
fn json_texts(json: &[u8]) -> Result<Option<Texts>, String> {
    if json.is_empty() {
        return Ok(None);
    }
    let JsonPatient { draft, unknown } = JsonPatient::from_slice(json).map_err(|error| match error {
        // Each line is a JSON of its own.
        JsonError::Malformed { column, .. } => format!("is not valid JSON: error at character {column}"),
        error => error.to_string(),
    })?;
    if unknown.iter().any(|name| name == "erasedAt") {
        return Ok(None);
    }
    if let Some(name) = unknown.iter().find(|name| !OF_THE_REGISTER.contains(&name.as_ref())) {
        return Err(UnknownField::new(name.as_ref()).to_string());
    }
    let mut texts = Texts::default();
    for &field in Field::ALL {
        match &draft[field] {
            Sent::Nothing => {}
            Sent::NotText => return Err(FieldFault::of(field, FaultKind::NotText).to_string()),
            Sent::Text(text) => texts[field] = Some(text.as_ref().to_owned()),
        }
    }
    Ok(Some(texts))
}
