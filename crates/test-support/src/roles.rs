//! How a database is reached as any role, and told something on each node where it lies on a cluster.

use diesel::connection::SimpleConnection;
use intake_infra::DatabaseUrl;

use crate::database::TestDatabase;

impl TestDatabase {
    /// The address for this role.
    #[must_use]
    pub fn as_role(&self, role: &str) -> DatabaseUrl {
        match &self.citus {
            Some(citus) => citus.role_at(0, role, self.name()),
            None => DatabaseUrl::on_socket(&self.socket_folder().to_string_lossy(), role, self.name())
                .with_durability(self.owner.durability()),
        }
    }

    /// Runs a statement in this database; on a cluster, on each node for itself.
    pub fn on_each_node(&self, sql: &str) {
        match &self.citus {
            Some(citus) => citus.on_every_node(self.name(), &format!("SET citus.enable_ddl_propagation = off; {sql}")),
            None => self.connect().batch_execute(sql).expect("the statement runs"),
        }
    }
}
