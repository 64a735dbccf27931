//! What members change about their own account, over Diesel.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, Deed, EmailAddress, EmailOutcome, Member, Name, PasswordHash, TokenDigest};
use uuid::Uuid;

use crate::audit::log::record;
use crate::diesel_errors::is_unique_violation;
use crate::schema::{members, password_resets, waiting_sign_ins};
use crate::sessions::row::end_all_but;

pub(crate) fn change_name(connection: &mut PgConnection, member: &Member, name: &Name, deed: &Deed) -> QueryResult<()> {
    connection.transaction(|connection| {
        let own = members::table.find(member.id.as_uuid());
        diesel::update(own).set(members::name.eq(name.as_str())).execute(connection)?;
        record(connection, *member.organisation_id.as_uuid(), Action::NameChanged, name.as_str(), deed)
    })
}

pub(crate) fn change_email(
    connection: &mut PgConnection,
    member: &Member,
    email: &EmailAddress,
    kept: &TokenDigest,
    deed: &Deed,
) -> QueryResult<EmailOutcome> {
    let changed = connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let own = members::table.find(id);
        let new = (members::email.eq(email.as_str()), members::email_folded.eq(email.folded()));
        diesel::update(own).set(new).execute(connection)?;
        // It was sent to the earlier address.
        diesel::delete(password_resets::table.find(id)).execute(connection)?;
        end_all_but(connection, id, kept)?;
        record(connection, *member.organisation_id.as_uuid(), Action::EmailChanged, email.as_str(), deed)
    });
    // Errors are sorted outside the transaction, which an error must end.
    match changed {
        Err(error) if is_unique_violation(&error) => Ok(EmailOutcome::Taken),
        other => other.map(|()| EmailOutcome::Changed),
    }
}

pub(crate) fn change_password(
    connection: &mut PgConnection,
    member: &Member,
    password: &PasswordHash,
    kept: &TokenDigest,
    deed: &Deed,
) -> QueryResult<()> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        put_password(connection, id, password)?;
        end_all_but(connection, id, kept)?;
        record(connection, *member.organisation_id.as_uuid(), Action::PasswordChanged, member.email.as_str(), deed)
    })
}

/// Stores a member's password, and ends what was begun with the one before: sign-ins that wait for
/// their code, and an open reset link.
pub(crate) fn put_password(connection: &mut PgConnection, member: Uuid, password: &PasswordHash) -> QueryResult<()> {
    let own = members::table.find(member);
    diesel::update(own).set(members::password_hash.eq(password.as_str())).execute(connection)?;
    diesel::delete(password_resets::table.find(member)).execute(connection)?;
    diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(member))).execute(connection).map(drop)
}
