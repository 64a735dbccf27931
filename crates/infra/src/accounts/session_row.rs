//! The stored columns of a session, and how one is stored.

use diesel::dsl::exists;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Account, Action, AuditContext, CODE_LIMIT, FirstStep, Holder, Member, Membership, NewSession, SESSIONS_MAX,
    SessionRecord, SignedIn, StoreError, TokenDigest,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::familiar_networks::remember;
use crate::accounts::row::{AccountRow, belongs_elsewhere, has_second_factor, unreadable};
use crate::audit::log::{record, record_in_all};
use crate::organisations::{age_of, zone_of};
use crate::schema::{members, memberships, organisations, sessions, waiting_sign_ins};

/// Starts the session of a locked member who has signed in. A member of several organisations chooses one later. Only
/// that one records the sign-in, because the address could reveal to the others where else the member works.
pub(crate) fn start_session(
    connection: &mut PgConnection,
    session: &NewSession,
    action: Action,
    audit: &AuditContext,
) -> QueryResult<()> {
    let id = *session.member_id.as_uuid();
    let own = memberships::table.filter(memberships::member_id.eq(id)).select(memberships::organisation_id);
    let organisations: Vec<Uuid> = own.limit(2).load(connection)?;
    let only = match organisations[..] {
        [only] => Some(only),
        _ => None,
    };
    insert_session(connection, session, only, audit)?;
    let email: String = members::table.find(id).select(members::email).first(connection)?;
    match only {
        Some(organisation) => record(connection, organisation, action, &email, audit),
        // It is used up, and may not have been used by its owner.
        None if action == Action::SignedInByRecoveryCode => record_in_all(connection, id, action, &email, audit),
        None => Ok(()),
    }
}

/// Returns whether the session is stored: by an earlier run that was committed and whose answer was lost.
pub(crate) fn is_started(connection: &mut PgConnection, session: &NewSession) -> QueryResult<bool> {
    let stored = sessions::table.find(session.token.as_bytes().as_slice());
    diesel::select(exists(stored)).get_result(connection)
}

/// Stores a session and the network its member signed in from; storing it twice changes nothing. It takes the place of
/// the session that the browser had until then. Of more sessions than a member may have, the least recently used ones
/// end.
pub(crate) fn insert_session(
    connection: &mut PgConnection,
    session: &NewSession,
    organisation: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<()> {
    let row = (
        sessions::token_digest.eq(session.token.as_bytes().as_slice()),
        sessions::member_id.eq(session.member_id.as_uuid()),
        sessions::started_at.eq(session.started_at),
        sessions::last_used_at.eq(session.started_at),
        sessions::browser.eq(session.browser.map(|browser| browser.to_string())),
        sessions::address.eq(audit.address.map(|address| address.to_string())),
        sessions::organisation_id.eq(organisation),
        sessions::is_by_provider.eq(session.is_by_provider),
    );
    diesel::insert_into(sessions::table).values(row).on_conflict_do_nothing().execute(connection)?;
    if let Some(replaced) = session.replaces.filter(|replaced| *replaced != session.token) {
        diesel::delete(sessions::table.find(replaced.as_bytes().as_slice())).execute(connection)?;
    }
    let of_member = sessions::table.filter(sessions::member_id.eq(session.member_id.as_uuid()));
    let too_many = of_member
        .select(sessions::token_digest)
        .order((sessions::last_used_at.desc(), sessions::token_digest))
        .offset(SESSIONS_MAX.into());
    let too_many: Vec<Vec<u8>> = too_many.load(connection)?;
    diesel::delete(of_member.filter(sessions::token_digest.eq_any(too_many))).execute(connection)?;
    remember(connection, *session.member_id.as_uuid(), audit)
}

/// Ends every session of a member but the one in which the member confirmed, and the sign-ins that wait for their
/// code.
pub(crate) fn end_others(connection: &mut PgConnection, member: Uuid, audit: &AuditContext) -> QueryResult<()> {
    end_all_but(connection, member, audit.confirmed_in.as_ref())
}

/// Ends every session of a member but this one, and the sign-ins that wait for their code.
pub(crate) fn end_all_but(connection: &mut PgConnection, member: Uuid, kept: Option<&TokenDigest>) -> QueryResult<()> {
    let kept = kept.map_or(&[][..], |token| token.as_bytes());
    let others = sessions::table.filter(sessions::member_id.eq(member)).filter(sessions::token_digest.ne(kept));
    diesel::delete(others).execute(connection)?;
    diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(member))).execute(connection).map(drop)
}

/// Ends the sessions of a locked member that this organisation answers for, and the sign-ins that wait for their code.
/// Sessions in the member's other organisations stay there.
pub(crate) fn end_all_in(connection: &mut PgConnection, member: Uuid, organisation: Uuid) -> QueryResult<()> {
    if !belongs_elsewhere(connection, member, organisation)? {
        return end_all_but(connection, member, None);
    }
    let of_member = sessions::table.filter(sessions::member_id.eq(member));
    let undecided = sessions::organisation_id.is_null();
    let here = of_member.filter(undecided.or(sessions::organisation_id.assume_not_null().eq(organisation)));
    diesel::delete(here).execute(connection)?;
    diesel::update(of_member).set(sessions::is_bound.eq(true)).execute(connection)?;
    diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(member))).execute(connection).map(drop)
}

/// Stores a sign-in until its code comes, with the invitation that it will accept. Removes the member's expired ones,
/// so that someone who knows the password cannot pile them up between two sweeps.
pub(crate) fn await_code(
    connection: &mut PgConnection,
    sign_in: &NewSession,
    first: &FirstStep,
    invitation: Option<&TokenDigest>,
) -> QueryResult<()> {
    let subject = first.subject();
    let member = *sign_in.member_id.as_uuid();
    let expired = waiting_sign_ins::table
        .filter(waiting_sign_ins::member_id.eq(member))
        .filter(waiting_sign_ins::started_at.le(sign_in.started_at - CODE_LIMIT));
    diesel::delete(expired).execute(connection)?;
    let row = (
        waiting_sign_ins::token_digest.eq(sign_in.token.as_bytes().as_slice()),
        waiting_sign_ins::member_id.eq(member),
        waiting_sign_ins::started_at.eq(sign_in.started_at),
        waiting_sign_ins::invitation_digest.eq(invitation.map(|token| token.as_bytes().as_slice())),
        waiting_sign_ins::provider_issuer.eq(subject.map(|subject| &subject.issuer)),
        waiting_sign_ins::provider_subject.eq(subject.map(|subject| &subject.id)),
    );
    diesel::insert_into(waiting_sign_ins::table).values(row).on_conflict_do_nothing().execute(connection).map(drop)
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
    is_by_provider: bool,
}

impl SessionRow {
    /// None: what is stored is no digest, so the session is nobody's.
    pub(crate) fn into_record(self) -> Option<SessionRecord> {
        let Self { token_digest, browser, address, started_at, last_used_at, is_by_provider } = self;
        let token = TokenDigest::from_bytes(&token_digest)?;
        Some(SessionRecord { token, browser, address, started_at, last_used_at, is_by_provider })
    }
}

/// The holder of a session, as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub(crate) struct HolderRow {
    #[diesel(embed)]
    account: AccountRow,
    pub(crate) organisation_id: Option<Uuid>,
    #[diesel(select_expression = has_second_factor(), select_expression_type = has_second_factor)]
    has_second_factor: bool,
    confirmed_at: Option<OffsetDateTime>,
    provider_confirmed_at: Option<OffsetDateTime>,
    pub(crate) last_used_at: OffsetDateTime,
    pub(crate) is_by_provider: bool,
}

/// An organisation that a person belongs to, as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = organisations)]
pub(crate) struct MembershipRow {
    id: Uuid,
    name: String,
    #[diesel(select_expression = memberships::role)]
    role: String,
    second_factor_required: bool,
    key_days_max: Option<i32>,
    time_zone: String,
}

/// The organisations of a person, by name.
pub(crate) fn memberships_of(connection: &mut PgConnection, member: Uuid) -> QueryResult<Vec<MembershipRow>> {
    let own = organisations::table.inner_join(memberships::table).filter(memberships::member_id.eq(member));
    own.order((organisations::name, organisations::id)).select(MembershipRow::as_select()).load(connection)
}

impl TryFrom<MembershipRow> for Membership {
    type Error = StoreError;

    fn try_from(row: MembershipRow) -> Result<Self, Self::Error> {
        let role = row.role.parse().map_err(unreadable)?;
        Ok(Self { organisation_id: row.id.into(), organisation_name: row.name, role })
    }
}

impl HolderRow {
    /// The holder, who belongs to these organisations.
    pub(crate) fn into_holder(self, all: Vec<MembershipRow>) -> Result<Holder, StoreError> {
        let Self { account, organisation_id, has_second_factor, confirmed_at, provider_confirmed_at, .. } = self;
        let account = Account::try_from(account)?;
        let (chosen, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| Some(one.id) == organisation_id);
        let Some(chosen) = chosen.into_iter().next() else { return Ok(Holder::Undecided(account)) };
        let (is_second_factor_required, key_age_max) = (chosen.second_factor_required, age_of(chosen.key_days_max));
        let zone = zone_of(&chosen.time_zone);
        let Membership { organisation_id, organisation_name, role } = chosen.try_into()?;
        let Account { id, name, email } = account;
        Ok(Holder::Member(SignedIn {
            member: Member { id, organisation_id, name, email, role },
            organisation_name,
            has_second_factor,
            is_second_factor_required,
            key_age_max,
            zone,
            is_second_factor_required_elsewhere: others.iter().any(|other| other.second_factor_required),
            is_in_several: !others.is_empty(),
            confirmed_at,
            provider_confirmed_at,
        }))
    }
}
