//! Validates a table of patients from the standard input, with tabs between its columns and the names of fields in its
//! first line. It needs no feature of the domain: patients are made of named values.

use std::error::Error;
use std::io;

use intake_domain::{Field, PatientDraft, UnknownField};
use time::OffsetDateTime;

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a program reads the clock and prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let now = OffsetDateTime::now_utc();
    let mut lines = io::stdin().lines();
    let head = lines.next().ok_or("the table is empty")??;
    let columns = head.split('\t').map(str::parse).collect::<Result<Vec<Field>, UnknownField>>()?;
    for (number, line) in (2..).zip(lines) {
        let line = line?;
        let sent = columns.iter().copied().zip(line.split('\t')).filter(|(_, value)| !value.is_empty());
        match sent.collect::<PatientDraft>().validate(now) {
            Ok(_patient) => println!("{number}: valid"),
            Err(faults) => println!("{number}: {faults}"),
        }
    }
    Ok(())
}
