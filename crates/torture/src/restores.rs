//! The register is restored to a moment of the past, as docs/operations/restoring.md says, while clients and operations
//! had gone on since. What was acknowledged before the moment must be there; what is sent or imported again must be
//! there once; and what was erased since is erased again.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use intake_infra::Durability;

use crate::audit::Findings;
use crate::journal::{Erasure, Kind, Operation, read};
use crate::operations::{PAUSE, command};
use crate::postgres_server::PostgresServer;
use crate::run::{History, Refusals, Run};
use crate::test_bed::{INSTANCES, TestBed};
use crate::traffic::Traffic;

/// Time for which clients work before and after the moment.
const WORK: Duration = Duration::from_secs(2);
/// Time that the recovery may take.
const RECOVERY: Duration = Duration::from_secs(120);
const NO_PATIENT: &str = "has no patient";

impl Run<'_> {
    /// Restores a new server each time.
    pub(crate) fn restore(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let mut found = Findings::default();
        for time in 0..times {
            found += self.restore_once(&format!("restore_{time}"))?;
        }
        Ok((times, found))
    }

    fn restore_once(&self, name: &str) -> anyhow::Result<Findings> {
        let folder = self.folder.join(format!("{name}_server"));
        let server = PostgresServer::prepare(&folder, Durability::Full)?;
        // The log since the backup is all there.
        server.administer("ALTER SYSTEM SET wal_keep_size = '4GB'")?;
        server.administer("SELECT pg_reload_conf()")?;
        let bed = TestBed::open(&server, &self.plan(name, &[]))?;
        let backup = folder.join("postgres/backup");
        base_backup(&server, &backup)?;
        let mut before = HashMap::new();
        let (_, mut history) = self.record(&bed, Refusals::Expected, |fault| {
            fault.wait_for_erasure(WORK);
            before = read(fault.journal.path())?;
            server.administer("SELECT pg_create_restore_point('moment')")?;
            fault.wait_for_erasure(WORK);
            Ok(1)
        })?;
        go_back(&server, &backup)?;
        command(self.program, &bed, &["restored"]).map_err(|why| anyhow::anyhow!("intake restored: {why}"))?;
        (0..INSTANCES).try_for_each(|instance| bed.kill_service(instance))?;
        history.do_again(self, &before)?;
        history.audit()
    }
}

impl History<'_> {
    /// Does again what was done since the moment, as far as that is possible.
    fn do_again(&mut self, run: &Run<'_>, before: &HashMap<u64, Operation>) -> anyhow::Result<()> {
        let after = read(self.journal.path())?;
        let was = |number: &u64, done: fn(&Operation) -> bool| before.get(number).is_some_and(done);
        for (number, operation) in &after {
            let Some((id, _)) = &operation.created else { continue };
            let is_erased = operation.erasure == Erasure::Done;
            if is_erased && !was(number, |operation| operation.erasure == Erasure::Done) {
                let organisation = operation.organisation.to_string();
                let arguments = ["patient", "erase", "--organisation", &organisation, "--patient", id];
                match command(run.program, self.bed, &arguments) {
                    Err(why) if !why.contains(NO_PATIENT) => self.found.is_wrong(format!("erasing again: {why}")),
                    _ => {}
                }
            }
            if !was(number, |operation| operation.created.is_some()) {
                self.journal.forgotten(*number);
            }
        }
        for reader in &mut self.readers {
            reader.start_again_if_refused()?;
        }
        let traffic = Traffic::new(self.bed, &self.journal, run.seed, run.slowness);
        let until = Instant::now() + RECOVERY;
        for (number, operation) in &after {
            let is_lost = operation.created.is_some() && !was(number, |operation| operation.created.is_some());
            if is_lost && operation.kind == Kind::Safe && operation.erasure == Erasure::None {
                traffic.send_again_until_acknowledged(*number, operation.organisation, until)?;
            }
        }
        self.imports.iter().try_for_each(|import| import.repeat(self.bed, &self.journal))
    }
}

/// Copies the files of a running server.
fn base_backup(server: &PostgresServer, to: &Path) -> anyhow::Result<()> {
    let account = fs::metadata(server.data_folder())?;
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    chown(to, Some(account.uid()), Some(account.gid()))?;
    let mut backup = server.command("pg_basebackup")?;
    backup.arg("--pgdata").arg(to).args(["--wal-method=stream", "--checkpoint=fast"]);
    let output = backup.output()?;
    anyhow::ensure!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Puts the backup in the place of the server's files, and lets it recover up to the moment.
fn go_back(server: &PostgresServer, backup: &Path) -> anyhow::Result<()> {
    let data = server.data_folder();
    let lost = data.with_file_name("lost");
    server.kill()?;
    fs::rename(&data, &lost)?;
    fs::rename(backup, &data)?;
    let settings = format!(
        "restore_command = 'cp {}/pg_wal/%f %p'\nrecovery_target_name = 'moment'\nrecovery_target_action = 'promote'\n",
        lost.display()
    );
    fs::write(data.join("postgresql.auto.conf"), settings)?;
    fs::write(data.join("recovery.signal"), "")?;
    server.restart()?;
    let until = Instant::now() + RECOVERY;
    // Written to only when the recovery is over.
    while server.administer("CREATE TABLE IF NOT EXISTS recovered ()").is_err() {
        anyhow::ensure!(Instant::now() < until, "the recovery does not end:\n{}", server.end_of_log());
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
