//! The open loop: requests are sent at fixed times, whether or not earlier ones are answered, as those of many
//! independent clients are. Latency counts from the time at which a request should have been sent, so a stall is not
//! hidden by the requests that it delays. One thread drives all connections: a thread for each would take the cores
//! from the service. (wrk has no open loop.)

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

/// Time for which an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// One run, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// The outcome of the requests.
pub(crate) struct Outcome {
    pub(crate) tail: Tail,
    pub(crate) created: u64,
    /// Requests that were sent, or should have been, and were not answered 201.
    pub(crate) refused: u64,
    /// The part of them without any answer, whose latency counts as [`PATIENCE`].
    pub(crate) unanswered: u64,
    /// The latency of the 503s, if any.
    pub(crate) refusals: Tail,
}

impl Outcome {
    /// Fails if a request was not answered.
    pub(crate) fn all_answered(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.unanswered == 0, "{} requests were not answered", self.unanswered);
        Ok(self)
    }
}

struct Lane {
    socket: TcpStream,
    answer: Vec<u8>,
    /// Time at which the request in progress should have been sent.
    due: Instant,
}

struct Loop<'a> {
    lanes: Vec<Lane>,
    /// Used in turns, so that no connection is idle long enough to be closed by the service.
    free: VecDeque<usize>,
    /// The due times of requests that wait because every lane is busy.
    late: VecDeque<Instant>,
    requests: std::iter::Cycle<std::slice::Iter<'a, Vec<u8>>>,
    latencies: Vec<Duration>,
    refusals: Vec<Duration>,
    created: u64,
    ready: OwnedFd,
}

/// Sends at this rate over this many connections.
pub(crate) fn run(
    address: SocketAddr,
    requests: &[Vec<u8>],
    rate: f64,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Outcome> {
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut lanes = Vec::new();
    for number in 0..connections {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        epoll::add(&ready, &socket, epoll::EventData::new_u64(u64::try_from(number)?), epoll::EventFlags::IN)?;
        lanes.push(Lane { socket, answer: Vec::new(), due: Instant::now() });
    }
    let free = (0..connections).collect();
    let requests = requests.iter().cycle();
    let (late, latencies, refusals) = (VecDeque::new(), Vec::new(), Vec::new());
    let mut open = Loop { lanes, free, late, requests, latencies, refusals, created: 0, ready };
    let sent = open.drive(Duration::from_secs_f64(1.0 / rate), time)?;
    let Loop { mut latencies, refusals, created, .. } = open;
    let unanswered = sent - latencies.len();
    latencies.resize(sent, PATIENCE);
    let (sent, unanswered) = (u64::try_from(sent)?, u64::try_from(unanswered)?);
    let (tail, refusals) = (tail(latencies, time), tail(refusals, time));
    Ok(Outcome { tail, created, refused: sent - created, unanswered, refusals })
}

fn tail(mut latencies: Vec<Duration>, time: Duration) -> Tail {
    latencies.sort_unstable();
    let at = |share: usize| latencies.get(latencies.len() * share / 1000).map_or(0.0, |one| one.as_secs_f64() * 1e3);
    Tail { rate: latencies.len() as f64 / time.as_secs_f64(), p50: at(500), p99: at(990), p999: at(999) }
}

impl Loop<'_> {
    /// Returns how many requests were sent, or should have been.
    fn drive(&mut self, pause: Duration, time: Duration) -> anyhow::Result<usize> {
        let start = Instant::now();
        let mut next = start;
        let mut sent = 0;
        let mut events = Vec::with_capacity(self.lanes.len());
        while next < start + time || self.latencies.len() < sent {
            let now = Instant::now();
            while next <= now && next < start + time {
                self.late.push_back(next);
                next += pause;
                sent += 1;
            }
            while !self.late.is_empty()
                && let Some(lane) = self.free.pop_front()
            {
                self.send(lane)?;
            }
            if now > start + time + PATIENCE {
                break;
            }
            let wait = if next < start + time { next.saturating_duration_since(Instant::now()) } else { PATIENCE };
            events.clear();
            epoll::wait(&self.ready, rustix::buffer::spare_capacity(&mut events), Some(&wait.try_into()?))?;
            for event in &events {
                self.receive(usize::try_from(event.data.u64())?)?;
            }
        }
        Ok(sent)
    }

    fn send(&mut self, number: usize) -> anyhow::Result<()> {
        let lane = self.lanes.get_mut(number).context("a lane")?;
        lane.due = self.late.pop_front().context("a request")?;
        Ok(lane.socket.write_all(self.requests.next().context("requests")?)?)
    }

    fn receive(&mut self, number: usize) -> anyhow::Result<()> {
        let lane = self.lanes.get_mut(number).context("a lane")?;
        let mut part = [0; 4096];
        let length = lane.socket.read(&mut part)?;
        anyhow::ensure!(length > 0, "the service closed a connection");
        lane.answer.extend_from_slice(part.get(..length).unwrap_or_default());
        if !is_whole(&lane.answer) {
            return Ok(());
        }
        let latency = lane.due.elapsed();
        self.latencies.push(latency);
        if lane.answer.starts_with(b"HTTP/1.1 503 ") {
            self.refusals.push(latency);
        }
        self.created += u64::from(lane.answer.starts_with(b"HTTP/1.1 201 "));
        lane.answer.clear();
        self.free.push_back(number);
        Ok(())
    }
}

/// Returns whether the head and the body are complete.
fn is_whole(answer: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(answer) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}

pub(crate) fn median(runs: &[Tail]) -> Tail {
    let middle = |of: fn(&Tail) -> f64| crate::median::median(runs.iter().map(of).collect());
    Tail {
        rate: middle(|run| run.rate),
        p50: middle(|run| run.p50),
        p99: middle(|run| run.p99),
        p999: middle(|run| run.p999),
    }
}
