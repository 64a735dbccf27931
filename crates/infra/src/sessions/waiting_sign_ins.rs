//! Sign-ins with the right password that are waiting for their code.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, CODE_LIMIT, CodeOutcome, Deed, NewSession, Proof, TokenDigest};
use uuid::Uuid;

use crate::audit::log::record;
use crate::members::passkeys::note_use;
use crate::schema::{members, recovery_codes, sessions, waiting_sign_ins};
use crate::sessions::row::insert_session;

/// Stores a sign-in until its code comes. Removes the member's expired ones, so that someone who knows the password
/// cannot pile them up between two sweeps.
pub(crate) fn await_code(connection: &mut PgConnection, sign_in: &NewSession) -> QueryResult<()> {
    let member = *sign_in.member_id.as_uuid();
    let expired = waiting_sign_ins::table
        .filter(waiting_sign_ins::member_id.eq(member))
        .filter(waiting_sign_ins::started_at.le(sign_in.started_at - CODE_LIMIT));
    diesel::delete(expired).execute(connection)?;
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
) -> QueryResult<CodeOutcome> {
    let finished = connection.transaction(|connection| {
        let id = *session.member_id.as_uuid();
        let own = waiting_sign_ins::table
            .find(waiting.as_bytes().as_slice())
            .filter(waiting_sign_ins::member_id.eq(id))
            .filter(waiting_sign_ins::started_at.gt(deed.at - CODE_LIMIT));
        if diesel::delete(own).execute(connection)? == 0 {
            // Finished by an earlier run whose answer was lost, or in another window.
            let started = sessions::table.find(session.token.as_bytes().as_slice());
            let is_started = diesel::select(diesel::dsl::exists(started)).get_result::<bool>(connection)?;
            return Ok(if is_started { CodeOutcome::SignedIn } else { CodeOutcome::Over });
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
            Proof::Passkey(digest) => (note_use(connection, id, &digest, deed.at)?, Action::SignedInByPasskey),
        };
        if used_up == 0 {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        insert_session(connection, session, deed)?;
        let subject = members::table.find(id).select((members::organisation_id, members::email));
        let (organisation, email) = subject.first::<(Uuid, String)>(connection)?;
        record(connection, organisation, action, &email, deed)?;
        Ok(CodeOutcome::SignedIn)
    });
    match finished {
        // The sign-in keeps waiting for the right code.
        Err(diesel::result::Error::RollbackTransaction) => Ok(CodeOutcome::WrongCode),
        other => other,
    }
}
