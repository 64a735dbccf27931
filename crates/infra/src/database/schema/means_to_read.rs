//! The one rule about the service's role: it must not be able to read patients. Asked before and after the role gets
//! its grants, when a service starts in production, and by the doctor.

use std::fmt;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text};

use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// The columns of a patient that the service's role may read: those that safe retry needs, none of which describes a
/// person.
pub(crate) const READABLE: &str = "organisation_id, id, idempotency_key, request_digest, created_at, updated_at";

/// Without a name, of the role that connects, which will own the register if there is none yet. A role has what the
/// roles have of which it is a member, even if it must change to them first.
const MEANS: &str = "WITH role AS (SELECT oid, rolsuper, rolreplication, rolcreaterole FROM pg_roles WHERE rolname = coalesce($1, current_user)),
    register AS (SELECT to_regclass('patients')::oid AS oid),
    owner AS (SELECT coalesce(relowner, (SELECT oid FROM pg_roles WHERE rolname = current_user)) AS oid
        FROM register LEFT JOIN pg_class ON pg_class.oid = register.oid),
    needless AS (SELECT attrelid, attnum FROM pg_attribute JOIN register ON attrelid = register.oid
        WHERE attnum > 0 AND NOT attisdropped AND attname <> ALL (string_to_array($2, ', ')))
    SELECT role.rolsuper AS is_superuser,
        role.oid = owner.oid AS is_owner,
        role.rolreplication AS may_copy,
        role.rolcreaterole AS may_make_roles,
        EXISTS (SELECT FROM needless WHERE has_column_privilege('public', attrelid, attnum, 'SELECT')) AS is_everybody,
        (SELECT min(rolname::text) FROM pg_roles AS other
            WHERE other.oid <> role.oid AND pg_has_role(role.oid, other.oid, 'MEMBER')
                AND (other.rolsuper OR other.rolreplication OR other.rolcreaterole OR other.oid = owner.oid
                    OR other.rolname IN ('pg_read_all_data', 'pg_read_server_files', 'pg_execute_server_program')
                    OR EXISTS (SELECT FROM needless WHERE has_column_privilege(other.oid, attrelid, attnum, 'SELECT'))))
            AS member_of,
        coalesce(has_table_privilege(role.oid, register.oid, 'SELECT'), false) AS has_all,
        EXISTS (SELECT FROM needless WHERE has_column_privilege(role.oid, attrelid, attnum, 'SELECT')) AS has_columns
    FROM role, register, owner";

#[derive(QueryableByName)]
struct Answers {
    #[diesel(sql_type = Bool)]
    is_superuser: bool,
    #[diesel(sql_type = Bool)]
    is_owner: bool,
    #[diesel(sql_type = Bool)]
    may_copy: bool,
    #[diesel(sql_type = Bool)]
    may_make_roles: bool,
    #[diesel(sql_type = Bool)]
    is_everybody: bool,
    #[diesel(sql_type = Nullable<Text>)]
    member_of: Option<String>,
    #[diesel(sql_type = Bool)]
    has_all: bool,
    #[diesel(sql_type = Bool)]
    has_columns: bool,
}

/// Means by which a role can read patients. A role with several gets the first.
#[derive(Debug, PartialEq, Eq)]
pub enum MeansToRead {
    /// It is a superuser.
    Superuser,
    /// It owns the register.
    Owner,
    /// It may copy the files of the database.
    Replication,
    /// It may make roles, and join one that can.
    CreateRole,
    /// Everybody can.
    Everybody,
    /// It is a member of this role, which can.
    Member(String),
    /// It has a grant of the whole table.
    Table,
    /// It has a grant of columns, perhaps of a newer program, whose service needs them.
    Columns,
}

impl MeansToRead {
    /// Returns whether grants to the role itself replace it.
    pub(crate) fn ends_with_grants(&self) -> bool {
        matches!(self, Self::Table | Self::Columns)
    }
}

impl fmt::Display for MeansToRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superuser => f.write_str("is a superuser"),
            Self::Owner => f.write_str("owns the register"),
            Self::Replication => f.write_str("may copy the whole database (REPLICATION)"),
            Self::CreateRole => f.write_str("may join other roles (CREATEROLE)"),
            Self::Everybody => f.write_str("may read what is granted to PUBLIC"),
            Self::Member(of) => write!(f, "is a member of {of}"),
            Self::Table => f.write_str("may read the whole table of patients"),
            Self::Columns => f.write_str("may read columns that it does not need"),
        }
    }
}

/// Means by which the role that connects can read patients, if it can.
pub fn means_to_read(over: &mut CheckConnection) -> Result<Option<MeansToRead>, SchemaError> {
    means(&mut over.0, None).map_err(failed)
}

/// The same of a role that exists.
pub(crate) fn means(connection: &mut PgConnection, role: Option<&str>) -> QueryResult<Option<MeansToRead>> {
    let found: Answers =
        diesel::sql_query(MEANS).bind::<Nullable<Text>, _>(role).bind::<Text, _>(READABLE).get_result(connection)?;
    Ok(match found {
        Answers { is_superuser: true, .. } => Some(MeansToRead::Superuser),
        Answers { is_owner: true, .. } => Some(MeansToRead::Owner),
        Answers { may_copy: true, .. } => Some(MeansToRead::Replication),
        Answers { may_make_roles: true, .. } => Some(MeansToRead::CreateRole),
        Answers { is_everybody: true, .. } => Some(MeansToRead::Everybody),
        Answers { member_of: Some(role), .. } => Some(MeansToRead::Member(role)),
        Answers { has_all: true, .. } => Some(MeansToRead::Table),
        Answers { has_columns: true, .. } => Some(MeansToRead::Columns),
        Answers { .. } => None,
    })
}
