//! Reset links, over Diesel: making, showing and using them.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, Deed, IssueOutcome, Member, NewPasswordReset, PasswordHash, PasswordResetOutcome, TokenDigest,
};
use time::OffsetDateTime;

use crate::audit::log::record;
use crate::diesel_errors::is_foreign_key_violation;
use crate::members::account::put_password;
use crate::members::administer::may_administer;
use crate::members::row::MemberRow;
use crate::schema::{members, password_resets, sessions};

pub(crate) fn issue(
    connection: &mut PgConnection,
    member: &Member,
    reset: &NewPasswordReset,
    deed: &Deed,
) -> QueryResult<IssueOutcome> {
    let organisation = *member.organisation_id.as_uuid();
    let issued_by = match &deed.actor {
        Actor::Member(id, _) => Some(*id.as_uuid()),
        Actor::Operator | Actor::Stranger => None,
    };
    let issued = connection.transaction(|connection| {
        if !may_administer(connection, organisation, deed)? {
            return Ok(IssueOutcome::NotAdministrator);
        }
        let what = (
            password_resets::token_digest.eq(reset.token.as_bytes().as_slice()),
            password_resets::expires_at.eq(reset.expires_at),
            password_resets::issued_by.eq(issued_by),
        );
        diesel::insert_into(password_resets::table)
            .values((password_resets::member_id.eq(member.id.as_uuid()), what))
            .on_conflict(password_resets::member_id)
            .do_update()
            .set(what)
            .execute(connection)?;
        record(connection, organisation, Action::PasswordResetIssued, member.email.as_str(), deed)?;
        Ok(IssueOutcome::Issued)
    });
    // Errors are sorted outside the transaction, which an error must end.
    match issued {
        Err(error) if is_foreign_key_violation(&error) => Ok(IssueOutcome::NoSuchMember),
        other => other,
    }
}

pub(crate) fn open(
    connection: &mut PgConnection,
    token: &TokenDigest,
    now: OffsetDateTime,
) -> QueryResult<Option<MemberRow>> {
    let open = password_resets::table
        .inner_join(members::table)
        .filter(password_resets::token_digest.eq(token.as_bytes().as_slice()))
        .filter(password_resets::expires_at.gt(now));
    open.select(MemberRow::as_select()).first(connection).optional()
}

pub(crate) fn reset(
    connection: &mut PgConnection,
    token: &TokenDigest,
    member: &Member,
    password: &PasswordHash,
    deed: &Deed,
) -> QueryResult<PasswordResetOutcome> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let own = password_resets::table
            .find(id)
            .filter(password_resets::token_digest.eq(token.as_bytes().as_slice()))
            .filter(password_resets::expires_at.gt(deed.at));
        if diesel::delete(own).execute(connection)? == 0 {
            // Used by an earlier run whose answer was lost, or by somebody else. The salt makes each hash another one.
            let is_same = members::table.find(id).filter(members::password_hash.eq(password.as_str()));
            let is_done = diesel::select(diesel::dsl::exists(is_same)).get_result::<bool>(connection)?;
            return Ok(if is_done { PasswordResetOutcome::Done } else { PasswordResetOutcome::Gone });
        }
        put_password(connection, id, password)?;
        diesel::delete(sessions::table.filter(sessions::member_id.eq(id))).execute(connection)?;
        record(connection, *member.organisation_id.as_uuid(), Action::PasswordReset, member.email.as_str(), deed)?;
        Ok(PasswordResetOutcome::Done)
    })
}
