//! The proofs of second factors, each of which is used up where it is accepted.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Proof, TokenDigest, WRONG_CODES_MAX};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::{members, passkeys, recovery_codes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProofOutcome {
    /// It was right, and is not accepted again.
    UsedUp,
    /// It was used before, or is wrong.
    Wrong,
    /// It is a code of the app, after [`WRONG_CODES_MAX`] wrong codes in a row.
    Locked,
}

/// Uses up a proof of the member, whose row is locked. A right one ends the row of wrong codes.
pub(crate) fn use_up(
    connection: &mut PgConnection,
    member: Uuid,
    proof: Proof,
    at: OffsetDateTime,
) -> QueryResult<ProofOutcome> {
    let own = members::table.find(member);
    let wrong: i32 = own.select(members::wrong_codes).first(connection)?;
    let is_locked = u32::try_from(wrong).is_ok_and(|wrong| wrong >= WRONG_CODES_MAX);
    let used = match proof {
        Proof::Step(_) if is_locked => 0,
        Proof::Step(step) => {
            let unused = own.filter(members::totp_used_step.lt(step));
            diesel::update(unused).set(members::totp_used_step.eq(step)).execute(connection)?
        }
        Proof::RecoveryCode(digest) => {
            let code = recovery_codes::table.find((member, digest.as_bytes().as_slice()));
            diesel::delete(code).execute(connection)?
        }
        Proof::Passkey(digest) => note_use(connection, member, &digest, at)?,
    };
    match used {
        0 if is_locked => Ok(ProofOutcome::Locked),
        0 => Ok(ProofOutcome::Wrong),
        _ => {
            diesel::update(own).set(members::wrong_codes.eq(0)).execute(connection)?;
            Ok(ProofOutcome::UsedUp)
        }
    }
}

/// Notes that a member has used this passkey. Returns how many passkeys that are: none, if it was removed.
pub(crate) fn note_use(
    connection: &mut PgConnection,
    member: Uuid,
    passkey: &TokenDigest,
    at: OffsetDateTime,
) -> QueryResult<usize> {
    let own = passkeys::table.find(passkey.as_bytes().as_slice()).filter(passkeys::member_id.eq(member));
    diesel::update(own).set(passkeys::last_used_at.eq(at)).execute(connection)
}
