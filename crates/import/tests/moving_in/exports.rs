//! Lists that practice software exports: several phone numbers, nicknames, a column of units, and the header again on
//! each page.

use crate::import::Import;
use crate::sheets::{Cell, texts, write_ods, write_xlsx};

const LIST: &str = "Bookings,,,,,,\n\
    \"Client (Surname, First)\",D.O.B.,Mobile,Home/Work Ph,Unit,Street,Postcode\n\
    \"Lovelace, Augusta (Ada)\",10 Dec 1985,0491 570 006,02 5550 1234,5,12 Hay St,6000\n\
    \"Hopper, Grace\",9 Dec 1986,,(02) 5550 1234,,1 Hay St,6000\n\
    \"Client (Surname, First)\",D.O.B.,Mobile,Home/Work  Ph,Unit,Street,Postcode\n\
    \"Turing, Alan (deceased)\",23 Jun 1912,0491 570 156,,,,\n\
    \"Moser, Ida\",1 Feb 1950,n/a,0491 570 157,Flat 2,3 Hay St,6000\n";

fn rows() -> Vec<Vec<Cell>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(LIST.as_bytes());
    reader.records().map(|row| texts(&row.unwrap().iter().collect::<Vec<_>>())).collect()
}

#[test]
fn every_phone_unit_and_nickname_of_a_list_with_a_repeated_header_finds_its_place() {
    let import = Import::start();
    import.write("list.csv", LIST);
    write_xlsx(&import.path("list.xlsx"), &[("List", rows())], &[]);
    write_ods(&import.path("list.ods"), &[("List", rows())]);
    for file in ["list.csv", "list.xlsx", "list.ods"] {
        let (options, said) = import.propose(file);
        assert!(said.starts_with("4 rows: 3 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
        assert!(said.contains("\nthe header again, passed over: row 5\n"), "{said}");
        assert!(options.contains(&"--drop-nicknames".to_owned()), "{options:?}");
        for map in ["Home/Work Ph=else phoneNumber", "Unit=addressLine2", "Street=addressLine1"] {
            assert!(options.contains(&map.to_owned()), "{options:?}");
        }
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let (said, errors) = import.fail(file, &[&options[..], &["--run", file]].concat());
        assert!(said.starts_with("4 rows: 3 created, 0 created before, 1 refused\n"), "{said}");
        assert!(said.contains("\nthe header again, passed over: row 5\n"), "{said}");
        let taken = "\n  2 phoneNumber: taken from another column, because its own is blank (rows 4, 7)\n";
        assert!(said.contains(taken), "{said}");
        assert!(said.contains("\n  1 firstName: name in brackets after it left out (row 3)\n"), "{said}");
        assert!(errors.starts_with("row 6: the names hold \"(\", which is no part of a name"), "{errors}");
    }
    let thrice = |texts: [&str; 3]| texts.map(|text| vec![text.to_owned(); 3]).concat();
    assert_eq!(import.texts("first_name"), thrice(["Augusta", "Grace", "Ida"]));
    assert_eq!(import.texts("phone_number"), thrice(["+61255501234", "+61491570006", "+61491570157"]));
    assert_eq!(import.texts("address_line1"), thrice(["1 Hay St", "12 Hay St", "3 Hay St"]));
    assert_eq!(import.texts("address_line2"), thrice(["5", "Flat 2", "null"]));
}

#[test]
fn a_unit_is_left_out_where_another_column_holds_the_second_line() {
    let import = Import::start();
    let header = "firstName,lastName,phoneNumber,dateOfBirth,Unit,Street,Address 2";
    import.write("list.csv", format!("{header}\nAda,Lovelace,+61491570006,1985-12-10,5,12 Hay St,Level 3\n"));
    let (options, said) = import.propose("list.csv");
    let maps = ["Unit=", "Street=addressLine1", "Address 2=addressLine2"];
    assert_eq!(options, maps.map(|map| ["--map", map]).concat());
    assert!(said.contains("\ncolumns left out: \"Unit\"\n"), "{said}");
}

#[test]
fn the_number_of_a_street_that_has_a_column_of_its_own_is_put_before_the_street() {
    let import = Import::start();
    let header = "firstName,lastName,phoneNumber,dateOfBirth,Street No.,Street Name";
    let row = |first: &str, rest: &str| format!("{first},Lovelace,+61491570006,1985-12-10,{rest}\n");
    let streets = [("Ada", "12A,Hay St"), ("Ida", ",PO Box 7"), ("Eva", " ,Low Rd"), ("Zoe", "3/14,"), ("Mia", "-,-")];
    let rows: String = streets.map(|(first, rest)| row(first, rest)).concat();
    import.write("list.csv", format!("{header}\n{rows}"));
    let (options, said) = import.propose("list.csv");
    let maps = ["Street No.=before addressLine1", "Street Name=addressLine1"];
    assert_eq!(options, [&["--empty", "-"][..], &["--map", maps[0], "--map", maps[1]]].concat());
    assert!(said.contains("addressLine1: prefixed with the number of another column"), "{said}");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let said = import.run("list.csv", &options);
    assert!(said.contains("\n  2 addressLine1: prefixed with the number of another column (rows 2, 5)\n"), "{said}");
    assert_eq!(import.texts("address_line1"), ["12A Hay St", "3/14", "Low Rd", "PO Box 7", "null"]);
    let (_, errors) = import.fail("list.csv", &["--map", maps[0], "--map", "Street Name=before addressLine1"]);
    assert!(errors.contains("two columns hold the street's number"), "{errors}");
}

#[test]
fn a_proposal_says_how_many_rows_would_arrive_if_years_of_two_digits_were_the_last_hundred() {
    let import = Import::start();
    let rest = "Lovelace,+61491570006";
    let rows = format!("Ada,{rest},3 Dec 85\nIda,{rest},13-4-50\nAda,{rest},\nRuth,{rest},1985-12-03\n");
    import.write("short.csv", format!("firstName,lastName,phoneNumber,dateOfBirth\n{rows}"));
    let (options, said) = import.propose("short.csv");
    assert_eq!(options, [""; 0]);
    let advice = said.lines().find(|line| line.starts_with("if ")).unwrap();
    let given: Vec<_> = advice.split('\'').skip(1).step_by(2).flat_map(|form| ["--date-format", form]).collect();
    let (before, first) = advice.split_once("years of two digits are ").unwrap();
    let (first, last): (i32, i32) = (first[..4].parse().unwrap(), first[8..12].parse().unwrap());
    assert_eq!((before, last - first), ("if ", 99), "{advice}");
    assert!(advice.contains(&format!(" to {last}, 3 would arrive, instead of 1: propose again with ")), "{advice}");
    assert_eq!(given.len(), 4, "{advice}");
    let (_, said) = import.propose_with("short.csv", &given);
    assert!(said.starts_with("4 rows: 3 would arrive, 1 stay refused; nothing was sent\n"), "{said}");
    assert!(!said.contains("years of two digits"), "{said}");
}

#[test]
fn rows_that_are_refused_are_not_called_the_same_as_others() {
    let import = Import::start();
    let header = "firstName,lastName,phoneNumber,dateOfBirth,Notes";
    import.write("notes.csv", format!("{header}\n,,,,inactive\n,,,,moved away\n"));
    let (said, _) = import.fail("notes.csv", &["--map", "Notes="]);
    assert!(said.starts_with("2 rows: 0 created, 0 created before, 2 refused\n"), "{said}");
    assert!(!said.contains("same as an earlier one"), "{said}");
}
