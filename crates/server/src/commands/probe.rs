//! Asks the service beside this program whether it lives or is ready: the health check of a container without curl.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// Longer than `/readyz` may take to ask a slow database.
const TIMEOUT: Duration = Duration::from_secs(4);
/// The answers are shorter by far, metrics included.
const ANSWER_MAX: u64 = 1 << 20;

/// Succeeds if the service answers 200 at `/livez` or `/readyz`; the error says what else it answered.
pub(crate) fn probe(admin: SocketAddr, path: &str) -> anyhow::Result<()> {
    fetch(admin, path).map(drop)
}

/// Returns the body of the answer, if its status is 200.
pub(crate) fn fetch(admin: SocketAddr, path: &str) -> anyhow::Result<String> {
    let address = reachable(admin);
    if address.port() == 0 {
        bail!("INTAKE_ADMIN_ADDR: the service chose the port; name the one that its log shows with --admin-addr");
    }
    let answer =
        ask(address, path).with_context(|| format!("the service does not answer at http://{address}{path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        status => bail!("{path}: {} {}", status.unwrap_or("no HTTP"), body.trim()),
    }
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

/// A service that listens on every address is asked on the loopback one.
fn reachable(admin: SocketAddr) -> SocketAddr {
    let ip = match admin.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, admin.port())
}
