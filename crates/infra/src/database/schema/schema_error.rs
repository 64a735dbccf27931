//! Why a database cannot be used as it is.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use intake_domain::{Environment, OrganisationId};

use crate::database::connecting::clock;
use crate::database::connecting::connect::{ConnectError, establish};
use crate::database::connecting::lock_wait::{LockHolders, Undone};
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::without_row_values;

/// Reason why the database cannot be used. How to change that with the program's own commands is said by the program.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The database cannot be reached.
    #[error("cannot connect to the database")]
    Unreachable(#[source] ConnectionError),
    /// The schema is older than the program.
    #[error("the database is not migrated")]
    Unmigrated,
    /// There is no role with this name.
    #[error("the database has no role {0}: create it first, with CREATE ROLE")]
    NoSuchRole(String),
    /// No grant could limit the role.
    #[error("the role {0} is a superuser: the service, and each reader, needs a role of its own")]
    PrivilegedRole(String),
    /// The role is the one that the owner's command connects as.
    #[error(
        "the role {0} is the one that this command connects as: the service, and each reader, needs a role of its own"
    )]
    OwnRole(String),
    /// The role may read patients, by other means than grants to it.
    #[error("the role {role} may read patients by other means (it {by}): the service needs a role that cannot")]
    MoreThanService {
        /// The role.
        role: String,
        /// Means that allow it.
        by: String,
    },
    /// The role may do more than read patients, by other grants.
    #[error("the role {role} may also use {tables}: a reader needs a role of its own")]
    MoreThanReader {
        /// The role.
        role: String,
        /// Other tables that it may use.
        tables: String,
    },
    /// No organisation has this id.
    #[error("there is no organisation {0}")]
    NoSuchOrganisation(OrganisationId),
    /// The database is not where the register was known to be whole.
    #[error(
        "the database was restored or moved, or a standby was promoted while no service was running: keys that were revoked may work again"
    )]
    Restored,
    /// Nothing can be changed on a standby.
    #[error("the database is a standby, which cannot be changed: connect to the primary")]
    Standby,
    /// The role that connects does not own the register.
    #[error("its role does not own the register")]
    NotOwner,
    /// The addresses of owner and service lead to different databases.
    #[error(
        "it leads to the database {owner}, and the service's address to another one, {service}: nothing was changed"
    )]
    OtherDatabase {
        /// The name of the owner's database.
        owner: String,
        /// The name of the service's database.
        service: String,
    },
    /// The role may not read patients.
    #[error("its role may not read patients")]
    NoReader,
    /// The database was first used in the other environment.
    #[error("the database belongs to the {stamped} environment and cannot be used in {asked}")]
    OtherEnvironment {
        /// The environment of the database.
        stamped: String,
        /// The environment of the program.
        asked: Environment,
    },
    /// The server could lose patients that were acknowledged.
    #[error("a crash of the database could lose acknowledged patients: turn on {0} in its configuration")]
    NotDurable(String),
    /// Unique indexes are missing or invalid.
    #[error(
        "the unique index {0} is missing or invalid, so what is sent again would be stored twice: was the database restored without it?"
    )]
    MissingIndex(String),
    /// Tables are unlogged.
    #[error("a crash of the database would empty {0}: ALTER TABLE … SET LOGGED")]
    Unlogged(String),
    /// The schema is newer than the program.
    #[error("the database was migrated by a newer intake ({0}): use that one")]
    Newer(String),
    /// Others held a lock at every try.
    #[error(transparent)]
    Locked(#[from] LockHolders),
    /// Everything of an organisation was erased, and the table not vacuumed.
    #[error(
        "everything is erased, but details may still be in the files and statistics of the table: run the command again"
    )]
    NotVacuumed(#[source] Box<Self>),
    /// The role lacks privileges that the service needs.
    #[error("its role lacks {0}")]
    MissingGrants(String),
    /// A pooler in front of the database shares connections between transactions.
    #[error(
        "a pooler in front of the database (PgBouncer) shares connections between transactions: set pool_mode = session there"
    )]
    SharedSessions,
    /// A pooler, or the server, has too few connections.
    #[error("the database, or a pooler in front of it, accepts no second connection: allow the service more")]
    NoSecondConnection,
    /// The database is not one of a Citus cluster.
    #[error("the database has no extension citus: nothing was changed")]
    NoCitus,
    /// No node of the cluster may hold rows.
    #[error("no node of the cluster may hold rows: add one with SELECT citus_add_node('host', port)")]
    NoNodes,
    /// The connection ended.
    #[error("the connection to the database was lost")]
    Interrupted(#[source] intake_domain::Source),
    /// The server does not end a commit.
    #[error(
        "a commit does not end; it waits for {0}. If it is SyncRep, start the standby, or take it out of synchronous_standby_names: SELECT application_name, state, sync_state FROM pg_stat_replication shows who is there"
    )]
    CommitWaits(String),
    /// Anything else.
    #[error("the schema cannot be read or changed")]
    Failed(#[source] intake_domain::Source),
}

/// A connection over which the checks before a start, or of a command, are made one after the other.
pub struct CheckConnection(pub(crate) PgConnection);

impl CheckConnection {
    /// Connects to the database.
    pub fn open(url: &DatabaseUrl) -> Result<Self, SchemaError> {
        connect(url).map(Self)
    }
}

pub(crate) fn connect(url: &DatabaseUrl) -> Result<PgConnection, SchemaError> {
    let mut connection = establish(url).map_err(SchemaError::Unreachable)?;
    clock::look(&mut connection).map_err(failed)?;
    Ok(connection)
}

impl From<ConnectError> for SchemaError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NotDurable(names) => Self::NotDurable(names),
            error => Self::Failed(error.into()),
        }
    }
}

impl From<Undone<Error>> for SchemaError {
    fn from(undone: Undone<Error>) -> Self {
        match undone {
            Undone::Locked(holders) => Self::Locked(holders),
            Undone::Failed(error) => failed(error),
        }
    }
}

pub(crate) fn failed(error: Error) -> SchemaError {
    use DatabaseErrorKind::{ClosedConnection, UnableToSendCommand};

    match error {
        Error::DatabaseError(ClosedConnection | UnableToSendCommand, _) => {
            SchemaError::Interrupted(without_row_values(error))
        }
        error => SchemaError::Failed(without_row_values(error)),
    }
}
