//! Stores a session.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Deed, NewSession};

use crate::schema::sessions;
use crate::sessions::familiar_networks::remember;

/// Stores a session and the network its member signed in from; storing it twice changes nothing.
pub(crate) fn insert_session(connection: &mut PgConnection, session: &NewSession, deed: &Deed) -> QueryResult<()> {
    let row = (
        sessions::token_digest.eq(session.token.as_bytes().as_slice()),
        sessions::member_id.eq(session.member_id.as_uuid()),
        sessions::started_at.eq(session.started_at),
        sessions::last_used_at.eq(session.started_at),
    );
    diesel::insert_into(sessions::table).values(row).on_conflict_do_nothing().execute(connection)?;
    remember(connection, *session.member_id.as_uuid(), deed)
}
