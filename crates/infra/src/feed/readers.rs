//! Database roles that may read patients through the views, of one organisation or of all, and nothing else.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use intake_domain::OrganisationId;
use uuid::Uuid;

use crate::database::cluster::spread::is_spread;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Named;
use crate::database::schema::grants::assert_can_be_limited;
use crate::database::schema::migrations::{assert_not_newer, connect_alone};
use crate::database::schema::schema_error::{SchemaError, connect, failed};
use crate::schema::{organisations, readers};

/// Grants of a reader. The functions make marks for it, because it may write nothing itself.
const GRANTS: &str = "GRANT USAGE ON SCHEMA public TO {role};
    GRANT SELECT ON patients_v1, erasures_v1 TO {role};
    GRANT EXECUTE ON FUNCTION feed_now, feed_open, feed_mark, feed_record_export TO {role};";

/// Further grants of a reader on a cluster, where the tables themselves hide what it may not read
/// (`migrations/citus_readers.sql`): the columns of the views.
const GRANTS_ON_CLUSTER: &str = "SELECT format('GRANT SELECT (%s) ON %I TO ', string_agg(DISTINCT quote_ident(attname), ', '), relname) AS name
    FROM pg_rewrite JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
        JOIN pg_attribute ON attrelid = refobjid AND attnum = refobjsubid JOIN pg_class ON pg_class.oid = refobjid
    WHERE ev_class IN ('patients_v1'::regclass, 'erasures_v1'::regclass) AND refclassid = 'pg_class'::regclass AND refobjsubid > 0
    GROUP BY relname";

/// Other things that a role may use, by any grant: its own, that of a role it is a member of, or that of everybody.
/// Citus shows everybody its own views.
const OTHER_GRANTS: &str = "SELECT relname::text AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND relname NOT IN ('patients_v1', 'erasures_v1')
        AND NOT (relname IN ('patients', 'erasures') AND relrowsecurity)
        AND NOT EXISTS (SELECT FROM pg_depend JOIN pg_extension ON pg_extension.oid = refobjid
            WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND extname = 'citus')
        AND has_any_column_privilege($1, oid, 'SELECT, INSERT, UPDATE, REFERENCES')
    UNION ALL
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND has_table_privilege($1, oid, 'DELETE, TRUNCATE, TRIGGER')
    ORDER BY 1";

/// Query that finds out if the role that connects can read the feed.
const MAY_READ: &str = "SELECT to_regclass('patients_v1') IS NOT NULL AS is_migrated,
    coalesce(has_table_privilege(to_regclass('patients_v1'), 'SELECT'), false)
    AND coalesce(has_function_privilege(to_regprocedure('feed_open(uuid, uuid, uuid)'), 'EXECUTE'), false) AS may_read";

/// Answer to [`MAY_READ`].
#[derive(QueryableByName)]
pub(crate) struct Rights {
    #[diesel(sql_type = Bool)]
    is_migrated: bool,
    #[diesel(sql_type = Bool)]
    pub(crate) may_read: bool,
}

/// A role that is to read patients.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its name.
    pub role: String,
    /// Whose patients it is to read.
    pub scope: Scope,
}

/// Whose patients a reader reads.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// Whose it reads already; those of all organisations if it is no reader yet.
    AsBefore,
    /// Those of this organisation.
    Organisation(OrganisationId),
    /// Those of all organisations.
    All,
}

impl Reader {
    /// Refuses a role that does not exist, that no grant could limit, or that may do something else.
    pub fn assert_can_be(&self, owner: &DatabaseUrl) -> Result<(), SchemaError> {
        let mut connection = connect(owner)?;
        assert_can_be_limited(&mut connection, &self.role)?;
        let query = diesel::sql_query(OTHER_GRANTS).bind::<Text, _>(&self.role);
        let mut others: Vec<Named> = query.load(&mut connection).map_err(failed)?;
        others.dedup_by(|one, other| one.name == other.name);
        if others.is_empty() {
            return Ok(());
        }
        let tables = others.into_iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        Err(SchemaError::MoreThanReader { role: self.role.clone(), tables })
    }

    /// Whose patients it would read after a grant; none: those of all organisations. Refuses an organisation that does
    /// not exist. The database may not be migrated yet.
    pub fn organisation(&self, owner: &DatabaseUrl) -> Result<Option<OrganisationId>, SchemaError> {
        let mut connection = connect(owner)?;
        let has_readers = diesel::sql_query("SELECT 1 WHERE to_regclass('readers') IS NOT NULL");
        if has_readers.execute(&mut connection).map_err(failed)? == 0 {
            return match self.scope {
                Scope::Organisation(organisation) => Err(SchemaError::NoSuchOrganisation(organisation)),
                Scope::AsBefore | Scope::All => Ok(None),
            };
        }
        match self.scope {
            Scope::All => Ok(None),
            Scope::AsBefore => {
                let before = readers::table.find(&self.role).select(readers::organisation_id);
                let before: Option<Option<Uuid>> = before.first(&mut connection).optional().map_err(failed)?;
                Ok(before.flatten().map(OrganisationId::from))
            }
            Scope::Organisation(organisation) => {
                let found = diesel::dsl::exists(organisations::table.find(*organisation.as_uuid()));
                match diesel::select(found).get_result(&mut connection).map_err(failed)? {
                    true => Ok(Some(organisation)),
                    false => Err(SchemaError::NoSuchOrganisation(organisation)),
                }
            }
        }
    }

    /// Grants the role what a reader needs. What it could read before is replaced. The database must be migrated.
    pub fn grant(&self, owner: &DatabaseUrl) -> Result<(), SchemaError> {
        self.assert_can_be(owner)?;
        assert_not_newer(owner)?;
        let role = format!("\"{}\"", self.role.replace('"', "\"\""));
        let organisation = self.organisation(owner)?.map(|id| *id.as_uuid());
        let granted = connect_alone(owner)?.transaction(|connection| {
            diesel::insert_into(readers::table)
                .values((readers::role.eq(&self.role), readers::organisation_id.eq(organisation)))
                .on_conflict(readers::role)
                .do_update()
                .set(readers::organisation_id.eq(organisation))
                .execute(connection)?;
            connection.batch_execute(&GRANTS.replace("{role}", &role))?;
            if is_spread(connection)? {
                for Named { name } in diesel::sql_query(GRANTS_ON_CLUSTER).load(connection)? {
                    connection.batch_execute(&format!("{name} {role}"))?;
                }
            }
            Ok(())
        });
        granted.map_err(failed)
    }
}

/// Refuses a database without the views, and a role that may not read.
pub fn assert_reader(url: &DatabaseUrl) -> Result<(), SchemaError> {
    match may_read(&mut connect(url)?).map_err(failed)? {
        Rights { is_migrated: false, .. } => Err(SchemaError::Unmigrated),
        Rights { may_read: false, .. } => Err(SchemaError::NoReader),
        Rights { .. } => Ok(()),
    }
}

/// Asks what the connected role may read, whatever it may do otherwise.
pub(crate) fn may_read(connection: &mut PgConnection) -> QueryResult<Rights> {
    diesel::sql_query(MAY_READ).get_result(connection)
}
