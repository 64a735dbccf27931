//! Probes are answered at once, even if others have found the listener that serves them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use intake_test_support::{Client, request};

use crate::fixtures::{OverWhenDropped, TestApp, alone, in_time, time_of};

const SILENT: usize = 1_000;
const BUSY: usize = 100;
/// Less than any connection is waited for.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Keeps a connection for as long as it is let, and opens it again.
fn stay_busy(admin: &Client, is_over: &AtomicBool) {
    let probe = request("GET", "/livez", &[], b"");
    while !is_over.load(Relaxed) {
        let Ok(mut connection) = admin.try_connect() else { continue };
        while !is_over.load(Relaxed) && connection.try_write(&probe).is_ok() && connection.try_read(true).is_ok() {
            sleep(Duration::from_millis(500));
        }
    }
}

/// The status of a probe. All connections here come from one address and make room for each other, so a probe whose
/// connection was closed comes again, as those of orchestrators do.
fn answer(admin: &Client, path: &str) -> u16 {
    let probe = request("GET", path, &[], b"");
    loop {
        let Ok(mut connection) = admin.try_connect() else { continue };
        if connection.try_write(&probe).is_ok()
            && let Ok(response) = connection.try_read(true)
        {
            return response.status;
        }
    }
}

#[test]
fn silent_and_busy_connections_take_no_place_from_a_probe() {
    let _alone = alone();
    let app = TestApp::start();
    app.service.wait_until_ready();
    let admin = Client::plain(app.service.admin_address());
    let is_over = AtomicBool::new(false);
    scope(|threads| {
        let over = OverWhenDropped(&is_over);
        for _ in 0..BUSY {
            threads.spawn(|| stay_busy(&admin, &is_over));
        }
        let silent: Vec<_> = (0..SILENT).filter_map(|_| admin.try_open_socket().ok()).collect();
        assert_eq!(silent.len(), SILENT);
        for _ in 0..10 {
            for path in ["/livez", "/readyz"] {
                in_time(AT_ONCE, || time_of(|| assert_eq!(answer(&admin, path), 200)));
            }
        }
        drop((over, silent));
    });
}
