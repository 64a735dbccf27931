//! Sign-ins whose first step was right, and which wait for their code.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AuditContext, CODE_LIMIT, CodeError, NewSession, Proof, Subject, TokenDigest};

use crate::accounts::confirmation::lock_member;
use crate::accounts::proof::take_over;
use crate::accounts::proofs::{ProofOutcome, use_up};
use crate::accounts::session_row::{insert_session, is_started, start_session};
use crate::members::joining::{NotJoined, accept};
use crate::schema::waiting_sign_ins;

/// A sign-in that waits, as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = waiting_sign_ins)]
struct WaitingRow {
    invitation_digest: Option<Vec<u8>>,
    provider_issuer: Option<String>,
    provider_subject: Option<String>,
}

impl WaitingRow {
    fn subject(&self) -> Option<Subject> {
        let (issuer, id) = (self.provider_issuer.clone()?, self.provider_subject.clone()?);
        Some(Subject { issuer, id })
    }
}

pub(crate) fn finish(
    connection: &mut PgConnection,
    waiting: &TokenDigest,
    proof: Proof,
    session: &NewSession,
    audit: &AuditContext,
) -> QueryResult<Result<(), CodeError>> {
    connection.transaction(|connection| {
        let id = *session.member_id.as_uuid();
        let locked = lock_member(connection, id)?;
        let own = waiting_sign_ins::table
            .find(waiting.as_bytes().as_slice())
            .filter(waiting_sign_ins::member_id.eq(id))
            .filter(waiting_sign_ins::started_at.gt(audit.at - CODE_LIMIT));
        let found = own.select(WaitingRow::as_select()).first(connection).optional()?;
        let (Some(locked), Some(waiting)) = (locked, found) else {
            // Finished by an earlier run whose answer was lost, or in another window.
            return Ok(if is_started(connection, session)? { Ok(()) } else { Err(CodeError::Over) });
        };
        // After a wrong one the sign-in keeps waiting for the right one.
        match use_up(connection, id, proof, audit.at)? {
            ProofOutcome::UsedUp => {}
            ProofOutcome::Wrong => return Ok(Err(CodeError::WrongCode)),
            ProofOutcome::Locked => return Ok(Err(CodeError::Locked)),
        }
        diesel::delete(own).execute(connection)?;
        let subject = waiting.subject();
        let is_by_provider = subject.is_some();
        if let Some(subject) = subject {
            take_over(connection, &locked, id, &subject, audit)?;
        }
        let action = match proof {
            Proof::Step(_) if is_by_provider => Action::SignedInByProvider,
            Proof::Step(_) => Action::SignedIn,
            Proof::RecoveryCode(_) => Action::SignedInByRecoveryCode,
            Proof::Passkey(_) => Action::SignedInByPasskey,
        };
        let session = &NewSession { is_by_provider, ..session.clone() };
        match waiting.invitation_digest.and_then(|digest| TokenDigest::from_bytes(&digest)) {
            None => start_session(connection, session, action, audit)?,
            Some(invitation) => start_where_invited(connection, &invitation, session, action, audit)?,
        }
        Ok(Ok(()))
    })
}

/// Accepts an invitation, and starts the session in its organisation. If the invitation no longer works, the sign-in is
/// one without it.
fn start_where_invited(
    connection: &mut PgConnection,
    invitation: &TokenDigest,
    session: &NewSession,
    action: Action,
    audit: &AuditContext,
) -> QueryResult<()> {
    match connection.transaction(|connection| accept(connection, invitation, *session.member_id.as_uuid(), audit)) {
        Ok(organisation) => insert_session(connection, session, Some(organisation), audit),
        Err(NotJoined::Refused(_)) => start_session(connection, session, action, audit),
        Err(NotJoined::Failed(error)) => Err(error),
    }
}
