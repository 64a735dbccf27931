//! The functions of the guide that convert values, held against the cases of the domain's conversions: the answers must
//! be the domain's. What the domain finds unclear, and a day that no calendar has, a function leaves out.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use intake_domain::conversions::{Conversion, DateForm, calendar_day, date};
use serde_json::Value;

use crate::guide::{program, run_program};
use crate::tools::run;

const PROGRAMS: [&str; 8] = [
    "convert.py",
    "convert.mjs",
    "Convert.cs",
    "Convert.java",
    "convert.php",
    "convert.go",
    "convert.rb",
    "convert.sh",
];
/// Forms of dates that the functions read besides the register's own.
const FORMS: [&str; 2] = ["D/M/YYYY", "D MMM YYYY"];

/// A line for a program, and its answer.
struct Case {
    line: String,
    answer: String,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../../domain/tests/conversions.json")).unwrap();
    let forms = FORMS.map(|form| form.parse::<DateForm>().unwrap());
    let case = |case: &Value| {
        let raw = case["raw"].as_str().unwrap();
        let (field, value) = match case["conversion"].as_str().unwrap() {
            "date" => ("dateOfBirth", day(raw, &forms)),
            conversion => {
                let field = match conversion {
                    "phone_number" => "phoneNumber",
                    "placeholder" | "trimmed" | "unquoted" => "lastName",
                    field => field,
                };
                (field, case["result"].as_str().unwrap_or_default().to_owned())
            }
        };
        Case { line: format!("{field}\t{raw}\n"), answer: format!("{field}\t{value}") }
    };
    cases.iter().map(case).collect()
}

fn day(raw: &str, forms: &[DateForm]) -> String {
    let day = match date(raw, forms) {
        Conversion::Unchanged => raw.to_owned(),
        Conversion::Converted(day) => day,
        Conversion::Unclear => String::new(),
    };
    if calendar_day(&day).is_some() { day } else { String::new() }
}

#[test]
fn the_functions_of_the_guide_convert_like_the_domain() {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    let lines: String = cases.iter().map(|case| case.line.as_str()).collect();
    fs::write(folder.path().join("values.txt"), lines).unwrap();
    for name in PROGRAMS {
        let Some(command) = run_program(folder.path(), name, &program(name)) else { continue };
        let printed = convert(folder.path(), &command);
        assert_eq!(printed.lines().count(), cases.len(), "{name}: {printed}");
        for (case, line) in cases.iter().zip(printed.lines()) {
            assert_eq!(line, case.answer, "{name}: {:?}", case.line);
        }
    }
}

fn convert(folder: &Path, command: &str) -> String {
    let values = File::open(folder.join("values.txt")).unwrap();
    run(Command::new("bash").args(["-euc", command]).stdin(values).env("HOME", folder).current_dir(folder))
}
