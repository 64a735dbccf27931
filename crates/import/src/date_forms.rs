//! Forms of dates that a file itself proves. Only a day over 12 tells day and month apart; years of two digits and days
//! that a spreadsheet counts are left to people.

use std::cmp::Reverse;

use intake_domain::conversions::{Conversion, DateForm, calendar_day, date};
use time::Date;

use crate::tally::Count;

/// Separators of day, month and year.
const SEPARATORS: [char; 4] = ['/', '-', '.', ' '];

/// Evidence in a column of dates.
pub(crate) struct DateForms {
    families: Vec<Family>,
    /// Days with a time at midnight.
    midnights: Count,
    short_forms: Vec<DateForm>,
    short_years: Count,
    serials: Count,
}

/// Forms that read the same texts as different days.
struct Family {
    forms: Vec<(DateForm, Count)>,
    /// Rows that several of the forms can read.
    unproved: Count,
}

impl DateForms {
    pub(crate) fn new() -> Self {
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
            let short =
                ["D/M/YY from 1900", "D/MMM/YY from 1900"].map(|short| short.replacen('/', &separator.to_string(), 2));
            short_forms.extend(short.iter().filter_map(|short| short.parse().ok()));
        }
        Self {
            families,
            midnights: Count::default(),
            short_forms,
            short_years: Count::default(),
            serials: Count::default(),
        }
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
        let is_short = self.short_forms.iter().any(|form| day(text, form).is_some());
        self.short_years.add_if(is_short, row);
        self.serials.add_if(text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit()), row);
    }

    /// The forms that are proved. Where a file mixes two, days that both can read stay refused.
    pub(crate) fn proved(&self) -> Vec<DateForm> {
        let mut proved: Vec<_> = self.families.iter().flat_map(Family::proved).map(|(form, _)| form.clone()).collect();
        if proved.is_empty() && self.midnights.rows > 0 {
            proved.extend("YYYY-MM-DD".parse());
        }
        proved
    }

    /// Returns what people should know about the dates.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<_> = self.families.iter().filter_map(Family::note_for_people).collect();
        if self.short_years.rows > 0 {
            notes.push(format!(
                "years of two digits ({}): say which hundred years are meant, such as --date-format 'D/M/YY from 1930'",
                self.short_years
            ));
        }
        if self.serials.rows > 0 {
            notes.push(format!(
                "numbers instead of dates ({}): if a spreadsheet counted days, say so with --date-format 'serial 1900'",
                self.serials
            ));
        }
        notes
    }
}

impl Family {
    fn note(&mut self, row: u64, text: &str) {
        let mut readable = self.forms.iter_mut().filter(|(form, _)| day(text, form).is_some());
        match (readable.next(), readable.next()) {
            (Some((_, only)), None) => only.add(row, 1),
            (Some(_), Some(_)) => self.unproved.add(row, 1),
            (None, _) => {}
        }
    }

    /// The forms that read rows which no other form can read, the one of the most rows first.
    fn proved(&self) -> Vec<&(DateForm, Count)> {
        let mut proved: Vec<_> = self.forms.iter().filter(|(_, only)| only.rows > 0).collect();
        proved.sort_by_key(|(_, only)| Reverse(only.rows));
        proved
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
    Family { forms: forms.collect(), unproved: Count::default() }
}

/// The day of the calendar that the form makes of the text.
fn day(text: &str, form: &DateForm) -> Option<Date> {
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
        let mut forms = DateForms::new();
        for (text, row) in texts.iter().zip(2..) {
            forms.note(row, text);
        }
        (forms.proved().iter().map(|form| form.as_str().to_owned()).collect(), forms.notes())
    }

    #[test]
    fn a_form_is_proved_by_a_day_over_12_alone() {
        let cases: [(&[&str], &[&str], &[&str]); 11] = [
            (&["3/4/1985", "13/4/1985"], &["D/M/YYYY"], &["D/M/YYYY is proved: row 3"]),
            (&["4/13/1985", "03/04/1985"], &["M/D/YYYY"], &["M/D/YYYY is proved: row 2"]),
            (
                &["3/4/1985", "3/3/1985"],
                &[],
                &["nothing proves D/M/YYYY or M/D/YYYY (rows 2, 3): say which is meant with --date-format"],
            ),
            (
                &["4/13/1985", "13/4/1985"],
                &["D/M/YYYY", "M/D/YYYY"],
                &["the file mixes D/M/YYYY in row 3 and M/D/YYYY in row 2"],
            ),
            (
                &["13/4/1985", "4/13/1985", "14/4/1985", "3/4/1985"],
                &["D/M/YYYY", "M/D/YYYY"],
                &["the file mixes D/M/YYYY in rows 2, 4 and M/D/YYYY in row 3, so what both can read stays refused \
                   (row 5): if D/M/YYYY is meant, give it alone and correct row 3"],
            ),
            (
                &["13/4/1985", "3-4-1985"],
                &["D/M/YYYY"],
                &[
                    "D/M/YYYY is proved: row 2",
                    "nothing proves D-M-YYYY or M-D-YYYY (row 3): say which is meant with --date-format",
                ],
            ),
            (&["4-Nov-1940", "November 4, 1940"], &["MMM D, YYYY", "D-MMM-YYYY"], &[]),
            (&["19851213"], &["YYYYMMDD"], &["YYYYMMDD is proved: row 2"]),
            (&["1985-12-10", "1985-12-10T00:00:00Z"], &["YYYY-MM-DD"], &[]),
            (&["1985-12-10", "31/2/1985", "1962", "N/A", ""], &[], &[]),
            (
                &["13/4/85", "31385"],
                &[],
                &[
                    "years of two digits (row 2): say which hundred years are meant, such as --date-format 'D/M/YY from 1930'",
                    "numbers instead of dates (row 3): if a spreadsheet counted days, say so with --date-format 'serial 1900'",
                ],
            ),
        ];
        for (texts, proved, notes) in cases {
            let found = found(texts);
            assert_eq!((found.0, found.1), (owned(proved), owned(notes)), "{texts:?}");
        }
    }
}
