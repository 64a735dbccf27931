//! What can be wrong with a value: the kinds of faults, each with its message.

use std::fmt;

use crate::text::FORBIDDEN;

/// A rule that what was sent breaks. Decide by it; show its text to developers.
///
/// The text is what the API answers with. Within version 1 of the API it does not change, and each text has an entry in
/// its reference that says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// A required field was not sent, or was null.
    Missing,
    /// Something other than a string was sent.
    NotText,
    /// The text is empty, or has too many code points.
    Length {
        /// The most code points.
        max: usize,
    },
    /// The text has too many code points.
    TooLong {
        /// The most code points.
        max: usize,
    },
    /// The text holds a control character, or one that overrides or isolates its direction.
    ForbiddenCharacters,
    /// The text of a required field shows nothing.
    Blank,
    /// The text of an optional field is empty or shows nothing, and the field takes no such text.
    BlankOptional,
    /// Not a telephone number in the form E.164.
    NotE164,
    /// Not a date in the form YYYY-MM-DD.
    NotADate,
    /// A date that is not in the calendar.
    NoSuchDay,
    /// A date before the first that is accepted.
    TooEarly {
        /// The first day that is accepted, `YYYY-MM-DD`.
        earliest: &'static str,
    },
    /// A date that has not begun anywhere on earth.
    InTheFuture,
    /// Not an email address.
    NotAnEmailAddress,
    /// None of the values that are accepted.
    NotOneOf(&'static [&'static str]),
    /// The whole is JSON, but not an object.
    NotAnObject,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is required"),
            Self::NotText => f.write_str("must be a string"),
            Self::Length { max } => write!(f, "must be 1 to {max} characters long"),
            Self::TooLong { max } => write!(f, "must be at most {max} characters long"),
            Self::ForbiddenCharacters => f.write_str(FORBIDDEN),
            Self::Blank => f.write_str("must not be blank"),
            Self::BlankOptional => f.write_str("must not be blank: leave the field out, or send null"),
            Self::NotE164 => f.write_str("E.164 format is required, for example +61491570006"),
            Self::NotADate => f.write_str("must be a date in the form YYYY-MM-DD, for example 1985-03-21"),
            Self::NoSuchDay => f.write_str("must be a real date"),
            Self::TooEarly { earliest } => write!(f, "must not be before {earliest}"),
            Self::InTheFuture => f.write_str("must not be in the future"),
            Self::NotAnEmailAddress => f.write_str("must be a valid email address"),
            Self::NotOneOf(values) => write!(f, "must be {}", values.join(" or ")),
            Self::NotAnObject => f.write_str("must be a JSON object"),
        }
    }
}
