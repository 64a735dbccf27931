//! Makes the tables of a migrated database those of a Citus cluster: some whole on every node, some on the coordinator
//! alone, and those that grow divided by organisation.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};

use crate::database::cluster::extension::has_citus;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::migrations::{assert_migrated, assert_not_newer, lock};
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Tables that every node holds whole. They can be read while a node is away, and not written, so nothing is among them
/// that must go on then.
pub const COPIED: &[&str] = &["environment_stamp", "readers", "__diesel_schema_migrations"];

/// Tables that only the coordinator holds: organisations, and people, who are found by what leads to no organisation.
pub const KEPT: &[&str] = &[
    "organisations",
    "members",
    "memberships",
    "invitations",
    "sessions",
    "password_resets",
    "recovery_codes",
    "passkeys",
    "passkey_challenges",
    "waiting_sign_ins",
    "familiar_networks",
    "known_browsers",
    "email_changes",
    "key_watches",
    // Of the coordinator, whichever node is asked.
    "origin",
];

/// Puts the keys of an organisation beside its patients.
pub const KEYS_BESIDE_PATIENTS: &str = include_str!("../../../../../migrations/citus_keys_beside_patients.sql");

/// Done before tables are distributed.
const BEFORE: [&str; 2] = [KEYS_BESIDE_PATIENTS, include_str!("../../../../../migrations/citus_numbers.sql")];
/// Done afterwards.
const AFTER: [&str; 3] = [
    include_str!("../../../../../migrations/citus_asked_everywhere.sql"),
    include_str!("../../../../../migrations/citus_readers.sql"),
    include_str!("../../../../../migrations/citus_newest_entries.sql"),
];

/// The table beside which all others lie that grow: rows of one organisation on one node.
const LEADER: &str = "patients";

/// The table that is divided by the digests of keys: it leads from a key to its organisation.
pub const HOMES: &str = "key_homes";

/// Action that was done.
#[derive(Debug, PartialEq, Eq)]
pub struct Spread {
    /// The tables that every node holds whole from now on.
    pub copied: Vec<String>,
    /// The tables that only the coordinator holds, and every node reads there from now on.
    pub kept: Vec<String>,
    /// The tables that are divided among the nodes from now on.
    pub divided: Vec<String>,
    /// The number of shards of each distributed table.
    pub shards: i64,
    /// Number of nodes that hold a part.
    pub nodes: i64,
}

/// Enough for later nodes to take some over. More make batches smaller, and each takes threads and connections of every
/// instance.
const SHARDS: i64 = 32;
const SHARDS_PER_NODE: i64 = 2;

/// Spreads the tables that are not spread yet, all or none; into this many parts if none was before, else into as many
/// as suit the nodes.
pub fn spread(url: &DatabaseUrl, shards: Option<u32>) -> Result<Spread, SchemaError> {
    let mut over = CheckConnection::open(url)?;
    assert_migrated(&mut over)?;
    assert_not_newer(url)?;
    let CheckConnection(mut connection) = over;
    if !has_citus(&mut connection).map_err(failed)? {
        return Err(SchemaError::NoCitus);
    }
    let nodes = nodes(&mut connection).map_err(failed)?;
    if nodes == 0 {
        return Err(SchemaError::NoNodes);
    }
    let shards = shards.map_or(SHARDS.max(nodes * SHARDS_PER_NODE), i64::from);
    lock(url, &mut connection)?;
    connection.transaction(|connection| spread_missing(connection, shards)).map_err(failed)
}

/// The same for the tables that a migration has just added. Does nothing to a database that is not spread.
pub(crate) fn spread_later(connection: &mut PgConnection) -> QueryResult<()> {
    if is_spread(connection)? {
        connection.transaction(|connection| spread_missing(connection, 1))?;
    }
    Ok(())
}

fn spread_missing(connection: &mut PgConnection, shards: i64) -> QueryResult<Spread> {
    // Tables that refer to each other can be made in one transaction only one after the other. The caller sums up what
    // Citus reports about each step.
    connection.batch_execute(&format!(
        "SET LOCAL citus.multi_shard_modify_mode = 'sequential'; SET LOCAL client_min_messages = warning;
         SET LOCAL citus.shard_count = {shards}"
    ))?;
    let is_first = !is_spread(connection)?;
    if is_first {
        BEFORE.iter().try_for_each(|sql| run(connection, sql))?;
    }
    let missing = missing(connection)?;
    let of_kind = |tables: &[&str]| missing.iter().filter(|table| tables.contains(&table.as_str())).cloned().collect();
    let (copied, kept): (Vec<String>, Vec<String>) = (of_kind(COPIED), of_kind(KEPT));
    let is_divided = |table: &&String| !copied.contains(table) && !kept.contains(table);
    let mut divided: Vec<_> = missing.iter().filter(is_divided).cloned().collect();
    divided.sort_by_key(|table| table != LEADER);
    for table in &copied {
        call(connection, "SELECT create_reference_table($1::regclass)", table)?;
    }
    for table in &kept {
        call(
            connection,
            "SELECT citus_add_local_table_to_metadata($1::regclass, cascade_via_foreign_keys => true)",
            table,
        )?;
    }
    for table in &divided {
        let beside = if table == LEADER { "default" } else { LEADER };
        let column = if table == HOMES { "home" } else { "organisation_id" };
        let query = format!("SELECT create_distributed_table($1::regclass, '{column}', colocate_with => '{beside}')");
        call(connection, &query, table)?;
    }
    if is_first {
        AFTER.iter().try_for_each(|sql| run(connection, sql))?;
    }
    // What was there before is still on the disk of this node, where nobody would look for patients.
    for table in copied.iter().chain(&divided) {
        call(connection, "SELECT truncate_local_data_after_distributing_table($1::regclass)", table)?;
    }
    let shards = "SELECT count(*) AS count FROM pg_dist_shard WHERE logicalrelid = 'patients'::regclass";
    Ok(Spread { copied, kept, divided, shards: count(connection, shards)?, nodes: nodes(connection)? })
}

/// Citus takes most changes only as the only statement of a query. A blank line ends a statement.
fn run(connection: &mut PgConnection, sql: &str) -> QueryResult<()> {
    sql.split("\n\n").try_for_each(|statement| connection.batch_execute(statement))
}

fn call(connection: &mut PgConnection, query: &str, table: &str) -> QueryResult<()> {
    diesel::sql_query(query).bind::<Text, _>(format!("\"{table}\"")).execute(connection).map(drop)
}

/// Returns whether the register lies on the nodes of a cluster.
pub(crate) fn is_spread(connection: &mut PgConnection) -> QueryResult<bool> {
    let is_table = format!("SELECT 1 FROM pg_class WHERE oid = to_regclass('{HOMES}') AND relkind = 'r'");
    Ok(diesel::sql_query(is_table).execute(connection)? > 0)
}

fn nodes(connection: &mut PgConnection) -> QueryResult<i64> {
    count(connection, "SELECT count(*) AS count FROM pg_dist_node WHERE shouldhaveshards")
}

/// The tables that are not spread as they should be, in an order in which each comes after those that it refers to.
fn missing(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    #[derive(QueryableByName)]
    struct Table {
        #[diesel(sql_type = Text)]
        name: String,
        /// Citus's word: `n` is not distributed.
        #[diesel(sql_type = Nullable<Text>)]
        method: Option<String>,
        /// Citus's word: `t` is on every node.
        #[diesel(sql_type = Nullable<Text>)]
        model: Option<String>,
    }

    let tables = diesel::sql_query(
        "SELECT relname::text AS name, partmethod::text AS method, repmodel::text AS model
         FROM pg_class LEFT JOIN pg_dist_partition ON logicalrelid = pg_class.oid AND NOT autoconverted
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY pg_class.oid",
    );
    let is_missing = |table: &Table| {
        let name = table.name.as_str();
        match (table.method.as_deref(), table.model.as_deref()) {
            (None, _) => true,
            (Some("n"), Some("t")) => !COPIED.contains(&name),
            (Some("n"), _) => !KEPT.contains(&name),
            (Some(_), _) => false,
        }
    };
    Ok(tables.load::<Table>(connection)?.into_iter().filter(is_missing).map(|table| table.name).collect())
}

fn count(connection: &mut PgConnection, query: &str) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }

    Ok(diesel::sql_query(query).get_result::<Count>(connection)?.count)
}
