//! Stores a batch in the shard's own table, past Citus, which plans an insert anew each time and writes it out as text.
//! Each shard has a function for this. It keeps two promises that Citus otherwise keeps: it holds the lock that a move
//! of the shard waits for, and it looks where the shard lies once it has that lock. Without them a batch is lost with
//! the table that a move leaves behind.

use diesel::connection::SimpleConnection;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{BigInt, Nullable, Text};
use intake_domain::Field;

use super::insert::{InsertBatch, Tables};
use crate::database::cluster::shards::STORE;
use crate::database::cluster::spread::is_spread;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Named;
use crate::database::schema::migrations::lock;
use crate::database::schema::schema_error::{SchemaError, connect, failed};
use crate::diesel_errors::{Failure, failure};

const FUNCTION: &str = include_str!("../../../../../migrations/citus_store_patients.sql");
/// The tables of each shard of the patients: they lie together, and have numbers of their own.
const SHARDS: &str = "SELECT patients.shardid AS id, shard_name('patients', patients.shardid) AS patients,
        shard_name('api_keys', api_keys.shardid) AS api_keys, shard_name('erasures', erasures.shardid) AS erasures,
        shard_name('feed_places', places.shardid) AS places
    FROM pg_dist_shard AS patients JOIN pg_dist_shard AS api_keys USING (shardminvalue)
        JOIN pg_dist_shard AS erasures USING (shardminvalue) JOIN pg_dist_shard AS places USING (shardminvalue)
    WHERE patients.logicalrelid = 'patients'::regclass AND api_keys.logicalrelid = 'api_keys'::regclass
        AND erasures.logicalrelid = 'erasures'::regclass AND places.logicalrelid = 'feed_places'::regclass";
/// The functions of shards that are no more, which were split.
const LEFT_OVER: &str = "SELECT oid::regprocedure::text AS name FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND proname ~ ('^' || $1 || '[0-9]+$')
        AND substring(proname, '[0-9]+$')::bigint NOT IN
            (SELECT shardid FROM pg_dist_shard WHERE logicalrelid = 'patients'::regclass)";
/// The roles that may insert patients: the service's.
const WRITERS: &str = "SELECT DISTINCT quote_ident(rolname) AS name FROM pg_class, aclexplode(relacl) JOIN pg_roles ON pg_roles.oid = grantee
    WHERE pg_class.oid = 'patients'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner";

#[derive(QueryableByName)]
struct ShardTables {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Text)]
    patients: String,
    #[diesel(sql_type = Text)]
    api_keys: String,
    #[diesel(sql_type = Text)]
    erasures: String,
    #[diesel(sql_type = Text)]
    places: String,
}

/// Makes the functions of the shards that there are, as the owner, for the roles that insert patients. Does nothing
/// where the register is not spread.
pub fn make_direct_writes(owner: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(owner)?;
    if !is_spread(&mut connection).map_err(failed)? {
        return Ok(());
    }
    lock(owner, &mut connection)?;
    connection.transaction(make).map_err(failed)
}

fn make(connection: &mut PgConnection) -> QueryResult<()> {
    let roles: Vec<Named> = diesel::sql_query(WRITERS).load(connection)?;
    let roles = roles.into_iter().map(|role| role.name).collect::<Vec<_>>().join(", ");
    // The tables are on other nodes.
    connection.batch_execute("SET LOCAL check_function_bodies = off")?;
    for shard in diesel::sql_query(SHARDS).load::<ShardTables>(connection)? {
        let name = format!("{STORE}{} ({})", shard.id, types());
        connection.batch_execute(&function(&name, &shard))?;
        connection.batch_execute(&format!("REVOKE ALL ON FUNCTION {name} FROM PUBLIC"))?;
        if !roles.is_empty() {
            connection.batch_execute(&format!("GRANT EXECUTE ON FUNCTION {name} TO {roles}"))?;
        }
    }
    for over in diesel::sql_query(LEFT_OVER).bind::<Text, _>(STORE).load::<Named>(connection)? {
        connection.batch_execute(&format!("DROP FUNCTION {}", over.name))?;
    }
    Ok(())
}

/// The types of the parameters of the insert, in their order.
fn types() -> String {
    let field_type = |&field: &Field| if field == Field::DateOfBirth { "date[]" } else { "text[]" };
    let fields: Vec<_> = Field::ALL.iter().map(field_type).collect();
    format!("uuid[], uuid[], inet[], uuid[], {}, text[], bytea[], timestamptz[]", fields.join(", "))
}

fn function(name: &str, ShardTables { id, patients, api_keys, erasures, places }: &ShardTables) -> String {
    let insert = InsertBatch::text(Tables { patients, api_keys, erasures }, "number");
    let values =
        [("{name}", name), ("{id}", &id.to_string()), ("{places}", places.as_str()), ("{insert}", insert.as_str())];
    values.iter().fold(FUNCTION.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// Stores the patients through the function of their shard, and returns how many. None: nothing was stored, and Citus
/// is to do it, because the shard lies elsewhere or the function fails, such as for want of a grant.
pub(super) fn store(rows: &InsertBatch<'_>, shard: i64, connection: &mut PgConnection) -> QueryResult<Option<usize>> {
    match (Store { rows, function: format!("{STORE}{shard}") }).get_result::<Option<i64>>(connection) {
        Ok(stored) => Ok(stored.and_then(|stored| usize::try_from(stored).ok())),
        Err(error) if failure(&error) == Failure::Unknown => Ok(None),
        Err(error) => Err(error),
    }
}

struct Store<'a> {
    rows: &'a InsertBatch<'a>,
    function: String,
}

impl QueryFragment<Pg> for Store<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("SELECT ");
        out.push_sql(&self.function);
        out.push_sql("(");
        self.rows.walk_parameters(out.reborrow())?;
        out.push_sql(")");
        Ok(())
    }
}

impl QueryId for Store<'_> {
    type QueryId = ();

    // Each shard has its own text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Store<'_> {
    type SqlType = Nullable<BigInt>;
}

impl RunQueryDsl<PgConnection> for Store<'_> {}
