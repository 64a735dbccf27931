//! What the operating system says of this process, under the names that Prometheus' own libraries use.

use std::fs;

use intake_metrics::MetricsText;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// The fields of `/proc/self/stat` behind the program's name, which is in parentheses and may hold anything; the first
/// of them is the state.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const THREADS: usize = 17;
const STARTED_AT: usize = 19;
const VIRTUAL_MEMORY: usize = 20;
const RESIDENT_PAGES: usize = 21;

/// Writes them. Where there is no `/proc`, none.
pub(crate) fn write_metrics(text: &mut MetricsText) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return };
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = rest.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let ticks = clock_ticks_per_second().max(1) as f64;
    let processor_time = (field(USER_TIME) + field(SYSTEM_TIME)) as f64 / ticks;
    text.counter("process_cpu_seconds_total", "Processor time used.", processor_time);
    let started_at = booted_at().map(|booted_at| booted_at as f64 + field(STARTED_AT) as f64 / ticks);
    if let Some(started_at) = started_at {
        text.gauge("process_start_time_seconds", "When the process started, in seconds since 1970.", started_at);
    }
    text.gauge("process_threads", "Threads.", field(THREADS));
    text.gauge("process_virtual_memory_bytes", "Address space.", field(VIRTUAL_MEMORY));
    let resident = field(RESIDENT_PAGES) * page_size() as u64;
    text.gauge("process_resident_memory_bytes", "Memory in use.", resident);
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        // One of them is this folder.
        text.gauge("process_open_fds", "Open files and connections.", files.count().saturating_sub(1));
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        text.gauge("process_max_fds", "Open files and connections that there may be.", limit);
    }
}

/// Returns when the machine started, in seconds since 1970.
fn booted_at() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()
}
