//! Exports traces to a collector of OpenTelemetry (OTLP over HTTP), if its standard variables name one. A request
//! never waits for the collector, and the end of the program hardly does.

mod collector;
mod queue;

use std::sync::OnceLock;

use anyhow::Context;
use intake_metrics::{MetricsText, record_spans};
use opentelemetry::KeyValue;
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter as _};

use collector::Collector;
use queue::SpanQueue;

/// Name of the program, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` says otherwise.
const NAME: &str = "intake";

static QUEUE: OnceLock<SpanQueue> = OnceLock::new();

/// Starts to export, if a collector is named.
pub(crate) fn start() -> anyhow::Result<()> {
    let is_named = |name| variable(name).is_some();
    let is_wanted = is_named("OTEL_EXPORTER_OTLP_ENDPOINT") || is_named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    if !is_wanted || variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(());
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Collector::new());
    let mut exporter = exporter.build().context("OTEL_EXPORTER_OTLP_ENDPOINT, or a variable beside it, is wrong")?;
    let resource = resource();
    exporter.set_resource(&resource);
    let queue = SpanQueue::start(exporter)?;
    let provider = SdkTracerProvider::builder().with_resource(resource).with_span_processor(queue.clone()).build();
    let _ = QUEUE.set(queue);
    record_spans(BoxedTracer::new(Box::new(provider.tracer(NAME))));
    tracing::info!("traces are exported");
    Ok(())
}

/// Lets the collector take the last spans, unless it took none before.
pub(crate) fn finish() {
    QUEUE.get().into_iter().for_each(SpanQueue::finish);
}

/// Writes all metrics of this module.
pub(crate) fn write_metrics(text: &mut MetricsText) {
    let dropped = QUEUE.get().map_or(0, SpanQueue::dropped);
    let help = "Spans of traces that were dropped: too many waited, or the collector did not take them.";
    text.counter("intake_spans_dropped_total", help, dropped);
}

/// Returns what is exported: this program, and what the standard variables say of it.
fn resource() -> Resource {
    let resource = Resource::builder_empty()
        .with_service_name(NAME)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())]);
    match variable("OTEL_SERVICE_NAME") {
        Some(name) => resource.with_service_name(name),
        None => resource,
    }
    .build()
}

/// The value of a variable. One that is empty counts as unset.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
