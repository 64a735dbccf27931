//! The guide's comparison of a day finds everything that the register has lost, however slowly it may ask, and prints
//! each id at once.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixtures::Integration;
use crate::retries::{Answer, FalseService, command};
use crate::{guide, tools};

const PROGRAM: &str = "compare_day.py";
const IDS: [&str; 2] = ["019ae1c0-0000-7000-8000-000000000001", "019ae1c0-0000-7000-8000-000000000002"];

/// The program with these in place of the examples.
fn comparing(day: &str, ids: &[&str]) -> String {
    let text = guide::program(PROGRAM);
    assert!(text.contains("\nIDS = []\n") && text.contains("\nDAY = \"2025-12-03\"\n") && text.contains("\nTRIES = "));
    let text = text.replace("\nIDS = []\n", &format!("\nIDS = {ids:?}\n"));
    text.replace("2025-12-03", day).replace("\nTRIES = ", "\nTRIES = 4 # ")
}

#[test]
fn every_lost_patient_is_found_within_the_rate_of_a_key() {
    if tools::python().is_none() {
        return;
    }
    let app = Integration::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "2/60"));
    let patient = intake_test_support::patient().to_string();
    let created: Vec<Value> = (0..60).map(|_| app.create(&patient).json()["data"].take()).collect();
    let day = &created[0]["createdAt"].as_str().unwrap()[..10];
    let ids: Vec<_> = created.iter().map(|patient| patient["id"].as_str().unwrap()).collect();
    let lost: Vec<_> = [3, 4, 20, 31, 59].map(|place| ids[place]).into();
    app.remove_behind_the_service(&lost);
    app.erase(ids[40]);
    let folder = tempfile::tempdir().unwrap();
    // As databases of others keep ids: in capitals, and one of them twice.
    let capitals: Vec<_> = ids.iter().chain(&ids[..1]).map(|id| id.to_uppercase()).collect();
    let known: Vec<_> = capitals.iter().map(String::as_str).collect();
    let mut program = command(PROGRAM, &comparing(day, &known), folder.path(), &app.url());
    program.env("INTAKE_KEY", format!("{}\n", app.key.expose()));
    program.env("SSL_CERT_FILE", app.service.data_dir().join("tls/ca.pem"));
    let output = program.output().unwrap();
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{said}");
    let lines = lost.iter().map(|id| format!("{id} is lost: send it again"));
    let mut expected: Vec<_> = lines.chain([format!("{} was erased: delete what you have", ids[40])]).collect();
    expected.sort();
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{said}");
    assert!(said.ends_with("60 ids compared, 6 missing\n") && said.contains("status 429"), "{said}");
}

#[test]
fn a_comparison_asks_again_as_late_as_the_answers_say_and_gives_up_after_some_tries() {
    if tools::python().is_none() {
        return;
    }
    let answers = [Answer::LostConnection, Answer::Status(503, 2), Answer::Status(429, 1), Answer::Day];
    let (output, tries) = FalseService::start(&answers).run(PROGRAM, &comparing("2025-12-03", &[]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let waited = |number: usize| tries[number + 1].at.duration_since(tries[number].at);
    assert!(waited(1) >= Duration::from_secs(2) && waited(2) >= Duration::from_secs(1));

    for (answers, complaint) in [
        ([Answer::LostConnection; 4].as_slice(), "start again later"),
        (&[Answer::Status(503, 1); 4], "start again later: status 503"),
        // After another try, which would find nobody, it would complain of that.
        (&[Answer::Status(401, 0)], "refused with 401"),
    ] {
        let (output, _) = FalseService::start(answers).run(PROGRAM, &comparing("2025-12-03", &IDS));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(complaint) && !said.contains("Traceback"), "{said}");
    }
}

#[test]
fn a_lost_patient_is_printed_before_the_next_question_is_answered() {
    if tools::python().is_none() {
        return;
    }
    let service = FalseService::start(&[Answer::Day, Answer::Day, Answer::Status(503, 3), Answer::Status(401, 0)]);
    let folder = tempfile::tempdir().unwrap();
    let mut program = command(PROGRAM, &comparing("2025-12-03", &IDS), folder.path(), &service.url);
    let mut running = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(running.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let printed = Instant::now();
    assert_eq!(line, format!("{} is lost: send it again\n", IDS[0]));
    assert!(!running.wait().unwrap().success());
    assert!(printed < service.tries()[3].at, "printed only at the end");
}
