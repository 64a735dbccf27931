//! Spans of traces: one for each request, one for its wait in the queue, and one for each statement that carried it.
//! They name routes, statuses and nodes, and never a patient, a key, an organisation or an address.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{
    FutureExt, Span, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue};

use crate::{StatementSpan, TraceParent};

/// Records the spans. Empty: they are not recorded.
static TRACER: OnceLock<BoxedTracer> = OnceLock::new();

/// Records spans from here on.
pub fn record_spans(tracer: BoxedTracer) {
    let _ = TRACER.set(tracer);
}

/// The span of a request. It ends when it is dropped, at the latest.
#[derive(Clone, Debug)]
pub struct RequestSpan(Option<Context>);

/// The span of the request that is being served.
#[derive(Clone, Debug)]
pub struct CurrentSpan(Option<Arc<Context>>);

impl RequestSpan {
    /// Begins with a request, as part of the caller's span if there is one.
    pub fn start<'a>(method: &'static str, route: &str, parent: impl FnOnce() -> Option<TraceParent<'a>>) -> Self {
        let Some(tracer) = TRACER.get() else { return Self(None) };
        let parent = parent()
            .and_then(context_of)
            .map_or_else(Context::new, |caller| Context::new().with_remote_span_context(caller));
        let attributes = [KeyValue::new("http.request.method", method), KeyValue::new("http.route", route.to_owned())];
        let span = tracer.span_builder(format!("{method} {route}")).with_kind(SpanKind::Server);
        let span = span.with_attributes(attributes).start_with_context(tracer, &parent);
        Self(Some(parent.with_span(span)))
    }

    /// The future, during which this is the [`CurrentSpan`].
    pub fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        future.with_context(self.0.clone().unwrap_or_default())
    }

    /// The ids of the trace and of the span.
    #[must_use]
    pub fn ids(&self) -> Option<(String, String)> {
        let context = self.0.as_ref()?.span().span_context().clone();
        Some((context.trace_id().to_string(), context.span_id().to_string()))
    }

    /// Ends with the status of the answer.
    pub fn end(&self, status: u16) {
        let Some(context) = &self.0 else { return };
        let span = context.span();
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status)));
        if status >= 500 {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

impl CurrentSpan {
    /// The span of the request that this thread is serving.
    #[must_use]
    pub fn get() -> Self {
        Self(Context::map_current(|context| context.span().is_recording().then(|| Arc::new(context.clone()))))
    }

    /// Returns whether anything is recorded.
    #[must_use]
    pub fn are_recorded() -> bool {
        TRACER.get().is_some()
    }

    /// Adds the wait for the first statement.
    pub fn record_wait(&self, since: Instant, until: Instant) {
        self.record("wait", SpanKind::Internal, since, until.saturating_duration_since(since), |_| {});
    }

    /// Adds a statement.
    pub fn record_statement(&self, statement: &StatementSpan<'_>) {
        let StatementSpan { sent, took, rows, is_stored, node } = *statement;
        self.record("statement", SpanKind::Client, sent, took, |span| {
            span.set_attribute(KeyValue::new("db.system.name", "postgresql"));
            span.set_attribute(KeyValue::new("intake.batch.rows", i64::try_from(rows).unwrap_or(i64::MAX)));
            if let Some(node) = node {
                span.set_attribute(KeyValue::new("intake.node", node.to_owned()));
            }
            if !is_stored {
                span.set_status(Status::error(""));
            }
        });
    }

    fn record(
        &self,
        name: &'static str,
        kind: SpanKind,
        since: Instant,
        took: Duration,
        describe: impl FnOnce(&mut <BoxedTracer as Tracer>::Span),
    ) {
        let (Some(tracer), Some(parent)) = (TRACER.get(), &self.0) else { return };
        let start = time_of(since);
        let span = tracer.span_builder(name).with_kind(kind).with_start_time(start);
        let mut span = span.start_with_context(tracer, parent);
        describe(&mut span);
        span.end_with_timestamp(start + took);
    }
}

fn context_of(parent: TraceParent<'_>) -> Option<SpanContext> {
    let trace = TraceId::from_hex(parent.trace_id).ok()?;
    let span = SpanId::from_hex(parent.span_id).ok()?;
    let flags = TraceFlags::default().with_sampled(parent.is_sampled);
    Some(SpanContext::new(trace, span, flags, true, TraceState::default()))
}

/// The time of day at this moment, which has passed.
fn time_of(moment: Instant) -> SystemTime {
    opentelemetry::time::now() - moment.elapsed()
}
