//! The process of a running server, found by the pid file in its data folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

/// The file in a data folder that names the server's process.
pub(super) const PID_FILE: &str = "postmaster.pid";

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
