//! The open loop: requests leave at fixed moments, whether or not earlier ones are answered, as those of many independent
//! clients do. Latency counts from the moment a request should have left, so a stall is not hidden by what it held up. One
//! thread drives all connections: a thread for each would take the cores from the service. (wrk has no open loop.)

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use crate::report;

/// Whatever is missing after so long is not coming.
const PATIENCE: Duration = Duration::from_secs(10);

/// One run, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    pub(crate) rate: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// What became of the requests.
pub(crate) struct Outcome {
    pub(crate) tail: Tail,
    pub(crate) created: u64,
    /// Requests that left, or should have, and were answered anything but 201, or nothing.
    pub(crate) refused: u64,
    /// Of those the ones that were not answered. They count with the time they were waited for.
    pub(crate) unanswered: u64,
    /// Of the answers that are 503, if any.
    pub(crate) refusals: Tail,
}

impl Outcome {
    /// Where nobody may be left without an answer.
    pub(crate) fn all_answered(self) -> anyhow::Result<Self> {
        anyhow::ensure!(self.unanswered == 0, "{} requests were not answered", self.unanswered);
        Ok(self)
    }
}

struct Lane {
    socket: TcpStream,
    answer: Vec<u8>,
    /// When the request that is under way should have left.
    due: Instant,
}

struct Loop<'a> {
    lanes: Vec<Lane>,
    /// In turns, so that none is idle for so long that the service closes it.
    free: VecDeque<usize>,
    /// Requests whose moment came when every lane was busy.
    late: VecDeque<Instant>,
    requests: std::iter::Cycle<std::slice::Iter<'a, Vec<u8>>>,
    latencies: Vec<Duration>,
    refusals: Vec<Duration>,
    created: u64,
    ready: OwnedFd,
}

/// Sends at that rate over so many connections.
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
    /// Gives how many requests left, or should have.
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

/// Whether head and body are there.
fn is_whole(answer: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(answer) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}

pub(crate) fn median(runs: &[Tail]) -> Tail {
    let middle = |of: fn(&Tail) -> f64| report::median(runs.iter().map(of).collect());
    Tail {
        rate: middle(|run| run.rate),
        p50: middle(|run| run.p50),
        p99: middle(|run| run.p99),
        p999: middle(|run| run.p999),
    }
}
