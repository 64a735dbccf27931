//! `intake export --format fhir` writes FHIR, and patients of AU Core, says a validator that knows nothing of us.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::fixtures::{Integration, Running};
use crate::tools::{self, run};

#[test]
fn an_independent_validator_accepts_every_resource() {
    let Some(python) = tools::python() else { return };
    let app = Integration::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let least = json!({
        "firstName": "Ada", "lastName": "Lovelace", "phoneNumber": "+61412345678", "dateOfBirth": "1985-12-10",
    });
    let with = |field: &str, value: &str| {
        let mut patient = least.clone();
        patient[field] = json!(value);
        patient
    };
    let whole = json!({
        "firstName": " Zoë ", "lastName": "O\u{a0}Brien \u{1f600}", "phoneNumber": "+19", "dateOfBirth": "2000-02-29",
        "email": "zoe+x@example.com", "addressLine1": "12 High Street", "addressLine2": "Unit 3", "suburb": "Carlton",
        "state": "VIC", "postcode": "3053", "country": "AU",
    });
    let mut patients = vec![least.clone(), whole, with("firstName", &"é".repeat(255))];
    for field in ["addressLine1", "addressLine2", "suburb", "state", "postcode"] {
        patients.extend(["", " ", "\u{a0}", "\u{2003}"].map(|value| with(field, value)));
    }
    // Every text that a patient can hold, in 500 mixtures.
    let texts = ["O'Brien", "李", "🧪", "a\u{300}", "N/A", ".", "<b>&\"", "\\n", "Ünal-Øst", "\u{a0}x\u{a0}"];
    let fields = ["firstName", "lastName", "addressLine1", "addressLine2", "suburb", "state", "postcode"];
    patients.extend((0..500).map(|number: usize| {
        let mut patient = least.clone();
        for (place, field) in fields.iter().enumerate() {
            patient[*field] = json!(texts[(number / (place + 1) + place * number) % texts.len()]);
        }
        patient
    }));
    let mut ids = Vec::new();
    for patient in &patients {
        let created = app.create(&patient.to_string());
        assert_eq!(created.status, 201, "{}", created.text());
        ids.push(created.json()["data"]["id"].as_str().unwrap().to_owned());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut put = delivered(&app, python, folder.path());
    app.erase(ids.last().unwrap());
    let file = folder.path().join("Patient.ndjson");
    app.export("fhir", &["--provenance"], &file);

    let exported = resources(&file);
    put.retain(|resource| exported.iter().any(|other| other["identifier"] == resource["identifier"]));
    assert_eq!(put.len(), exported.len());
    for (mut put, exported) in put.into_iter().zip(&exported) {
        assert!(put["id"].is_null() && put["managingOrganization"]["identifier"].is_object(), "{put}");
        for member in ["id", "managingOrganization"] {
            put[member] = exported[member].clone();
        }
        assert_eq!(put, *exported);
    }

    let mut validate = Command::new(python.join("bin/python"));
    validate.arg(tools::file("validate_fhir.py")).arg(&file).arg(folder.path().join("first.ndjson"));
    for beside in ["deleted", "organization", "provenance"] {
        validate.arg(folder.path().join(format!("Patient.{beside}.ndjson")));
    }
    let found: Value = serde_json::from_str(&run(&mut validate)).unwrap();
    let stored = patients.len() - 1;
    assert_eq!(found, json!({ "Patient": stored + 1, "Bundle": 1, "Organization": 1, "Provenance": stored }));

    // Nothing that was sent is missing.
    let zoe = exported.iter().find(|resource| resource["id"] == ids[1]).unwrap();
    assert_eq!(zoe["name"], json!([{ "family": "O\u{a0}Brien \u{1f600}", "given": [" Zoë "] }]));
    let telecom = json!([{ "system": "phone", "value": "+19" }, { "system": "email", "value": "zoe+x@example.com" }]);
    assert_eq!((&zoe["telecom"], &zoe["birthDate"]), (&telecom, &json!("2000-02-29")));
    let address = json!([{
        "line": ["12 High Street", "Unit 3"], "city": "Carlton", "state": "VIC", "postalCode": "3053", "country": "AU",
    }]);
    assert_eq!(zoe["address"], address);
}

/// The resources of a file, by their identifiers.
fn resources(file: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(file).unwrap();
    let mut resources: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    resources.sort_by_key(|resource| resource["identifier"][0]["value"].as_str().unwrap().to_owned());
    resources
}

/// The resources that a FHIR server gets. One of them is also in a file of its own: the others differ from the export
/// in nothing else.
fn delivered(app: &Integration, python: &Path, folder: &Path) -> Vec<Value> {
    let file = folder.join("put.ndjson");
    let mut server = Command::new(python.join("bin/python"));
    let (_server, address) = Running::start(server.arg(tools::file("receive_fhir.py")).arg(&file));
    app.deliver(&format!("fhir+{address}"), &[]).wait_for(app.patients().try_into().unwrap(), 0);
    fs::write(folder.join("first.ndjson"), fs::read_to_string(&file).unwrap().lines().next().unwrap()).unwrap();
    resources(&file)
}
