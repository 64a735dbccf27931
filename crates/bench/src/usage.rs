//! The processor time of processes, read from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::Context;

/// The processor time of a process, that of its children that have ended, and its parent.
fn times(process: u32) -> Option<(u64, u64, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let rest = stat.rsplit_once(')')?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let parent = u32::try_from(number(1)?).ok()?;
    Some((number(11)? + number(12)?, number(13)? + number(14)?, parent))
}

/// Processor time that a process has used.
pub(crate) fn of_process(process: u32) -> anyhow::Result<Duration> {
    let (own, _, _) = times(process).context("the process has gone")?;
    Ok(ticks(own))
}

/// Processor time that a server has used with all its children, those that have ended included.
pub(crate) fn of_family(server: u32) -> anyhow::Result<Duration> {
    let (own, ended, _) = times(server).context("the server has gone")?;
    let mut all = own + ended;
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((own, ended, parent)) = times(process)
            && parent == server
        {
            all += own + ended;
        }
    }
    Ok(ticks(all))
}

fn ticks(count: u64) -> Duration {
    Duration::from_secs(count) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100)
}
