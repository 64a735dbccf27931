//! The process of a running server, found by the pid file in its data folder.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;

/// The file in a data folder that names the server's process.
pub(super) const PID_FILE: &str = "postmaster.pid";
/// Time that a server that has just made this file may take to write it.
const WRITING: Duration = Duration::from_secs(1);

/// The running process of the server with this data folder. A process of another program with the same number does not
/// count.
pub(super) fn running(data: &Path) -> Option<Pid> {
    let process = noted(data)?;
    let arguments = arguments(process)?;
    arguments.contains(&*data.to_string_lossy()).then_some(process)
}

/// The process that the pid file names, whether or not it is the server.
pub(super) fn noted(data: &Path) -> Option<Pid> {
    let pid_file = fs::read_to_string(data.join(PID_FILE)).ok()?;
    Pid::from_raw(pid_file.lines().next()?.trim().parse().ok()?)
}

/// A server makes its pid file and then writes it: a power cut in between leaves an empty one, with which no server
/// starts again. It says nothing about processes of an earlier one.
pub(super) fn remove_empty_pid_file(data: &Path) -> io::Result<()> {
    let path = data.join(PID_FILE);
    let Ok(file) = fs::metadata(&path) else { return Ok(()) };
    let is_being_written = file.modified()?.elapsed().is_ok_and(|age| age < WRITING);
    if file.len() == 0 && !is_being_written { fs::remove_file(path) } else { Ok(()) }
}

/// The child processes, on systems that list them in `/proc`.
pub(super) fn children(process: Pid) -> Vec<Pid> {
    let number = process.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect()
}

fn arguments(process: Pid) -> Option<String> {
    let number = process.as_raw_nonzero();
    if let Ok(arguments) = fs::read(format!("/proc/{number}/cmdline")) {
        return Some(String::from_utf8_lossy(&arguments).replace('\0', " "));
    }
    if Path::new("/proc/self").exists() {
        return None;
    }
    let output = Command::new("ps").args(["-p", &number.to_string(), "-o", "args="]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
