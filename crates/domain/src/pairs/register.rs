//! The port by which patients are found that may be one person with others.

use crate::feed::mark::{FeedScope, Mark};
use crate::feed::patient_feed::{FeedError, Page};
use crate::ids::PatientId;
use crate::pairs::clues::PairClues;
use crate::patients::stored::StoredPatient;

/// A register that is searched without being read as a whole. Patients that the mark did not see are left out: a
/// later search has them.
pub trait PairRegister {
    /// The patients after this id that fit one of the clues.
    fn resembling(
        &mut self,
        scope: &FeedScope,
        until: &Mark,
        clues: &PairClues,
        after: Option<PatientId>,
    ) -> Result<Page<StoredPatient>, FeedError>;

    /// First names as they were sent, and how many patients have each: those that begin with one of these characters
    /// in either case, or with something else than a letter from A to Z or a digit.
    fn first_names(
        &mut self,
        scope: &FeedScope,
        until: &Mark,
        initials: &[String],
    ) -> Result<Vec<(String, u64)>, FeedError>;
}
