//! The name of this instance among those of one register.

use std::net::SocketAddr;

use rustix::system::uname;

/// The machine's name, or the container's, and the port of the metrics, in which instances of one machine differ.
pub(crate) fn name(admin_addr: SocketAddr) -> String {
    format!("{}:{}", uname().nodename().to_string_lossy(), admin_addr.port())
}
