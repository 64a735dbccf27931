//! `intake deliver` with receivers that others have written: a FHIR server, and a flow of Node-RED. Nothing is lost
//! or altered, nobody is at the server twice, and nobody after their erasure.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use intake_test_support::{Client, request, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{Integration, Running, work_folder};
use crate::tools;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLswMfKQ9r8GKYqo=";
/// An erasure after a start is repeated when no earlier request can be carried out any more: twice this time.
const SOON: [&str; 2] = ["--timeout", "5"];

/// A program that takes what is delivered. Its folder is gone when dropped.
struct Receiver {
    _running: Running,
    address: String,
    folder: TempDir,
}

impl Receiver {
    fn start(packages: &Path, program: &str, beside: &[&str]) -> Self {
        let files: Vec<_> = [program].iter().chain(beside).map(|name| format!("receivers/{name}")).collect();
        let folder = work_folder(packages, &files.iter().map(String::as_str).collect::<Vec<_>>());
        let mut command = Command::new("node");
        command.arg(program).env("SECRET", SECRET).current_dir(&folder);
        let (running, address) = Running::start(&mut command);
        Self { _running: running, address, folder }
    }

    fn get(&self, path: &str) -> Value {
        let client = Client::plain(self.address.trim_start_matches("http://").parse().unwrap());
        let answer = client.send(&request("GET", path, &[], b""));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }
}

/// Patients with little and with much, as the service answered.
fn create_patients(app: &Integration) -> Vec<Value> {
    let whole = json!({
        "firstName": " Zoë ", "lastName": "O\u{a0}Brien 🧪", "phoneNumber": "+61412345678", "dateOfBirth": "2000-02-29",
        "email": "zoe+x@example.com", "addressLine1": "12 \"High\" Street", "addressLine2": "Unit 3 \\ <b>&",
        "suburb": "Carlton", "state": "VIC", "postcode": "3053", "country": "AU",
    });
    let little = json!({
        "firstName": "李", "lastName": "a\u{300}\u{2028}x", "phoneNumber": "+19", "dateOfBirth": "1985-12-10",
    });
    let alike = intake_test_support::patient();
    [&whole, &little, &alike, &alike, &alike]
        .map(|patient| app.create(&patient.to_string()).json()["data"].take())
        .into()
}

/// The resource by which a FHIR server should know this patient.
fn resource(patient: &Value) -> Value {
    let uuid =
        |id: &Value| json!({ "system": "urn:ietf:rfc:3986", "value": format!("urn:uuid:{}", id.as_str().unwrap()) });
    let mut telecom = vec![json!({ "system": "phone", "value": patient["phoneNumber"] })];
    if let Some(email) = patient["email"].as_str() {
        telecom.push(json!({ "system": "email", "value": email }));
    }
    let mut resource = json!({
        "resourceType": "Patient", "identifier": [uuid(&patient["id"])], "gender": "unknown", "telecom": telecom,
        "name": [{ "family": patient["lastName"], "given": [patient["firstName"]] }],
        "birthDate": patient["dateOfBirth"], "managingOrganization": { "identifier": uuid(&patient["organisationId"]) },
        "meta": { "profile": ["http://hl7.org.au/fhir/core/StructureDefinition/au-core-patient"] },
    });
    if patient["addressLine1"].is_string() {
        resource["address"] = json!([{
            "line": [patient["addressLine1"], patient["addressLine2"]], "city": patient["suburb"],
            "state": patient["state"], "postalCode": patient["postcode"], "country": patient["country"],
        }]);
    }
    resource
}

#[test]
#[ignore = "just generators"]
fn a_fhir_server_has_each_patient_once_and_nobody_after_their_erasure() {
    let Some(packages) = tools::receivers() else { return };
    let server = Receiver::start(packages, "fhir_server.js", &[]);
    let stored = || {
        let mut found: Vec<Value> = server.get("/Patient?_count=100")["entry"].as_array().cloned().unwrap_or_default();
        for entry in &mut found {
            *entry = entry["resource"].take();
            let members = entry.as_object_mut().unwrap();
            // What the server gives.
            assert!(members.remove("id").is_some());
            let meta = members["meta"].as_object_mut().unwrap();
            assert!(meta.remove("versionId").is_some() && meta.remove("lastUpdated").is_some());
        }
        found.sort_by_key(|resource| resource["identifier"][0]["value"].as_str().unwrap().to_owned());
        found
    };
    let app = Integration::start();
    let patients = create_patients(&app);
    let mut expected: Vec<_> = patients.iter().map(resource).collect();
    expected.sort_by_key(|resource| resource["identifier"][0]["value"].as_str().unwrap().to_owned());
    let to = format!("fhir+{}", server.address);
    let delivery = app.deliver(&to, &SOON);
    delivery.wait_for(5, 0);
    assert_eq!(stored(), expected);

    // From the beginning, as after a loss of the folder.
    let again = app.deliver(&to, &SOON);
    again.wait_for(5, 0);
    drop(again);
    assert_eq!(stored(), expected);
    let gone = patients[2]["id"].as_str().unwrap();
    app.erase(gone);
    delivery.wait_for(5, 1);
    expected.retain(|resource| resource["identifier"][0]["value"] != format!("urn:uuid:{gone}"));
    assert_eq!((stored(), expected.len()), (expected.clone(), 4));

    // An erasure of a patient who is not there is no error, and a repetition does not bring them back.
    app.deliver(&to, &SOON).wait_for(4, 1);
    assert_eq!(stored(), expected);
}

#[test]
#[ignore = "just generators"]
fn a_flow_of_node_red_gets_what_was_sent_under_a_signature_that_holds() {
    let Some(packages) = tools::receivers() else { return };
    let flow = Receiver::start(packages, "node_red.js", &["flow.json"]);
    let app = Integration::start();
    let patients = create_patients(&app);
    let secrets = flow.folder.path().join("secrets");
    fs::write(&secrets, format!("{SECRET}\n")).unwrap();
    let deliver = || app.deliver(&format!("{}/hook", flow.address), &["--secrets", secrets.to_str().unwrap()]);
    let delivery = deliver();
    delivery.wait_for(5, 0);
    let gone = patients[1]["id"].as_str().unwrap();
    app.erase(gone);
    delivery.wait_for(5, 1);
    drop(delivery);
    let message = |kind: &str, data: Value| json!({ "type": kind, "data": data });
    let mut expected: BTreeMap<String, Value> = patients
        .iter()
        .map(|patient| (patient["id"].as_str().unwrap(), message("patient.created", patient.clone())))
        .map(|(id, message)| (format!("created.{id}"), message))
        .collect();
    expected.insert(format!("erased.{gone}"), message("patient.erased", json!({ "id": gone })));
    // The flow keeps a message only if its signature holds.
    let taken = || -> Vec<(String, Value)> {
        let mut taken: Vec<(String, Value)> = serde_json::from_value(flow.get("/all")).unwrap();
        for (_, message) in &mut taken {
            assert!(message.as_object_mut().unwrap().remove("timestamp").unwrap().is_string());
        }
        taken
    };
    let first = taken();
    assert_eq!(first.len(), 6);
    assert_eq!(first.into_iter().collect::<BTreeMap<_, _>>(), expected);

    // A repetition has the same names, by which a receiver knows it.
    deliver().wait_for(4, 1);
    wait_for("the repetition", || taken().len() == 11);
    assert_eq!(taken().into_iter().collect::<BTreeMap<_, _>>(), expected);
}
