//! The port to the change feed, and what comes out of it.

use time::OffsetDateTime;

use crate::feed::mark::{FeedRefusal, FeedScope, FeedToken, Mark, Span};
use crate::ids::PatientId;
use crate::patients::stored::StoredPatient;
use crate::store_error::StoreError;

/// A patient that was erased: readers delete their copy. A reader that never got the patient ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The id that the patient had.
    pub id: PatientId,
    /// Time at which it was erased.
    pub erased_at: OffsetDateTime,
}

/// One thing that happened to the register.
#[derive(Debug)]
pub enum Change {
    /// A patient was stored.
    Stored(Box<StoredPatient>),
    /// A patient was erased.
    Erased(Erasure),
}

/// Which patients a span holds.
#[derive(Clone, Debug)]
pub enum Selection {
    /// These, the smallest id first.
    These(Vec<PatientId>),
    /// More than are kept by their ids.
    Many {
        /// Number of patients.
        count: u64,
        /// Some of their ids, the smallest first. Up to each of them, and after the last one, there are about a page.
        ends: Vec<PatientId>,
    },
}

impl Selection {
    /// Returns how many patients were selected.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::These(ids) => u64::try_from(ids.len()).unwrap_or(u64::MAX),
            Self::Many { count, .. } => *count,
        }
    }
}

/// Some of the patients or erasures of a span, the smallest id first.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Content of the page: perhaps nothing, although there are further pages.
    pub items: Vec<T>,
    /// The id after which the next page begins. None: this was the last one.
    pub continued_after: Option<PatientId>,
}

/// Reason why a feed gives nothing out.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum FeedError {
    /// It cannot be read, or not from there on.
    #[error(transparent)]
    Refused(#[from] FeedRefusal),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The change feed over one connection. What is asked for is stated by marks, so that every call may run again, over
/// another connection too, and gives the same. A role that may not read the patients is refused, and never gets fewer.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait PatientFeed {
    /// The mark of a token, or the beginning, if the feed can be read from there on.
    fn open(&mut self, scope: &FeedScope, since: Option<FeedToken>) -> Result<Mark, FeedError>;

    /// Makes a mark of this moment, and returns when it survives any crash. Nothing may be given out before.
    /// `superseded` is an earlier mark of the same run, which has printed a later one since; it is not kept for long.
    fn mark(&mut self, scope: &FeedScope, superseded: Option<FeedToken>) -> Result<Mark, FeedError>;

    /// Records that this many patients were exported up to this mark, and to which role.
    fn record(&mut self, scope: &FeedScope, until: FeedToken, patients: u64) -> Result<(), FeedError>;

    /// Returns whether anything was committed that the mark did not see. Writes nothing.
    fn has_news(&mut self, scope: &FeedScope, since: &Mark) -> Result<bool, FeedError>;

    /// Which patients are in the span.
    fn select(&mut self, scope: &FeedScope, span: &Span) -> Result<Selection, FeedError>;

    /// The selected patients after this id that are still there.
    fn patients(
        &mut self,
        scope: &FeedScope,
        span: &Span,
        selection: &Selection,
        after: Option<PatientId>,
    ) -> Result<Page<StoredPatient>, FeedError>;

    /// The erasures of the span after this id.
    fn erasures(
        &mut self,
        scope: &FeedScope,
        span: &Span,
        after: Option<PatientId>,
    ) -> Result<Page<Erasure>, FeedError>;
}
