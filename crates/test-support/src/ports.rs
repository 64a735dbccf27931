//! Ports for programs that cannot choose a free one by themselves and tell it, or that come back on the same one.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to connections and to listeners that ask for any: between the look and the use,
/// such a port could be taken by any program.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port of this machine that nobody listens on, and that this process gets once.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that run at the same time begin at different places.
    let start = u16::try_from(std::process::id() * 97 % u32::from(COUNT)).unwrap_or_default();
    let ports = (0..COUNT).map(|_| FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.into_iter().find(is_free).expect("a free port")
}
