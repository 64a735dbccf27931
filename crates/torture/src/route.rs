//! A network that drops every packet to one address. Needs root and the program `ip`.

use std::net::IpAddr;

use crate::disk::run;

/// Packets are dropped until this value is dropped.
pub(crate) struct Dropping(String);

/// Returns why packets cannot be dropped on this machine, if so.
pub(crate) fn is_missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root");
    }
    run("ip", &["-V"]).err().map(|_| "it needs the program ip (Debian: apt install iproute2)")
}

impl Dropping {
    pub(crate) fn to(address: IpAddr) -> anyhow::Result<Self> {
        let route = format!("{address}/32");
        run("ip", &["route", "add", "blackhole", &route, "table", "local"])?;
        Ok(Self(route))
    }
}

impl Drop for Dropping {
    fn drop(&mut self) {
        let _ = run("ip", &["route", "del", "blackhole", &self.0, "table", "local"]);
    }
}
