//! Where keys were last used from: gathered in memory with the counts of answers, written every few seconds by the
//! thread that writes the uses of keys. Of the instances that serve a key, the one that writes last is right, to within
//! these seconds.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, Nullable, Text, Uuid as SqlUuid};
use intake_domain::KeyHolder;

use crate::keys::activity::answers::LastClient;
use crate::keys::ids_of;

/// Stores the clients in place of those that were stored before.
pub(crate) fn write_clients(connection: &mut PgConnection, clients: &[(KeyHolder, LastClient)]) -> QueryResult<()> {
    let (organisations, keys) = ids_of(clients);
    let addresses: Vec<_> = clients.iter().map(|(_, (_, client))| client.address.map(|at| at.to_string())).collect();
    let programs: Vec<_> = clients.iter().map(|(_, (_, client))| client.program.name()).collect();
    sql_query(
        "INSERT INTO key_uses (organisation_id, key_id, last_address, last_program)
         SELECT * FROM unnest($1, $2, $3, $4) ORDER BY 1, 2
         ON CONFLICT (organisation_id, key_id) DO UPDATE
         SET last_address = excluded.last_address, last_program = excluded.last_program",
    )
    .bind::<Array<SqlUuid>, _>(organisations)
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<Array<Nullable<Text>>, _>(addresses)
    .bind::<Array<Nullable<Text>>, _>(programs)
    .execute(connection)
    .map(drop)
}
