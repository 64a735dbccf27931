//! Patients as they are in the register now.

use intake_domain::{FeedError, FeedScope, Mark, PatientFeed as _, PatientId, Selection, Span, StoredPatient};
use intake_infra::PostgresPatientFeed;

/// The register, read over a connection of its own.
pub(crate) struct Register {
    feed: PostgresPatientFeed,
    scope: FeedScope,
}

impl Register {
    pub(crate) fn new(feed: PostgresPatientFeed, scope: FeedScope) -> Self {
        Self { feed, scope }
    }

    /// None: there is no such patient.
    pub(crate) fn patient(&mut self, id: PatientId) -> Result<Option<StoredPatient>, FeedError> {
        // A patient who is read by id needs no span.
        let mark = Mark { token: None, next: 0, running: Vec::new() };
        let span = Span { since: mark.clone(), until: mark };
        let page = self.feed.patients(&self.scope, &span, &Selection::These(vec![id]), None)?;
        Ok(page.items.into_iter().next())
    }
}
