//! Output that nobody gets: the program fails, names on the other stream what it has done all the same, and sends
//! nothing twice.

use std::process::Stdio;

use intake_test_support::{full_disk, unread_pipe};

use crate::import::{HEADER, Import, complaint, many, printed};

/// Runs it without a reader of its result; gives what it complains of, in one line.
#[track_caller]
fn complaint_without_stdout(import: &Import, stdout: impl Into<Stdio>, more: &[&str]) -> String {
    let output = import.command("patients.csv", more).stdout(stdout).output().unwrap();
    let said = complaint(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    said
}

#[test]
fn a_run_whose_result_cannot_be_printed_fails_and_names_it() {
    for unread in [false, true] {
        let import = Import::start();
        import.write("patients.csv", many(3));
        let report = ["--report", "report.csv"];
        let runs: [(&[&str], &str); 4] = [
            (&["--check"], "3 rows: 3 valid, 0 refused; nothing was sent"),
            (&report, "3 rows: 3 created, 0 created before, 0 refused"),
            (&report, "3 rows: 0 created, 3 created before, 0 refused"),
            (&[], "3 rows: 0 created, 3 created before, 0 refused"),
        ];
        for (more, result) in runs {
            let stdout: Stdio = if unread { unread_pipe().into() } else { full_disk().into() };
            let said = complaint_without_stdout(&import, stdout, more);
            assert!(said.starts_with(&format!("intake-import: {result}: the result cannot be printed: ")), "{said}");
        }
        assert_eq!((import.patients(), import.report().len()), (3, 3));
        let output = import.command("patients.csv", &["--propose"]).stdout(full_disk()).output().unwrap();
        let said = complaint(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.lines().last().unwrap().starts_with("intake-import: the options cannot be printed: "), "{said}");
    }
}

#[test]
fn a_run_whose_errors_cannot_be_printed_tells_by_its_status_alone() {
    let import = Import::start();
    import.write(
        "patients.csv",
        format!(
            "{HEADER}\n\
             Ada,Lovelace,+61491570006,1985-12-10,,\n\
             Grace,Hopper,+61491570156,1986-12-10,nobody,\n"
        ),
    );
    let drop_email = ["--drop-invalid", "email"];
    let drop_and_report = ["--drop-invalid", "email", "--report", "report.csv"];
    let runs: [(&[&str], i32, &str); 5] = [
        (&["--check"], 1, "2 rows: 1 valid, 1 refused; nothing was sent"),
        // Nothing but the line on standard error names the row whose value was dropped.
        (&drop_email, 1, "2 rows: 2 created, 0 created before, 0 refused"),
        (&drop_and_report, 0, "2 rows: 0 created, 2 created before, 0 refused"),
        (&["--propose"], 1, ""),
        (&["--map", "nothing"], 2, ""),
    ];
    for (more, code, result) in runs {
        let output = import.command("patients.csv", more).stderr(full_disk()).output().unwrap();
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
        assert!(said.starts_with(result), "{more:?}: {said}");
        assert_eq!(said.is_empty(), code == 2, "{more:?}: {said}");
    }
    assert_eq!(import.patients(), 2);
}
