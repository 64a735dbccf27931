//! Patients move in from a file: the program itself against a running service.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking and say why")]

mod exports;
mod import;
mod options;
mod proposals;
mod real_data;
mod runs;
mod sheets;
mod spreadsheets;
mod unprintable;
