//! Second factors, over Diesel: kept, and used up.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, CODE_LIMIT, Deed, Finished, Member, NewSecondFactor, NewSession, Proof, TokenDigest};
use uuid::Uuid;

use crate::audit_log::record;
use crate::schema::{members, recovery_codes, sessions, waiting_sign_ins};
use crate::session_store::insert_session;

pub(crate) fn recovery_codes_left(connection: &mut PgConnection, member: Uuid) -> QueryResult<Option<u32>> {
    let has_factor = members::table.find(member).select(members::totp_secret.is_not_null());
    if has_factor.first::<bool>(connection).optional()? != Some(true) {
        return Ok(None);
    }
    let left: i64 = recovery_codes::table.filter(recovery_codes::member_id.eq(member)).count().first(connection)?;
    Ok(u32::try_from(left).ok())
}

pub(crate) fn turn_on(
    connection: &mut PgConnection,
    member: &Member,
    factor: &NewSecondFactor,
    deed: &Deed,
) -> QueryResult<bool> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let secret = factor.secret.as_bytes();
        // None yet, or this very one from an earlier run that lost its answer.
        let is_free = members::totp_secret.is_null().or(members::totp_secret.assume_not_null().eq(secret));
        let turned_on = diesel::update(members::table.find(id).filter(is_free))
            .set((members::totp_secret.eq(secret), members::totp_used_step.eq(factor.used_step)))
            .execute(connection)?;
        if turned_on == 0 {
            return Ok(false);
        }
        put_recovery_codes(connection, id, &factor.recovery_codes)?;
        record_of(connection, member, Action::SecondFactorTurnedOn, deed)
    })
}

pub(crate) fn turn_off(connection: &mut PgConnection, member: &Member, deed: &Deed) -> QueryResult<bool> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let turned_off = diesel::update(members::table.find(id).filter(members::totp_secret.is_not_null()))
            .set((members::totp_secret.eq(None::<Vec<u8>>), members::totp_used_step.eq(None::<i64>)))
            .execute(connection)?;
        if turned_off == 0 {
            return Ok(false);
        }
        put_recovery_codes(connection, id, &[])?;
        diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(id))).execute(connection)?;
        record_of(connection, member, Action::SecondFactorTurnedOff, deed)
    })
}

pub(crate) fn replace_recovery_codes(
    connection: &mut PgConnection,
    member: &Member,
    codes: &[TokenDigest],
    deed: &Deed,
) -> QueryResult<bool> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        // Locked, so that two windows cannot both add their codes.
        let factor = members::table.find(id).select(members::totp_secret.is_not_null()).for_update();
        if factor.first::<bool>(connection).optional()? != Some(true) {
            return Ok(false);
        }
        put_recovery_codes(connection, id, codes)?;
        record_of(connection, member, Action::RecoveryCodesReplaced, deed)
    })
}

/// Keeps a sign-in until its code comes. The member's earlier ones that nobody finished go, so that who knows a
/// password cannot pile them up between two sweeps.
pub(crate) fn await_code(connection: &mut PgConnection, sign_in: &NewSession) -> QueryResult<()> {
    let member = *sign_in.member_id.as_uuid();
    let dead = waiting_sign_ins::table
        .filter(waiting_sign_ins::member_id.eq(member))
        .filter(waiting_sign_ins::started_at.le(sign_in.started_at - CODE_LIMIT));
    diesel::delete(dead).execute(connection)?;
    let row = (
        waiting_sign_ins::token_digest.eq(sign_in.token.as_bytes().as_slice()),
        waiting_sign_ins::member_id.eq(member),
        waiting_sign_ins::started_at.eq(sign_in.started_at),
    );
    diesel::insert_into(waiting_sign_ins::table).values(row).on_conflict_do_nothing().execute(connection).map(drop)
}

pub(crate) fn finish(
    connection: &mut PgConnection,
    waiting: &TokenDigest,
    proof: Proof,
    session: &NewSession,
    deed: &Deed,
) -> QueryResult<Finished> {
    let finished = connection.transaction(|connection| {
        let id = *session.member_id.as_uuid();
        let own = waiting_sign_ins::table
            .find(waiting.as_bytes().as_slice())
            .filter(waiting_sign_ins::member_id.eq(id))
            .filter(waiting_sign_ins::started_at.gt(deed.at - CODE_LIMIT));
        if diesel::delete(own).execute(connection)? == 0 {
            // Finished by an earlier run that lost its answer, or by somebody else.
            let started = sessions::table.find(session.token.as_bytes().as_slice());
            let is_started = diesel::select(diesel::dsl::exists(started)).get_result::<bool>(connection)?;
            return Ok(if is_started { Finished::SignedIn } else { Finished::Over });
        }
        let (used_up, action) = match proof {
            Proof::Step(step) => {
                let unused = members::table.find(id).filter(members::totp_used_step.lt(step));
                let used = diesel::update(unused).set(members::totp_used_step.eq(step)).execute(connection)?;
                (used, Action::SignedIn)
            }
            Proof::RecoveryCode(digest) => {
                let used = diesel::delete(recovery_codes::table.find((id, digest.as_bytes().as_slice())));
                (used.execute(connection)?, Action::SignedInByRecoveryCode)
            }
        };
        if used_up == 0 {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        insert_session(connection, session, deed)?;
        let subject = members::table.find(id).select((members::organisation_id, members::email));
        let (organisation, email) = subject.first::<(Uuid, String)>(connection)?;
        record(connection, organisation, action, &email, deed)?;
        Ok(Finished::SignedIn)
    });
    match finished {
        // The sign-in goes on waiting, for a better code.
        Err(diesel::result::Error::RollbackTransaction) => Ok(Finished::WrongCode),
        other => other,
    }
}

fn put_recovery_codes(connection: &mut PgConnection, member: Uuid, codes: &[TokenDigest]) -> QueryResult<()> {
    diesel::delete(recovery_codes::table.filter(recovery_codes::member_id.eq(member))).execute(connection)?;
    let rows = codes
        .iter()
        .map(|code| (recovery_codes::member_id.eq(member), recovery_codes::digest.eq(code.as_bytes().as_slice())));
    let rows: Vec<_> = rows.collect();
    diesel::insert_into(recovery_codes::table).values(rows).execute(connection).map(drop)
}

/// What a member's change of its own leaves in the record.
fn record_of(connection: &mut PgConnection, member: &Member, action: Action, deed: &Deed) -> QueryResult<bool> {
    record(connection, *member.organisation_id.as_uuid(), action, member.email.as_str(), deed).map(|()| true)
}
