//! Reads a span to its end, page by page.

use crate::feed::mark::{FeedScope, Span};
use crate::feed::patient_feed::{Change, FeedError, PatientFeed, Selection};

/// Hands every change of the span to `take`, the patients first, and then makes sure that the mark at its end is still
/// there: a standby that took over in between may not know it. Only when this has returned may the mark be shown to
/// anybody.
pub fn read_span<E: From<FeedError>>(
    feed: &mut dyn PatientFeed,
    scope: &FeedScope,
    span: &Span,
    selection: &Selection,
    mut take: impl FnMut(Change) -> Result<(), E>,
) -> Result<(), E> {
    let mut after = None;
    loop {
        let page = feed.patients(scope, span, selection, after).map_err(FeedError::from)?;
        for patient in page.items {
            take(Change::Stored(Box::new(patient)))?;
        }
        after = page.continued_after;
        if after.is_none() {
            break;
        }
    }
    loop {
        let page = feed.erasures(scope, span, after).map_err(FeedError::from)?;
        for erasure in page.items {
            take(Change::Erased(erasure))?;
        }
        after = page.continued_after;
        if after.is_none() {
            break;
        }
    }
    feed.open(scope, span.until.token).map_err(E::from)?;
    Ok(())
}
