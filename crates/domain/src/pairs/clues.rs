//! Clues by which a register finds everyone who may be one person with some of its patients. The register cannot
//! fold texts, so a few others fit, too.

use crate::pairs::folded::FoldedPatient;

/// Values that patients have in common with everyone who is worth comparing with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairClues {
    /// Birth dates, as `YYYY-MM-DD`.
    pub birth_dates: Vec<String>,
    /// For those whose birth date is wrong in one part: the parts that are right, a slash, and something by which
    /// the patient can be reached. The parts are `YYYY-MM`, `YYYY DD`, `MM-DD`, or `YYYY-MM-DD` with day and month
    /// in each other's place. They can be reached by a telephone number, without the 0 after +61; an email address
    /// in lower case; or the digits of both lines of an address.
    pub contacts: Vec<String>,
}

impl PairClues {
    /// The clues to these patients.
    #[must_use]
    pub fn new(patients: &[FoldedPatient]) -> Self {
        let mut clues = Self::default();
        for patient in patients {
            // Without a birth date there is no pair.
            let Some([year, month, day]) = patient.birth_date else { continue };
            clues.birth_dates.push(format!("{year:04}-{month:02}-{day:02}"));
            let street = patient.street.as_ref().map(|street| street.chars().filter(char::is_ascii_digit).collect());
            let contacts = [Some(format!("+{}", patient.phone)), patient.email.clone(), street];
            for contact in contacts.into_iter().flatten() {
                clues.contacts.extend([
                    format!("{year:04}-{month:02}/{contact}"),
                    format!("{year:04} {day:02}/{contact}"),
                    format!("{month:02}-{day:02}/{contact}"),
                    format!("{year:04}-{day:02}-{month:02}/{contact}"),
                ]);
            }
        }
        clues
    }
}
