//! Whose an account is: that its address was proved, whom at the provider of single sign-on it is linked to, and what
//! ends when a person takes it over. All of it happens with the member's row locked.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AuditContext, Subject, TokenDigest};
use uuid::Uuid;

use crate::accounts::confirmation::StoredProofs;
use crate::accounts::session_row::end_all_but;
use crate::audit::log::record_in_all;
use crate::schema::{email_changes, members, passkeys, password_resets, recovery_codes};

/// Proof of an address.
#[derive(Clone, Copy)]
pub(crate) enum ProvedBy {
    Mail,
    Provider,
    Operator,
}

impl ProvedBy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Provider => "provider",
            Self::Operator => "operator",
        }
    }
}

/// Records that the address is the member's.
pub(crate) fn prove(
    connection: &mut PgConnection,
    member: Uuid,
    by: ProvedBy,
    audit: &AuditContext,
) -> QueryResult<()> {
    let proof = (members::email_proved_at.eq(audit.at), members::email_proved_by.eq(by.as_str()));
    diesel::update(members::table.find(member)).set(proof).execute(connection).map(drop)
}

/// Links the account to a person at the provider. Everything that was open in it ends, but for the session that is
/// kept, in which the member confirmed.
pub(crate) fn link(
    connection: &mut PgConnection,
    member: Uuid,
    subject: &Subject,
    kept: Option<&TokenDigest>,
    audit: &AuditContext,
) -> QueryResult<()> {
    let link = (members::provider_issuer.eq(&subject.issuer), members::provider_subject.eq(&subject.id));
    diesel::update(members::table.find(member)).set(link).execute(connection)?;
    prove(connection, member, ProvedBy::Provider, audit)?;
    end_all_open(connection, member, kept)?;
    let email: String = members::table.find(member).select(members::email).first(connection)?;
    record_in_all(connection, member, Action::ProviderLinked, &email, &audit.second())
}

/// Links a locked account that was found by its proved address to the first person at the provider who came with the
/// address. The person takes it over: the password, which may be that of an earlier owner of the address, no longer
/// works. An account that is linked to the person already stays as it is.
pub(crate) fn take_over(
    connection: &mut PgConnection,
    locked: &StoredProofs,
    member: Uuid,
    subject: &Subject,
    audit: &AuditContext,
) -> QueryResult<()> {
    if locked.is_of(subject) {
        return Ok(());
    }
    remove_password(connection, member)?;
    link(connection, member, subject, None, audit)
}

/// Forgets whom at the provider the account was linked to.
pub(crate) fn unlink(connection: &mut PgConnection, member: Uuid) -> QueryResult<()> {
    let nobody = (members::provider_issuer.eq(None::<String>), members::provider_subject.eq(None::<String>));
    diesel::update(members::table.find(member)).set(nobody).execute(connection).map(drop)
}

/// Ends every session of a member but the one that is kept, sign-ins that wait for their code, and links for another
/// password or address.
pub(crate) fn end_all_open(connection: &mut PgConnection, member: Uuid, kept: Option<&TokenDigest>) -> QueryResult<()> {
    end_all_but(connection, member, kept)?;
    diesel::delete(password_resets::table.find(member)).execute(connection)?;
    diesel::delete(email_changes::table.find(member)).execute(connection).map(drop)
}

pub(crate) fn remove_password(connection: &mut PgConnection, member: Uuid) -> QueryResult<()> {
    let none = members::password_hash.eq(None::<String>);
    diesel::update(members::table.find(member)).set(none).execute(connection).map(drop)
}

/// Removes the authenticator app with its recovery codes, and all passkeys.
pub(crate) fn remove_factors(connection: &mut PgConnection, member: Uuid) -> QueryResult<()> {
    let no_app =
        (members::totp_secret.eq(None::<Vec<u8>>), members::totp_used_step.eq(None::<i64>), members::wrong_codes.eq(0));
    diesel::update(members::table.find(member)).set(no_app).execute(connection)?;
    diesel::delete(recovery_codes::table.filter(recovery_codes::member_id.eq(member))).execute(connection)?;
    diesel::delete(passkeys::table.filter(passkeys::member_id.eq(member))).execute(connection).map(drop)
}
