//! The last program that `cargo test` runs, because its crate comes last: says which tests were left out. It has no tests and
//! no harness, which would keep to itself what it prints.

/// Whoever asks for a list of tests gets an empty one.
#[expect(clippy::print_stdout, reason = "it is made to print")]
fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    print!("{}", intake_test_support::take_summary());
}
