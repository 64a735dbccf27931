//! Values as forms and spreadsheets hold them, converted to what the register takes. Nothing is guessed: a value that
//! can be read in two ways is [`Conversion::Unclear`], and the caller learns of every change. A converted value keeps
//! the field's rule, except that a day may not exist or lie in the future, which validation reports.
//!
//! ```
//! use intake_domain::conversions::{Conversion, DateForm, country, date, phone_number};
//!
//! assert_eq!(phone_number("(02) 5550 1234"), Conversion::Converted("+61255501234".to_owned()));
//! assert_eq!(phone_number("5550 1234"), Conversion::Unclear);
//! assert_eq!(country("Australia"), Conversion::Converted("AU".to_owned()));
//!
//! let forms: Vec<DateForm> = ["D/M/YYYY", "D-MMM-YYYY"].iter().map(|form| form.parse().unwrap()).collect();
//! assert_eq!(date("3/12/1985", &forms), Conversion::Converted("1985-12-03".to_owned()));
//! assert_eq!(date("1985-12-03", &forms), Conversion::Unchanged);
//! assert_eq!(date("3/12/85", &forms), Conversion::Unclear);
//! ```

mod dates;
mod phones;
mod places;
mod texts;
mod titles;

pub use dates::{DateForm, UnknownDateForm, calendar_day, date};
pub use phones::phone_number;
pub use places::{country, state};
pub use texts::{email, is_placeholder, trimmed, unquoted};
pub use titles::is_title;

/// Outcome of a conversion.
#[derive(Clone, PartialEq, Eq)]
pub enum Conversion {
    /// The value can be sent as it is.
    Unchanged,
    /// The value to send in its place.
    Converted(String),
    /// The value cannot be read without guessing.
    Unclear,
}

impl Conversion {
    fn compared(text: &str, converted: String) -> Self {
        if converted == text { Self::Unchanged } else { Self::Converted(converted) }
    }

    fn read(text: &str, converted: Option<String>) -> Self {
        converted.map_or(Self::Unclear, |converted| Self::compared(text, converted))
    }
}

impl std::fmt::Debug for Conversion {
    /// Names what was done, and never the value, which may be a patient's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "Unchanged",
            Self::Converted(_) => "Converted(…)",
            Self::Unclear => "Unclear",
        })
    }
}
