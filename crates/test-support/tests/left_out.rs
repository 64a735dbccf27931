//! The last program that `cargo test` runs, because its crate comes last: says which tests were left out. It has no
//! tests and no harness, which would keep to itself what it prints.

/// A list of the tests is empty.
#[expect(clippy::print_stdout, reason = "it is made to print")]
fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    print!("{}", intake_test_support::take_summary());
}
