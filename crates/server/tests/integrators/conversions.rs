//! The functions of the guide that convert values, held against the cases of the domain's conversions. Those with
//! `"guide": true` each function must convert, those with `"guide": "nothing"` none. A function may find
//! others unclear, but never convert them otherwise.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use intake_domain::conversions::{Conversion, DateForm, date, phone_number};
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

/// A line for a program, and the answers that it may give.
struct Case {
    line: String,
    accepted: Vec<String>,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../../domain/tests/conversions.json")).unwrap();
    let forms = FORMS.map(|form| form.parse::<DateForm>().unwrap());
    let case = |case: &Value| {
        let field = match case["conversion"].as_str().unwrap() {
            "phone_number" => "phoneNumber",
            "date" => "dateOfBirth",
            "placeholder" | "trimmed" => "lastName",
            _ => return None,
        };
        let raw = case["raw"].as_str().unwrap();
        let accepted = if case["guide"] == "nothing" {
            vec![String::new()]
        } else if case["guide"] == true {
            vec![case["result"].as_str().unwrap_or_default().to_owned()]
        } else {
            let converted = match field {
                "dateOfBirth" => date(raw, &forms),
                "phoneNumber" => phone_number(raw),
                _ => unreachable!("{case}"),
            };
            match converted {
                Conversion::Unchanged => vec![String::new(), raw.to_owned()],
                Conversion::Converted(value) => vec![String::new(), value],
                Conversion::Unclear => vec![String::new()],
            }
        };
        let accepted = accepted.into_iter().map(|value| format!("{field}\t{value}")).collect();
        Some(Case { line: format!("{field}\t{raw}\n"), accepted })
    };
    cases.iter().filter_map(case).collect()
}

#[test]
fn the_functions_of_the_guide_convert_like_the_domain_or_find_it_unclear() {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    let lines: String = cases.iter().map(|case| case.line.as_str()).collect();
    fs::write(folder.path().join("values.txt"), lines).unwrap();
    for name in PROGRAMS {
        let Some(command) = run_program(folder.path(), name, &program(name)) else { continue };
        let printed = convert(folder.path(), &command);
        assert_eq!(printed.lines().count(), cases.len(), "{name}: {printed}");
        for (case, line) in cases.iter().zip(printed.lines()) {
            let found = line.to_owned();
            assert!(case.accepted.contains(&found), "{name}: {:?} became {found:?}", case.line);
        }
    }
}

fn convert(folder: &Path, command: &str) -> String {
    let values = File::open(folder.join("values.txt")).unwrap();
    run(Command::new("bash").args(["-euc", command]).stdin(values).env("HOME", folder).current_dir(folder))
}
