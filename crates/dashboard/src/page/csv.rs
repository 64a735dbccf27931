//! Files for spreadsheets.

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_DISPOSITION;
use csv::{QuoteStyle, Terminator, WriterBuilder};
use intake_edge as edge;
use time::Date;

use crate::page::error::PageError;
use crate::page::visitor::Visitor;

/// Byte order mark: Excel recognises UTF-8 by it, and would garble names without it.
const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The answer with a file of these rows, below the names of the columns.
pub(crate) fn file<const COLUMNS: usize>(
    what: &str,
    visitor: &Visitor,
    header: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> Result<HttpResponse, PageError> {
    let (organisation, today) = (&visitor.signed_in.organisation_name, visitor.zone().day(edge::now()));
    let name = format!("attachment; filename=\"{}\"", file_name(what, organisation, today));
    let mut response = HttpResponse::Ok();
    response.content_type("text/csv; charset=utf-8; header=present").insert_header((CONTENT_DISPOSITION, name));
    Ok(response.body(write(header, rows).map_err(|error| PageError::Unexpected(error.into()))?))
}

fn write<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> Result<Vec<u8>, csv::Error> {
    let start = BYTE_ORDER_MARK.as_bytes().to_vec();
    let mut writer =
        WriterBuilder::new().quote_style(QuoteStyle::Always).terminator(Terminator::CRLF).from_writer(start);
    writer.write_record(header)?;
    for row in rows {
        writer.write_record(row.iter().map(|text| harmless(text).into_owned()))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// The name of a file that says whose it is, in letters and digits that every system takes.
fn file_name(what: &str, organisation: &str, day: Date) -> String {
    let words = organisation.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: String = words.map(|word| word.to_ascii_lowercase() + "-").collect();
    format!("{what}-{words}{day}.csv")
}

/// A text that no spreadsheet takes for a formula: members choose their names, and a name like `=HYPERLINK(…)` must not
/// become a link on another person's screen.
fn harmless(text: &str) -> Cow<'_, str> {
    let begins_formula = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let is_formula = text.starts_with(['\t', '\r', '\n']) || text.trim_start().starts_with(begins_formula);
    if is_formula { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "+61412345678", "-5", "@SUM(A1)", "  =1", "\t=1", "\r=1", "＝1", "\u{a0}+1"] {
            assert_eq!(harmless(formula), format!("'{formula}"), "{formula:?}");
        }
        for text in ["Ada", "a=b", "'quoted'", "", "2025-12-03T10:30:00.000Z", "2001:db8::1"] {
            assert_eq!(harmless(text), text);
        }
    }
}
