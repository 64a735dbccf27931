//! Values that the register takes, and that are probably wrong. Nothing is refused or changed because of them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use intake_domain::{Doubt, NewPatient};
use time::OffsetDateTime;

/// A family shares a phone number; a number in more rows is the practice's own, or was made up.
const ROWS_OF_ONE_PHONE: u32 = 20;

/// Title of these values.
pub(crate) const LOOK: &str = "probably wrong, and the register cannot correct them later";

/// A sign that a row is probably wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspicion {
    Doubt(Doubt),
    /// Number of rows with one phone number that this row adds: with the row that first shows it, all those before it.
    SharedNumber(u32),
}

/// Looks at the patients of a file, one after the other. Remembers eight bytes of each phone number.
#[derive(Default)]
pub(crate) struct Suspicions {
    phones: HashMap<u32, u32>,
    hasher: RandomState,
}

impl Suspicions {
    pub(crate) fn look(&mut self, patient: &NewPatient, now: OffsetDateTime) -> Vec<Suspicion> {
        // Half of the digest: twenty numbers of the same half are not met.
        let digest = (self.hasher.hash_one(patient.phone_number()) >> 32) as u32;
        let rows = self.phones.entry(digest).or_default();
        *rows += 1;
        let shared = match *rows {
            ..ROWS_OF_ONE_PHONE => None,
            ROWS_OF_ONE_PHONE => Some(Suspicion::SharedNumber(ROWS_OF_ONE_PHONE)),
            _ => Some(Suspicion::SharedNumber(1)),
        };
        patient.doubts(now).map(Suspicion::Doubt).chain(shared).collect()
    }
}

impl Suspicion {
    /// Number of rows that it is about.
    pub(crate) fn rows(self) -> u64 {
        if let Self::SharedNumber(rows) = self { rows.into() } else { 1 }
    }

    /// The sign with what to do about it.
    pub(crate) fn with_remedy(self) -> String {
        let remedy = match self {
            Self::Doubt(doubt) => doubt.remedy(),
            Self::SharedNumber(_) => "Check whose it is: only the 20th and later rows are marked.",
        };
        format!("with {self}. {remedy}")
    }
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Doubt(doubt) => doubt.meaning(),
            Self::SharedNumber(_) => "a phone number that 20 or more rows share",
        })
    }
}
