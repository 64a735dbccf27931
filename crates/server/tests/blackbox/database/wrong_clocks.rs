//! Clocks of PostgreSQL that were ahead or were set back decide nothing: what is newest is known without them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;
use intake_infra::prepare;
use intake_test_support::{Clinic, Service, wait_for};

use crate::database::replication::server_of;
use crate::database::restoring::{PostgresServer, command, create, production, run};
use crate::service::clocks::Clock;

/// A PostgreSQL with this clock.
fn with_clock(clock: &Clock) -> PostgresServer {
    let PostgresServer { server, folder } = {
        let started = PostgresServer::start();
        let options = fs::read_to_string(started.data().join("postmaster.opts")).unwrap();
        let programs = started.folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        let real = Path::new(options.split_whitespace().next().unwrap());
        let variables = clock.variables().map(|(name, value)| format!("{name}='{}' ", value.display())).concat();
        for (program, variables) in [("postgres", variables.as_str()), ("initdb", "")] {
            let script = format!("#!/bin/sh\n{variables}exec '{}' \"$@\"\n", real.with_file_name(program).display());
            let path = programs.join(program);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        started.stop();
        started
    };
    drop(server);
    let server = server_of(folder.path(), Some(folder.path().join("programs")));
    PostgresServer { server, folder }
}

/// Ways in which an earlier state of the database comes in the place of the running one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaced {
    /// The files of a stopped server are put back: everything is as it was, the timeline too.
    ByFiles,
    /// A base backup is recovered and promoted, on a timeline of its own.
    ByBackup,
}

#[test]
fn an_earlier_copy_is_noticed_whatever_the_clock_of_the_database_did() {
    let Some(clock) = Clock::set_to("+0") else { return };
    let postgres = with_clock(&clock);
    let urls = prepare(&postgres.server, "intake").unwrap();
    let clinic = Clinic::open(&urls.service, Environment::Production);
    // More than a service remembers.
    let many = format!(
        "INSERT INTO audit_entries (organisation_id, id, action, subject)
         SELECT '{}', gen_random_uuid(), 'key_noted', 'a key' FROM generate_series(1, 50)",
        clinic.organisation
    );
    let steps = [
        ("+0", "-10m", "-10m", Replaced::ByFiles),
        ("+11h", "+0", "+0", Replaced::ByFiles),
        ("+11h", "+0", "+0", Replaced::ByBackup),
        ("+365d", "+0", "-365d", Replaced::ByBackup),
    ];
    for (first, before, after, way) in steps {
        let what = format!("{first}, {before} before the copy, {after} after it, replaced {way:?}");
        clock.set(first);
        let ((leaked_id, leaked), (_, kept)) = (clinic.key(), clinic.key());
        PgConnection::establish(urls.owner.expose()).unwrap().batch_execute(&many).unwrap();
        clock.set(before);
        drop(clinic.key());
        let copy = postgres.folder.path().join("postgres/copy");
        if way == Replaced::ByFiles {
            postgres.stop();
            run(Command::new("cp").arg("-a").arg(postgres.data()).arg(&copy));
            postgres.server.ensure_running().unwrap();
        } else {
            run(postgres.tool("pg_basebackup").arg("--pgdata").arg(&copy).arg("--checkpoint=fast"));
            fs::write(copy.join("recovery.signal"), "").unwrap();
            let settings = fs::read_to_string(copy.join("postgresql.auto.conf")).unwrap();
            fs::write(copy.join("postgresql.auto.conf"), settings + "restore_command = 'false'\n").unwrap();
        }
        clock.set(after);
        let mut services = [production(&urls).start(), production(&urls).start()];
        clinic.revoke(leaked_id);
        assert_eq!(create(&services[0], &leaked).status, 401, "{what}");
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(services.each_ref().map(|service| create(service, &kept).status), [201, 201], "{what}");

        postgres.stop();
        fs::remove_dir_all(postgres.data()).unwrap();
        fs::rename(&copy, postgres.data()).unwrap();
        postgres.server.ensure_running().unwrap();
        wait_for(&format!("the end of the services: {what}"), || services.iter_mut().all(Service::has_ended));
        for service in &mut services {
            assert_eq!(service.wait().code(), Some(1), "{what}");
            assert!(service.output().contains("intake restored"), "{}", service.output());
        }
        assert!(command(&urls, &["restored"]).status.success());
    }
}
