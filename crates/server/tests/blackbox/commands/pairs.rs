//! Pairs of patients that may be one person: only ids, reasons and ranks are printed, to those who may read patients.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use intake_domain::OrganisationId;
use intake_infra::DatabaseUrl;
use serde_json::{Value, json};

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
