//! Patients as they are in the register now.

use std::collections::HashMap;
use std::mem::take;
use std::sync::Mutex;

use intake_domain::{FeedError, FeedScope, Mark, PatientFeed as _, PatientId, Selection, Span, StoredPatient};
use intake_infra::{Backlog, PostgresPatientFeed};

use crate::commands::deliver::lock::lock;

/// The register, read over a connection of its own. Who asks while another reads is answered by the next reading.
pub(crate) struct Register {
    scope: FeedScope,
    asked: Mutex<Vec<PatientId>>,
    reading: Mutex<Reading>,
}

struct Reading {
    feed: PostgresPatientFeed,
    /// Answers that were not fetched.
    found: HashMap<PatientId, Option<StoredPatient>>,
}

impl Register {
    pub(crate) fn new(feed: PostgresPatientFeed, scope: FeedScope) -> Self {
        let reading = Reading { feed, found: HashMap::new() };
        Self { scope, asked: Mutex::default(), reading: Mutex::new(reading) }
    }

    /// Counts the changes since this mark, without the patients up to this one.
    pub(crate) fn backlog(&self, since: &Mark, after: Option<PatientId>) -> Result<Backlog, FeedError> {
        lock(&self.reading).feed.backlog(&self.scope, since, after)
    }

    /// None: there is no such patient. Each patient is asked for by one caller at a time.
    pub(crate) fn patient(&self, id: PatientId) -> Result<Option<StoredPatient>, FeedError> {
        lock(&self.asked).push(id);
        let mut reading = lock(&self.reading);
        if let Some(found) = reading.found.remove(&id) {
            return Ok(found);
        }
        let mut ids = take(&mut *lock(&self.asked));
        // The reading that was to answer may have failed.
        ids.push(id);
        ids.sort_unstable();
        ids.dedup();
        // Patients who are read by id need no span.
        let mark = Mark { token: None, next: 0, running: Vec::new() };
        let span = Span { since: mark.clone(), until: mark };
        let page = reading.feed.patients(&self.scope, &span, &Selection::These(ids.clone()), None)?;
        reading.found.extend(ids.into_iter().map(|id| (id, None)));
        reading.found.extend(page.items.into_iter().map(|patient| (patient.id, Some(patient))));
        Ok(reading.found.remove(&id).flatten())
    }
}
