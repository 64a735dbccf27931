//! A short run of `just torture`: every plug is pulled once or twice, in parts that take about as long as each other.
//! `just nightly` pulls them for hours.

use std::path::PathBuf;
use std::time::Duration;

use intake_torture::{Plan, run};

/// A plan in which nothing fails yet.
fn calm() -> Plan {
    Plan {
        program: PathBuf::from(env!("CARGO_BIN_EXE_intake")),
        seed: u64::from(std::process::id()),
        tampering: false,
        service_kills: 0,
        database_kills: 0,
        database_cut_patients: 0,
        packet_drops: 0,
        answer_cut_patients: 0,
        races: 0,
        revocations: 0,
        disk_fills: 0,
        power_cuts: 0,
        database_stops: 0,
        backend_stops: 0,
        locked_rows: 0,
        wrong_clocks: 0,
        unread_logs: 0,
        promotions: 0,
        restores: 0,
        drifts: 0,
        cluster_faults: 0,
        flood: Duration::ZERO,
        mixed: Duration::ZERO,
        // A client that is never served, or refused because of others, waits for longer than that.
        slowness: 6,
    }
}

fn assert_good(plan: &Plan) {
    let verdict = run(plan, |_| {}).unwrap();
    assert!(verdict.is_good(), "seed {}\n{}", plan.seed, verdict.to_text());
}

/// Or it would notice nothing else.
#[test]
fn what_is_lost_doubled_or_let_in_is_noticed() {
    assert_good(&Plan { tampering: true, ..calm() });
}

#[test]
fn nothing_is_lost_or_doubled_when_processes_are_killed_and_connections_cut() {
    assert_good(&Plan {
        service_kills: 2,
        database_kills: 3,
        database_cut_patients: 1_000,
        packet_drops: 1,
        answer_cut_patients: 300,
        races: 5,
        revocations: 20,
        ..calm()
    });
}

#[test]
fn nothing_is_lost_or_doubled_when_all_hangs_or_is_flooded() {
    assert_good(&Plan {
        database_stops: 1,
        backend_stops: 1,
        locked_rows: 1,
        wrong_clocks: 1,
        unread_logs: 1,
        promotions: 1,
        restores: 1,
        flood: Duration::from_secs(1),
        ..calm()
    });
}

#[test]
fn nothing_is_lost_or_doubled_when_the_disk_or_the_power_fails_and_everything_at_once() {
    assert_good(&Plan { disk_fills: 1, power_cuts: 1, drifts: 2, mixed: Duration::from_secs(5), ..calm() });
}
