//! A Citus cluster whose nodes change while the service runs: a worker is added, its disk fills, a standby takes the
//! place of the coordinator, and a backup takes that of a worker. `INTAKE_TEST_CITUS_URL` names a cluster, all on this
//! machine (docs/scale.md).

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment};
use intake_infra::DatabaseUrl;
use intake_test_support::{Clinic, Service, TestDatabase, create_request, patient, wait_for};

use crate::database::full_disk::SmallDisk;
use crate::fixtures::{OverWhenDropped, PASSWORD, TestApp, in_production, password_field, post, program, service};
use crate::{complaint, patient_with};

/// The answers to creates with these keys in turn, from two clients that go on until the work is done.
fn under_load(service: &Service, keys: &[ApiKey], work: impl FnOnce()) -> Vec<u16> {
    let (is_over, answers) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                for key in keys.iter().cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let status = service.create(key, &patient()).status;
                    answers.lock().unwrap().push(status);
                }
            });
        }
        work();
        drop(over);
    });
    answers.into_inner().unwrap()
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_is_added_and_takes_over_shards_while_every_patient_is_stored_once() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let clinics: Vec<Clinic> = (0..12).map(|_| app.other_clinic()).collect();
    let keys: Vec<ApiKey> = clinics.iter().map(|clinic| clinic.key().1).collect();
    let citus = app.database.citus();
    let mut added = None;
    let answers = under_load(&app.service, &keys, || {
        let worker = citus.add_worker(&app.database, None);
        // The second one waits for what the first one has committed.
        for rebalance in ["SELECT citus_rebalance_start()", "SELECT citus_rebalance_wait()"] {
            app.database.connect().batch_execute(rebalance).unwrap();
        }
        let moved = format!(
            "pg_dist_placement JOIN pg_dist_node USING (groupid) JOIN pg_dist_shard USING (shardid)
             WHERE nodeport = {} AND logicalrelid = 'patients'::regclass",
            worker.port()
        );
        assert!(app.database.count(&moved) > 0);
        std::thread::sleep(Duration::from_secs(1));
        added = Some(worker);
    });
    assert!(answers.iter().all(|status| *status == 201), "{answers:?}");
    assert_eq!(app.patients(), i64::try_from(answers.len()).unwrap());
    for (clinic, key) in clinics.iter().zip(&keys) {
        assert_eq!(app.service.create(key, &patient()).status, 201);
        let (id, revoked) = clinic.key();
        clinic.revoke(id);
        assert_eq!(app.service.create(&revoked, &patient()).status, 401);
    }
    drop(added);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_whose_disk_is_full_takes_only_its_own_organisations_with_it() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let citus = app.database.citus();
    let Some(disk) = SmallDisk::mount(Path::new(&citus.data_folder()), "200m") else { return };
    let (alive, struck) = (app.other_clinic(), app.other_clinic());
    let shard = |clinic: &Clinic| citus.shard_of(app.database.name(), clinic.organisation);
    let alive = std::iter::once(alive).chain((0..50).map(|_| app.other_clinic()));
    let alive = alive.into_iter().find(|clinic| shard(clinic) != shard(&struck)).unwrap();
    let (live_key, struck_key) = (alive.key().1, struck.key().1);
    let worker = citus.add_worker(&app.database, Some(&disk.tables().display().to_string()));
    app.database.connect().batch_execute("SELECT replicate_reference_tables()").unwrap();
    citus.move_shard_to(app.database.name(), struck.organisation, worker.port().into(), "block_writes").unwrap();
    let create = |key: &ApiKey| app.service.create(key, &patient_with("addressLine1", "x".repeat(255))).status;
    wait_for("a patient on the new worker", || create(&struck_key) == 201);
    disk.fill();
    wait_for("the first page to be full", || create(&struck_key) == 503);
    for _ in 0..20 {
        assert_eq!((create(&live_key), app.service.probe("/readyz").status), (201, 200));
    }
    assert_eq!(create(&struck_key), 503);
    disk.empty();
    wait_for("room for a patient", || create(&struck_key) == 201);
    drop(worker);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_standby_takes_the_place_of_the_coordinator_and_no_create_fails() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let (citus, name) = (app.database.citus(), app.database.name());
    citus.use_alone();
    drop(app.member("ada@clinic.example"));
    let standby = citus.standby_of(0);
    let both = |user: &str| -> DatabaseUrl {
        let hosts = [citus.name_of(0), format!("127.0.0.1:{}", standby.port())].join(",");
        format!("postgres://{user}@{hosts}/{name}?target_session_attrs=read-write").parse().unwrap()
    };
    let service = program().database_urls(&both("intake_service"), &both("postgres"));
    let service = service.setting("INTAKE_RATE_LIMIT", "off").start();
    let form = format!("email=ada%40clinic.example&{}", password_field(PASSWORD));
    let sign_in = || post(&service.client(), "/sign-in", &[], &form).status;
    assert_eq!(sign_in(), 303);
    let stored = app.patients();
    let keys = [app.key().clone(), app.other_clinic().key().1];
    citus.wait_for_standbys(0);
    let mut stopped = None;
    let answers = under_load(&service, &keys, || {
        stopped = Some(citus.stop_node(0));
        standby.promote();
        let update = format!(
            "SELECT citus_update_node(nodeid, nodename, {}) FROM pg_dist_node WHERE groupid = 0",
            standby.port()
        );
        standby.execute(name, &update).unwrap();
        let promoted = Instant::now();
        wait_for("a sign-in", || sign_in() == 303);
        assert!(promoted.elapsed() < Duration::from_secs(3), "{:?}", promoted.elapsed());
        std::thread::sleep(Duration::from_secs(1));
    });
    assert!(answers.iter().all(|status| *status == 201), "{answers:?}");
    drop(service);
    drop(stopped);
    assert_eq!(app.patients(), stored + i64::try_from(answers.len()).unwrap());
    drop(standby);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_promoted_coordinator_is_accepted_by_a_service_that_was_running() {
    let database = TestDatabase::new();
    let _ = Clinic::open(&database.service, Environment::Production).key();
    let service = in_production(service(&database)).start();
    // A look at each worker.
    std::thread::sleep(Duration::from_secs(4));
    // A promoted standby has another timeline than the one that is known.
    database.connect().batch_execute("UPDATE origin SET timeline = '0000000A'").unwrap();
    wait_for("the service to know the standby", || service.output().contains("its audit log is complete"));
    assert_eq!(database.count("origin WHERE timeline = '00000001'"), 1);
    assert_eq!(service.probe("/readyz").status, 200);
}

#[test]
#[ignore = "skipped: no Citus (INTAKE_TEST_CITUS_URL)"]
fn a_worker_that_is_restored_alone_is_noticed_by_a_service_that_was_running() {
    let database = TestDatabase::new();
    let citus = database.citus();
    citus.use_alone();
    let [other, restored] = [1, 2].map(|node| Clinic::open_on(&database, node, Environment::Production));
    let (leaked_id, leaked) = restored.key();
    let builder = || in_production(service(&database)).setting("INTAKE_HTTP_ADDR", "127.0.0.1:0");
    let create = |service: &Service, key: &ApiKey| {
        let headers = [("X-Forwarded-Proto", "https")];
        service.plain_client().send(&create_request(key, &headers, patient().to_string().as_bytes())).status
    };
    citus.stop_node(2).back_up();
    let mut running = builder().start();
    restored.revoke(leaked_id);
    // The newest entry of all is on another worker.
    let (_, kept) = other.key();
    std::thread::sleep(Duration::from_secs(5));
    drop(citus.stop_node(2));
    wait_for("a patient", || create(&running, &kept) == 201);
    wait_for("a refusal", || create(&running, &leaked) == 401);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(running.probe("/readyz").status, 200, "a crash takes nothing: {}", running.output());

    citus.stop_node(2).restore();
    assert_eq!(running.wait().code(), Some(1));
    assert!(running.output().contains("intake restored"), "{}", running.output());
    assert!(complaint(builder()).contains("keys that were revoked may work again"));
    let accepted = builder().argument("restored").argument("--revoke-keys").run();
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    let again = builder().start();
    assert_eq!([&leaked, &kept].map(|key| create(&again, key)), [401, 401]);
}
