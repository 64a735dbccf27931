//! Database roles that may read patients through the views, of one organisation or of all, and nothing else.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use intake_domain::OrganisationId;

use crate::database::grants::assert_service_role;
use crate::database::migrations::assert_not_newer;
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;
use crate::diesel_errors::is_foreign_key_violation;
use crate::schema::readers;

/// What a reader gets. The functions make marks for it, because it may write nothing itself.
const GRANTS: &str = "GRANT USAGE ON SCHEMA public TO {role};
    GRANT SELECT ON patients_v1, erasures_v1 TO {role};
    GRANT EXECUTE ON FUNCTION feed_now, feed_open, feed_mark TO {role};";

/// What else a role may use, by any grant: its own, that of a role it is a member of, or that of everybody.
const OTHER_GRANTS: &str = "SELECT relname::text AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND relname NOT IN ('patients_v1', 'erasures_v1')
        AND has_any_column_privilege($1, oid, 'SELECT, INSERT, UPDATE, REFERENCES')
    UNION ALL
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND has_table_privilege($1, oid, 'DELETE, TRUNCATE, TRIGGER')
    ORDER BY 1";

/// Whether the role that connects can read the feed.
const MAY_READ: &str = "SELECT to_regclass('patients_v1') IS NOT NULL AS is_migrated,
    coalesce(has_table_privilege(to_regclass('patients_v1'), 'SELECT'), false)
    AND coalesce(has_function_privilege(to_regprocedure('feed_open(uuid, uuid, uuid)'), 'EXECUTE'), false) AS may_read";

/// A role that is to read patients.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its name.
    pub role: String,
    /// Whose patients it reads; none: those of all organisations.
    pub organisation: Option<OrganisationId>,
}

impl Reader {
    /// Refuses a role that does not exist, that no grant could limit, or that may do something else.
    pub fn assert_can_be(&self, owner: &DatabaseUrl) -> Result<(), SchemaError> {
        #[derive(QueryableByName)]
        struct Table {
            #[diesel(sql_type = Text)]
            name: String,
        }

        assert_service_role(owner, &self.role)?;
        let query = diesel::sql_query(OTHER_GRANTS).bind::<Text, _>(&self.role);
        let mut others: Vec<Table> = query.load(&mut connect(owner)?).map_err(failed)?;
        others.dedup_by(|one, other| one.name == other.name);
        if others.is_empty() {
            return Ok(());
        }
        let tables = others.into_iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        Err(SchemaError::MoreThanReader { role: self.role.clone(), tables })
    }

    /// Grants the role what a reader needs; what it could read before is replaced. The database must be migrated.
    pub fn grant(&self, owner: &DatabaseUrl) -> Result<(), SchemaError> {
        self.assert_can_be(owner)?;
        assert_not_newer(owner)?;
        let grants = GRANTS.replace("{role}", &format!("\"{}\"", self.role.replace('"', "\"\"")));
        let organisation = self.organisation.map(|id| *id.as_uuid());
        let granted = connect(owner)?.transaction(|connection| {
            diesel::insert_into(readers::table)
                .values((readers::role.eq(&self.role), readers::organisation_id.eq(organisation)))
                .on_conflict(readers::role)
                .do_update()
                .set(readers::organisation_id.eq(organisation))
                .execute(connection)?;
            connection.batch_execute(&grants)
        });
        match (granted, self.organisation) {
            (Err(error), Some(organisation)) if is_foreign_key_violation(&error) => {
                Err(SchemaError::NoSuchOrganisation(organisation))
            }
            (granted, _) => granted.map_err(failed),
        }
    }
}

/// Refuses a database without the views, and a role that may not read them.
pub fn assert_reader(url: &DatabaseUrl) -> Result<(), SchemaError> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        is_migrated: bool,
        #[diesel(sql_type = Bool)]
        may_read: bool,
    }

    match diesel::sql_query(MAY_READ).get_result(&mut connect(url)?).map_err(failed)? {
        Found { is_migrated: false, .. } => Err(SchemaError::Unmigrated),
        Found { may_read: false, .. } => Err(SchemaError::NoReader),
        Found { .. } => Ok(()),
    }
}
