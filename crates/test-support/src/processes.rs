//! Other processes: finds, freezes and kills them, and reads what they use.

use std::fs;
use std::io;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Processes that are frozen until this is dropped. To others they look as if they hang.
#[derive(Debug)]
pub struct Frozen {
    processes: Vec<u32>,
}

impl Frozen {
    /// Freezes one process.
    #[must_use]
    pub fn one(process: u32) -> Self {
        Self::all(vec![process])
    }

    /// Freezes processes in this order.
    #[must_use]
    pub fn all(processes: Vec<u32>) -> Self {
        processes.iter().for_each(|&process| signal(process, Signal::STOP));
        Self { processes }
    }

    /// Freezes a process and its children. The parent comes first, so that it starts no more of them.
    pub fn family(parent: u32) -> io::Result<Self> {
        let mut frozen = Self::one(parent);
        for child in children(parent)? {
            signal(child, Signal::STOP);
            frozen.processes.push(child);
        }
        Ok(frozen)
    }

    /// Kills the frozen processes, and returns which they were.
    pub fn kill(mut self) -> Vec<u32> {
        let processes = std::mem::take(&mut self.processes);
        processes.iter().for_each(|&process| signal(process, Signal::KILL));
        processes
    }
}

impl Drop for Frozen {
    /// Wakes the processes. The signal has no effect on those that were killed.
    fn drop(&mut self) {
        self.processes.iter().for_each(|&process| signal(process, Signal::CONT));
    }
}

/// The children of a process.
pub fn children(parent: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if stat(process).and_then(|stat| stat.get(1)?.parse().ok()) == Some(parent) {
            found.push(process);
        }
    }
    Ok(found)
}

/// Kills a process, if it is still running.
pub fn kill(process: u32) {
    signal(process, Signal::KILL);
}

/// Sends a signal, by its name, to a process, or to a group whose number has a minus before it.
pub fn send(signal: &str, to: &str) {
    // The shell has its own `kill`; the program of that name is missing from minimal systems.
    let status = Command::new("sh").args(["-c", "kill -s \"$0\" -- \"$1\"", signal, to]).status();
    assert!(status.expect("a shell").success(), "{to} cannot be sent {signal}");
}

/// Processor time that a process has used, with all its threads, those that have ended included.
pub fn processor_time(process: u32) -> io::Result<Duration> {
    ticks(process, 11..13)
}

/// Processor time that a process and its children have used, those that have ended included.
pub fn processor_time_of_family(parent: u32) -> io::Result<Duration> {
    let mut all = ticks(parent, 11..15)?;
    for child in children(parent)? {
        // Which may have ended meanwhile.
        all += ticks(child, 11..15).unwrap_or_default();
    }
    Ok(all)
}

/// The most memory that a process has used so far, in bytes.
pub fn peak_memory(process: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes * 1024).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns what `/proc` says of a process, from its state on.
fn stat(process: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// The sum of these fields, which count ticks of the clock.
fn ticks(process: u32, fields: Range<usize>) -> io::Result<Duration> {
    let stat = stat(process).ok_or(io::ErrorKind::NotFound)?;
    let count: u64 = stat.get(fields).into_iter().flatten().filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_secs(count) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100))
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn processor_time_includes_threads_that_have_ended() {
        const COMPUTED: Duration = Duration::from_millis(100);
        let before = processor_time(std::process::id()).unwrap();
        let compute = || {
            let started_at = Instant::now();
            while started_at.elapsed() < 10 * COMPUTED {
                std::hint::black_box(0);
            }
        };
        std::thread::spawn(compute).join().unwrap();
        assert!(processor_time(std::process::id()).unwrap() >= before + COMPUTED);
    }
}
