//! The steps by which a guest joins an organisation, at once or when a sign-in that waits for a code is finished.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, AuditContext, AuditDetails, EmailAddress, Invitation, JoinOutcome, LinkDelivery, Role, StoreError,
    TokenDigest,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::account_store::is_anothers;
use crate::accounts::address::is_anothers_address;
use crate::accounts::confirmation::lock_member;
use crate::accounts::proof::{ProvedBy, end_all_open, prove};
use crate::accounts::row::unreadable;
use crate::audit::log::record_details;
use crate::schema::{invitations, members, memberships, organisations};

/// An open invitation, as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = invitations)]
pub(crate) struct OpenInvitationRow {
    pub(crate) email: String,
    #[diesel(select_expression = organisations::id)]
    pub(crate) organisation: Uuid,
    #[diesel(select_expression = organisations::name)]
    organisation_name: String,
    is_mailed: bool,
}

impl OpenInvitationRow {
    pub(crate) fn into_invitation(self) -> Result<Invitation, StoreError> {
        let Self { email, organisation, organisation_name, is_mailed } = self;
        let email = email.parse().map_err(unreadable)?;
        let delivery = if is_mailed { LinkDelivery::Mailed } else { LinkDelivery::Shown };
        Ok(Invitation { organisation_id: organisation.into(), email, organisation_name, delivery })
    }
}

/// The invitation of this token, if it is open.
pub(crate) fn open(
    connection: &mut PgConnection,
    token: &TokenDigest,
    now: OffsetDateTime,
) -> QueryResult<Option<OpenInvitationRow>> {
    let open = invitations::table.inner_join(organisations::table).filter(is_open(token, now));
    open.select(OpenInvitationRow::as_select()).first(connection).optional()
}

#[diesel::dsl::auto_type]
fn is_open<'a>(token: &'a TokenDigest, now: OffsetDateTime) -> _ {
    let digest: &'a [u8] = token.as_bytes();
    let is_unused = invitations::accepted_by.is_null();
    invitations::token_digest.eq(digest).and(is_unused).and(invitations::expires_at.gt(now))
}

/// Removes the open invitations to an address: a later one replaces them, its member needs none, and a member who was
/// removed must not come back by an earlier one.
pub(crate) fn end_all_to(connection: &mut PgConnection, organisation: Uuid, email_folded: &str) -> QueryResult<()> {
    let open = invitations::table
        .filter(invitations::organisation_id.eq(organisation).and(invitations::accepted_by.is_null()));
    let all: Vec<(Vec<u8>, String)> = open.select((invitations::token_digest, invitations::email)).load(connection)?;
    let is_to = |email: &str| folded(email).is_none_or(|folded| folded == email_folded);
    let ended: Vec<_> = all.into_iter().filter(|(_, email)| is_to(email)).map(|(digest, _)| digest).collect();
    diesel::delete(open.filter(invitations::token_digest.eq_any(ended))).execute(connection).map(drop)
}

/// Reason why a guest did not join.
pub(crate) enum NotJoined {
    /// The transaction must not be committed.
    Refused(JoinOutcome),
    Failed(diesel::result::Error),
}

impl From<diesel::result::Error> for NotJoined {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error)
    }
}

/// Uses up an open invitation, and makes the person, whose row is locked, a member. Returns the organisation.
pub(crate) fn accept(
    connection: &mut PgConnection,
    token: &TokenDigest,
    member: Uuid,
    audit: &AuditContext,
) -> Result<Uuid, NotJoined> {
    let accepted = diesel::update(invitations::table.filter(is_open(token, audit.at)))
        .set(invitations::accepted_by.eq(member))
        .returning((invitations::organisation_id, invitations::email, invitations::role, invitations::is_mailed))
        .get_result::<(Uuid, String, String, bool)>(connection)
        .optional()?;
    let (organisation, email, role, is_mailed) = accepted.ok_or(NotJoined::Refused(JoinOutcome::NoInvitation))?;
    // A stored address that is no longer valid belongs to no one.
    let email_folded = folded(&email).ok_or(NotJoined::Refused(JoinOutcome::NoInvitation))?;
    let name: String = members::table.find(member).select(members::name).first(connection)?;
    if is_anothers(connection, organisation, member, &name)? {
        return Err(NotJoined::Refused(JoinOutcome::NameTaken));
    }
    // A member has changed to it since the invitation was made.
    if is_anothers_address(connection, organisation, member, &email_folded)? {
        return Err(NotJoined::Refused(JoinOutcome::NoInvitation));
    }
    if is_mailed {
        prove_by_mail(connection, member, &email_folded, audit)?;
    }
    let row = (
        memberships::organisation_id.eq(organisation),
        memberships::member_id.eq(member),
        memberships::role.eq(&role),
        memberships::joined_at.eq(audit.at),
    );
    diesel::insert_into(memberships::table).values(row).on_conflict_do_nothing().execute(connection)?;
    // Nobody could join by them any more.
    end_all_to(connection, organisation, &email_folded)?;
    let details = AuditDetails { role: role.parse().ok().map(Role::as_str), ..AuditDetails::default() };
    record_details(connection, organisation, Action::MemberJoined, &email, &details, audit)?;
    Ok(organisation)
}

/// Records that the owner of a mailbox has an account whose address nobody had proved, if it is this address. What was
/// open in the account ends: a stranger may have begun it.
fn prove_by_mail(
    connection: &mut PgConnection,
    member: Uuid,
    email_folded: &str,
    audit: &AuditContext,
) -> QueryResult<()> {
    let locked = lock_member(connection, member)?;
    if locked.is_some_and(|locked| locked.lacks_proof_of(email_folded)) {
        prove(connection, member, ProvedBy::Mail, audit)?;
        end_all_open(connection, member, None)?;
    }
    Ok(())
}

/// The folded form of a stored address. None: it is no longer a valid address.
pub(crate) fn folded(email: &str) -> Option<String> {
    email.parse::<EmailAddress>().ok().map(|email| email.folded())
}
