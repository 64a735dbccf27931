//! `just bench --crowd`: ten times more clients than can be served, a database too slow for them, and clients that
//! stall. Measures how this affects other clients.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::load::{self, Listener};
use crate::median::median;
use crate::open_loop;
use crate::stage::Stage;

/// As many clients as keep the service and the database busy, and ten times more.
const SATURATED: usize = 512;
const CROWD: usize = 5_120;
/// Number of clients that stall.
const STALLED: usize = 5_000;
/// Longer than a client may stall.
const PATIENCE: Duration = Duration::from_secs(15);
/// Connections of the open loops: enough that no request waits for a free one.
const CONNECTIONS: usize = 64;
const LANES: usize = 4_096;

/// Adds what was found to the table.
pub(crate) fn measure(
    fast: &mut Stage<'_>,
    slow: &mut Stage<'_>,
    rounds: usize,
    time: Duration,
    table: &mut String,
) -> anyhow::Result<()> {
    measure_crowd(fast, rounds, time, table)?;
    slow.slow_down()?;
    measure_overload(slow, rounds, time, table)?;
    measure_stalled(fast, rounds, time, table)
}

fn measure_crowd(fast: &mut Stage<'_>, rounds: usize, time: Duration, table: &mut String) -> anyhow::Result<()> {
    let (mut saturated, mut crowded) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round}, {SATURATED} and {CROWD} connections");
        saturated.push(fast.load(Listener::Plain, SATURATED, time)?);
        crowded.push(fast.load(Listener::Plain, CROWD, time)?);
    }
    let (saturated, crowded) = (load::median(&saturated), load::median(&crowded));
    let _ = writeln!(
        table,
        "| creates a second at {CROWD} connections ÷ at {SATURATED} | {:.0} ÷ {:.0} = {:.2} | 0.9 |\n\
         | p99 at {CROWD} connections; service's processor time for a patient there ÷ at {SATURATED} | {:.0} ms; {:.1} ÷ {:.1} µs | |",
        crowded.creates,
        saturated.creates,
        crowded.creates / saturated.creates,
        crowded.p99,
        crowded.service_cpu,
        saturated.service_cpu
    );
    Ok(())
}

fn measure_overload(slow: &mut Stage<'_>, rounds: usize, time: Duration, table: &mut String) -> anyhow::Result<()> {
    let (mut peak, mut goodput, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round}, ten times more than a slow database can store");
        let saturated = slow.load(Listener::Plain, SATURATED, time)?.creates;
        let outcome = slow.overload(10.0 * saturated, LANES, time)?;
        peak.push(saturated);
        goodput.push(outcome.created as f64 / time.as_secs_f64());
        refusals.push(outcome.refusals);
    }
    let (peak, goodput, refusals) = (median(peak), median(goodput), open_loop::median(&refusals));
    let _ = writeln!(
        table,
        "| creates a second of a slow database at 10 × its peak ÷ that | {goodput:.0} ÷ {peak:.0} = {:.2} | 0.9 |\n\
         | the {:.0} refusals a second then: p50, p99 | {:.1} ms, {:.1} ms | 50 ms |",
        goodput / peak,
        refusals.rate,
        refusals.p50,
        refusals.p99
    );
    Ok(())
}

fn measure_stalled(fast: &mut Stage<'_>, rounds: usize, time: Duration, table: &mut String) -> anyhow::Result<()> {
    let (mut alone, mut beside, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let rate = 5_000.0;
    for round in 1..=rounds {
        eprintln!("round {round}, without and with {STALLED} stalled connections");
        alone.push(fast.open_loop(rate, CONNECTIONS, time)?.p99);
        let started = Instant::now();
        let stalled = stall(fast)?;
        beside.push(fast.open_loop(rate, CONNECTIONS, time)?.p99);
        wait_until_closed(stalled)?;
        gone.push(started.elapsed().as_secs_f64());
    }
    let (alone, beside) = (median(alone), median(beside));
    let _ = writeln!(
        table,
        "| p99 at {rate:.0} requests a second, with ÷ without {STALLED} stalled connections | {beside:.2} ms ÷ {alone:.2} ms = {:.2} | 1.5 |\n\
         | all of them opened and closed again after | {:.1} s | 15 s |",
        beside / alone,
        median(gone)
    );
    Ok(())
}

/// Opens connections that stall: in a handshake, in a head or in a body, over TLS and in clear.
fn stall(stage: &Stage<'_>) -> anyhow::Result<Vec<TcpStream>> {
    let (plain, https) = (stage.plain()?, stage.https()?);
    let request = stage.request()?;
    let half = request.get(..request.len() / 4).context("half a head")?;
    let without_end = request.get(..request.len() - 5).context("half a body")?;
    let begin = |address: SocketAddr, bytes: &[u8]| -> anyhow::Result<TcpStream> {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(bytes)?;
        Ok(socket)
    };
    (0..STALLED)
        .map(|number| match number % 5 {
            0 => begin(https, &[]),
            1 => begin(https, &[22, 3, 1, 2]),
            2 => begin(plain, &[]),
            3 => begin(plain, half),
            _ => begin(plain, without_end),
        })
        .collect()
}

fn wait_until_closed(stalled: Vec<TcpStream>) -> anyhow::Result<()> {
    let until = Instant::now() + PATIENCE;
    for mut socket in stalled {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        socket.set_read_timeout(Some(left))?;
        // An answer may come before the end.
        let mut words = Vec::new();
        match socket.read_to_end(&mut words) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => anyhow::bail!("a stalled connection is still open: {error}"),
        }
    }
    Ok(())
}
