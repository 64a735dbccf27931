//! The program proposes options, and guesses nothing.

use crate::import::Import;

const REST: &str = "+61491570006,1985-12-10";

#[test]
fn the_order_of_day_and_month_is_proposed_only_where_the_file_proves_it() {
    let import = Import::start();
    let write = |dates: &[&str]| {
        let rows: String = dates.iter().map(|date| format!("Ada,Lovelace,+61491570006,{date}\n")).collect();
        import.write("patients.csv", format!("firstName,lastName,phoneNumber,dateOfBirth\n{rows}"));
        import.propose("patients.csv")
    };
    let (options, said) = write(&["3/4/1985", "4/13/1985"]);
    assert_eq!(options, ["--date-format", "M/D/YYYY"]);
    assert!(said.contains("  M/D/YYYY is proved: row 3\n"), "{said}");
    let (options, said) = write(&["3/4/1985", "4/5/1985", "1985-12-10"]);
    assert_eq!(options, [""; 0]);
    assert!(said.starts_with("3 rows: 1 would arrive, 2 stay refused; nothing was sent\n"), "{said}");
    assert!(said.contains("nothing proves D/M/YYYY or M/D/YYYY (rows 2, 3)"), "{said}");
    let (options, said) = write(&["13/4/1985", "4/13/1985", "14/4/1985", "3/4/1985"]);
    assert_eq!(options, ["--date-format", "D/M/YYYY", "--date-format", "M/D/YYYY"]);
    assert!(said.starts_with("4 rows: 3 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
    assert!(said.contains("(row 5): if D/M/YYYY is meant, give it alone and correct row 3\n"), "{said}");
    assert!(said.contains("  row 5: 3/4/1985 can be 3 April or 4 March\n"), "{said}");
    assert!(said.contains("  1 dateOfBirth is another day as D/M/YYYY and as M/D/YYYY: give only the"), "{said}");
    let alone = "if D/M/YYYY is meant in every row, 3 would arrive, instead of 3:\n\
                 intake-import patients.csv --check --report check.csv --date-format D/M/YYYY\n";
    assert!(said.contains(alone), "{said}");
    let (options, said) = write(&["3/4/85", "31385"]);
    assert_eq!(options, [""; 0]);
    assert!(
        said.contains("years of two digits (row 2)") && said.contains("numbers instead of dates (row 3)"),
        "{said}"
    );
    assert_eq!(import.patients(), 0);
}

#[test]
fn delimiter_columns_and_words_are_found() {
    let import = Import::start();
    import.write(
        "patients.csv",
        "Client;Home phone;Mobile;Date of birth (dd/mm/yyyy);Status;\"It's \"\"so\"\"\"\n\
         Lovelace, Ada;n/a;+61491570006;1985-12-10;active;x\n\
         \"Hopper, Grace\";;0491 570 156;13.4.1986;active;\n\
         Alan van Turing;(02) 5550 1234;;1985-12-10;active;\n",
    );
    let (options, said) = import.propose("patients.csv");
    let expected = [
        "--delimiter",
        ";",
        "--date-format",
        "D.M.YYYY",
        "--australian-phones",
        "--map",
        "Client=firstName+lastName",
        "--map",
        "Home phone=",
        "--map",
        "Mobile=phoneNumber",
        "--map",
        "Date of birth (dd/mm/yyyy)=dateOfBirth",
        "--map",
        "Status=",
        "--map",
        "It's \"so\"=",
    ];
    assert_eq!(options, expected);
    assert!(said.starts_with("3 rows: 2 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
    assert!(said.contains("  row 3: firstName \"Grace\", lastName \"Hopper\"\n"), "{said}");
    assert!(said.contains("columns left out: \"Home phone\", \"Status\", \"It's \\\"so\\\"\"\n"), "{said}");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let (said, _) = import.fail("patients.csv", &options);
    assert!(said.starts_with("3 rows: 2 created, 0 created before, 1 refused\n"), "{said}");

    import.write(
        "good.jsonl",
        format!(
            "{{\"firstName\":\"Ada\",\"lastName\":\"Lovelace\",{}}}\n",
            "\"phoneNumber\":\"0491 570 006\",\"dateOfBirth\":\"1985-12-10\""
        ),
    );
    assert_eq!(import.propose("good.jsonl").0, ["--australian-phones"]);
    import.write("good.csv", format!("firstName,lastName,phoneNumber,dateOfBirth\nAda,Lovelace,{REST}\n"));
    assert_eq!(import.propose("good.csv").0, [""; 0]);
}

/// Left out, the country of an address abroad would make it look like an Australian one.
#[test]
fn no_country_is_proposed_to_be_left_out() {
    let import = Import::start();
    import.write(
        "patients.csv",
        format!(
            "firstName,lastName,phoneNumber,dateOfBirth,Your email,Country of residence\n\
             Ada,Lovelace,{REST},ada,Australia\nGrace,Hopper,{REST},grace@clinic.example,New Zealand\n"
        ),
    );
    let (options, said) = import.propose("patients.csv");
    let expected = ["--drop-invalid", "email", "--australian-places"];
    let maps = ["--map", "Your email=email", "--map", "Country of residence=country"];
    assert_eq!(options, [&expected[..], &maps[..]].concat());
    assert!(said.starts_with("2 rows: 1 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
}

#[test]
fn the_header_is_found_below_titles_and_not_among_the_patients() {
    let import = Import::start();
    let table = "Given name;Surname;Mobile;DOB\nAda;Lovelace;+61491570006;1985-12-10\nGrace;Hopper;;1986-12-10\n";
    let maps = ["Given name=firstName", "Surname=lastName", "Mobile=phoneNumber", "DOB=dateOfBirth"];
    let maps: Vec<_> = maps.iter().flat_map(|map| ["--map", map]).collect();
    for (above, row) in [
        ("", None),
        ("\n\n", None),
        ("Bookings, March 2026;;;\n;;;\n", Some("3")),
        ("Bookings\nPatient;;Contact;\n", Some("3")),
        ("Mobile and DOB of each patient, as \"agreed\"\n", Some("2")),
    ] {
        import.write("patients.csv", format!("{above}{table}"));
        let (options, said) = import.propose("patients.csv");
        let header_row: Vec<_> = row.iter().flat_map(|row| ["--header-row", row]).collect();
        let expected = [&["--delimiter", ";"], &header_row[..], &maps[..]];
        assert_eq!(options, expected.concat(), "{said}");
        assert!(said.starts_with("2 rows: 1 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
        let above = row.map(|row| format!("the header is row {row}: nothing above it is imported\n"));
        assert!(above.is_none_or(|above| said.contains(&above)), "{said}");
    }
    let options: Vec<_> = [&["--delimiter", ";", "--header-row", "2"], &maps[..]].concat();
    let (said, errors) = import.fail("patients.csv", &options);
    assert!(said.starts_with("2 rows: 1 created, 0 created before, 1 refused\n"), "{said}");
    assert!(errors.starts_with("row 4: phoneNumber"), "{errors}");

    // Two rows may be the header: nothing is guessed, and a given row decides.
    let other = table.replace("Mobile", "Phone");
    import.write("two.csv", format!("Bookings\n{other}{table}"));
    let output = import.command("two.csv", &["--propose"]).output().unwrap();
    let complaint = "name its row with --header-row: row 2 or row 5 may be it\n";
    assert!(crate::import::complaint(&output).ends_with(complaint), "{}", crate::import::complaint(&output));
    let (options, _) = import.propose_with("two.csv", &["--header-row", "5"]);
    assert_eq!(options[..4], ["--delimiter", ";", "--header-row", "5"]);
}

#[test]
fn names_without_a_comma_beside_others_are_read_where_their_order_is_said() {
    let import = Import::start();
    import.write(
        "patients.csv",
        format!(
            "Client name,phoneNumber,dateOfBirth\nAda Lovelace,{REST}\n\"HOPPER, Grace\",{REST}\n\
             \"\"\"Alan Turing\"\"\",{REST}\nMary Jane Ward,{REST}\n"
        ),
    );
    let map = ["--map", "Client name=firstName+lastName"];
    let (options, said) = import.propose("patients.csv");
    assert_eq!(options, map);
    assert!(said.starts_with("4 rows: 1 would arrive, 3 stay refused; nothing was sent\n"), "{said}");
    let advice = "if each name without a comma begins with the first name, 3 would arrive, instead of 1: propose again \
                  with --first-name-first\n";
    assert!(said.contains(advice), "{said}");
    let (options, said) = import.propose_with("patients.csv", &["--first-name-first"]);
    assert_eq!(options, [&["--plain-quotes", "--first-name-first"], &map[..]].concat());
    assert!(said.starts_with("4 rows: 3 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
    assert!(!said.contains("propose again"), "{said}");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let (_, errors) = import.fail("patients.csv", &options);
    assert!(errors.starts_with("row 5: the names are neither two words nor \"Last, First\"\n"), "{errors}");
    assert_eq!(import.texts("first_name"), ["Ada", "Alan", "Grace"]);
    assert_eq!(import.texts("last_name"), ["HOPPER", "Lovelace", "Turing"]);

    import.write("headed.csv", format!("\"Surname, Given\",phoneNumber,dateOfBirth\nNguyen Anh,{REST}\n"));
    let headed = ["--first-name-first", "--map", "Surname, Given=firstName+lastName"];
    assert!(import.fail("headed.csv", &headed).1.contains("row 2: the names have no comma"), "the header decides");
}

#[test]
fn a_header_of_several_lines_is_proposed_in_one() {
    let import = Import::start();
    let people = "Ada,Lovelace,+61491570006,1985-12-10\n";
    import.write("patients.csv", format!("\"Given\nName(s)  *\",Family  Name,Mobile,\"Date of \r\n birth\"\n{people}"));
    let (options, said) = import.propose("patients.csv");
    assert!(said.starts_with("1 row: 1 would arrive, 0 stay refused; nothing was sent\n"), "{said}");
    let maps = ["Given Name(s) *=firstName", "Family Name=lastName", "Mobile=phoneNumber", "Date of birth=dateOfBirth"];
    assert_eq!(options, maps.map(|map| ["--map", map]).concat());
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    assert!(import.run("patients.csv", &options).starts_with("1 row: 1 created"));
    // As the cell is written, too.
    let written = ["--map", "Given\nName(s)  *=firstName", "--map", "Family  Name=lastName"];
    assert!(
        import.run("patients.csv", &[&written[..], &options[4..]].concat()).starts_with("1 row: 0 created, 1 created")
    );
}

#[test]
fn a_proposal_without_a_required_column_names_those_that_may_hold_it() {
    let import = Import::start();
    import.write("patients.csv", format!("firstName,Nickname,Contact details,Born\nAda,Lovelace,{REST}\n"));
    let output = import.command("patients.csv", &["--propose"]).output().unwrap();
    let said = crate::import::complaint(&output);
    let held = "one of these may hold lastName or phoneNumber: \"Nickname\", \"Contact details\"\n";
    assert!(said.ends_with(held), "{said}");
}
