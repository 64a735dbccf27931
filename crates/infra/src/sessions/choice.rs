//! How a person who belongs to several organisations chooses the one that a session is in.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AuditContext, ChooseOutcome, TokenDigest};
use uuid::Uuid;

use crate::accounts::confirmation::lock_member;
use crate::audit::log::record;
use crate::schema::{members, memberships, sessions};

/// Puts the session into this organisation, or ends it if it may not leave its own.
pub(crate) fn choose(
    connection: &mut PgConnection,
    token: &TokenDigest,
    organisation: Uuid,
    audit: &AuditContext,
) -> QueryResult<ChooseOutcome> {
    connection.transaction(|connection| {
        let session = sessions::table.find(token.as_bytes().as_slice());
        let Some(member) = session.select(sessions::member_id).first::<Uuid>(connection).optional()? else {
            return Ok(ChooseOutcome::NoSuchOrganisation);
        };
        // An administrator who ends the member's sessions waits, or came first.
        lock_member(connection, member)?;
        let found = session.inner_join(members::table);
        let found = found.select((sessions::organisation_id, sessions::is_bound, members::email));
        let found: Option<(Option<Uuid>, bool, String)> = found.first(connection).optional()?;
        let Some((earlier, is_bound, email)) = found else { return Ok(ChooseOutcome::NoSuchOrganisation) };
        // A transaction that ends the membership waits, and then ends the session.
        let own = memberships::table.find((organisation, member)).select(memberships::member_id);
        if own.for_key_share().first::<Uuid>(connection).optional()?.is_none() {
            return Ok(ChooseOutcome::NoSuchOrganisation);
        }
        if earlier == Some(organisation) {
            return Ok(ChooseOutcome::Chosen);
        }
        if is_bound {
            diesel::delete(session).execute(connection)?;
            if let Some(earlier) = earlier {
                record(connection, earlier, Action::SignedOut, &email, audit)?;
            }
            return Ok(ChooseOutcome::SignInAgain);
        }
        diesel::update(session).set(sessions::organisation_id.eq(organisation)).execute(connection)?;
        record(connection, organisation, Action::SignedIn, &email, audit)?;
        Ok(ChooseOutcome::Chosen)
    })
}
