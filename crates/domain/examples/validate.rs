//! Validates patients sent as JSON, one in each line of the standard input, the way another service would.

use std::error::Error;
use std::io::{self, BufRead};

use intake_domain::PatientDraft;
use time::OffsetDateTime;

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a program reads the clock and prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let now = OffsetDateTime::now_utc();
    for (number, line) in (1..).zip(io::stdin().lock().split(b'\n')) {
        let line = line?;
        match PatientDraft::from_json(&line).map(|draft| draft.validate(now)) {
            Ok(Ok(_patient)) => println!("{number}: valid"),
            Ok(Err(faults)) => println!("{number}: {faults}"),
            Err(error) => println!("{number}: {error}"),
        }
    }
    Ok(())
}
