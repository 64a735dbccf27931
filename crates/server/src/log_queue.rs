//! The queue between the program and its log. A thread of its own writes the lines, so that a log which nobody reads (a
//! pipe that is full, a terminal that is paused) delays nothing else. Lines that find no room are dropped and counted.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Some 4,000 lines: enough for a reader that pauses, and little memory while nobody reads.
const BYTES_MAX: usize = 1024 * 1024;
/// What an idle queue keeps of its memory.
const IDLE_BYTES: usize = 16 * 1024;
/// Between two tries to write to a log that has no room and does not wait for it, either.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Lines that wait to be written.
pub(crate) struct LogQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: AtomicU64,
}

struct Waiting {
    lines: Vec<u8>,
    /// Whether lines that were taken are not written yet.
    is_writing: bool,
}

impl LogQueue {
    pub(crate) const fn new() -> Self {
        let waiting = Mutex::new(Waiting { lines: Vec::new(), is_writing: false });
        Self { waiting, changed: Condvar::new(), dropped: AtomicU64::new(0) }
    }

    /// How many lines were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes the lines, until the program ends. Calls `report` with the number of lines that are missing, once lines
    /// can be written again.
    pub(crate) fn write_to(&self, mut log: impl Write, report: impl Fn(u64)) {
        let (mut lines, mut reported, mut is_written) = (Vec::new(), 0, false);
        let mut report_dropped = |is_written| {
            let dropped = self.dropped();
            if is_written && dropped > reported {
                report(dropped - reported);
                reported = dropped;
            }
        };
        loop {
            // The queue has room for the report while nothing waits, and again once it was emptied.
            if self.lock().lines.is_empty() {
                report_dropped(is_written);
            }
            self.take(&mut lines);
            report_dropped(is_written);
            let written = write_all(&mut log, &lines);
            is_written = written.is_ok();
            if let Err(unwritten) = written {
                let lost = unwritten.iter().filter(|&&byte| byte == b'\n').count();
                self.dropped.fetch_add(lost as u64, Ordering::Relaxed);
            }
        }
    }

    /// Waits until everything is written, but not for longer than this.
    pub(crate) fn flush(&self, timeout: Duration) {
        let is_unwritten = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        let _ = self.changed.wait_timeout_while(self.lock(), timeout, is_unwritten);
    }

    /// Waits for lines and exchanges them for these, which are written.
    fn take(&self, lines: &mut Vec<u8>) {
        lines.clear();
        lines.shrink_to(IDLE_BYTES);
        let mut waiting = self.lock();
        waiting.is_writing = false;
        self.changed.notify_all();
        let is_empty = |waiting: &mut Waiting| waiting.lines.is_empty();
        waiting = self.changed.wait_while(waiting, is_empty).unwrap_or_else(PoisonError::into_inner);
        waiting.is_writing = true;
        std::mem::swap(lines, &mut waiting.lines);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds one line. Never fails and never waits for the log.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut waiting = self.lock();
        if waiting.lines.len() + line.len() > BYTES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            // Only then may the thread be asleep, and waking it costs a system call.
            if waiting.lines.is_empty() {
                self.changed.notify_all();
            }
            waiting.lines.extend_from_slice(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes everything, or returns what could not be written.
fn write_all<'a>(log: &mut impl Write, mut lines: &'a [u8]) -> Result<(), &'a [u8]> {
    while !lines.is_empty() {
        match log.write(lines) {
            Ok(0) => return Err(lines),
            Ok(written) => lines = lines.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(RETRY_PAUSE),
            Err(_) => return Err(lines),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    use super::*;

    const LINE: &[u8] = b"a line of the log\n";

    /// A queue whose thread writes to this.
    fn queue_to(log: impl Write + Send + 'static) -> &'static LogQueue {
        let queue: &'static LogQueue = Box::leak(Box::new(LogQueue::new()));
        let report = |missing| (&mut &*queue).write_all(format!("missing {missing}\n").as_bytes()).unwrap();
        std::thread::spawn(move || queue.write_to(log, report));
        queue
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_counted_and_reported() {
        let (log, reader) = UnixStream::pair().unwrap();
        let mut queue = queue_to(log);
        let all = 4 * BYTES_MAX / LINE.len();
        for _ in 0..all {
            queue.write_all(LINE).unwrap();
        }
        let dropped = queue.dropped();
        assert!(dropped > 0);
        let (mut read, mut missing) = (0, 0);
        for line in BufReader::new(reader).lines().map(Result::unwrap) {
            match line.strip_prefix("missing ") {
                Some(count) => missing += count.parse::<u64>().unwrap(),
                None => read += 1,
            }
            if missing == dropped && read + missing == all as u64 {
                return;
            }
        }
    }

    #[test]
    fn everything_is_written_before_a_flush_returns() {
        let (log, reader) = UnixStream::pair().unwrap();
        let mut queue = queue_to(log);
        queue.write_all(LINE).unwrap();
        queue.flush(Duration::from_secs(60));
        reader.set_nonblocking(true).unwrap();
        let mut read = [0; LINE.len()];
        (&reader).read_exact(&mut read).unwrap();
        assert_eq!(read, LINE);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_counted() {
        let mut queue = queue_to(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        queue.write_all(LINE).unwrap();
        queue.flush(Duration::from_secs(60));
        assert_eq!(queue.dropped(), 1);
    }
}
