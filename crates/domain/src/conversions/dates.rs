//! Dates in forms that the caller names. Day and month are never guessed.

use std::fmt;
use std::str::FromStr;

use time::{Date, Duration, Weekday};

use crate::conversions::Conversion;
use crate::conversions::texts::trim;
use crate::patients::rules::{calendar_date, year_month_day};

const MIDNIGHTS: [&str; 6] = ["T00:00:00", "T00:00:00Z", "T00:00:00.000Z", " 00:00:00", " 00:00", " 0:00"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Form of dates: `YYYY`, `MM` or `M`, `MMM` for the month's name, `DD` or `D`, and separators, such as `D/M/YYYY`.
/// Years of two digits need the first year that is meant (`D/M/YY from 1926` to 2025), and days counted by a
/// spreadsheet its first year (`serial 1900` or `serial 1904`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateForm {
    text: String,
    parts: Vec<Part>,
    years_from: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Year,
    ShortYear,
    /// One or two digits where the form has one letter, else two.
    Month {
        digits_min: usize,
    },
    MonthName,
    Day {
        digits_min: usize,
    },
    Separator(char),
    Serial {
        before_first: Date,
    },
}

/// A text that names no form of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownDateForm {
    /// The form as written.
    pub form: String,
}

impl fmt::Display for UnknownDateForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a form of dates: write one YYYY, one MM, M or MMM (a name) and one DD or D in capitals; \
             years of two digits as \"D/M/YY from 1926\", days of a spreadsheet as \"serial 1900\"",
            self.form
        )
    }
}

impl std::error::Error for UnknownDateForm {}

/// The date as `YYYY-MM-DD`, which is always read, also at midnight. Unclear where no form fits, or two forms make
/// different days of the calendar of it.
#[must_use]
pub fn date(text: &str, forms: &[DateForm]) -> Conversion {
    let plain = trim(text);
    let day = MIDNIGHTS.iter().find_map(|midnight| plain.strip_suffix(midnight)).unwrap_or(plain);
    if year_month_day(day).is_some() {
        return Conversion::compared(text, day.to_owned());
    }
    let read = |text: &str| forms.iter().filter_map(|form| form.read(text)).collect::<Vec<_>>();
    let (mut days, mut weekday) = (read(day), None);
    if days.is_empty() {
        let (named, bare) = bare(day);
        (days, weekday) = (read(&bare), named);
    }
    if days.iter().any(|day| calendar_day(day).is_some()) {
        days.retain(|day| calendar_day(day).is_some());
    }
    days.dedup();
    match days.as_slice() {
        [day] if weekday.is_none() || calendar_day(day).map(Date::weekday) == weekday => {
            Conversion::compared(text, day.clone())
        }
        _ => Conversion::Unclear,
    }
}

/// The day of the calendar that a text in the form `YYYY-MM-DD` names.
#[must_use]
pub fn calendar_day(day: &str) -> Option<Date> {
    year_month_day(day).and_then(|(year, month, day)| calendar_date(year, month, day))
}

impl DateForm {
    /// The form as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The day as `YYYY-MM-DD`, whether or not the calendar has it.
    fn read(&self, text: &str) -> Option<String> {
        let (mut year, mut month, mut day) = (0, 0, 0);
        let mut rest = text;
        for part in &self.parts {
            match *part {
                Part::Separator(separator) => rest = rest.strip_prefix(separator)?,
                Part::Year => (year, rest) = digits(rest, 4, 4)?,
                Part::ShortYear => {
                    (year, rest) = digits(rest, 2, 2)?;
                    year += self.years_from / 100 * 100;
                    year += if year < self.years_from { 100 } else { 0 };
                }
                Part::Month { digits_min } => (month, rest) = digits(rest, digits_min, 2)?,
                Part::MonthName => (month, rest) = month_name(rest)?,
                Part::Day { digits_min } => (day, rest) = digits(rest, digits_min, 2)?,
                Part::Serial { before_first } => return serial(text, before_first),
            }
        }
        rest.is_empty().then(|| format!("{year:04}-{month:02}-{day:02}"))
    }

    fn parse(text: &str) -> Option<Self> {
        let serial = |year: &str| {
            // The first two months of 1900 are counted wrongly; no day before 1927 is read.
            let before_first = match year {
                "1900" => calendar_date(1899, 12, 30),
                "1904" => calendar_date(1904, 1, 1),
                _ => None,
            };
            before_first.map(|before_first| vec![Part::Serial { before_first }])
        };
        let (pattern, years_from) = match text.split_once(" from ") {
            Some((pattern, year)) => (pattern, Some(digits(year, 4, 4).filter(|(_, rest)| rest.is_empty())?.0)),
            None => (text, None),
        };
        let parts = match pattern.strip_prefix("serial ") {
            Some(year) => serial(year)?,
            None => parts(pattern)?,
        };
        let has_short_year = parts.contains(&Part::ShortYear);
        (has_short_year == years_from.is_some()).then(|| Self {
            text: text.to_owned(),
            parts,
            years_from: years_from.unwrap_or_default(),
        })
    }
}

impl FromStr for DateForm {
    type Err = UnknownDateForm;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).ok_or_else(|| UnknownDateForm { form: text.to_owned() })
    }
}

/// The day of the week that begins the text, and the rest without spaces round separators, the ending of `3rd`, the
/// full stop of `Feb.` and the word `of`.
fn bare(text: &str) -> (Option<Weekday>, String) {
    let (weekday, text) = match text.split_once([' ', ',']) {
        Some((word, rest)) if weekday(word).is_some() => (weekday(word), rest),
        _ => (None, text),
    };
    let words = text.split([' ', '\u{a0}']).filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("of"));
    let mut bare = words.map(month_alone).map(cardinal).collect::<Vec<_>>().join(" ");
    for separator in ['/', '-', '.'] {
        bare = bare.replace(&format!(" {separator} "), &separator.to_string());
    }
    (weekday, bare)
}

/// `Feb` for `Feb.`, and other words as they are.
fn month_alone(word: &str) -> &str {
    let name = word.strip_suffix('.').filter(|name| month_name(name).is_some_and(|(_, rest)| rest.is_empty()));
    name.unwrap_or(word)
}

/// `3` for `3rd`, and other words as they are.
fn cardinal(word: &str) -> String {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, ending) = word.split_at(digits);
    match ending.get(..2).filter(|_| (1..=2).contains(&digits)).map(str::to_ascii_lowercase).as_deref() {
        Some("st" | "nd" | "rd" | "th") => format!("{number}{}", ending.get(2..).unwrap_or_default()),
        _ => word.to_owned(),
    }
}

/// The day of the week of this English name, or of its first three letters.
fn weekday(word: &str) -> Option<Weekday> {
    let word = word.trim_end_matches('.').to_ascii_lowercase();
    let mut days = std::iter::successors(Some(Weekday::Monday), |day| Some(day.next())).take(7);
    days.find(|day| {
        let name = day.to_string().to_ascii_lowercase();
        name == word || name.get(..3) == Some(&word)
    })
}

fn parts(pattern: &str) -> Option<Vec<Part>> {
    let (mut parts, mut rest) = (Vec::new(), pattern);
    while let Some(first) = rest.chars().next() {
        let (part, length) = match first {
            'Y' if rest.starts_with("YYYY") => (Part::Year, 4),
            'Y' if rest.starts_with("YY") => (Part::ShortYear, 2),
            'M' if rest.starts_with("MMM") => (Part::MonthName, 3),
            'M' if rest.starts_with("MM") => (Part::Month { digits_min: 2 }, 2),
            'M' => (Part::Month { digits_min: 1 }, 1),
            'D' if rest.starts_with("DD") => (Part::Day { digits_min: 2 }, 2),
            'D' => (Part::Day { digits_min: 1 }, 1),
            separator if !separator.is_alphanumeric() => (Part::Separator(separator), separator.len_utf8()),
            _ => return None,
        };
        parts.push(part);
        rest = rest.get(length..)?;
    }
    let count = |is_wanted: fn(&Part) -> bool| parts.iter().filter(|part| is_wanted(part)).count();
    let counts = [
        count(|part| matches!(part, Part::Year | Part::ShortYear)),
        count(|part| matches!(part, Part::Month { .. } | Part::MonthName)),
        count(|part| matches!(part, Part::Day { .. })),
    ];
    (counts == [1, 1, 1]).then_some(parts)
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

/// The month whose English name or first three letters, or `Sept`, begin the text, and what follows.
fn month_name(text: &str) -> Option<(u16, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at_checked(length)?;
    let name = name.to_ascii_lowercase();
    let is_month = |(_, month): &(u16, &&str)| {
        name == **month || month.get(..3) == Some(&name) || (name == "sept" && **month == "september")
    };
    let (number, _) = (1..).zip(&MONTHS).find(is_month)?;
    Some((number, rest))
}

/// The day that a spreadsheet counts as five digits. Fewer may be a year, and digits after a 0 no count at all.
fn serial(text: &str, before_first: Date) -> Option<String> {
    let is_serial = text.len() == 5 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    let days = text.parse::<u32>().ok().filter(|_| is_serial)?;
    before_first.checked_add(Duration::days(i64::from(days))).map(crate::timestamp::day)
}
