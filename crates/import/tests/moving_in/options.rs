//! Values are changed as options say, and each change is named.

use crate::import::{HEADER, Import, complaint};

#[test]
fn each_option_changes_its_values_alone_and_names_them() {
    let import = Import::start();
    import.write(
        "patients.csv",
        format!(
            "{HEADER},state,country\n\
             \u{a0}Ada,“Lovelace” ,+61491570006,1985-12-10,Ada@example.com ,N/A,Victoria,Australia\n\
             “Grace”,Hopper,+61491570156,10/12/1986,o’neill@example.com,n/a,qld,NZ\n\
             Alan,Turing,+61491570157,4-Nov-1940,a@example.com; b@example.com,,Bayern,AU\n\
             Zoë,N/A,+61491570158,3/4/85,,Carlton,,\n\
             Ida,Chen,+61491570159,31385,nobody,Carlton,,\n"
        ),
    );
    let (said, errors) = import.fail("patients.csv", &["--check"]);
    assert_eq!(said.lines().next(), Some("5 rows: 0 valid, 5 refused; nothing was sent"));
    assert_eq!(
        errors.lines().take(5).collect::<Vec<_>>(),
        [
            "refused, by reason:",
            "  4 dateOfBirth: must be a date in the form YYYY-MM-DD, for example 1985-03-21 (rows 3, 4, 5, …)",
            "  4 email: must be a valid email address (rows 2, 3, 4, …)",
            "  2 country: must be AU (rows 2, 3)",
            "row 2: email: must be a valid email address; country: must be AU"
        ]
    );

    let options = [
        "--trim",
        "--plain-quotes",
        "--one-line",
        "--empty",
        "N/A",
        "--australian-places",
        "--date-format",
        "D/M/YYYY",
        "--date-format",
        "D-MMM-YYYY",
        "--date-format",
        "serial 1900",
        "--drop-invalid",
        "email,country",
    ];
    let (said, errors) = import.fail("patients.csv", &[&options[..], &["--report", "report.csv"]].concat());
    assert_eq!(
        said,
        "5 rows: 4 created, 0 created before, 1 refused\n\
         changed as the options say:\n  \
         3 dateOfBirth: rewritten as YYYY-MM-DD (rows 3, 4, 6)\n  \
         2 email: dropped, because it must be a valid email address (rows 4, 6)\n  \
         2 state: rewritten as its code (rows 2, 3)\n  \
         1 country: dropped, because it must be AU (row 3)\n  \
         1 country: rewritten as its code (row 2)\n  \
         1 email: spaces at its ends removed (row 2)\n  \
         1 email: typographic apostrophe replaced (row 3)\n  \
         1 firstName: quotes round it removed (row 3)\n  \
         1 firstName: spaces at its ends removed (row 2)\n  \
         1 lastName: quotes round it removed (row 2)\n  \
         1 lastName: spaces at its ends removed (row 2)\n  \
         1 suburb: left empty, because its text stands for no value (row 2)\n"
    );
    assert_eq!(errors, "", "the report has the rest");
    let messages = import.messages();
    let message = |row: &str| messages.iter().find(|(number, ..)| number == row).unwrap();
    assert_eq!(
        message("4").2,
        "dateOfBirth: rewritten as YYYY-MM-DD; email: dropped, because it must be a valid email address"
    );
    assert_eq!(
        message("5").2,
        "lastName: is required; dateOfBirth is not written as D/M/YYYY or D-MMM-YYYY or serial 1900"
    );
    let text = std::fs::read_to_string(import.path("report.csv")).unwrap();
    assert!(!text.contains("neill") && !text.contains("Bayern"), "no values: {text}");
    assert_eq!(import.texts("first_name"), ["Ada", "Alan", "Grace", "Ida"]);
    assert_eq!(import.texts("date_of_birth"), ["1940-11-04", "1985-12-04", "1985-12-10", "1986-12-10"]);
    assert_eq!(import.texts("email"), ["Ada@example.com", "null", "null", "o'neill@example.com"]);
    assert_eq!(import.texts("state"), ["Bayern", "QLD", "VIC", "null"]);
    assert_eq!(import.texts("country"), ["AU", "AU", "null", "null"]);
    assert_eq!(import.texts("suburb"), ["Carlton", "n/a", "null", "null"]);

    // Other options create no row again.
    let (said, _) = import.fail("patients.csv", &[&options[..], &["--date-format", "D/M/YY from 1926"]].concat());
    assert!(said.starts_with("5 rows: 0 created, 4 created before, 1 refused\n"), "{said}");
}

#[test]
fn a_value_is_set_for_all_rows_and_a_dropped_one_is_printed_without_a_report() {
    let import = Import::start();
    import.write(
        "patients.csv",
        "firstName,lastName,phoneNumber,dateOfBirth,email,country\n\
         Ada,Lovelace,+61491570006,1985-12-10,nobody,Australia\n\
         Grace,Hopper,+61491570156,1986-12-10,,AU\n",
    );
    let options = ["--set", "country=AU", "--drop-invalid", "email"];
    let output = import.command("patients.csv", &[&options[..], &["--check"]].concat()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(complaint(&output), "row 2: email: dropped, because it must be a valid email address\n");
    let said = import.run("patients.csv", &options);
    assert!(said.contains("\n  1 country: set for all rows (row 2)\n"), "{said}");
    assert_eq!(import.texts("country"), ["AU", "AU"]);
    for (option, value, reason) in [
        ("--drop-invalid", "lastName", "lastName is required: no row can be without it"),
        ("--drop-invalid", "emial", "did you mean email?"),
        ("--set", "AU", "write FIELD=VALUE"),
        ("--set", "contry=AU", "did you mean country?"),
        ("--date-format", "D/M/YY", "years of two digits as \"D/M/YY from 1926\""),
    ] {
        let output = import.command("patients.csv", &[option, value]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint(&output).contains(reason), "{}", complaint(&output));
    }
}

#[test]
fn a_column_of_both_names_is_split_where_nothing_has_to_be_guessed() {
    let import = Import::start();
    import.write(
        "patients.csv",
        "Patient,phoneNumber,dateOfBirth\n\
         Ada Lovelace,+61491570006,1985-12-10\n\
         Grace Dyke,+61491570006,1985-12-10\n\
         Mary Jane Hopper,+61491570006,1985-12-10\n\
         Mrs Chen,+61491570006,1985-12-10\n\
         ,+61491570006,1985-12-10\n",
    );
    let (said, errors) = import.fail("patients.csv", &["--map", "Patient=firstName+lastName"]);
    assert!(said.starts_with("5 rows: 2 created, 0 created before, 3 refused\n"), "{said}");
    for field in ["firstName", "lastName"] {
        assert!(said.contains(&format!("\n  2 {field}: split from a column of both names (rows 2, 3)\n")), "{said}");
    }
    assert!(errors.contains("row 4: the names are neither two words nor \"Last, First\"\n"), "{errors}");
    assert!(errors.contains("row 5: the names hold \"mrs\", which is no part of a name"), "{errors}");
    assert_eq!(import.texts("first_name"), ["Ada", "Grace"]);
    assert_eq!(import.texts("last_name"), ["Dyke", "Lovelace"]);
}

#[test]
fn where_names_have_a_comma_those_without_one_are_refused() {
    let import = Import::start();
    import.write(
        "patients.csv",
        "Patient,phoneNumber,dateOfBirth\n\
         Nguyen Anh,+61491570006,1985-12-10\n\
         \"van Dyke, Grace\",+61491570006,1985-12-10\n",
    );
    let (said, errors) = import.fail("patients.csv", &["--map", "Patient=firstName+lastName"]);
    assert!(said.starts_with("2 rows: 1 created, 0 created before, 1 refused\n"), "{said}");
    assert!(errors.contains("row 2: the names have no comma, and the column has \"Last, First\""), "{errors}");
    import.write("headed.csv", "\"Surname, Given\",phoneNumber,dateOfBirth\nNguyen Anh,+61491570006,1985-12-10\n");
    let (_, errors) = import.fail("headed.csv", &["--map", "Surname, Given=firstName+lastName"]);
    assert!(errors.contains("row 2: the names have no comma"), "{errors}");
}

#[test]
fn titles_and_labels_are_left_out_where_that_is_said() {
    let import = Import::start();
    import.write(
        "patients.csv",
        "Patient,phoneNumber,dateOfBirth\n\
         Mr Gavin Prowse,M: 0491 570 006,1985-12-10\n\
         Dr. Julian Smythe,Ph: (02) 5550 1234,1985-12-10\n\
         Ada Lovelace,0491 570 006 (Bob),1985-12-10\n\
         Father Brown,+61491570006,1985-12-10\n",
    );
    let options = ["--drop-titles", "--australian-phones", "--map", "Patient=firstName+lastName"];
    let (proposed, _) = import.propose("patients.csv");
    assert_eq!(proposed, options);
    let (said, errors) = import.fail("patients.csv", &options);
    assert!(said.starts_with("4 rows: 2 created, 0 created before, 2 refused\n"), "{said}");
    assert!(said.contains("\n  2 firstName: title before it left out (rows 2, 3)\n"), "{said}");
    assert!(errors.contains("row 4: phoneNumber: E.164 format is required, for example +61491570006; this one holds"));
    assert_eq!(import.texts("first_name"), ["Gavin", "Julian"]);
    assert_eq!(import.texts("phone_number"), ["+61255501234", "+61491570006"]);
}

#[test]
fn suspicious_values_are_counted_and_named_and_taken_as_they_are() {
    let import = Import::start();
    let mut text = format!(
        "{HEADER}\n\
         Ada ,Lovelace,+61491570006,1985-12-10,,Carlton\n\
         “Grace”,N/A,+61491570007,1985-12-10,,-\n\
         Chen,Chen,+61491570008,1985-12-10,,\n\
         Alan,,+61491570009,1985-12-10,,N/A\n"
    );
    for letter in 'a'..='y' {
        text.push_str(&format!("Alan,Turing-{letter},+61491570000,1985-12-10,,\n"));
    }
    import.write("patients.csv", text);
    let suspicions = "probably wrong, and the register cannot correct them later:\n  \
                      28 with no address. Send the address: with name and date of birth it tells people apart at the \
                      desk. (rows 2, 3, 4, …)\n  \
                      25 with a phone number that 20 or more rows share. Check whose it is: only the 20th and later \
                      rows are marked. (rows 25, 26, 27, …)\n  \
                      1 with a last name equal to the first name. Check that each field of the form goes into its own \
                      field. For a person with one name, see the guide. (row 4)\n  \
                      1 with a placeholder as a name, such as N/A, - or Test. Ask for the name, and do not send a \
                      patient without one. (row 3)\n  \
                      1 with a placeholder in an optional field, such as N/A or -. Leave out the field instead. (row \
                      3)\n  \
                      1 with quotes round a name. Remove the quotes that an export has added. (row 3)\n  \
                      1 with spaces at the beginning or end of a value. Remove them before sending: the register keeps \
                      values as they are sent. (row 2)\n";
    for (more, outcome) in
        [(&["--check"][..], "28 valid, 1 refused; nothing was sent"), (&[], "28 created, 0 created before, 1 refused")]
    {
        let (said, _) = import.fail("patients.csv", &[more, &["--report", "report.csv"]].concat());
        assert_eq!((said, import.doubts().as_str()), (format!("29 rows: {outcome}\n"), suspicions));
        let report = import.report();
        let message = |row: &str| &report.iter().find(|line| line[0] == row).unwrap()[4];
        assert_eq!(message("2"), "look at it: spaces at the beginning or end of a value; look at it: no address");
        assert_eq!(message("30"), "look at it: no address; look at it: a phone number that 20 or more rows share");
    }
    assert_eq!(import.patients(), 28);
}
