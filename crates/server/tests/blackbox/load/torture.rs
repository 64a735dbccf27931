//! A short run of `just torture`: every plug is pulled a few times.

use std::path::PathBuf;
use std::time::Duration;

use intake_torture::{Plan, run};

#[test]
fn nothing_is_lost_and_nothing_doubled_when_plugs_are_pulled() {
    let plan = Plan {
        program: PathBuf::from(env!("CARGO_BIN_EXE_intake")),
        seed: u64::from(std::process::id()),
        service_kills: 4,
        database_kills: 6,
        database_cut_patients: 1_000,
        packet_drops: 1,
        answer_cut_patients: 300,
        races: 10,
        revocations: 50,
        disk_fills: 2,
        power_cuts: 3,
        database_stops: 2,
        backend_stops: 1,
        locked_rows: 2,
        wrong_clocks: 2,
        unread_logs: 1,
        promotions: 1,
        restores: 1,
        drifts: 4,
        cluster_faults: 0,
        flood: Duration::from_secs(1),
        mixed: Duration::from_secs(10),
        // A client that is never served, or refused because of others, waits for longer than that.
        slowness: 6,
    };
    let verdict = run(&plan, |_| {}).unwrap();
    println!("seed {}\n{}", plan.seed, verdict.to_text());
    assert!(verdict.is_good(), "seed {}\n{}", plan.seed, verdict.to_text());
}
