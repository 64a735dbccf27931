//! Lines on standard error, because standard output holds patients.

use std::io::{Write as _, stderr};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Prints a line. Not by a macro, which would hide a failed write.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    writeln!(stderr(), "{line}").context("standard error cannot be written")
}

/// Returns whether standard error takes a line at once. The reader of a stream that goes on may leave it unread.
pub(crate) fn has_room() -> bool {
    let stderr = stderr();
    let mut watched = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && watched.iter().all(|watched| watched.revents() == PollFlags::OUT)
}
