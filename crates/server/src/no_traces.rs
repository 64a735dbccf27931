//! What a build without the feature `otlp` has instead of traces.

use intake_metrics::MetricsText;

/// Warns of a collector that is named and gets nothing.
pub(crate) fn start() -> anyhow::Result<()> {
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some(variable) = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"].iter().find(is_set) {
        tracing::warn!(variable, "no traces are exported: this program is built without the feature otlp");
    }
    Ok(())
}

/// Does nothing.
pub(crate) fn finish() {}

/// Writes nothing.
pub(crate) fn write_metrics(_: &mut MetricsText) {}
