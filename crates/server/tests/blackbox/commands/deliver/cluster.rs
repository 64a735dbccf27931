//! Deliveries from a register that is spread over a Citus cluster. `INTAKE_TEST_CITUS_URL` names one (docs/scale.md).

use std::collections::BTreeSet;
use std::fs;

use intake_domain::Environment;
use intake_test_support::{Clinic, patient, wait_for};

use crate::commands::deliver::{Answer, Delivery, Running, Target, erase};
use crate::commands::readers::ReaderRole;
use crate::fixtures::TestApp;

/// A delivery keeps its connection to the worker that holds the patients, so it must notice when they move.
#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn each_organisation_of_a_cluster_is_delivered_once_wherever_its_patients_lie() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (citus, name) = (app.database.citus(), app.database.name());
    let home = citus.node_of(name, app.clinic.organisation);
    let other = Clinic::open_on(&app.database, 3 - home, Environment::Development);
    let keys = [app.key().clone(), other.key().1];
    // They come in through the coordinator and through a worker.
    let readers = ["webhook", "folder"].map(|name| ReaderRole::make(&app.database, name, None));
    let (hook, inbox) = (Target::start(|_| Answer::Status(202)), tempfile::tempdir().unwrap());
    let to_hook = Delivery::over(readers[0].url.clone(), app.clinic.organisation, &hook.url);
    let to_inbox = Delivery::over(readers[1].at(home), other.organisation, inbox.path().to_str().unwrap());
    let running = [to_hook.start(&[]), to_inbox.start(&[])];
    let mut ids = <[Vec<String>; 2]>::default();
    let mut create = |count: usize| {
        for number in 0..2 * count {
            let answer = app.service.create(&keys[number % 2], &patient());
            ids[number % 2].push(answer.json()["data"]["id"].as_str().unwrap().to_owned());
        }
        ids.clone()
    };
    let is_delivered = |[hooked, filed]: &[Vec<String>; 2]| {
        let files = fs::read_dir(inbox.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let filed = filed.iter().map(|id| format!("{id}.json"));
        hooked.iter().all(|id| !hook.of(id).is_empty()) && files.collect::<BTreeSet<_>>() == filed.collect()
    };
    let before = create(20);
    wait_for("the patients of both", || is_delivered(&before));
    let gone = &before[0][0];
    for (to, mode) in [(3 - home, "force_logical"), (home, "block_writes")] {
        citus.move_shard(name, app.clinic.organisation, to, mode).unwrap();
        let all = create(5);
        wait_for("those who came after the move", || is_delivered(&all));
    }
    erase(&app, gone);
    wait_for("the erasure", || hook.of(gone) == ["patient.created", "patient.erased"]);
    assert_eq!(running.map(Running::stop), ["", ""], "a move of its patients is no fault");
    assert_eq!(hook.taken().len(), ids[0].len() + 1, "nothing came twice");
    assert_eq!(to_inbox.status().1["delivered"], ids[1].len());
    assert!(ids[0].iter().filter(|id| *id != gone).all(|id| hook.of(id) == ["patient.created"]));
}
