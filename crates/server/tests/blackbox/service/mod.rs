//! The running program: settings, listeners, logs, metrics, start and stop.

mod certificates;
pub(crate) mod clocks;
mod environments;
mod listeners;
mod log;
pub(crate) mod metrics;
mod probes;
mod readiness;
mod request_log;
mod secrets;
mod stopping;
mod systemd;
