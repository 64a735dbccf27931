//! Writes the lines of the log on the thread of `tracing-appender`, whose queue drops what it has no room for. Counts
//! the lines that could not be written, too, and reports how many are missing.

use std::io::{ErrorKind, Result, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use intake_edge as edge;
use intake_metrics::Counter;
use time::OffsetDateTime;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Enough for a reader that pauses, and some 1 MiB while nobody reads.
const LINES_MAX: usize = 4_096;
/// Between two tries to write to a log that has no room and does not wait for it, either.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Between two reports while lines keep being dropped.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// The lines that are missing from the log.
#[derive(Clone, Default)]
pub(crate) struct Missing(Arc<Counts>);

#[derive(Default)]
struct Counts {
    without_room: OnceLock<ErrorCounter>,
    unwritten: Counter,
}

impl Missing {
    /// Counts the lines so far.
    pub(crate) fn count(&self) -> u64 {
        let without_room = self.0.without_room.get().map_or(0, ErrorCounter::dropped_lines);
        self.0.unwritten.get().saturating_add(without_room as u64)
    }
}

/// Starts the thread that writes to this log. It calls `report` with the number of lines that are missing and the last
/// moment before, once lines can be written again.
pub(crate) fn start(
    log: impl Write + Send + 'static,
    report: impl Fn(u64, OffsetDateTime) + Send + 'static,
) -> (NonBlocking, WorkerGuard, Missing) {
    let missing = Missing::default();
    let output = Output {
        log,
        report,
        missing: missing.clone(),
        reported: 0,
        reported_at: None,
        whole_until: edge::machine_time(),
        was_idle: true,
        is_written: false,
    };
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_MAX).thread_name("log");
    let (lines, guard) = builder.finish(output);
    let _ = missing.0.without_room.set(lines.error_counter());
    (lines, guard, missing)
}

struct Output<W, F> {
    log: W,
    report: F,
    missing: Missing,
    reported: u64,
    reported_at: Option<Instant>,
    /// The last moment at which no line was missing that was not reported.
    whole_until: OffsetDateTime,
    /// No line waited. A burst can fill the queue before the first line of it gets here.
    was_idle: bool,
    /// Otherwise a report would be lost, too.
    is_written: bool,
}

impl<W: Write, F: Fn(u64, OffsetDateTime)> Output<W, F> {
    /// Reports the lines that are missing since the last report. A report that finds no room is missing itself.
    fn report(&mut self) {
        let missing = self.missing.count();
        if self.is_written && missing > self.reported {
            (self.report)(missing - self.reported, self.whole_until);
            self.reported_at = Some(Instant::now());
            if self.missing.count() == missing {
                self.reported = missing;
            }
        }
    }
}

impl<W: Write, F: Fn(u64, OffsetDateTime)> Write for Output<W, F> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // Before a write that may wait for the reader for hours.
        if std::mem::take(&mut self.was_idle) || self.missing.count() == self.reported {
            self.whole_until = edge::machine_time();
        }
        if self.reported_at.is_some_and(|at| at.elapsed() >= REPORT_PAUSE) {
            self.report();
        }
        loop {
            match self.log.write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_PAUSE),
                written => {
                    self.is_written = matches!(written, Ok(1..));
                    if !self.is_written {
                        self.missing.0.unwritten.add_one();
                    }
                    return written;
                }
            }
        }
    }

    /// The thread calls this when no line waits, and there is room for a report.
    fn flush(&mut self) -> Result<()> {
        self.report();
        self.was_idle = self.missing.count() == self.reported;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    use super::*;

    const LINE: &[u8] = b"a line of the log\n";

    /// Lines for this log, which reports in a line of its own.
    fn lines_for(log: impl Write + Send + 'static) -> (NonBlocking, WorkerGuard, Missing) {
        let itself = Arc::<OnceLock<NonBlocking>>::default();
        let queue = Arc::clone(&itself);
        let report = move |lines, since: OffsetDateTime| {
            let line = format!("missing {lines} {}\n", since.unix_timestamp_nanos());
            queue.get().unwrap().clone().write_all(line.as_bytes()).unwrap();
        };
        let started = start(log, report);
        itself.set(started.0.clone()).unwrap();
        started
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_counted_and_reported() {
        let (log, reader) = UnixStream::pair().unwrap();
        let (mut lines, _guard, counted) = lines_for(log);
        std::thread::sleep(Duration::from_millis(100));
        let unread = edge::machine_time();
        // More than the queue and the socket hold.
        let all = 20 * LINES_MAX as u64;
        (0..all).for_each(|_| lines.write_all(LINE).unwrap());
        let dropped = counted.count();
        assert!(dropped > 0);
        let written = edge::machine_time();
        // The lines that were dropped are older than all of this.
        std::thread::sleep(Duration::from_millis(100));
        let (mut read, mut missing) = (0, 0);
        for line in BufReader::new(reader).lines().map(Result::unwrap) {
            match line.strip_prefix("missing ").and_then(|numbers| numbers.split_once(' ')) {
                Some((count, since)) => {
                    let since = OffsetDateTime::from_unix_timestamp_nanos(since.parse().unwrap()).unwrap();
                    assert!(missing > 0 || (unread..=written).contains(&since), "{unread}, {since}, {written}");
                    missing += count.parse::<u64>().unwrap();
                }
                None => read += 1,
            }
            if missing == dropped && read + missing == all {
                return;
            }
        }
    }

    #[test]
    fn everything_is_written_before_the_guard_is_dropped() {
        let (log, reader) = UnixStream::pair().unwrap();
        let (mut lines, guard, _) = lines_for(log);
        lines.write_all(LINE).unwrap();
        drop(guard);
        reader.set_nonblocking(true).unwrap();
        let mut read = [0; LINE.len()];
        (&reader).read_exact(&mut read).unwrap();
        assert_eq!(read, LINE);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (mut lines, guard, missing) = lines_for(full);
        (0..3).for_each(|_| lines.write_all(LINE).unwrap());
        drop(guard);
        assert_eq!(missing.count(), 3);
    }
}
