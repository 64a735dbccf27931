//! The nodes of a Citus cluster that serve one register: through whichever of them an instance comes in, whichever of
//! them dies, and wherever a shard moves. `INTAKE_TEST_CITUS_URL` names a cluster, all on this machine (docs/scale.md).

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment};
use intake_infra::SERVICE_ROLE;
use intake_test_support::{Clinic, Response, Service, patient, wait_for};
use serde_json::json;

use crate::commands::organisations::{done, refused, run};
use crate::fixtures::{OverWhenDropped, PASSWORD, TestApp, between, demo_key, program, service, time_of};

/// An instance that comes in through this node.
fn instance(app: &TestApp, node: usize) -> Service {
    let url = app.database.citus().role_at(node, SERVICE_ROLE, app.database.name());
    program().database_urls(&url, &app.database.owner).start()
}

/// An organisation with a key, whose patients this node holds.
fn clinic_on(app: &TestApp, node: usize) -> Clinic {
    Clinic::open_on(&app.database, node, Environment::Development)
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn through_whichever_node_an_instance_comes_in_the_promises_are_kept() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let nodes = app.database.citus().nodes();
    let instances: Vec<Service> = (0..nodes).map(|node| instance(&app, node)).collect();
    let body = patient().to_string();

    // Revoked at once, by whichever instance it was used before.
    for _ in 0..5 {
        let (id, key) = app.clinic.key();
        assert!(instances.iter().all(|instance| instance.create(&key, &patient()).status == 201));
        app.clinic.revoke(id);
        assert!(instances.iter().all(|instance| instance.create(&key, &patient()).status == 401));
    }

    // One patient, however many instances are asked at the same time.
    let before = app.patients();
    for number in 0..10 {
        let idempotency_key = format!("key-{number}");
        let keyed = |instance: &Service| {
            instance.create_with(app.key(), &[("Idempotency-Key", &idempotency_key)], body.as_bytes())
        };
        let answers = std::thread::scope(|scope| {
            let asked: Vec<_> =
                instances.iter().cycle().take(9).map(|instance| scope.spawn(|| keyed(instance))).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<Response>>()
        });
        assert!(answers.iter().all(|answer| answer.status == 201), "{answers:?}");
        let bodies: HashSet<_> = answers.iter().map(Response::text).collect();
        assert_eq!(bodies.len(), 1, "{bodies:?}");
    }
    assert_eq!(app.patients(), before + 10);
    assert!(instances.iter().all(|instance| !instance.output().contains("ERROR")));
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_replaced_key_ends_whichever_node_the_new_one_is_used_through() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let last = app.database.citus().nodes() - 1;
    let other = instance(&app, last);
    let ((old, old_key), (new, new_key)) = (app.clinic.key(), app.clinic.key());
    let replace =
        format!("UPDATE api_keys SET replaces = '{old}', replaced_ends_after = '1 second' WHERE id = '{new}'");
    app.database.connect().batch_execute(&replace).unwrap();
    assert_eq!(app.service.create(&old_key, &patient()).status, 201);
    assert_eq!(other.create(&new_key, &patient()).status, 201);
    wait_for("the end of the old key", || app.service.create(&old_key, &patient()).status == 401);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_that_dies_takes_only_its_own_organisations_with_it() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    app.database.citus().use_alone();
    let (alive, dead) = (clinic_on(&app, 1), clinic_on(&app, 2));
    let ((_, live_key), (id, leaked), (_, dead_key)) = (alive.key(), alive.key(), dead.key());
    for key in [&live_key, &leaked, &dead_key] {
        assert_eq!(app.service.create(key, &patient()).status, 201);
    }
    let stopped = app.database.citus().stop_node(2);
    let mut times = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        assert_eq!(app.service.create(&live_key, &patient()).status, 201);
        times.push(started.elapsed());
    }
    times.sort();
    assert!(times[150] < Duration::from_millis(100), "{:?}", &times[150..]);
    assert!(times[199] < Duration::from_secs(1), "{:?}", &times[190..]);
    let refused = app.service.create(&dead_key, &patient());
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (503, true));
    let doctor = service(&app.database).argument("doctor").run();
    let (said, away) = (String::from_utf8(doctor.stdout).unwrap(), "are away, or lack the password");
    assert!(said.contains(away) && said.contains(&app.database.citus().name_of(2)), "{said}");
    // Its own people can do what they must.
    alive.revoke(id);
    assert_eq!(app.service.create(&leaked, &patient()).status, 401);
    let member = app.member_of(&alive, "ada@clinic.example");
    assert_eq!(member.get("/settings/api-keys").status, 200);
    assert_eq!(app.service.probe("/readyz").status, 200);
    drop(stopped);
    wait_for("its patients again", || app.service.create(&dead_key, &patient()).status == 201);
    assert_eq!(app.patients(), 3 + 200 + 1, "nothing is lost and nothing doubled");
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn an_organisation_needs_only_its_own_worker_and_the_coordinator() {
    let app = TestApp::start();
    app.database.citus().use_alone();
    let (alive, away) = (clinic_on(&app, 1), clinic_on(&app, 2));
    let (_, key) = alive.key();
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    let mut administrator = app.member_of(&alive, "ada@clinic.example");
    let stopped = app.database.citus().stop_node(2);

    let gone = away.organisation.to_string();
    for arguments in [
        ["key", "create", "--organisation", &gone, "--name", "Another"].as_slice(),
        &["organisation", "suspend", &gone],
        &["organisation", "rename", &gone, "--name", "Another"],
    ] {
        let mut said = String::new();
        let time = time_of(|| said = refused(&app, arguments));
        assert!(time < Duration::from_secs(5), "{arguments:?}: {time:?}");
        let name = app.database.citus().name_of(2);
        assert!(said.contains("a node of the database that this needs is away") && said.contains(&name), "{said}");
    }
    let id = alive.organisation.to_string();
    done(&app, &["organisation", "rename", &id, "--name", "Renamed while a node is away"]);
    done(&app, &["member", "invite", "--organisation", &id, "--email", "guest@clinic.example"]);
    assert_eq!(administrator.confirm_identity(PASSWORD, "").status, 303);
    assert_eq!(administrator.post("/settings/policies/key-age", "days=90").status, 303);
    let said = refused(&app, &["key", "create", "--organisation", &id, "--name", "Endless"]);
    assert!(said.contains("90 days"), "{said}");
    done(&app, &["organisation", "suspend", &id]);
    assert_eq!(app.service.create(&key, &patient()).status, 401);
    let said = refused(&app, &["key", "create", "--organisation", &id, "--name", "Another"]);
    assert!(said.contains("suspended"), "{said}");
    done(&app, &["organisation", "resume", &id]);
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    done(&app, &["organisation", "close", &id]);
    assert_eq!(app.service.create(&key, &patient()).status, 401);
    for number in 0..5 {
        let made = done(&app, &["organisation", "create", "--name", &format!("Clinic {number}")]);
        done(&app, &["key", "create", "--organisation", made["id"].as_str().unwrap(), "--name", "First"]);
    }
    drop(stopped);
    wait_for("its worker", || run(&app, &["organisation", "suspend", &gone]).status.success());
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_key_needs_only_the_worker_of_its_organisation() {
    let app = TestApp::start();
    app.database.citus().use_alone();
    // The first worker is the one that Citus asks for locks of what every node holds.
    for (there, away) in [(1, 2), (2, 1)] {
        let clinic = clinic_on(&app, there);
        let id = clinic.organisation.to_string();
        let member = app.member_of(&clinic, &format!("ada{there}@clinic.example"));
        let form = member.get("/settings/api-keys/new").text();
        let form = format!("id={}&name=Another", between(&form, "name=\"id\" value=\"", "\""));
        let (replaced, _) = clinic.key();
        let stopped = app.database.citus().stop_node(away);

        let made = done(&app, &["key", "create", "--organisation", &id, "--name", "Made while a node is away"]);
        assert_eq!(member.post("/settings/api-keys", &form).status, 200);
        let replacement = done(&app, &["key", "replace", &replaced.to_string()]);
        for made in [&made, &replacement] {
            let (id, key) = (made["id"].as_str().unwrap(), demo_key(made["key"].as_str().unwrap()));
            // One that has just started finds it, too.
            for instance in [&app.service, &instance(&app, there)] {
                assert_eq!(instance.create(&key, &patient()).status, 201);
            }
            done(&app, &["key", "pause", id]);
            assert_eq!(app.service.create(&key, &patient()).status, 401);
            done(&app, &["key", "resume", id]);
            assert_eq!(app.service.create(&key, &patient()).status, 201);
            done(&app, &["key", "revoke", id]);
            assert_eq!(app.service.create(&key, &patient()).status, 401);
        }
        assert_eq!(app.service.create(&clinic.unknown_key_nearby(), &patient()).status, 401);
        drop(stopped);
    }
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_that_hangs_delays_only_requests_of_its_own_organisations() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    app.database.citus().use_alone();
    let (alive, dead) = (clinic_on(&app, 1), clinic_on(&app, 2));
    let ((_, live_key), (id, revoked), (_, dead_key)) = (alive.key(), alive.key(), dead.key());
    alive.revoke(id);
    let body = patient().to_string();
    let unknown = alive.unknown_key_nearby();
    let replay = || app.service.create_with(&live_key, &[("Idempotency-Key", "again")], body.as_bytes()).status;
    assert_eq!((replay(), app.service.create(&dead_key, &patient()).status), (201, 201));
    let hung = app.database.citus().freeze_node(2);
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| app.service.create(&dead_key, &patient()));
        for _ in 0..20 {
            let kinds = [
                (201, time_of(|| assert_eq!(app.service.create(&live_key, &patient()).status, 201))),
                (401, time_of(|| assert_eq!(app.service.create(&revoked, &patient()).status, 401))),
                (401, time_of(|| assert_eq!(app.service.create(&unknown, &patient()).status, 401))),
                (422, time_of(|| assert_eq!(app.service.create(&live_key, &json!({})).status, 422))),
                (201, time_of(|| assert_eq!(replay(), 201))),
            ];
            assert!(kinds.iter().all(|(_, time)| *time < Duration::from_secs(1)), "{kinds:?}");
        }
        assert_eq!(refused.join().unwrap().status, 503);
    });
    drop(hung);
    wait_for("its patients again", || app.service.create(&dead_key, &patient()).status == 201);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn patients_are_stored_past_citus_and_by_citus_where_a_shard_has_no_function() {
    let app = TestApp::start();
    let create = || app.service.create(app.key(), &patient()).status;
    assert_eq!(create(), 201);
    // The functions do it as their owner.
    app.database.connect().batch_execute("REVOKE INSERT ON patients FROM intake_service").unwrap();
    assert_eq!(create(), 201);
    app.database.connect().batch_execute("GRANT INSERT ON patients TO intake_service").unwrap();
    let drop_functions = "DO $$ DECLARE name regprocedure; BEGIN
            FOR name IN SELECT oid FROM pg_proc WHERE proname LIKE 'store_patients_%' LOOP
                EXECUTE 'DROP FUNCTION ' || name;
            END LOOP;
        END $$";
    app.database.connect().batch_execute(drop_functions).unwrap();
    assert_eq!(create(), 201);
    assert_eq!(app.patients(), 3);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_that_is_away_delays_only_the_removal_of_what_expired_there() {
    let app = TestApp::start();
    app.database.citus().use_alone();
    let (alive, away) = (clinic_on(&app, 1), clinic_on(&app, 2));
    let expired = |clinic: &Clinic| {
        format!(
            "INSERT INTO key_answers VALUES ('{id}', gen_random_uuid(), '2024-01-01', '2024-01-01', 201, '', 1);
             INSERT INTO key_refusals VALUES ('{id}', gen_random_uuid(), '2024-01-01', 'r', 401, 'revoked');
             INSERT INTO key_uses VALUES ('{id}', gen_random_uuid(), '2024-01-01', NULL, '::1', 'curl');",
            id = clinic.organisation
        )
    };
    let challenge = "INSERT INTO passkey_challenges VALUES ('expired', '2024-01-01');";
    let rows = [&expired(&alive), &expired(&away), challenge].map(String::from).concat();
    app.database.connect().batch_execute(&rows).unwrap();
    let left = |clinic: &Clinic| {
        let of_clinic = format!("organisation_id = '{}'", clinic.organisation);
        let tables = ["key_answers WHERE", "key_refusals WHERE", "key_uses WHERE last_address IS NOT NULL AND"];
        tables.map(|table| app.database.count(&format!("{table} {of_clinic}")))
    };
    let stopped = app.database.citus().stop_node(2);
    // The first sweep comes soon after a start.
    let other = instance(&app, 0);
    wait_for("a sweep of what is there", || left(&alive) == [0, 0, 0] && app.database.count("passkey_challenges") == 0);
    // First the instance, which would remove them when the worker is back.
    drop(other);
    drop(stopped);
    wait_for("the worker", || left(&away) == [1, 1, 1]);
}

/// Returns what was answered, and how many patients are there, after the shard of an organisation was moved away and
/// back under load; and the answer to its key, revoked then.
fn moved_under_load(app: &TestApp) -> (Vec<u16>, i64, u16) {
    app.database.citus().use_alone();
    let clinic = clinic_on(app, 1);
    let (id, key) = clinic.key();
    let (is_over, answers) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let create = |key: &ApiKey| {
        while !is_over.load(Ordering::Relaxed) {
            let status = app.service.create(key, &patient()).status;
            answers.lock().unwrap().push(status);
        }
    };
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        (0..4).for_each(|_| drop(scope.spawn(|| create(&key))));
        std::thread::sleep(Duration::from_secs(1));
        for to in [2, 1] {
            app.database.citus().move_shard(app.database.name(), clinic.organisation, to, "block_writes").unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
        drop(over);
    });
    let stored = app.patients();
    clinic.revoke(id);
    (answers.into_inner().unwrap(), stored, app.service.create(&key, &patient()).status)
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn while_a_shard_moves_every_patient_is_stored_once() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (answers, stored, with_revoked_key) = moved_under_load(&app);
    assert_eq!(with_revoked_key, 401);
    assert!(answers.iter().all(|status| *status == 201), "{answers:?}");
    assert_eq!(i64::try_from(answers.len()).unwrap(), stored);
}

/// Shows what the test above would find if the functions of shards did not do what they must.
#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn without_the_lock_and_the_second_look_a_move_loses_patients() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let careless = "DO $$ DECLARE definition text; BEGIN
        FOR definition IN SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'store_patients_%' LOOP
            EXECUTE regexp_replace(definition, 'PERFORM lock_shard_metadata.*?END IF;', '');
        END LOOP;
    END $$";
    app.database.connect().batch_execute(careless).unwrap();
    let (answers, stored, _) = moved_under_load(&app);
    let acknowledged = answers.into_iter().filter(|status| *status == 201).count();
    assert!(stored < i64::try_from(acknowledged).unwrap(), "{stored} of {acknowledged}");
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn without_the_coordinator_instances_go_on_and_stay_ready() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    app.database.citus().use_alone();
    let (id, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    let (_, not_seen_yet) = app.clinic.key();
    let stopped = app.database.citus().stop_node(0);
    assert_eq!(app.service.create(&not_seen_yet, &patient()).status, 201);
    // Its address is the coordinator's alone. Its connections are made anew.
    wait_for("a patient", || app.service.create(&key, &patient()).status == 201);
    wait_for("readiness", || app.service.probe("/readyz").status == 200);
    // One that reaches a worker starts, revokes, and makes keys.
    let (citus, name) = (app.database.citus(), app.database.name());
    let through_a_worker = || program().database_urls(&citus.role_at(1, SERVICE_ROLE, name), &citus.owner_at(1, name));
    assert_eq!(through_a_worker().start().create(&key, &patient()).status, 201);
    let command = |arguments: &[&str]| {
        let done = arguments.iter().fold(through_a_worker(), |all, one| all.argument(one)).run();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    command(&["key", "revoke", &id.to_string()]);
    assert_eq!(app.service.create(&key, &patient()).status, 401);
    let organisation = app.clinic.organisation.to_string();
    let made = command(&["key", "create", "--organisation", &organisation, "--name", "Another"]);
    assert_eq!(app.service.create(&demo_key(made.lines().last().unwrap()), &patient()).status, 201);
    drop(stopped);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_coordinator_that_hangs_takes_no_instance_out_of_service() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    app.database.citus().use_alone();
    let both = || (app.create(&patient()).status, app.service.probe("/readyz").status);
    assert_eq!(both(), (201, 200));
    let hung = app.database.citus().freeze_node(0);
    for _ in 0..8 {
        assert_eq!(both(), (201, 200));
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(hung);
}
