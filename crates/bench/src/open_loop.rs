//! The open loop: requests leave at fixed moments, whether or not earlier ones are answered, as those of many independent
//! clients do. Latency counts from the moment a request should have left, so a stall is not hidden by what it held up.

use std::time::{Duration, Instant};

use intake_test_support::Client;

use crate::report;

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
}

/// Sends at that rate over so many connections, each of which has its own share of the moments.
pub(crate) fn run(
    client: &Client,
    requests: &[Vec<u8>],
    rate: f64,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Outcome> {
    let pause = Duration::from_secs_f64(connections as f64 / rate);
    let start = Instant::now() + Duration::from_millis(200);
    let share = |number: usize| {
        let mut connection = client.try_connect()?;
        let mut latencies = Vec::new();
        let mut created = 0_u64;
        let first = start + pause.mul_f64(number as f64 / connections as f64);
        for (moment, request) in requests.iter().cycle().skip(number * 7).enumerate() {
            let due = first + pause.mul_f64(moment as f64);
            if due > start + time {
                break;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            connection.try_write(request)?;
            let status = connection.try_read(true)?.status;
            latencies.push(due.elapsed());
            created += u64::from(status == 201);
        }
        Ok::<_, std::io::Error>((latencies, created))
    };
    let shares = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|number| scope.spawn(move || share(number))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a client panicked")));
        joined.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let (mut latencies, mut created) = (Vec::new(), 0);
    for share in shares {
        let (some, count) = share?;
        latencies.extend(some);
        created += count;
    }
    latencies.sort_unstable();
    let at = |share: usize| latencies.get(latencies.len() * share / 1000).map_or(0.0, |one| one.as_secs_f64() * 1e3);
    let rate = latencies.len() as f64 / time.as_secs_f64();
    Ok(Outcome { tail: Tail { rate, p50: at(500), p99: at(990), p999: at(999) }, created })
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
