//! Reads a span to its end, page by page.

use crate::feed::mark::{FeedScope, Span};
use crate::feed::patient_feed::{Change, FeedError, PatientFeed, Selection};
use crate::ids::PatientId;

/// Passes every change of the span to `take`, patients first, in the order of their ids and from the one after `after`.
/// Then checks that the mark at its end still exists: a promoted standby may lack it. Do not reveal the mark before
/// this returns.
pub fn read_span<E: From<FeedError>>(
    feed: &mut dyn PatientFeed,
    scope: &FeedScope,
    span: &Span,
    selection: &Selection,
    mut after: Option<PatientId>,
    mut take: impl FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let page = feed.patients(scope, span, selection, after)?;
        for patient in page.items {
            take(Change::Stored(Box::new(patient)))?;
        }
        after = page.continued_after;
        if after.is_none() {
            break;
        }
    }
    loop {
        let page = feed.erasures(scope, span, after)?;
        for erasure in page.items {
            take(Change::Erased(erasure))?;
        }
        after = page.continued_after;
        if after.is_none() {
            break;
        }
    }
    feed.open(scope, span.until.token)?;
    Ok(())
}
