//! Other processes: finds, freezes and kills them, and reads how much memory they use.

use std::fs;
use std::io;
use std::process::Command;

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
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything.
        let of = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        if of == Some(parent) {
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

/// The most memory that a process has used so far, in bytes.
pub fn peak_memory(process: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes * 1024).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, signal);
    }
}
