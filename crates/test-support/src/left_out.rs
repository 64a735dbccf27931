//! Tests that a machine cannot run because it lacks a program: each is noted when it is left out, and the last program
//! that `cargo test` runs (`tests/left_out.rs`) says how many there were, and what would bring them in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::parent_id;
use std::path::PathBuf;

use intake_infra::embedded::Packages;
use rustix::process::{Pid, test_kill_process};

/// The beginning of the names of files that hold the notes of one run.
const NOTES: &str = "left-out-of-run-";

/// Something that some tests cannot do without.
#[derive(Clone, Copy, Debug)]
pub struct Prerequisite {
    /// Subject of these tests.
    pub subject: &'static str,
    /// Name of the missing thing.
    pub need: &'static str,
    /// Packages that install it.
    pub packages: Packages,
}

/// Notes that the test which runs on this thread is left out. Under CI nothing may be: there it fails.
pub fn leave_out(prerequisite: &Prerequisite) {
    let Prerequisite { subject, need, packages } = prerequisite;
    let how = packages.command_here().map_or_else(|| "install them by hand".to_owned(), |command| command.to_string());
    assert!(std::env::var_os("CI").is_none(), "tests of {subject} need {need}: {how}");
    eprintln!("left out: tests of {subject} need {need}: {how}");
    // A test that starts two browsers is one test.
    let thread = std::thread::current();
    let note = format!("{subject}\t{need}\t{how}\t{}\n", thread.name().unwrap_or_default());
    let file =
        OpenOptions::new().create(true).append(true).open(folder_of_notes().join(format!("{NOTES}{}", parent_id())));
    file.and_then(|mut file| file.write_all(note.as_bytes())).expect("the folder of the tests can be written");
}

/// Returns what this run has left out, for a person to read; empty if nothing. Its notes are gone then, and so are
/// those of runs that were broken off.
#[must_use]
pub fn take_summary() -> String {
    let mut summary = String::new();
    for entry in fs::read_dir(folder_of_notes()).expect("the folder of the tests can be read").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(run) = name.strip_prefix(NOTES).and_then(|run| run.parse().ok()) else { continue };
        if run == parent_id() {
            summary = summary_of(&fs::read_to_string(entry.path()).unwrap_or_default());
        }
        if run == parent_id() || !is_alive(run) {
            let _ = fs::remove_file(entry.path());
        }
    }
    summary
}

fn summary_of(notes: &str) -> String {
    let mut left_out: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (reason, test) in notes.lines().filter_map(|note| note.rsplit_once('\t')) {
        left_out.entry(reason).or_default().insert(test);
    }
    let paragraph = |(reason, tests): (&str, BTreeSet<&str>)| {
        let (subject, rest) = reason.split_once('\t')?;
        let (need, how) = rest.split_once('\t')?;
        let count = tests.len();
        let tests = if count == 1 { "test" } else { "tests" };
        Some(format!(
            "\nLEFT OUT: {count} {tests} of {subject}, for want of {need}. To run them too, first:\n\n    {how}\n\n"
        ))
    };
    left_out.into_iter().filter_map(paragraph).collect()
}

/// Beside the programs of all tests.
fn folder_of_notes() -> PathBuf {
    let program = std::env::current_exe().expect("the program of the tests");
    program.parent().expect("a folder").to_owned()
}

fn is_alive(process: u32) -> bool {
    i32::try_from(process).ok().and_then(Pid::from_raw).is_some_and(|process| test_kill_process(process).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_once_for_each_thing_they_need() {
        let notes = "pages\ta browser\tapt-get browser\tone\n\
                     pages\ta browser\tapt-get browser\ttwo\n\
                     pages\ta browser\tapt-get browser\tone\n\
                     tea\ta pot\tapt-get pot\tone\n";
        let expected = "\nLEFT OUT: 2 tests of pages, for want of a browser. To run them too, first:\n\n    apt-get browser\n\n\
                        \nLEFT OUT: 1 test of tea, for want of a pot. To run them too, first:\n\n    apt-get pot\n\n";
        assert_eq!(summary_of(notes), expected);
        assert_eq!(summary_of(""), "");
    }
}
