//! Whether the person who asks for a change is an administrator, decided in the transaction of the change.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Actor, AuditContext, Role};
use uuid::Uuid;

use crate::schema::memberships;

/// Whether the actor may do this: an operator, or a member who is an administrator and stays one until the end of
/// this transaction.
pub(crate) fn may_administer(
    connection: &mut PgConnection,
    organisation: Uuid,
    audit: &AuditContext,
) -> QueryResult<bool> {
    let id = match &audit.actor {
        Actor::Member { id, .. } => id,
        Actor::Operator(_) => return Ok(true),
        Actor::Stranger => return Ok(false),
    };
    let role = memberships::table.find((organisation, id.as_uuid())).select(memberships::role);
    let role = role.for_share().first::<String>(connection).optional()?;
    Ok(role.as_deref() == Some(Role::Administrator.as_str()))
}
