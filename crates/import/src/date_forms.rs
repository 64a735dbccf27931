//! Forms of dates that a file itself proves. Only a day over 12 tells day and month apart; years of two digits and days
//! that a spreadsheet counts are left to people.

use std::cmp::Reverse;

use intake_domain::conversions::{Conversion, DateForm, calendar_day, date};
use time::Date;

use crate::tally::Count;

/// Separators of day, month and year.
const SEPARATORS: [char; 4] = ['/', '-', '.', ' '];

/// Any hundred years: whether a year is of two digits does not depend on them.
const FROM: &str = " from 1900";

/// Evidence in a column of dates.
pub(crate) struct DateForms {
    families: Vec<Family>,
    /// Days with a time at midnight.
    midnights: Count,
    /// Forms with years of two digits, and the rows that each reads first.
    short_forms: Vec<(DateForm, Count)>,
    serials: Count,
}

/// Forms that read the same texts as different days.
struct Family {
    forms: Vec<(DateForm, Count)>,
    /// Rows that several of the forms can read.
    unproved: Count,
    /// Days that the first of these rows can mean.
    example: Option<String>,
}

/// The form of most rows, where another one is mixed with it and some rows fit both.
pub(crate) struct Majority {
    pub(crate) form: DateForm,
    pub(crate) others: Vec<DateForm>,
}

impl DateForms {
    /// A form that is given says what is meant: nothing is looked for in its place.
    pub(crate) fn beside(given: &[DateForm]) -> Self {
        let mut families = vec![
            family(&["YYYYMMDD", "DDMMYYYY", "MMDDYYYY", "YYYYDDMM"]),
            family(&["MMM D, YYYY"]),
            family(&["D MMM, YYYY"]),
        ];
        let mut short_forms = Vec::new();
        for separator in SEPARATORS {
            let form = |parts: &str| parts.replace('/', &separator.to_string());
            families.push(family(&[&form("D/M/YYYY"), &form("M/D/YYYY")]));
            families.push(family(&[&form("YYYY/M/D"), &form("YYYY/D/M")]));
            families.push(family(&[&form("D/MMM/YYYY")]));
            families.push(family(&[&form("MMM/D/YYYY")]));
            let short = ["D/M/YY", "M/D/YY", "D/MMM/YY"].map(|short| form(short) + FROM);
            short_forms.extend(family(&short.each_ref().map(String::as_str)).forms);
        }
        families.retain(|family| !family.forms.iter().any(|(form, _)| given.iter().any(|given| is_alike(given, form))));
        let without_hundreds = |form: &DateForm| plain(form).split_once(" from ").map(|(form, _)| form.to_owned());
        let given: Vec<_> = given.iter().filter_map(without_hundreds).collect();
        short_forms.retain(|(form, _)| without_hundreds(form).is_none_or(|form| !given.contains(&form)));
        Self { families, midnights: Count::default(), short_forms, serials: Count::default() }
    }

    /// Notes the date of a row.
    pub(crate) fn note(&mut self, row: u64, text: &str) {
        if let conversion @ (Conversion::Converted(_) | Conversion::Unchanged) = date(text, &[]) {
            self.midnights.add_if(conversion != Conversion::Unchanged, row);
            return;
        }
        for family in &mut self.families {
            family.note(row, text);
        }
        if let Some((_, rows)) = self.short_forms.iter_mut().find(|(form, _)| day(text, form).is_some()) {
            rows.add(row, 1);
        }
        self.serials.add_if(text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit()), row);
    }

    /// The form of most rows, if the file mixes two and some dates fit both.
    pub(crate) fn majority(&self) -> Option<Majority> {
        self.families.iter().find_map(Family::majority)
    }

    /// The forms that are proved. Where a file mixes two, days that both can read stay refused.
    pub(crate) fn proved(&self) -> Vec<DateForm> {
        let mut proved: Vec<_> = self.families.iter().flat_map(Family::proved).map(|(form, _)| form.clone()).collect();
        if proved.is_empty() && self.midnights.rows > 0 {
            proved.extend("YYYY-MM-DD".parse());
        }
        proved
    }

    /// The forms with years of two digits that some rows have.
    pub(crate) fn short(&self) -> Vec<DateForm> {
        let used = self.short_forms.iter().filter(|(_, rows)| rows.rows > 0);
        used.map(|(form, _)| form.clone()).collect()
    }

    /// Returns what people should know about the dates. `serial` is how the file counts days.
    pub(crate) fn notes(&self, serial: &str) -> Vec<String> {
        let mut notes: Vec<_> = self.families.iter().flat_map(Family::notes_for_people).collect();
        for (form, rows) in self.short_forms.iter().filter(|(_, rows)| rows.rows > 0) {
            notes.push(format!(
                "years of two digits ({rows}): say which hundred years are meant, such as --date-format '{}'",
                form.as_str().replace(FROM, " from 1930")
            ));
        }
        if self.serials.rows > 0 {
            notes.push(format!(
                "numbers instead of dates ({}): if a spreadsheet counted days, say so with --date-format '{serial}'",
                self.serials
            ));
        }
        notes
    }
}

impl Family {
    fn note(&mut self, row: u64, text: &str) {
        let readable = self.forms.iter_mut().filter_map(|(form, only)| Some((day(text, form)?, only)));
        match readable.collect::<Vec<_>>().as_mut_slice() {
            [] => {}
            [(_, only)] => only.add(row, 1),
            [(one, _), .., (other, _)] => {
                self.unproved.add(row, 1);
                if one != other && self.example.is_none() {
                    let named = |day: &Date| format!("{} {}", day.day(), day.month());
                    self.example = Some(format!("row {row}: {text} can be {} or {}", named(one), named(other)));
                }
            }
        }
    }

    fn majority(&self) -> Option<Majority> {
        match self.proved().as_slice() {
            [(form, _), others @ ..] if !others.is_empty() && self.unproved.rows > 0 => {
                Some(Majority { form: form.clone(), others: others.iter().map(|(form, _)| form.clone()).collect() })
            }
            _ => None,
        }
    }

    /// The forms that read rows which no other form can read, the one of the most rows first.
    fn proved(&self) -> Vec<&(DateForm, Count)> {
        let mut proved: Vec<_> = self.forms.iter().filter(|(_, only)| only.rows > 0).collect();
        proved.sort_by_key(|(_, only)| Reverse(only.rows));
        proved
    }

    fn notes_for_people(&self) -> impl Iterator<Item = String> {
        let is_proved = self.proved().len() == 1;
        self.note_for_people().into_iter().chain(self.example.clone().filter(|_| !is_proved))
    }

    fn note_for_people(&self) -> Option<String> {
        let proved = self.proved();
        match proved.as_slice() {
            [_] if self.forms.len() == 1 => None,
            [(form, only)] => Some(format!("{} is proved: {only}", form.as_str())),
            [(most, _), others @ ..] => {
                let seen: Vec<_> = proved.iter().map(|(form, only)| format!("{} in {only}", form.as_str())).collect();
                let wrong: Vec<_> = others.iter().map(|(_, only)| only.to_string()).collect();
                let (seen, most, wrong) = (seen.join(" and "), most.as_str(), wrong.join(" and "));
                let mixed = format!("the file mixes {seen}");
                Some(match self.unproved.rows {
                    0 => mixed,
                    _ => format!(
                        "{mixed}, so what both can read stays refused ({}): if {most} is meant, give it alone and \
                         correct {wrong}",
                        self.unproved
                    ),
                })
            }
            [] if self.unproved.rows > 0 => {
                let forms: Vec<_> = self.forms.iter().map(|(form, _)| form.as_str()).collect();
                let forms = forms.join(" or ");
                Some(format!("nothing proves {forms} ({}): say which is meant with --date-format", self.unproved))
            }
            [] => None,
        }
    }
}

impl Count {
    fn add_if(&mut self, is_so: bool, row: u64) {
        if is_so {
            self.add(row, 1);
        }
    }
}

fn family(forms: &[&str]) -> Family {
    let forms = forms.iter().filter_map(|form| Some((form.parse().ok()?, Count::default())));
    Family { forms: forms.collect(), unproved: Count::default(), example: None }
}

/// The form with years of two digits that are those of the hundred years up to this one.
pub(crate) fn until(year: i32, form: &DateForm) -> Option<DateForm> {
    form.as_str().replace(FROM, &format!(" from {}", year - 99)).parse().ok()
}

/// Returns whether the forms differ in nothing but the zeros before a day or a month.
fn is_alike(one: &DateForm, other: &DateForm) -> bool {
    plain(one) == plain(other)
}

/// The form without those zeros.
fn plain(form: &DateForm) -> String {
    form.as_str().replace("DD", "D").replace("MM", "M")
}

/// The day of the calendar that the form makes of the text.
pub(crate) fn day(text: &str, form: &DateForm) -> Option<Date> {
    let Conversion::Converted(day) = date(text, std::slice::from_ref(form)) else { return None };
    calendar_day(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn found(texts: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut forms = DateForms::beside(&[]);
        for (text, row) in texts.iter().zip(2..) {
            forms.note(row, text);
        }
        (forms.proved().iter().map(|form| form.as_str().to_owned()).collect(), forms.notes("serial 1900"))
    }

    #[test]
    fn a_given_form_excludes_its_mirror() {
        for given in ["D/M/YYYY", "DD/MM/YYYY", "M/D/YYYY"] {
            let mut forms = DateForms::beside(&[given.parse().unwrap()]);
            for (text, row) in ["13/4/1985", "4/13/1985", "3/4/1985", "13-4-1985"].iter().zip(2..) {
                forms.note(row, text);
            }
            assert_eq!(forms.proved(), ["D-M-YYYY".parse().unwrap()], "{given}");
            assert_eq!(forms.notes("serial 1900"), ["D-M-YYYY is proved: row 5"], "{given}");
        }
    }

    #[test]
    fn a_given_form_with_years_of_two_digits_needs_no_advice() {
        let mut forms = DateForms::beside(&["DD/MM/YY from 1926".parse().unwrap()]);
        forms.note(2, "13/4/85");
        forms.note(3, "13-4-85");
        let notes = forms.notes("serial 1900");
        let advice =
            "years of two digits (row 3): say which hundred years are meant, such as --date-format 'D-M-YY from 1930'";
        assert_eq!(notes, [advice]);
    }

    #[test]
    fn a_form_is_proved_by_a_day_over_12_alone() {
        let cases: [(&[&str], &[&str], &[&str]); 11] = [
            (&["3/4/1985", "13/4/1985"], &["D/M/YYYY"], &["D/M/YYYY is proved: row 3"]),
            (&["4/13/1985", "03/04/1985"], &["M/D/YYYY"], &["M/D/YYYY is proved: row 2"]),
            (
                &["3/4/1985", "3/3/1985"],
                &[],
                &[
                    "nothing proves D/M/YYYY or M/D/YYYY (rows 2, 3): say which is meant with --date-format",
                    "row 2: 3/4/1985 can be 3 April or 4 March",
                ],
            ),
            (
                &["4/13/1985", "13/4/1985"],
                &["D/M/YYYY", "M/D/YYYY"],
                &["the file mixes D/M/YYYY in row 3 and M/D/YYYY in row 2"],
            ),
            (
                &["13/4/1985", "4/13/1985", "14/4/1985", "3/4/1985"],
                &["D/M/YYYY", "M/D/YYYY"],
                &[
                    "the file mixes D/M/YYYY in rows 2, 4 and M/D/YYYY in row 3, so what both can read stays refused \
                     (row 5): if D/M/YYYY is meant, give it alone and correct row 3",
                    "row 5: 3/4/1985 can be 3 April or 4 March",
                ],
            ),
            (
                &["13/4/1985", "3-4-1985"],
                &["D/M/YYYY"],
                &[
                    "D/M/YYYY is proved: row 2",
                    "nothing proves D-M-YYYY or M-D-YYYY (row 3): say which is meant with --date-format",
                    "row 3: 3-4-1985 can be 3 April or 4 March",
                ],
            ),
            (&["4-Nov-1940", "November 4, 1940"], &["MMM D, YYYY", "D-MMM-YYYY"], &[]),
            (&["19851213"], &["YYYYMMDD"], &["YYYYMMDD is proved: row 2"]),
            (&["1985-12-10", "1985-12-10T00:00:00Z"], &["YYYY-MM-DD"], &[]),
            (&["1985-12-10", "31/2/1985", "1962", "N/A", ""], &[], &[]),
            (
                &["13.4.85", "4/13/85", "31385"],
                &[],
                &[
                    "years of two digits (row 3): say which hundred years are meant, such as --date-format 'M/D/YY from 1930'",
                    "years of two digits (row 2): say which hundred years are meant, such as --date-format 'D.M.YY from 1930'",
                    "numbers instead of dates (row 4): if a spreadsheet counted days, say so with --date-format 'serial 1900'",
                ],
            ),
        ];
        for (texts, proved, notes) in cases {
            let found = found(texts);
            assert_eq!((found.0, found.1), (owned(proved), owned(notes)), "{texts:?}");
        }
    }
}
