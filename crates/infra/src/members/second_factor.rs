//! Second factors, over Diesel: turning them on and off, and their recovery codes.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, Actor, Deed, Member, NewSecondFactor, SecondFactorOutcome, TokenDigest};
use uuid::Uuid;

use crate::audit::log::record;
use crate::schema::{members, passkeys, recovery_codes, waiting_sign_ins};

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
) -> QueryResult<SecondFactorOutcome> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let secret = factor.secret.as_bytes();
        // None yet, or this very one from an earlier run that was committed and whose answer was lost.
        let is_free = members::totp_secret.is_null().or(members::totp_secret.assume_not_null().eq(secret));
        let turned_on = diesel::update(members::table.find(id).filter(is_free))
            .set((members::totp_secret.eq(secret), members::totp_used_step.eq(factor.used_step)))
            .execute(connection)?;
        if turned_on == 0 {
            return Ok(SecondFactorOutcome::Unchanged);
        }
        put_recovery_codes(connection, id, &factor.recovery_codes)?;
        record_change(connection, member, Action::SecondFactorTurnedOn, deed)
    })
}

pub(crate) fn turn_off(
    connection: &mut PgConnection,
    member: &Member,
    deed: &Deed,
) -> QueryResult<SecondFactorOutcome> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        let turned_off = diesel::update(members::table.find(id).filter(members::totp_secret.is_not_null()))
            .set((members::totp_secret.eq(None::<Vec<u8>>), members::totp_used_step.eq(None::<i64>)))
            .execute(connection)?;
        // An operator lets a member in who has lost passkeys, too.
        let removed = match deed.actor {
            Actor::Operator => {
                diesel::delete(passkeys::table.filter(passkeys::member_id.eq(id))).execute(connection)?
            }
            Actor::Member(..) | Actor::Stranger => 0,
        };
        if turned_off + removed == 0 {
            return Ok(SecondFactorOutcome::Unchanged);
        }
        put_recovery_codes(connection, id, &[])?;
        diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(id))).execute(connection)?;
        record_change(connection, member, Action::SecondFactorTurnedOff, deed)
    })
}

pub(crate) fn replace_recovery_codes(
    connection: &mut PgConnection,
    member: &Member,
    codes: &[TokenDigest],
    deed: &Deed,
) -> QueryResult<SecondFactorOutcome> {
    connection.transaction(|connection| {
        let id = *member.id.as_uuid();
        // Locked, so that two windows cannot both add their codes.
        let factor = members::table.find(id).select(members::totp_secret.is_not_null()).for_update();
        if factor.first::<bool>(connection).optional()? != Some(true) {
            return Ok(SecondFactorOutcome::Unchanged);
        }
        put_recovery_codes(connection, id, codes)?;
        record_change(connection, member, Action::RecoveryCodesReplaced, deed)
    })
}

fn put_recovery_codes(connection: &mut PgConnection, member: Uuid, codes: &[TokenDigest]) -> QueryResult<()> {
    diesel::delete(recovery_codes::table.filter(recovery_codes::member_id.eq(member))).execute(connection)?;
    let rows = codes
        .iter()
        .map(|code| (recovery_codes::member_id.eq(member), recovery_codes::digest.eq(code.as_bytes().as_slice())));
    let rows: Vec<_> = rows.collect();
    diesel::insert_into(recovery_codes::table).values(rows).execute(connection).map(drop)
}

/// Records that a member's second factor was changed.
fn record_change(
    connection: &mut PgConnection,
    member: &Member,
    action: Action,
    deed: &Deed,
) -> QueryResult<SecondFactorOutcome> {
    record(connection, *member.organisation_id.as_uuid(), action, member.email.as_str(), deed)
        .map(|()| SecondFactorOutcome::Changed)
}
