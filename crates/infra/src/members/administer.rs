//! What only administrators do, over Diesel. That whoever does it is one is decided here, in the transaction of the change,
//! with the acting member's row locked: nobody takes the role away at the same moment.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, Actor, Deed, RemoveOutcome, RequireOutcome, Role, RoleOutcome};
use uuid::Uuid;

use crate::audit::log::record;
use crate::members::{invitations, row};
use crate::schema::{invitations as stored_invitations, members, organisations, password_resets};

/// Whether the deed may be done: by an operator, or by a member who is an administrator and stays one until the end of
/// this transaction.
pub(crate) fn may_administer(connection: &mut PgConnection, organisation: Uuid, deed: &Deed) -> QueryResult<bool> {
    let Actor::Member(id, _) = &deed.actor else {
        return Ok(deed.actor == Actor::Operator);
    };
    let actor = members::table.find(id.as_uuid()).filter(members::organisation_id.eq(organisation));
    let role = actor.select(members::role).for_share().first::<String>(connection).optional()?;
    Ok(role.as_deref() == Some(Role::Administrator.as_str()))
}

pub(crate) fn remove(
    connection: &mut PgConnection,
    organisation: Uuid,
    member: Uuid,
    deed: &Deed,
) -> QueryResult<RemoveOutcome> {
    connection.transaction(|connection| {
        let all = lock_members(connection, organisation)?;
        let Some(removed) = all.iter().find(|other| other.id == member) else {
            return Ok(RemoveOutcome::NoSuchMember);
        };
        if !is_by_administrator(&all, deed) {
            return Ok(RemoveOutcome::NotAdministrator);
        }
        if is_last_administrator(&all, removed) {
            return Ok(RemoveOutcome::LastAdministrator);
        }
        // Foreign keys remove with it the member's sessions and waiting sign-ins, the reset link for the member, and the
        // reset links and invitations that the member made.
        diesel::delete(members::table.find(member)).execute(connection)?;
        invitations::end_all_to(connection, organisation, &removed.email_folded)?;
        record(connection, organisation, Action::MemberRemoved, &removed.email, deed)?;
        Ok(RemoveOutcome::Removed)
    })
}

pub(crate) fn change_role(
    connection: &mut PgConnection,
    organisation: Uuid,
    member: Uuid,
    role: Role,
    deed: &Deed,
) -> QueryResult<RoleOutcome> {
    connection.transaction(|connection| {
        let all = lock_members(connection, organisation)?;
        let Some(changed) = all.iter().find(|other| other.id == member) else {
            return Ok(RoleOutcome::NoSuchMember);
        };
        // Nothing to do, or done by an earlier run that was committed and whose answer was lost.
        if changed.role == role.as_str() {
            return Ok(RoleOutcome::Changed);
        }
        if !is_by_administrator(&all, deed) {
            return Ok(RoleOutcome::NotAdministrator);
        }
        if is_last_administrator(&all, changed) {
            return Ok(RoleOutcome::LastAdministrator);
        }
        diesel::update(members::table.find(member)).set(members::role.eq(role.as_str())).execute(connection)?;
        let action = match role {
            Role::Administrator => Action::AdministratorMade,
            Role::KeyManager => {
                end_all_made_by(connection, member)?;
                Action::KeyManagerMade
            }
        };
        record(connection, organisation, action, &changed.email, deed)?;
        Ok(RoleOutcome::Changed)
    })
}

pub(crate) fn require_second_factor(
    connection: &mut PgConnection,
    organisation: Uuid,
    is_required: bool,
    deed: &Deed,
) -> QueryResult<RequireOutcome> {
    connection.transaction(|connection| {
        if !may_administer(connection, organisation, deed)? {
            return Ok(RequireOutcome::NotAdministrator);
        }
        if is_required && !has_second_factor(connection, deed)? {
            return Ok(RequireOutcome::OwnSecondFactorMissing);
        }
        let other_way =
            organisations::table.find(organisation).filter(organisations::second_factor_required.ne(is_required));
        let name = diesel::update(other_way)
            .set(organisations::second_factor_required.eq(is_required))
            .returning(organisations::name)
            .get_result::<String>(connection)
            .optional()?;
        // None: it is so already.
        if let Some(name) = name {
            let action = if is_required { Action::SecondFactorRequired } else { Action::SecondFactorOptional };
            record(connection, organisation, action, &name, deed)?;
        }
        Ok(RequireOutcome::Decided)
    })
}

/// The columns of a member that decide what can be done to it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
struct LockedMember {
    id: Uuid,
    email: String,
    email_folded: String,
    role: String,
}

impl LockedMember {
    fn is_administrator(&self) -> bool {
        self.role == Role::Administrator.as_str()
    }
}

/// All members of the organisation, locked, so that the last two administrators cannot remove or demote each other at once.
fn lock_members(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<Vec<LockedMember>> {
    let all = members::table.filter(members::organisation_id.eq(organisation)).order(members::id);
    all.select(LockedMember::as_select()).for_update().load(connection)
}

fn is_by_administrator(all: &[LockedMember], deed: &Deed) -> bool {
    match &deed.actor {
        Actor::Operator => true,
        Actor::Member(id, _) => all.iter().any(|member| member.id == *id.as_uuid() && member.is_administrator()),
        Actor::Stranger => false,
    }
}

fn is_last_administrator(all: &[LockedMember], member: &LockedMember) -> bool {
    member.is_administrator() && all.iter().filter(|other| other.is_administrator()).count() == 1
}

fn has_second_factor(connection: &mut PgConnection, deed: &Deed) -> QueryResult<bool> {
    let Actor::Member(id, _) = &deed.actor else { return Ok(true) };
    members::table.find(id.as_uuid()).select(row::has_second_factor()).first(connection)
}

/// Ends what a former administrator made for others: by none of it does the role come back.
fn end_all_made_by(connection: &mut PgConnection, member: Uuid) -> QueryResult<()> {
    let open = stored_invitations::table
        .filter(stored_invitations::invited_by.eq(member).and(stored_invitations::accepted_by.is_null()));
    diesel::delete(open).execute(connection)?;
    diesel::delete(password_resets::table.filter(password_resets::issued_by.eq(member))).execute(connection).map(drop)
}
