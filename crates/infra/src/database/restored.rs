//! Takes a database that was restored or moved for the register from here on, as its owner.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use intake_domain::AuditEntryId;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;
use crate::schema::audit_entries;

/// Numbers of transactions that came along from another cluster stay below all that are given from here on. Never less than
/// before, or marks would lose what they have seen.
const SHIFT: &str = "UPDATE origin SET system_identifier = here.system_identifier, timeline = here.timeline,
        audit_table = 'audit_entries'::regclass::oid::bigint, accepted_at = now(), added = greatest(added, (SELECT coalesce(max(created_in), 0) FROM patients) - txid_current() + 1,
            (SELECT coalesce(max(erased_in), 0) FROM erasures) - txid_current() + 1)
    FROM origin_now() AS here RETURNING added";

/// When the newest recorded deed was done: what was done later is not in this database. None: nothing is recorded.
pub fn newest_deed(owner: &DatabaseUrl) -> Result<Option<OffsetDateTime>, SchemaError> {
    let newest = audit_entries::table.select(audit_entries::at).order(audit_entries::at.desc());
    newest.first(&mut connect(owner)?).optional().map_err(failed)
}

/// Those of these audit entries that are not in the database.
pub fn missing_deeds(owner: &DatabaseUrl, entries: &[AuditEntryId]) -> Result<Vec<AuditEntryId>, SchemaError> {
    #[derive(QueryableByName)]
    struct Missing {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }

    let query = "SELECT id FROM unnest($1) AS id WHERE id NOT IN (SELECT id FROM audit_entries)";
    let entries: Vec<Uuid> = entries.iter().map(|entry| *entry.as_uuid()).collect();
    let query = diesel::sql_query(query).bind::<Array<SqlUuid>, _>(&entries);
    let missing: Vec<Missing> = query.load(&mut connect(owner)?).map_err(failed)?;
    Ok(missing.into_iter().map(|missing| missing.id.into()).collect())
}

/// Notes that the register is whole here: services start again, and feeds go on.
pub fn accept(owner: &DatabaseUrl) -> Result<(), SchemaError> {
    #[derive(QueryableByName)]
    struct Shift {
        #[diesel(sql_type = BigInt)]
        added: i64,
    }

    let accepted = connect(owner)?.transaction(|connection| {
        // Nobody may get a number in between.
        connection.batch_execute("LOCK TABLE patients, erasures IN ACCESS EXCLUSIVE MODE")?;
        let Shift { added } = diesel::sql_query(SHIFT).get_result(connection)?;
        // One by one, as Citus wants them.
        for (table, column) in [("patients", "created_in"), ("erasures", "erased_in")] {
            let shift = format!("ALTER TABLE {table} ALTER {column} SET DEFAULT txid_current() + {added}");
            connection.batch_execute(&shift)?;
        }
        Ok(())
    });
    accepted.map_err(failed)
}
