//! What systems that read patients get of a register that is spread over a Citus cluster: every patient and every
//! erasure once, wherever the shard of the organisation lies. `INTAKE_TEST_CITUS_URL` names a cluster (docs/scale.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_infra::DatabaseUrl;
use intake_test_support::{WithCount, patient};

use crate::commands::erasure;
use crate::commands::export::{Given, export, given, refused};
use crate::commands::readers::ReaderRole;
use crate::fixtures::{OverWhenDropped, TestApp, program};

fn as_reader(app: &TestApp, url: &DatabaseUrl, token: Option<&str>) -> Given {
    let since: Vec<_> = token.into_iter().flat_map(|token| ["--since", token]).collect();
    let arguments = [&["--format", "jsonl"], &since[..]].concat();
    given(export(program().database_urls(url, url), app.clinic.organisation, &arguments))
}

fn create(app: &TestApp) -> String {
    let created = app.create(&patient());
    assert_eq!(created.status, 201, "{}", created.text());
    created.json()["data"]["id"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_token_is_good_wherever_the_patients_lie() {
    let app = TestApp::start();
    let (citus, name) = (app.database.citus(), app.database.name());
    citus.use_alone();
    let reader = ReaderRole::make(&app.database, "feed", Some(app.clinic.organisation));
    let since = |token: &str| as_reader(&app, &reader.url, Some(token));
    let first = create(&app);
    let start = as_reader(&app, &reader.url, None);
    assert_eq!(start.ids(), [first.as_str()]);

    // The number of a transaction here is far above those of the other node.
    let home = citus.node_of(name, app.clinic.organisation);
    let other = 3 - home;
    let many = "DO $$ BEGIN FOR n IN 1..3000 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$";
    PgConnection::establish(citus.owner_at(home, name).expose()).unwrap().batch_execute(many).unwrap();
    let move_to = |node, mode| citus.move_shard(name, app.clinic.organisation, node, mode).unwrap();
    move_to(other, "force_logical");
    let second = create(&app);
    let there = since(&start.token);
    assert_eq!(there.ids(), [second.as_str()]);
    move_to(home, "block_writes");
    let third = create(&app);
    let back = since(&there.token);
    assert_eq!(back.ids(), [third.as_str()]);
    assert_eq!(since(&start.token).ids(), [second.as_str(), &third]);

    // By Citus, which sends the patient and its erasure to the node that holds them.
    let functions = "DO $$ DECLARE name regprocedure; BEGIN
            FOR name IN SELECT oid FROM pg_proc WHERE proname LIKE 'store_patients_%' LOOP
                EXECUTE 'DROP FUNCTION ' || name;
            END LOOP;
        END $$";
    app.database.connect().batch_execute(functions).unwrap();
    let fourth = create(&app);
    assert!(erasure::run(&app, "erase", &first, &[]).status.success());
    let last = since(&back.token);
    assert_eq!(last.ids(), [fourth.as_str(), &first]);
    assert!(last.lines()[1]["erasedAt"].is_string());
    assert_eq!(since(&last.token).text, "");

    // Without the coordinator.
    let stopped = citus.stop_node(0);
    let alone = as_reader(&app, &reader.at(home), Some(&there.token));
    assert_eq!(alone.ids(), [third.as_str(), &fourth, &first]);
    drop(stopped);

    app.database.connect().batch_execute("DELETE FROM feed_marks").unwrap();
    let arguments = ["--format", "jsonl", "--since", &last.token];
    let builder = program().database_urls(&reader.url, &reader.url);
    let gone = refused(export(builder, app.clinic.organisation, &arguments));
    assert!(gone.contains("does not know the token"), "{gone}");
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn while_a_shard_moves_every_patient_and_every_erasure_is_exported_once() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (citus, name) = (app.database.citus(), app.database.name());
    citus.use_alone();
    let reader = ReaderRole::make(&app.database, "feed", Some(app.clinic.organisation));
    let is_over = AtomicBool::new(false);
    let (created, mut erased) = (Mutex::new(Vec::new()), Vec::new());
    let mut exported = Vec::new();
    let mut token = as_reader(&app, &reader.url, None).token;
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let id = create(&app);
                    created.lock().unwrap().push(id);
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                let Some(id) = created.lock().unwrap().get(erased.len() * 2).cloned() else { continue };
                if erasure::run(&app, "erase", &id, &[]).status.success() {
                    erased.push(id);
                }
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let run = as_reader(&app, &reader.url, Some(&token));
                exported.extend(run.lines());
                token = run.token;
            }
        });
        let home = citus.node_of(name, app.clinic.organisation);
        for (to, mode) in [(3 - home, "force_logical"), (home, "block_writes"), (3 - home, "block_writes")] {
            std::thread::sleep(Duration::from_secs(1));
            citus.move_shard(name, app.clinic.organisation, to, mode).unwrap();
        }
        std::thread::sleep(Duration::from_secs(1));
        drop(over);
    });
    exported.extend(as_reader(&app, &reader.url, Some(&token)).lines());

    let (mut patients, mut erasures) = (BTreeMap::new(), BTreeMap::new());
    for line in &exported {
        let kind = if line["erasedAt"].is_string() { &mut erasures } else { &mut patients };
        *kind.entry(line["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert!(
        patients.values().chain(erasures.values()).all(|times| *times == 1),
        "none twice: {patients:?} {erasures:?}"
    );
    let (created, erased) = (created.into_inner().unwrap(), BTreeSet::from_iter(erased));
    assert!(erased.len() > 3 && created.len() > 50, "{} of {}", erased.len(), created.len());
    assert_eq!(erasures.into_keys().collect::<BTreeSet<_>>(), erased);
    let missing: Vec<_> = created.iter().filter(|id| !patients.contains_key(*id) && !erased.contains(*id)).collect();
    assert!(missing.is_empty(), "{missing:?} of {}", created.len());
    assert!(patients.keys().all(|id| created.contains(id)));
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_reader_reads_the_patients_of_its_organisation_through_any_node_and_nothing_else() {
    let app = TestApp::start();
    let clinics: Vec<_> = (0..6).map(|_| app.other_clinic()).collect();
    for clinic in &clinics {
        assert_eq!(app.service.create(&clinic.key().1, &patient()).status, 201);
    }
    let first = create(&app);
    create(&app);
    assert!(erasure::run(&app, "erase", &first, &[]).status.success());
    let own = ReaderRole::make(&app.database, "own", Some(app.clinic.organisation));
    let every = ReaderRole::make(&app.database, "every", None);
    let other = format!("organisation_id = '{}'", clinics[0].organisation);
    for node in 0..app.database.citus().nodes() {
        let rows = |reader: &ReaderRole<'_>, from: &str| {
            let mut connection = PgConnection::establish(reader.at(node).expose()).unwrap();
            let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {from}"));
            query.get_result::<WithCount>(&mut connection).map(|found| found.count)
        };
        let count = |reader, from: &str| rows(reader, from).unwrap();
        assert_eq!((count(&own, "patients_v1"), count(&every, "patients_v1")), (1, 7), "node {node}");
        assert_eq!((count(&own, "erasures_v1"), count(&every, "erasures_v1")), (1, 1));
        assert_eq!((count(&own, "patients"), count(&own, &format!("patients_v1 WHERE {other}"))), (1, 0));
        for column in ["idempotency_key", "request_digest"] {
            let denied = rows(&every, &format!("(SELECT {column} FROM patients) AS more")).unwrap_err().to_string();
            assert!(denied.contains("permission denied"), "{denied}");
        }
        for table in ["api_keys", "readers", "feed_marks", "members", "audit_entries", "organisations"] {
            let denied = rows(&every, table).unwrap_err().to_string();
            assert!(denied.contains("permission denied"), "{table}: {denied}");
        }
    }
    // Past Citus, too.
    let shards = "SELECT shard_name('patients', shardid) AS text, nodeport::text FROM pg_dist_shard
        JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid) WHERE logicalrelid = 'patients'::regclass";
    let names = app.database.texts(&format!("SELECT text FROM ({shards}) AS shards"));
    let mut seen = 0;
    for node in 1..app.database.citus().nodes() {
        let mut connection = PgConnection::establish(own.at(node).expose()).unwrap();
        for shard in &names {
            let query = diesel::sql_query(format!("SELECT count(*) AS count FROM {shard}"));
            seen += query.get_result::<WithCount>(&mut connection).map_or(0, |found| found.count);
        }
    }
    assert!(seen <= 1, "{seen}");
}
