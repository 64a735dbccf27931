//! 200 rows of a booking spreadsheet arrive with the proposed options. `readable.txt` has the 151 rows whose names,
//! number and date can be read without guessing: the rows were generated, and their generator's choices decide it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use intake_domain::Field;
use time::Date;
use time::macros::format_description;

use crate::import::Import;
use crate::sheets::{Cell, write_ods, write_xlsx};

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real-data").join(name)).unwrap()
}

/// The cells of each row, the header among them.
fn rows() -> Vec<Vec<String>> {
    let text = fixture("rows.csv");
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn readable() -> BTreeSet<usize> {
    fixture("readable.txt").lines().map(|row| row.parse().unwrap()).collect()
}

#[test]
fn rows_that_can_be_read_arrive_with_the_proposed_options_and_every_change_is_named() {
    let import = Import::start();
    import.write("rows.csv", fixture("rows.csv"));
    let (options, said) = import.propose("rows.csv");
    assert!(said.starts_with("200 rows: 146 would arrive, 54 stay refused; nothing was sent\n"), "{said}");
    assert!(said.contains("  D/M/YYYY is proved: rows 5, 8, 9, …\n"), "{said}");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let (said, _) = import.fail("rows.csv", &[&options[..], &["--report", "report.csv"]].concat());
    // The other five of the 151 have a remark behind the number, such as "(mum)".
    assert!(said.starts_with("200 rows: 146 created, 0 created before, 54 refused\n"), "{said}");

    let columns: Vec<_> = Field::ALL.iter().map(|field| format!("coalesce({}::text, '')", field.column())).collect();
    let stored =
        import.database.texts(&format!("SELECT concat_ws(chr(31), id::text, {}) FROM patients", columns.join(", ")));
    let stored: BTreeMap<_, Vec<_>> = stored
        .iter()
        .map(|row| row.split_once('\u{1f}').unwrap())
        .map(|(id, row)| (id, row.split('\u{1f}').collect()))
        .collect();
    let (rows, readable) = (rows(), readable());
    assert_eq!((rows.len(), readable.len()), (201, 151));
    for line in import.report().iter().filter(|line| line[1] == "created") {
        let number: usize = line[0].parse().unwrap();
        assert!(readable.contains(&number), "row {number}");
        let stored = &stored[line[2].as_str()];
        // The file has its columns in the order of the fields.
        for (place, field) in Field::ALL.iter().enumerate() {
            let is_changed = rows[number - 1][place] != stored[place];
            let is_named = line[4].split("; ").any(|note| note.starts_with(&format!("{}: ", field.name())));
            assert_eq!(is_changed, is_named, "row {number}, {}: {}", field.name(), line[4]);
        }
    }
    assert!(import.texts("address_line1").contains(&"Unit 3/7 King St, (rear)".to_owned()), "no street is lost");
    let doubts: Vec<_> =
        import.doubts().lines().skip(1).map(|line| line.split(". ").next().unwrap().to_owned()).collect();
    let left = [
        "  90 with no address",
        "  68 with a made-up email address, such as noemail@example.com",
        "  31 with a postcode without four digits",
    ];
    assert_eq!(doubts, left, "no spaces, placeholders or quotes are left");
}

#[test]
fn the_rows_arrive_from_excel_and_open_document_files_too() {
    let import = Import::start();
    let mut sheet: Vec<Vec<Cell>> = Vec::new();
    for row in rows() {
        sheet.push(row.iter().map(|cell| as_a_spreadsheet_has_it(cell)).collect());
    }
    let sheets = [("Bookings", sheet)];
    write_xlsx(&import.path("rows.xlsx"), &sheets, &[]);
    write_ods(&import.path("rows.ods"), &sheets);
    let readable: BTreeSet<_> = readable().iter().map(ToString::to_string).collect();
    for file in ["rows.xlsx", "rows.ods"] {
        let (options, said) = import.propose(file);
        assert!(said.starts_with("200 rows: 146 would arrive, 54 stay refused; nothing was sent\n"), "{said}");
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let report = ["--run", file, "--report", "report.csv"];
        let (said, _) = import.fail(file, &[&options[..], &report].concat());
        assert!(said.starts_with("200 rows: 146 created, 0 created before, 54 refused\n"), "{said}");
        let created = import.messages().into_iter().filter(|(_, outcome, _)| outcome == "created");
        assert!(created.map(|(row, ..)| row).all(|row| readable.contains(&row)));
        fs::remove_file(import.path("report.csv")).unwrap();
    }
    assert_eq!(import.patients(), 2 * 146);
}

/// Dates and numbers lose their text when they are typed into a spreadsheet.
fn as_a_spreadsheet_has_it(cell: &str) -> Cell {
    let day = Date::parse(cell, format_description!("[day padding:none]/[month padding:none]/[year]"));
    if let Ok(day) = day {
        return Cell::Day(day);
    }
    let is_number = !cell.is_empty() && !cell.starts_with('0') && cell.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { Cell::Number(cell.parse().unwrap()) } else { Cell::Text(cell.to_owned()) }
}
