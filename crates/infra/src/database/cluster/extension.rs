//! Whether a database can be one of a cluster: it has the extension Citus.

use diesel::pg::PgConnection;
use diesel::prelude::*;

pub(crate) fn has_citus(connection: &mut PgConnection) -> QueryResult<bool> {
    Ok(diesel::sql_query("SELECT 1 FROM pg_extension WHERE extname = 'citus'").execute(connection)? > 0)
}
