//! PostgreSQL: connections, migrations, faults, restoring and clusters.

mod backup;
mod cancelled_statements;
mod causes;
mod changing_nodes;
mod connections;
mod embedded_database;
mod feed_nodes;
mod full_disk;
mod grants;
mod hangs;
mod locked_rows;
mod migrations;
mod nodes;
mod pooler;
mod repeating;
pub(crate) mod replication;
pub(crate) mod restoring;
mod spread;
mod wrong_clocks;
