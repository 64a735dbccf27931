//! Pairs of patients that may be one person: only ids, reasons and ranks are printed, to those who may read patients.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use diesel::connection::SimpleConnection;
use intake_domain::OrganisationId;
use intake_infra::DatabaseUrl;
use serde_json::{Value, json};

use crate::commands::erasure;
use crate::commands::export::{id_of, refused};
use crate::commands::readers::ReaderRole;
use crate::fixtures::{TestApp, program};
use crate::patient_with;

fn pairs(url: &DatabaseUrl, organisation: OrganisationId, more: &[&str]) -> Output {
    let organisation = organisation.to_string();
    let arguments = ["pairs", "--organisation", &organisation];
    arguments.iter().chain(more).fold(program().database_urls(url, url), |all, one| all.argument(one)).run()
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    String::from_utf8(output.stdout).unwrap()
}

fn named(app: &TestApp, first: &str, last: &str, phone: &str) -> String {
    let mut patient = patient_with("firstName", first);
    patient["lastName"] = last.into();
    patient["phoneNumber"] = phone.into();
    id_of(app, &patient)
}

#[test]
fn a_reader_lists_pairs_by_their_ids_until_they_are_decided() {
    let app = TestApp::start();
    let organisation = app.clinic.organisation;
    let reader = ReaderRole::make(&app.database, "pairs", Some(organisation));
    let list = |more: &[&str]| pairs(&reader.url, organisation, more);
    assert_eq!(printed(list(&[])), "No two patients look like one person.\n");
    let zoe = named(&app, "Zoë", "O’Brien", "+61491570006");
    let again = named(&app, "ZOE", "OBrien", "+610491570006");
    let twin = named(&app, "Thaddeus", "O'Brien", "+61491570006");
    named(&app, "Nobody", "Else", "+61491570156");
    let text = printed(list(&[]));
    // Patients of one millisecond have ids in any order.
    let sorted = |one: &String, other: &String| {
        if one < other { [one.clone(), other.clone()] } else { [other.clone(), one.clone()] }
    };
    let line = |rank: &str, one, other, names: &str| {
        format!("{rank:<4}  {}  {names} same-birth-date same-phone", sorted(one, other).join("  "))
    };
    let mut expected = [line("low", &zoe, &twin, "other-first-name"), line("low", &again, &twin, "other-first-name")];
    expected.sort();
    let high = line("high", &zoe, &again, "same-names");
    assert_eq!(text, format!("{high}\n{}\n", expected.join("\n")));
    let found: Value = serde_json::from_str(&printed(list(&["--json"]))).unwrap();
    let reasons = ["same-names", "same-birth-date", "same-phone"];
    let first = json!({ "ids": sorted(&zoe, &again), "rank": "high", "reasons": reasons });
    assert_eq!((&found["pairs"][0], &found["skippedGroups"]), (&first, &json!(0)));

    let folder = tempfile::tempdir().unwrap();
    let decided = folder.path().join("two-persons");
    let file = decided.to_str().unwrap();
    for (one, other) in [(&twin, &zoe), (&again, &twin), (&twin, &zoe)] {
        assert_eq!(printed(list(&["--decided", file, "--not", one, other])), "The two are not listed again.\n");
    }
    assert_eq!(fs::read_to_string(&decided).unwrap().lines().count(), 2);
    assert_eq!(fs::metadata(&decided).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(printed(list(&["--decided", file])), high + "\n");
    assert!(
        app.database.count("audit_entries WHERE action = 'patients_exported'") >= 3,
        "who reads patients is on record"
    );
}

#[test]
fn pairs_are_refused_to_others_and_a_damaged_file_is_named() {
    let app = TestApp::start();
    let reader = ReaderRole::make(&app.database, "pairs", Some(app.clinic.organisation));
    let other = refused(pairs(&reader.url, app.other_clinic().organisation, &[]));
    assert!(other.contains("this role may not read its patients"), "{other}");
    let service = refused(pairs(&app.database.service, app.clinic.organisation, &[]));
    assert!(service.contains("intake migrate --reader-role"), "{service}");
    let folder = tempfile::tempdir().unwrap();
    let decided = folder.path().join("two-persons");
    fs::write(&decided, "one two\n").unwrap();
    let damaged = refused(pairs(&reader.url, app.clinic.organisation, &["--decided", decided.to_str().unwrap()]));
    assert!(damaged.contains("line 1 is not two ids"), "{damaged}");
}

/// Stores patients with these numbers, of whom no two are alike.
fn store_strangers(app: &TestApp, from: u32, to: u32) {
    let organisation = app.clinic.organisation;
    let insert = format!(
        "INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, address_line1,
            created_in, created_at, updated_at)
         SELECT '{organisation}', gen_random_uuid(), 'F' || md5(n::text), 'L' || md5((-n)::text), '+6149' || n, date '1925-01-01' + n,
            n || ' High Street', number, now(), now()
         FROM feed_number('{organisation}') AS number, generate_series({from}, {to}) AS n"
    );
    app.database.connect_to_patients_of(organisation).batch_execute(&insert).unwrap();
}

fn born(first: &str, last: &str, date: &str, more: &[(&str, &str)]) -> Value {
    let letters: u32 = first.bytes().map(u32::from).sum();
    let phone = format!("+49{letters}{}", date.replace('-', ""));
    let mut patient = json!({ "firstName": first, "lastName": last, "dateOfBirth": date, "phoneNumber": phone });
    for (member, value) in more {
        patient[*member] = (*value).into();
    }
    patient
}

#[test]
fn the_next_run_reads_only_who_came_since_and_who_may_be_one_of_them() {
    let app = TestApp::start();
    let organisation = app.clinic.organisation;
    let reader = ReaderRole::make(&app.database, "pairs", Some(organisation));
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let next = || printed(pairs(&reader.url, organisation, &["--state", state.to_str().unwrap()]));
    store_strangers(&app, 1, 20_000);
    let first = [
        born("Zoë", "O’Brien", "1985-03-21", &[]),
        born("Karl", "Meyer", "1985-03-21", &[("phoneNumber", "+61491570007")]),
        born("Per", "Lund", "1985-04-07", &[("addressLine1", "Unit 3"), ("addressLine2", "12 Lower Road")]),
        born("Ann", "Lee", "1985-09-30", &[("email", "ann@clinic.EXAMPLE")]),
        born("Wilbrun", "Osk", "1990-01-02", &[]),
    ];
    let first = first.map(|patient| id_of(&app, &patient));
    // Two names, and no typing error: several patients have each.
    for number in 1..=3 {
        for (name, year) in [("Tarkin", 1950), ("Tarkan", 1970)] {
            id_of(&app, &born(name, &format!("Vos{}", "aeo".repeat(number)), &format!("{year}-01-0{number}"), &[]));
        }
    }
    assert_eq!(next(), "No two patients look like one person.\n");

    store_strangers(&app, 20_001, 20_040);
    let came = [
        born("ZOE", "OBrien", "1985-03-21", &[("email", "z@clinic.example")]),
        born("Karl", "Meier", "1985-03-12", &[("phoneNumber", "+610491570007")]),
        born("Per", "Lund", "1985-07-04", &[("addressLine1", "U3/12 lower rd.")]),
        born("Ann", "Lee", "1965-09-30", &[("email", "Ann@Clinic.example")]),
        born("Wilburn", "Osk", "1990-01-02", &[]),
        born("Tarkan", "Vosaeo", "1950-01-01", &[]),
    ];
    let came = came.map(|patient| id_of(&app, &patient));
    let found = next();
    assert_eq!(found.lines().count(), 5, "{found}");
    for (one, other) in first.iter().zip(&came) {
        let is_pair = |line: &&str| line.starts_with("high") && line.contains(one) && line.contains(other);
        assert!(found.lines().any(|line| is_pair(&line)), "{found}");
    }
    assert_eq!(found, printed(pairs(&reader.url, organisation, &[])), "a search of everybody finds no other");
    let read = "SELECT split_part(subject, ' ', 1) AS text FROM audit_entries WHERE action = 'patients_exported'";
    let read = app.database.texts(&format!("{read} ORDER BY recorded_in"));
    // Strangers, those who came, those who are like them, and three others with the birth date of one of them.
    let exact = (40 + came.len() + first.len() + 3).to_string();
    assert_eq!(read[..2], [(20_000 + first.len() + 6).to_string(), exact]);

    let nobody = "No patient that came since looks like another.\n";
    assert_eq!(next(), nobody);
    for id in [&first[0], &came[0]] {
        assert!(erasure::run(&app, "erase", id, &[]).status.success());
    }
    id_of(&app, &born("Zoe", "O'Brien", "1985-03-21", &[]));
    assert_eq!(next(), nobody, "nobody is compared with who was erased");
    fs::write(&state, "01a1fced-5fed-735b-985b-55afb2dd9693\n").unwrap();
    let other = refused(pairs(&reader.url, organisation, &["--state", state.to_str().unwrap()]));
    let advice = format!("remove {} and run the command again", state.display());
    assert!(other.contains("does not know the token") && other.contains(&advice), "{other}");
    fs::remove_file(&state).unwrap();
    assert_eq!(next().lines().count(), 4);
}
