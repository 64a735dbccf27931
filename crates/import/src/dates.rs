//! Dates as a file writes them, and as the register wants them.

use std::str::FromStr;

/// Format of dates in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DateFormat {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    /// One or two digits where the format has one letter, else two.
    Month {
        digits_min: usize,
    },
    Day {
        digits_min: usize,
    },
    Separator(char),
}

impl DateFormat {
    /// The date as `YYYY-MM-DD`; none where the text is not of this format. Whether the calendar has that day is for
    /// the rules of the register to say.
    pub(crate) fn rewrite(&self, text: &str) -> Option<String> {
        let (mut year, mut month, mut day) = (0, 0, 0);
        let mut rest = text.trim();
        for part in &self.parts {
            match *part {
                Part::Separator(separator) => rest = rest.strip_prefix(separator)?,
                Part::Year => (year, rest) = digits(rest, 4, 4)?,
                Part::Month { digits_min } => (month, rest) = digits(rest, digits_min, 2)?,
                Part::Day { digits_min } => (day, rest) = digits(rest, digits_min, 2)?,
            }
        }
        rest.is_empty().then(|| format!("{year:04}-{month:02}-{day:02}"))
    }

    /// The format as it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for DateFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (part, length) = match first {
                'Y' if rest.starts_with("YYYY") => (Part::Year, 4),
                'M' if rest.starts_with("MM") => (Part::Month { digits_min: 2 }, 2),
                'M' => (Part::Month { digits_min: 1 }, 1),
                'D' if rest.starts_with("DD") => (Part::Day { digits_min: 2 }, 2),
                'D' => (Part::Day { digits_min: 1 }, 1),
                separator if !separator.is_alphanumeric() => (Part::Separator(separator), separator.len_utf8()),
                _ => return Err(format!("{text:?} is not a format of YYYY, MM or M, and DD or D")),
            };
            parts.push(part);
            rest = rest.get(length..).unwrap_or_default();
        }
        let count = |is_wanted: fn(&Part) -> bool| parts.iter().filter(|part| is_wanted(part)).count();
        let counts = [
            count(|part| *part == Part::Year),
            count(|part| matches!(part, Part::Month { .. })),
            count(|part| matches!(part, Part::Day { .. })),
        ];
        if counts != [1, 1, 1] {
            return Err(format!("{text:?} must have one YYYY, one MM or M, and one DD or D"));
        }
        Ok(Self { text: text.to_owned(), parts })
    }
}

/// The number with this many digits at the beginning of a text, and what follows it.
fn digits(text: &str, min: usize, max: usize) -> Option<(u16, &str)> {
    let length = text.bytes().take(max).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(length)?;
    if length < min {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_rewritten_by_their_format_alone() {
        for (format, text, expected) in [
            ("YYYY-MM-DD", "1985-12-10", Some("1985-12-10")),
            ("DD/MM/YYYY", "10/12/1985", Some("1985-12-10")),
            ("DD/MM/YYYY", " 10/12/1985 ", Some("1985-12-10")),
            ("DD/MM/YYYY", "1/2/1985", None),
            ("D/M/YYYY", "1/2/1985", Some("1985-02-01")),
            ("D/M/YYYY", "31/12/1985", Some("1985-12-31")),
            ("D. M. YYYY", "1. 2. 1985", Some("1985-02-01")),
            ("YYYYMMDD", "19851210", Some("1985-12-10")),
            ("DD/MM/YYYY", "10/12/85", None),
            ("DD/MM/YYYY", "10/12/19850", None),
            ("DD/MM/YYYY", "10-12-1985", None),
            ("DD/MM/YYYY", "١٠/12/1985", None),
            ("DD/MM/YYYY", "", None),
            // The register refuses it, and says why.
            ("DD/MM/YYYY", "31/02/1985", Some("1985-02-31")),
        ] {
            let format: DateFormat = format.parse().unwrap();
            assert_eq!(format.rewrite(text).as_deref(), expected, "{text} as {}", format.as_str());
        }
    }

    #[test]
    fn a_format_without_one_of_each_is_refused() {
        for format in ["", "DD/MM", "DD/MM/YY", "DD/DD/YYYY", "dd/mm/yyyy", "DD MMM YYYY"] {
            assert!(format.parse::<DateFormat>().is_err(), "{format}");
        }
    }
}
