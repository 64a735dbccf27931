//! `intake deliver` to programs that are not ours: Medplum's FHIR server, and Node-RED, a tool of automation, with a
//! flow that takes webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use intake_test_support::{Client, Response, free_port, patient, request, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{Integration, program, work_folder};
use crate::tools;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLswMfKQ9r8GKYqo=";
const OTHER_SECRET: &str = "whsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0IG9sZA==";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that takes patients.
struct Receiver {
    client: Client,
    address: SocketAddr,
    _program: Running,
}

impl Receiver {
    /// Starts it and waits until it answers at this path.
    fn start(command: &mut Command, path: &str) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        command.env("PORT", address.port().to_string()).stdin(Stdio::null()).stdout(Stdio::null());
        let program = Running(command.spawn().unwrap());
        let client = Client::plain(address);
        let receiver = Self { client, address, _program: program };
        wait_for("the receiver", || receiver.client.try_open_socket().is_ok() && receiver.get(path).status == 200);
        receiver
    }

    fn get(&self, path: &str) -> Response {
        self.client.send(&request("GET", path, &[], b""))
    }
}

/// Creates patients with these first names; returns what the API answered.
fn create(app: &Integration, names: &[&str]) -> Vec<Value> {
    let create = |name: &&str| {
        let mut patient = patient();
        patient.as_object_mut().unwrap().insert("firstName".to_owned(), json!(name));
        app.create(&patient.to_string()).json().get("data").cloned().unwrap()
    };
    names.iter().map(create).collect()
}

/// Starts a delivery with a state of its own.
fn deliver(app: &Integration, to: &str, more: &[&str]) -> (Running, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let arguments = [&["--to", to, "--state", state.to_str().unwrap()], more].concat();
    (Running(app.reader("deliver", &arguments).spawn()), folder)
}

/// Result of `intake deliver test`: what it printed, or its complaint.
fn try_out(to: &str, more: &[&str]) -> Result<String, String> {
    let arguments = [&["deliver", "test", "--to", to], more].concat();
    let output = arguments.iter().fold(program(), |all, one| all.argument(one)).run();
    let [printed, complaint] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if output.status.success() { Ok(printed) } else { Err(complaint) }
}

fn medplum(packages: &Path) -> (Receiver, TempDir) {
    let folder = work_folder(packages, &["receivers/fhir_server.mjs"]);
    let mut node = Command::new("node");
    // Node.js 20 has WebSocket, which the packages need, behind this option.
    node.args(["--experimental-websocket", "fhir_server.mjs"]).current_dir(&folder);
    (Receiver::start(&mut node, "/metadata"), folder)
}

#[test]
fn medplum_has_each_patient_once_and_no_erased_one() {
    let Some(packages) = tools::receivers() else { return };
    let (server, _folder) = medplum(packages);
    let to = format!("fhir+http://{}", server.address);
    assert!(try_out(&to, &[]).unwrap().starts_with("the server offers what a delivery needs"));
    let wrong = try_out(&format!("{to}/nowhere"), &[]).unwrap_err();
    assert!(wrong.contains("the target answered 404 to GET"), "{wrong}");

    let app = Integration::start();
    let patients = create(&app, &["Ada", "Zoë", " O'Brien \u{1f600}"]);
    let resources = || -> Vec<Value> {
        let bundle = server.get("/Patient?_sort=_lastUpdated").json();
        let entries = bundle["entry"].as_array().cloned().unwrap_or_default();
        entries.into_iter().map(|mut entry| entry["resource"].take()).collect()
    };
    let names = || {
        let mut names: Vec<_> = resources().iter().map(|resource| resource["name"][0]["given"][0].clone()).collect();
        names.sort_by_key(ToString::to_string);
        names
    };
    let all = [" O'Brien \u{1f600}", "Ada", "Zoë"];
    let (running, _state) = deliver(&app, &to, &[]);
    wait_for("the patients", || names() == all);
    drop(running);
    let ids = |resources: &[Value]| {
        let pair = |resource: &Value| (resource["identifier"][0]["value"].to_string(), resource["id"].clone());
        resources.iter().map(pair).collect::<BTreeMap<_, _>>()
    };
    let versions = || resources().iter().map(|one| one["meta"]["versionId"].to_string()).collect::<BTreeSet<_>>();
    let (first, first_versions) = (ids(&resources()), versions());
    assert_eq!(resources()[0]["birthDate"], "1985-03-21");

    // A delivery that knows nothing of the one before updates them.
    let (_running, _state) = deliver(&app, &to, &[]);
    wait_for("an update of each", || versions().is_disjoint(&first_versions));
    let later = create(&app, &["Later"]);
    wait_for("the patient in between", || names().len() == 4);
    let second = ids(&resources());
    assert!(first.iter().all(|(identifier, id)| second[identifier] == *id), "{first:?} {second:?}");
    app.erase(patients[0]["id"].as_str().unwrap());
    app.erase(later[0]["id"].as_str().unwrap());
    wait_for("the erasures", || names() == [" O'Brien \u{1f600}", "Zoë"]);
}

#[test]
fn node_red_takes_each_patient_and_each_erasure_with_its_signature() {
    let Some(packages) = tools::receivers() else { return };
    let folder = work_folder(packages, &["receivers/flow.json", "receivers/node_red.cjs"]);
    let mut node = Command::new("node");
    node.arg(packages.join("node_modules/node-red/red.js")).args(["--settings", "node_red.cjs"]);
    let server = Receiver::start(node.current_dir(&folder).env("WEBHOOK_SECRET", SECRET), "/patients");
    let to = format!("http://{}/intake", server.address);
    let secrets = folder.path().join("secrets");
    let signed = ["--secrets", secrets.to_str().unwrap()];
    fs::write(&secrets, OTHER_SECRET).unwrap();
    let refused = try_out(&to, &signed).unwrap_err();
    assert!(refused.contains("the target answered 401"), "{refused}");
    // As while a secret is replaced.
    fs::write(&secrets, format!("{OTHER_SECRET}\n{SECRET}\n")).unwrap();
    assert_eq!(try_out(&to, &signed).unwrap(), "the target answered 204\n");

    let app = Integration::start();
    let patients = create(&app, &["Ada", "Zoë", " O'Brien \u{1f600}"]);
    let (_running, _state) = deliver(&app, &to, &signed);
    let taken = || serde_json::from_slice::<Value>(&server.get("/patients").body).unwrap_or_default();
    let as_answered = |patients: &[Value]| -> Value {
        patients.iter().map(|patient| (patient["id"].as_str().unwrap().to_owned(), patient.clone())).collect()
    };
    wait_for("the patients", || taken() == as_answered(&patients));
    app.erase(patients[0]["id"].as_str().unwrap());
    wait_for("the erasure", || taken() == as_answered(&patients[1..]));
}
