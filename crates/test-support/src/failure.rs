//! What a failed test leaves behind for a person to look at.

/// `yes` keeps the database and the service of a test that failed until the run is ended.
const KEEP: &str = "INTAKE_TEST_KEEP";

/// Holds a test that failed, if asked to, and says how to reach what it used. The output of a test is seen at once with
/// `--nocapture` alone.
pub(crate) fn hold(reached_by: impl FnOnce() -> String) {
    if std::thread::panicking() && std::env::var_os(KEEP).is_some_and(|value| value == "yes") {
        eprintln!("\n{}\nCtrl-C ends this.", reached_by());
        loop {
            std::thread::park();
        }
    }
}
