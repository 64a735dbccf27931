//! What a build without the feature `otlp` has instead of spans: nothing, at no cost.

use std::time::Instant;

use crate::{StatementSpan, TraceParent};

/// The span of a request.
#[derive(Clone, Debug)]
pub struct RequestSpan;

/// The span of the request that is being served.
#[derive(Clone, Debug)]
pub struct CurrentSpan;

impl RequestSpan {
    /// Begins with a request.
    #[inline]
    #[must_use]
    pub fn start<'a>(_: &'static str, _: &str, _: impl FnOnce() -> Option<TraceParent<'a>>) -> Self {
        Self
    }

    /// The future, during which this is the [`CurrentSpan`].
    #[inline]
    pub fn around<F: Future>(&self, future: F) -> F {
        future
    }

    /// The ids of the trace and of the span.
    #[inline]
    #[must_use]
    pub fn ids(&self) -> Option<(String, String)> {
        None
    }

    /// Ends with the status of the answer.
    #[inline]
    pub fn end(&self, _: u16) {}
}

impl CurrentSpan {
    /// The span of the request that this thread is serving.
    #[inline]
    #[must_use]
    pub fn get() -> Self {
        Self
    }

    /// Returns whether anything is recorded.
    #[inline]
    #[must_use]
    pub fn are_recorded() -> bool {
        false
    }

    /// Adds the wait for the first statement.
    #[inline]
    pub fn record_wait(&self, _: Instant, _: Instant) {}

    /// Adds a statement.
    #[inline]
    pub fn record_statement(&self, _: &StatementSpan<'_>) {}
}
