//! Whether the role of the person who asks for a change allows it, decided in the transaction of the change.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::Error;
use intake_domain::{Actor, AdministerError, AuditContext, OrganisationId, Role};
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::confirmation::assert_confirmed;
use crate::database::connecting::share::Share;
use crate::diesel_errors::RoleTakenAway;
use crate::schema::memberships;

impl PostgresMembers {
    /// Makes a change that only administrators make, who have confirmed who they are, in one transaction.
    pub(crate) async fn administered(
        &self,
        organisation: OrganisationId,
        audit: &AuditContext,
        change: impl Fn(&mut PgConnection, &AuditContext) -> QueryResult<Result<(), AdministerError>>
        + Send
        + Sync
        + 'static,
    ) -> Result<(), AdministerError> {
        let (id, audit) = (*organisation.as_uuid(), audit.clone());
        let done = self.0.transaction(Share::Of(id), move |connection| {
            assert_confirmed(connection, &audit)?;
            if !may_administer(connection, id, &audit)? {
                return Ok(Err(AdministerError::NotAdministrator));
            }
            change(connection, &audit)
        });
        done.await?
    }
}

/// Returns whether the actor may do this: an operator, or a member who is an administrator and stays one until the end
/// of this transaction.
pub(crate) fn may_administer(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
) -> QueryResult<bool> {
    may(connection, organisation, audit, Role::administers)
}

/// Fails unless the actor may change keys: an operator, or a member whose role allows that until the end of this
/// transaction.
pub(crate) fn assert_manages_keys(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
) -> QueryResult<()> {
    let may = may(connection, organisation, audit, Role::manages_keys)?;
    if may { Ok(()) } else { Err(Error::QueryBuilderError(RoleTakenAway.into())) }
}

fn may(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
    allows: fn(Role) -> bool,
) -> QueryResult<bool> {
    let id = match &audit.actor {
        Actor::Member { id, .. } => id,
        Actor::Operator(_) => return Ok(true),
        Actor::Stranger => return Ok(false),
    };
    let role = memberships::table.find((organisation, id.as_uuid())).select(memberships::role);
    let role = role.for_share().first::<String>(connection).optional()?;
    Ok(role.and_then(|role| role.parse().ok()).is_some_and(allows))
}
