//! The nodes of a cluster as they see each other. What a session sets for itself does not reach the nodes that its
//! statements are passed on to, so each must keep by its own settings what it has committed.

use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::{Bool, Nullable, Text};

use crate::database::cluster::extension::has_citus;
use crate::database::connecting::connect::{ConnectError, OpenConnection, ask, connect as connect_durably};
use crate::database::connecting::durability::Durability;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{SchemaError, connect, failed};
use crate::diesel_errors::without_row_values;

/// A node that is away is given up after a moment, where Citus would wait for half a minute.
const PATIENCE: &str = "SET citus.node_connection_timeout = '2s'";
/// Time that all nodes together may take to answer, those included that are given up.
const LOOK_TIMEOUT: Duration = Duration::from_secs(6);
const ON_EACH: &str = "SELECT nodename || ':' || nodeport AS node, success AS is_reached, result AS said
    FROM run_command_on_all_nodes($1) JOIN pg_dist_node USING (nodeid)";
const WEAK_SETTINGS: &str = "SELECT string_agg(name, ', ' ORDER BY name) FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting NOT IN ('on', 'remote_apply')";
/// Publications whose subscribers would get what is there, and never a change.
const SILENT_PUBLICATIONS: &str = "SELECT string_agg(pubname, ', ') FROM pg_publication_tables
    WHERE tablename = 'patients' AND current_setting('citus.enable_change_data_capture', true) = 'off'";

#[derive(QueryableByName)]
struct Found {
    #[diesel(sql_type = Text)]
    node: String,
    #[diesel(sql_type = Bool)]
    is_reached: bool,
    #[diesel(sql_type = Nullable<Text>)]
    said: Option<String>,
}

/// The settings of nodes that could lose what was acknowledged, if there are any, and the nodes that the connected one
/// does not reach.
#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) weak: Vec<String>,
    pub(crate) unreached: Vec<String>,
}

/// A node is away that the connected one passes statements on to.
#[derive(Debug, thiserror::Error)]
#[error("a node of the database that this needs is away: {0}")]
pub(crate) struct NodeAway(String);

/// Says that a statement failed because another node is away: as if the connection were lost, but it works.
pub(crate) fn node_away(connection: &mut PgConnection, error: &Error) -> Option<NodeAway> {
    let Error::DatabaseError(DatabaseErrorKind::ClosedConnection, said) = error else { return None };
    diesel::sql_query("SELECT 1").execute(connection).ok()?;
    Some(NodeAway(said.message().lines().next()?.to_owned()))
}

/// Connects for statements that may be passed on to any node, all of which must keep what they commit. Each later
/// connection checks this again.
pub(crate) fn connect_to_all(url: &DatabaseUrl, settings: &str) -> Result<OpenConnection, ConnectError> {
    let connection = connect_durably(url, settings)?;
    if url.durability() != Durability::Full {
        return Ok(connection);
    }
    let (connection, looked) = ask(connection, LOOK_TIMEOUT, look)?;
    let weak = looked.map_err(|error| ConnectError::Failed(without_row_values(error)))?.weak;
    if weak.is_empty() { Ok(connection) } else { Err(ConnectError::NotDurable(weak.join(", "))) }
}

/// Asks every node, through the one that is connected. None on one PostgreSQL.
pub(crate) fn look(connection: &mut PgConnection) -> QueryResult<Nodes> {
    let mut nodes = Nodes::default();
    for Found { node, is_reached, said } in on_each(connection, WEAK_SETTINGS)? {
        let said = said.filter(|said| !said.is_empty());
        match said {
            Some(settings) if is_reached => nodes.weak.push(format!("{settings} on {node}")),
            said if !is_reached => nodes.unreached.push(format!("{node}: {}", said.unwrap_or_default().trim_end())),
            _ => {}
        }
    }
    Ok(nodes)
}

/// The nodes that the connected one does not reach, and why.
pub fn unreached(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    Ok(look(&mut connect(url)?).map_err(failed)?.unreached)
}

/// Publications of patients that deliver no change, on whichever node.
pub fn silent_publications(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    let found = on_each(&mut connect(url)?, SILENT_PUBLICATIONS).map_err(failed)?;
    let silent = |node: Found| {
        Some(format!("{} on {}", node.said.filter(|said| node.is_reached && !said.is_empty())?, node.node))
    };
    Ok(found.into_iter().filter_map(silent).collect())
}

fn on_each(connection: &mut PgConnection, query: &str) -> QueryResult<Vec<Found>> {
    if !has_citus(connection)? {
        return Ok(Vec::new());
    }
    diesel::sql_query(PATIENCE).execute(connection)?;
    diesel::sql_query(ON_EACH).bind::<Text, _>(query).load(connection)
}
