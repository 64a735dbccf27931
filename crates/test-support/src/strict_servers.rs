//! PostgreSQL servers that require passwords, for tests of how a Citus cluster is set up.

use diesel::pg::PgConnection;
use diesel::prelude::*;

use crate::citus::Citus;

/// Three servers that require passwords, beside the cluster and of its programs; they end when this is dropped.
pub struct StrictServers<'a> {
    citus: &'a Citus,
    folder: String,
}

impl StrictServers<'_> {
    /// Their hosts.
    pub const HOSTS: [&'static str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
    /// The port of each.
    pub const PORT: &'static str = "5632";

    /// A connection as the superuser.
    #[must_use]
    pub fn connect(&self, host: &str, password: &str, database: &str) -> PgConnection {
        let url = format!("postgres://postgres:{password}@{host}:{}/{database}", Self::PORT);
        PgConnection::establish(&url).expect("the server answers")
    }
}

impl Drop for StrictServers<'_> {
    fn drop(&mut self) {
        let (folder, programs) = (&self.folder, self.citus.programs());
        let stop = Self::HOSTS.map(|host| format!("{programs}/pg_ctl -w -s -D {folder}/{host} -m immediate stop;"));
        self.citus.run(1, &format!("{} rm -r {folder}", stop.concat()));
    }
}

impl Citus {
    /// Starts servers with these settings, whose superuser has this password.
    #[must_use]
    pub fn strict_servers(&self, settings: &str, password: &str) -> StrictServers<'_> {
        let folder = format!("{}/../strict-{}", self.setting(0, "data_directory"), std::process::id());
        let programs = self.programs();
        self.run(1, &format!("mkdir -p {folder}"));
        self.write(&format!("{folder}/password"), password);
        let servers = StrictServers { citus: self, folder };
        let folder = &servers.folder;
        for host in StrictServers::HOSTS {
            let own = format!("{folder}/{host}");
            let options = format!(
                "-U postgres -A scram-sha-256 --pwfile={folder}/password -E UTF8 --no-locale --no-sync -D {own}"
            );
            self.run(1, &format!("{programs}/initdb {options}"));
            let address =
                format!("listen_addresses = '{host}'\nport = {}\nunix_socket_directories = ''", StrictServers::PORT);
            self.write(&format!("{own}/postgresql.auto.conf"), &format!("{address}\n{settings}"));
            self.write(&format!("{own}/pg_hba.conf"), "host all all all scram-sha-256");
            self.run(1, &format!("{programs}/pg_ctl -w -s -D {own} -l {own}.log start"));
        }
        servers
    }
}
