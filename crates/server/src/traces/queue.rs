//! The queue between requests and the collector. A thread of its own exports, so that a collector that is away or hangs
//! delays nothing else. Spans that find no room, or that the collector does not take, are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use tokio::runtime;

/// Some 8 MiB: a pause of a second at 2,500 creates a second.
const SPANS_MAX: usize = 8_192;
/// As OpenTelemetry recommends.
const BATCH_MAX: usize = 512;
/// Time for which spans wait for others to be exported with them.
const GATHER_TIME: Duration = Duration::from_secs(1);
/// Time for which the end of the program waits for the last spans, if the collector took those before.
const FINISH_TIMEOUT: Duration = Duration::from_millis(250);

/// Spans that wait to be exported.
#[derive(Clone, Debug)]
pub(crate) struct SpanQueue {
    waiting: SyncSender<Waiting>,
    outcome: Arc<Outcome>,
}

#[derive(Debug, Default)]
struct Outcome {
    dropped: AtomicU64,
    /// True if the collector took the spans that were last sent to it.
    is_taken: AtomicBool,
}

#[derive(Debug)]
enum Waiting {
    Span(Box<SpanData>),
    /// Nothing comes after this. The sender is dropped once all before is exported.
    End(SyncSender<()>),
}

impl SpanQueue {
    /// Starts to export what is put into the queue.
    pub(crate) fn start(exporter: impl SpanExporter + 'static) -> std::io::Result<Self> {
        let (waiting, receiver) = sync_channel(SPANS_MAX);
        let outcome = Arc::new(Outcome::default());
        let (runtime, noted) = (runtime::Builder::new_current_thread().build()?, Arc::clone(&outcome));
        Builder::new().name("traces".to_owned()).spawn(move || {
            while let Ok(first) = receiver.recv() {
                let (batch, end) = gather(first, &receiver);
                let count = batch.len();
                let is_taken = batch.is_empty() || runtime.block_on(exporter.export(batch)).is_ok();
                noted.is_taken.store(is_taken, Ordering::Relaxed);
                if !is_taken {
                    noted.dropped.fetch_add(count as u64, Ordering::Relaxed);
                }
                if end.is_some() {
                    return;
                }
            }
        })?;
        Ok(Self { waiting, outcome })
    }

    /// Returns how many spans were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.outcome.dropped.load(Ordering::Relaxed)
    }

    /// Lets the collector take the last spans, unless it did not take those before.
    pub(crate) fn finish(&self) {
        let (end, ended) = sync_channel(0);
        if self.outcome.is_taken.load(Ordering::Relaxed) && self.waiting.try_send(Waiting::End(end)).is_ok() {
            let _ = ended.recv_timeout(FINISH_TIMEOUT);
        }
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.waiting.try_send(Waiting::Span(Box::new(span))).is_err() {
            self.outcome.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Adds those that come soon after the first, and the end if it is among them.
fn gather(first: Waiting, waiting: &Receiver<Waiting>) -> (Vec<SpanData>, Option<SyncSender<()>>) {
    let until = Instant::now() + GATHER_TIME;
    let (mut batch, mut next) = (Vec::new(), Ok(first));
    loop {
        match next {
            Ok(Waiting::Span(span)) => batch.push(*span),
            Ok(Waiting::End(end)) => return (batch, Some(end)),
            Err(_) => return (batch, None),
        }
        if batch.len() == BATCH_MAX {
            return (batch, None);
        }
        next = waiting.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::SystemTime;

    use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
    use opentelemetry_sdk::error::OTelSdkError;
    use opentelemetry_sdk::trace::{SpanEvents, SpanLinks};

    use super::*;

    /// A collector that answers once it is allowed to, and takes nothing.
    #[derive(Debug)]
    struct Held(Mutex<Receiver<()>>);

    impl SpanExporter for Held {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            let _ = self.0.lock().unwrap().recv();
            Err(OTelSdkError::InternalFailure(String::new()))
        }
    }

    fn span() -> SpanData {
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Server,
            name: "one".into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: opentelemetry::InstrumentationScope::default(),
        }
    }

    #[test]
    fn spans_that_find_no_room_or_are_not_taken_are_dropped_and_counted() {
        let (allow, held) = sync_channel(1);
        let queue = SpanQueue::start(Held(Mutex::new(held))).unwrap();
        let added = SPANS_MAX + 2 * BATCH_MAX;
        (0..added).for_each(|_| queue.on_end(span()));
        // One batch, at most, was taken from the queue.
        let without_room = queue.dropped();
        assert!(without_room >= BATCH_MAX as u64 && without_room <= 2 * BATCH_MAX as u64, "{without_room}");
        let asked = Instant::now();
        queue.finish();
        assert!(asked.elapsed() < FINISH_TIMEOUT, "a collector that took nothing is not waited for");
        drop(allow);
        while queue.dropped() < added as u64 {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(queue.dropped(), added as u64);
    }
}
