//! Spreadsheets are read as they are.

use time::macros::date;

use crate::import::Import;
use crate::sheets::{Cell, texts, write_ods, write_workbook, write_xlsx};

const HEADER: [&str; 5] = ["firstName", "lastName", "phoneNumber", "dateOfBirth", "postcode"];

fn row(first_name: &str, phone: Cell, born: Cell) -> Vec<Cell> {
    [texts(&[first_name, "Lovelace"]), vec![phone, born, Cell::Number(3053.0)]].concat()
}

#[test]
fn cells_are_read_as_people_see_them() {
    let import = Import::start();
    let day = || Cell::Day(date!(1985 - 12 - 10));
    let phone = || Cell::Text("+61491570006".to_owned());
    let rows = vec![
        Vec::new(),
        texts(&HEADER),
        row("Ada", phone(), day()),
        row("Zoë", Cell::Number(61_491_570_006.0), day()),
        Vec::new(),
        row("Grace", Cell::TenDigits(491_570_156.0), day()),
        row("Alan", Cell::Formula, day()),
        row("Ida", Cell::Error, day()),
        row("Li", phone(), Cell::Day(date!(1900 - 01 - 15))),
        row("Kim", phone(), day()),
    ];
    let sheets = [("Patients", rows), ("Notes", Vec::new())];
    write_xlsx(&import.path("patients.xlsx"), &sheets, &["A10:B10"]);
    let (said, errors) = import.fail("patients.xlsx", &["--australian-phones"]);
    assert!(said.starts_with("7 rows: 3 created, 0 created before, 4 refused\n"), "{said}");
    assert_eq!(
        errors,
        "row 7: phoneNumber is a formula without a value: open the file in a spreadsheet program and save it\n\
         row 8: phoneNumber is an error of the spreadsheet, such as #N/A\n\
         row 9: dateOfBirth is a time, or a day before March 1900, which spreadsheets count wrongly: write it as text\n\
         row 10: firstName is in a merged cell: unmerge it\n"
    );
    assert_eq!(import.texts("phone_number"), ["+61491570006", "+61491570006", "+61491570156"]);
    assert_eq!(import.texts("date_of_birth"), ["1985-12-10"; 3]);
    assert_eq!(import.texts("postcode"), ["3053"; 3]);

    write_ods(&import.path("patients.ods"), &sheets);
    let (said, errors) = import.fail("patients.ods", &["--australian-phones", "--run", "second"]);
    // Only Excel shows zeros by a format, and an OpenDocument file has the day itself.
    assert!(said.starts_with("7 rows: 5 created, 0 created before, 2 refused\n"), "{said}");
    assert!(errors.contains("row 7: phoneNumber is a formula without a value"), "{errors}");
    assert!(errors.contains("row 8: phoneNumber: E.164 format is required"), "{errors}");
}

#[test]
fn rows_above_the_header_are_passed_over_where_its_row_is_named() {
    let import = Import::start();
    let person = |name: &str| texts(&[name, "Lovelace", "+61491570006", "1985-12-10", "3053"]);
    let rows = vec![
        Vec::new(),
        texts(&["Bayside Physio: bookings", "", "as of 3 March"]),
        Vec::new(),
        texts(&HEADER),
        Vec::new(),
        person("Ada"),
        texts(&["Zoë", "Lovelace", "0491 570 006", "1985-12-10", "3053"]),
    ];
    let sheets = [("Patients", rows)];
    write_xlsx(&import.path("patients.xlsx"), &sheets, &["A2:C2"]);
    write_ods(&import.path("patients.ods"), &sheets);
    let below = "sep=,\n\n\"Bayside \"\"Physio\"\":\nbookings\",,,,\n,,,,\nfirstName,lastName,phoneNumber,dateOfBirth,postcode\n\
                 ,\"\",,,\nAda,Lovelace,+61491570006,1985-12-10,3053\nZoë,Lovelace,0491 570 006,1985-12-10,3053\n";
    import.write("patients.csv", below);
    for (file, created) in
        [("patients.xlsx", "1 created, 0"), ("patients.ods", "0 created, 1"), ("patients.csv", "0 created, 1")]
    {
        let (said, errors) = import.fail(file, &["--header-row", "4"]);
        assert!(said.starts_with(&format!("2 rows: {created} created before, 1 refused\n")), "{file}: {said}");
        assert!(errors.starts_with("row 7: phoneNumber: E.164 format is required"), "{file}: {errors}");
    }
    let (_, errors) = import.fail("patients.xlsx", &[]);
    let merged = "the header, row 2: a cell is in a merged cell: unmerge it. If the header is further down, name its row \
                  with --header-row\n";
    assert_eq!(errors, format!("intake-import: patients.xlsx: {merged}"));
    import.write("patients.jsonl", "{}\n");
    for file in ["patients.xlsx", "patients.ods", "patients.csv"] {
        for row in ["3", "8"] {
            let (said, errors) = import.fail(file, &["--header-row", row]);
            assert_eq!(
                (said.as_str(), errors),
                ("", format!("intake-import: {file}: --header-row: row {row} is empty\n"))
            );
        }
    }
    let (_, errors) = import.fail("patients.jsonl", &["--header-row", "1"]);
    assert!(errors.contains("--header-row is for files with a header"), "{errors}");
}

#[test]
fn a_workbook_says_itself_how_it_counts_days() {
    let import = Import::start();
    let number = Cell::Number(29_220.0);
    let rows = vec![texts(&HEADER), row("Ada", Cell::Text("+61491570006".to_owned()), number)];
    let sheets = [("Patients", rows)];
    write_workbook(&import.path("mac.xlsx"), "<workbookPr date1904=\"1\"/>", &sheets, &[]);
    write_xlsx(&import.path("other.xlsx"), &sheets, &[]);
    for (file, own, other, day) in [
        ("mac.xlsx", "serial 1904", "serial 1900", "1984-01-01"),
        ("other.xlsx", "serial 1900", "serial 1904", "1979-12-31"),
    ] {
        let (_, said) = import.propose(file);
        assert!(said.contains(&format!("say so with --date-format '{own}'\n")), "{said}");
        let (_, errors) = import.fail(file, &["--date-format", other]);
        assert!(
            errors.ends_with(&format!("the workbook counts days otherwise: write --date-format '{own}'\n")),
            "{errors}"
        );
        import.run(file, &["--date-format", own, "--run", file]);
        assert!(import.texts("date_of_birth").contains(&day.to_owned()));
    }
}

#[test]
fn a_workbook_that_cannot_be_read_says_why() {
    let import = Import::start();
    let rows =
        || vec![texts(&HEADER), row("Ada", Cell::Text("+61491570006".to_owned()), Cell::Day(date!(1985 - 12 - 10)))];
    write_xlsx(&import.path("two.xlsx"), &[("2025", rows()), ("2026 \"new\"", rows()), ("Empty", Vec::new())], &[]);
    write_ods(&import.path("two.ods"), &[("2025", rows()), ("2026", rows())]);
    write_xlsx(&import.path("empty.xlsx"), &[("Empty", Vec::new())], &[]);
    write_xlsx(
        &import.path("formula.xlsx"),
        &[("Patients", vec![vec![Cell::Text("a".to_owned()), Cell::Formula]])],
        &[],
    );
    for name in ["old.xls", "no.xlsx", "no.ods"] {
        import.write(name, "PK");
    }
    import.write("patients.csv", "firstName\n");
    for (file, more, reason) in [
        (
            "two.xlsx",
            &[][..],
            "two.xlsx: it has several sheets with content: name one of \"2025\", \"2026 \\\"new\\\"\" with --sheet\n",
        ),
        ("two.ods", &[], "two.ods: it has several sheets with content: name one of \"2025\", \"2026\" with --sheet\n"),
        ("two.ods", &["--sheet", "2024"], "two.ods: it has no sheet \"2024\": its sheets are \"2025\", \"2026\"\n"),
        ("two.xlsx", &["--sheet", "Empty"], "two.xlsx: the sheet is empty\n"),
        ("empty.xlsx", &[], "empty.xlsx: the file is empty\n"),
        (
            "formula.xlsx",
            &[],
            "formula.xlsx: the header, row 1: a cell is a formula without a value: open the file in a spreadsheet program and save it. If the header is further down, name its row with --header-row\n",
        ),
        ("old.xls", &[], "old.xls: it is of an old Excel: open it in a spreadsheet program and save it as .xlsx\n"),
        ("no.xlsx", &[], "no.xlsx: it cannot be read as a spreadsheet: "),
        ("no.ods", &[], "no.ods: it cannot be read as a spreadsheet: "),
        ("patients.csv", &["--sheet", "2025"], "patients.csv: --sheet is for .xlsx and .ods files\n"),
    ] {
        let (said, errors) = import.fail(file, more);
        assert_eq!(said, "");
        assert!(errors.starts_with(&format!("intake-import: {reason}")), "{file}: {errors}");
    }
    assert!(import.run("two.xlsx", &["--sheet", "2025"]).starts_with("1 row: 1 created"));
    assert!(
        import.run("two.ods", &["--sheet", "2026"]).starts_with("1 row: 0 created, 1 created before"),
        "the same row"
    );
}
