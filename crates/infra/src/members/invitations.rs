//! Invitations, over Diesel: making, showing, withdrawing and accepting them.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, Deed, EmailAddress, InviteOutcome, JoinOutcome, NewInvitation, NewMember, NewSession, PEOPLE_MAX,
    TokenDigest, WithdrawOutcome,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::log::record;
use crate::diesel_errors::is_foreign_key_violation;
use crate::members::administer::may_administer;
use crate::schema::{invitations, members, organisations};
use crate::sessions::row::insert_session;

pub(crate) fn invite(
    connection: &mut PgConnection,
    invitation: &NewInvitation,
    deed: &Deed,
) -> QueryResult<InviteOutcome> {
    let organisation = *invitation.organisation_id.as_uuid();
    let invited_by = match &deed.actor {
        Actor::Member(id, _) => Some(*id.as_uuid()),
        Actor::Operator | Actor::Stranger => None,
    };
    let stored = connection.transaction(|connection| {
        if !may_administer(connection, organisation, deed)? {
            return Ok(InviteOutcome::NotAdministrator);
        }
        if is_member(connection, organisation, &invitation.email, deed)? {
            return Ok(InviteOutcome::AlreadyMember);
        }
        let row = (
            invitations::token_digest.eq(invitation.token.as_bytes().as_slice()),
            invitations::organisation_id.eq(organisation),
            invitations::email.eq(invitation.email.as_str()),
            invitations::role.eq(invitation.role.as_str()),
            invitations::expires_at.eq(invitation.expires_at),
            invitations::invited_by.eq(invited_by),
        );
        diesel::insert_into(invitations::table).values(row).on_conflict_do_nothing().execute(connection)?;
        if people(connection, organisation, deed.at)? > i64::from(PEOPLE_MAX) {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        record(connection, organisation, Action::MemberInvited, invitation.email.as_str(), deed)?;
        Ok(InviteOutcome::Invited)
    });
    // Errors are sorted outside the transaction, which an error must end.
    match stored {
        Err(error) if is_foreign_key_violation(&error) => Ok(InviteOutcome::NoSuchOrganisation),
        Err(diesel::result::Error::RollbackTransaction) => Ok(InviteOutcome::TooMany),
        other => other,
    }
}

/// Whether the guest is a member of the organisation or, if an operator asks, of any. Whoever joins at this very moment is
/// missed, and told when they open the link.
fn is_member(
    connection: &mut PgConnection,
    organisation: Uuid,
    guest: &EmailAddress,
    deed: &Deed,
) -> QueryResult<bool> {
    let namesakes = members::table.filter(members::email_folded.eq(guest.folded()));
    let of = namesakes.select(members::organisation_id).first::<Uuid>(connection).optional()?;
    Ok(of.is_some_and(|of| of == organisation || deed.actor == Actor::Operator))
}

/// How many members and open invitations the organisation has.
fn people(connection: &mut PgConnection, organisation: Uuid, now: OffsetDateTime) -> QueryResult<i64> {
    let members: i64 =
        members::table.filter(members::organisation_id.eq(organisation)).count().get_result(connection)?;
    let open = invitations::table
        .filter(invitations::organisation_id.eq(organisation))
        .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)));
    Ok(members + open.count().get_result::<i64>(connection)?)
}

/// The address that an open invitation is for, and the name of the organisation.
pub(crate) fn open(
    connection: &mut PgConnection,
    token: &TokenDigest,
    now: OffsetDateTime,
) -> QueryResult<Option<(String, Uuid, String)>> {
    let open = invitations::table
        .inner_join(organisations::table)
        .filter(invitations::token_digest.eq(token.as_bytes().as_slice()))
        .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)));
    open.select((invitations::email, organisations::id, organisations::name)).first(connection).optional()
}

/// The columns of an open invitation: digest, address, role, end, and the name of the member who made it.
pub(crate) type OpenRow = (Vec<u8>, String, String, OffsetDateTime, Option<String>);

pub(crate) fn all_open(
    connection: &mut PgConnection,
    organisation: Uuid,
    now: OffsetDateTime,
) -> QueryResult<Vec<OpenRow>> {
    let makers = members::table.on(members::id.nullable().eq(invitations::invited_by));
    let open = invitations::table
        .left_join(makers)
        .filter(invitations::organisation_id.eq(organisation))
        .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)))
        .order((invitations::expires_at, invitations::token_digest));
    let columns = (
        invitations::token_digest,
        invitations::email,
        invitations::role,
        invitations::expires_at,
        members::name.nullable(),
    );
    open.select(columns).load(connection)
}

pub(crate) fn withdraw(
    connection: &mut PgConnection,
    organisation: Uuid,
    token: &TokenDigest,
    deed: &Deed,
) -> QueryResult<WithdrawOutcome> {
    connection.transaction(|connection| {
        if !may_administer(connection, organisation, deed)? {
            return Ok(WithdrawOutcome::NotAdministrator);
        }
        let own = invitations::table
            .find(token.as_bytes().as_slice())
            .filter(invitations::organisation_id.eq(organisation))
            .filter(invitations::accepted_by.is_null());
        let email = diesel::delete(own).returning(invitations::email).get_result::<String>(connection).optional()?;
        let Some(email) = email else {
            return Ok(WithdrawOutcome::NoSuchInvitation);
        };
        record(connection, organisation, Action::InvitationWithdrawn, &email, deed)?;
        Ok(WithdrawOutcome::Withdrawn)
    })
}

/// Removes the open invitations to an address: its member needs none and, once removed, must not come back by an earlier
/// one.
pub(crate) fn end_all_to(connection: &mut PgConnection, organisation: Uuid, email_folded: &str) -> QueryResult<()> {
    let open = invitations::table
        .filter(invitations::organisation_id.eq(organisation).and(invitations::accepted_by.is_null()));
    let all: Vec<(Vec<u8>, String)> = open.select((invitations::token_digest, invitations::email)).load(connection)?;
    let is_to = |email: &str| folded(email).is_none_or(|folded| folded == email_folded);
    let ended: Vec<_> = all.into_iter().filter(|(_, email)| is_to(email)).map(|(digest, _)| digest).collect();
    diesel::delete(open.filter(invitations::token_digest.eq_any(ended))).execute(connection).map(drop)
}

pub(crate) fn join(
    connection: &mut PgConnection,
    token: &TokenDigest,
    member: &NewMember,
    session: &NewSession,
    deed: &Deed,
) -> QueryResult<JoinOutcome> {
    match connection.transaction(|connection| try_to_join(connection, token, member, session, deed)) {
        Err(Refusal::Refused(refused)) => Ok(refused),
        Err(Refusal::Failed(error)) => Err(error),
        Ok(()) => Ok(JoinOutcome::Joined),
    }
}

enum Refusal {
    Refused(JoinOutcome),
    Failed(diesel::result::Error),
}

impl From<diesel::result::Error> for Refusal {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error)
    }
}

fn try_to_join(
    connection: &mut PgConnection,
    token: &TokenDigest,
    member: &NewMember,
    session: &NewSession,
    deed: &Deed,
) -> Result<(), Refusal> {
    let id = *member.id.as_uuid();
    // Open, or accepted by this very guest in an earlier run that was committed and whose answer was lost.
    let is_open = invitations::accepted_by.is_null().and(invitations::expires_at.gt(deed.at));
    let own = invitations::table
        .filter(invitations::token_digest.eq(token.as_bytes().as_slice()))
        .filter(is_open.or(invitations::accepted_by.assume_not_null().eq(id)));
    let accepted = diesel::update(own)
        .set(invitations::accepted_by.eq(id))
        .returning((invitations::organisation_id, invitations::email, invitations::role))
        .get_result::<(Uuid, String, String)>(connection)
        .optional()?;
    let (organisation, email, role) = accepted.ok_or(Refusal::Refused(JoinOutcome::NoInvitation))?;
    // A stored address that is no longer valid belongs to no one.
    let email_folded = folded(&email).ok_or(Refusal::Refused(JoinOutcome::NoInvitation))?;
    let row = (
        members::id.eq(id),
        members::organisation_id.eq(organisation),
        members::email.eq(&email),
        members::email_folded.eq(&email_folded),
        members::name.eq(member.name.as_str()),
        members::role.eq(role),
        members::password_hash.eq(member.password.as_str()),
        members::joined_at.eq(deed.at),
    );
    let added = diesel::insert_into(members::table).values(row).on_conflict_do_nothing().execute(connection)?;
    let is_there = diesel::select(diesel::dsl::exists(members::table.find(id))).get_result::<bool>(connection)?;
    if added == 0 && !is_there {
        return Err(Refusal::Refused(JoinOutcome::EmailTaken));
    }
    // Nobody could join by them any more.
    end_all_to(connection, organisation, &email_folded)?;
    insert_session(connection, session, deed)?;
    record(connection, organisation, Action::MemberJoined, &email, deed)?;
    Ok(())
}

/// The folded form of a stored address. None: it is no longer a valid address.
fn folded(email: &str) -> Option<String> {
    email.parse::<EmailAddress>().ok().map(|email| email.folded())
}
