//! The stored columns of a session, and how one is stored.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Deed, NewSession, SESSIONS_MAX, SessionRecord, SignedIn, StoreError, TokenDigest};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::members::row::{MemberRow, has_second_factor};
use crate::schema::{organisations, sessions, waiting_sign_ins};
use crate::sessions::familiar_networks::remember;

/// Stores a session and the network its member signed in from; storing it twice changes nothing. Of more sessions than a
/// member may have, the least recently used ones end.
pub(crate) fn insert_session(connection: &mut PgConnection, session: &NewSession, deed: &Deed) -> QueryResult<()> {
    let row = (
        sessions::token_digest.eq(session.token.as_bytes().as_slice()),
        sessions::member_id.eq(session.member_id.as_uuid()),
        sessions::started_at.eq(session.started_at),
        sessions::last_used_at.eq(session.started_at),
        sessions::browser.eq(session.browser.map(|browser| browser.to_string())),
        sessions::address.eq(deed.address.map(|address| address.to_string())),
    );
    diesel::insert_into(sessions::table).values(row).on_conflict_do_nothing().execute(connection)?;
    let of_member = sessions::table.filter(sessions::member_id.eq(session.member_id.as_uuid()));
    let too_many = of_member
        .select(sessions::token_digest)
        .order((sessions::last_used_at.desc(), sessions::token_digest))
        .offset(SESSIONS_MAX.into());
    let too_many: Vec<Vec<u8>> = too_many.load(connection)?;
    diesel::delete(of_member.filter(sessions::token_digest.eq_any(too_many))).execute(connection)?;
    remember(connection, *session.member_id.as_uuid(), deed)
}

/// Ends every session of a member but one, and the sign-ins that wait for their code.
pub(crate) fn end_all_but(connection: &mut PgConnection, member: Uuid, kept: &TokenDigest) -> QueryResult<()> {
    let others = sessions::table
        .filter(sessions::member_id.eq(member))
        .filter(sessions::token_digest.ne(kept.as_bytes().as_slice()));
    diesel::delete(others).execute(connection)?;
    diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(member))).execute(connection).map(drop)
}

/// A session, as its member lists it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub(crate) struct SessionRow {
    token_digest: Vec<u8>,
    browser: Option<String>,
    address: Option<String>,
    started_at: OffsetDateTime,
    last_used_at: OffsetDateTime,
}

impl SessionRow {
    /// None: what is stored is no digest, so the session is nobody's.
    pub(crate) fn into_record(self) -> Option<SessionRecord> {
        let Self { token_digest, browser, address, started_at, last_used_at } = self;
        let token = TokenDigest::from_bytes(&token_digest)?;
        Some(SessionRecord { token, browser, address, started_at, last_used_at })
    }
}

/// The holder of a session, as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub(crate) struct HolderRow {
    #[diesel(embed)]
    member: MemberRow,
    #[diesel(select_expression = organisations::name)]
    organisation_name: String,
    #[diesel(select_expression = has_second_factor(), select_expression_type = has_second_factor)]
    has_second_factor: bool,
    #[diesel(select_expression = organisations::second_factor_required)]
    is_second_factor_required: bool,
    #[diesel(select_expression = sessions::last_used_at)]
    pub(crate) last_used_at: OffsetDateTime,
}

impl TryFrom<HolderRow> for SignedIn {
    type Error = StoreError;

    fn try_from(row: HolderRow) -> Result<Self, Self::Error> {
        let HolderRow { member, organisation_name, has_second_factor, is_second_factor_required, .. } = row;
        Ok(Self { member: member.try_into()?, organisation_name, has_second_factor, is_second_factor_required })
    }
}
