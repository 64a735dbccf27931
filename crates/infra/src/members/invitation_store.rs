//! Invitations, over Diesel: making, showing, withdrawing and accepting them.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Account, Action, Actor, AdministerError, AuditContext, AuditDetails, EmailAddress, FirstStep, Guest,
    INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, Invitation, InvitationStore, InviteError, JoinOutcome,
    LinkDelivery, NewCredential, NewInvitation, NewMember, NewSession, OpenInvitation, OrganisationId, PEOPLE_MAX,
    PasswordHash, StoreError, TokenDigest,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::account_store::is_anothers;
use crate::accounts::address::{is_anothers_address, others_with};
use crate::accounts::confirmation::lock_member;
use crate::accounts::permission::may_administer;
use crate::accounts::proof::{link, take_over};
use crate::accounts::row::{has_second_factor, unreadable};
use crate::accounts::session_row::{await_code, insert_session, is_started};
use crate::audit::log::{record, record_details, recorded_since};
use crate::audit::selection::literal;
use crate::database::connecting::share::Share;
use crate::diesel_errors::is_foreign_key_violation;
use crate::members::joining::{NotJoined, OpenInvitationRow, accept, end_all_to, folded, open};
use crate::organisations as whole;
use crate::schema::{audit_entries, invitations, members, memberships};

#[async_trait]
impl InvitationStore for PostgresMembers {
    async fn invite(&self, invitation: &NewInvitation, audit: &AuditContext) -> Result<(), InviteError> {
        let (invitation, audit) = (invitation.clone(), audit.clone());
        let done = self.0.run(Share::Of(*invitation.organisation_id.as_uuid()), move |connection| {
            let stored = connection.transaction(|connection| invite(connection, &invitation, &audit));
            // Errors are sorted outside the transaction, which an error must end.
            match stored {
                Err(error) if is_foreign_key_violation(&error) => {
                    Ok(Err(InviteError::NoSuchOrganisation(invitation.organisation_id)))
                }
                Err(diesel::result::Error::RollbackTransaction) => Ok(Err(InviteError::TooMany)),
                other => other,
            }
        });
        done.await?
    }

    async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError> {
        let token = *token;
        let found = self.0.run(Share::Common, move |connection| open(connection, &token, now));
        found.await?.map(OpenInvitationRow::into_invitation).transpose()
    }

    async fn open_invitations(
        &self,
        organisation: OrganisationId,
        now: OffsetDateTime,
    ) -> Result<Vec<OpenInvitation>, StoreError> {
        let organisation = *organisation.as_uuid();
        let found = self.0.run(Share::Of(organisation), move |connection| {
            let makers = members::table.on(members::id.nullable().eq(invitations::invited_by));
            let open = invitations::table
                .left_join(makers)
                .filter(invitations::organisation_id.eq(organisation))
                .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)))
                .order((invitations::expires_at, invitations::token_digest));
            let columns = (
                invitations::token_digest,
                invitations::email,
                invitations::role,
                invitations::expires_at,
                members::name.nullable(),
            );
            open.select(columns).load::<OpenRow>(connection)
        });
        let invitation = |(token, email, role, expires_at, invited_by): OpenRow| {
            let token = TokenDigest::from_bytes(&token)?;
            let role = role.parse().map_err(unreadable);
            Some(role.map(|role| OpenInvitation { token, email, role, invited_by, expires_at }))
        };
        found.await?.into_iter().filter_map(invitation).collect()
    }

    async fn withdraw(
        &self,
        organisation: OrganisationId,
        token: &TokenDigest,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let (organisation, token, audit) = (*organisation.as_uuid(), *token, audit.clone());
        let done = self.0.transaction(Share::Of(organisation), move |connection| {
            if !may_administer(connection, organisation, &audit)? {
                return Ok(Err(AdministerError::NotAdministrator));
            }
            let own = invitations::table
                .find(token.as_bytes().as_slice())
                .filter(invitations::organisation_id.eq(organisation))
                .filter(invitations::accepted_by.is_null());
            let email =
                diesel::delete(own).returning(invitations::email).get_result::<String>(connection).optional()?;
            let Some(email) = email else {
                return Ok(Err(AdministerError::NoSuchInvitation));
            };
            record(connection, organisation, Action::InvitationWithdrawn, &email, &audit).map(Ok)
        });
        done.await?
    }

    async fn join(
        &self,
        token: &TokenDigest,
        guest: &Guest,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<JoinOutcome, StoreError> {
        let (token, guest, session, audit) = (*token, guest.clone(), session.clone(), audit.clone());
        let done = self.0.run(Share::Several, move |connection| {
            match connection.transaction(|connection| join(connection, &token, &guest, &session, &audit)) {
                Err(NotJoined::Refused(refused)) => Ok(refused),
                Err(NotJoined::Failed(error)) => Err(error),
                Ok(outcome) => Ok(outcome),
            }
        });
        done.await
    }
}

fn invite(
    connection: &mut PgConnection,
    invitation: &NewInvitation,
    audit: &AuditContext,
) -> QueryResult<Result<(), InviteError>> {
    let organisation = *invitation.organisation_id.as_uuid();
    if !may_administer(connection, organisation, audit)? {
        return Ok(Err(InviteError::NotAdministrator));
    }
    // Exclusively: of two invitations to one address at the same moment, the later one ends the earlier.
    match whole::locked_exclusively(connection, organisation)? {
        None => return Ok(Err(InviteError::NoSuchOrganisation(invitation.organisation_id))),
        Some(found) if found.closed_at.is_some() => {
            return Ok(Err(InviteError::OrganisationClosed(invitation.organisation_id)));
        }
        Some(_) => {}
    }
    let invited_by = match &audit.actor {
        Actor::Member { id, .. } => Some(*id.as_uuid()),
        Actor::Operator(_) | Actor::Stranger => None,
    };
    if invited_by.is_some() && are_too_many(connection, organisation, &invitation.email, audit)? {
        return Ok(Err(InviteError::TooManyLately));
    }
    // A guest who joins at this very moment is missed.
    if is_anothers_address(connection, organisation, Uuid::nil(), &invitation.email.folded())? {
        return Ok(Err(InviteError::AlreadyMember(invitation.email.clone())));
    }
    end_all_to(connection, organisation, &invitation.email.folded())?;
    let row = (
        invitations::token_digest.eq(invitation.token.as_bytes().as_slice()),
        invitations::organisation_id.eq(organisation),
        invitations::email.eq(invitation.email.as_str()),
        invitations::role.eq(invitation.role.as_str()),
        invitations::is_mailed.eq(invitation.delivery == LinkDelivery::Mailed),
        invitations::expires_at.eq(invitation.expires_at),
        invitations::invited_by.eq(invited_by),
    );
    diesel::insert_into(invitations::table).values(row).on_conflict_do_nothing().execute(connection)?;
    if people(connection, organisation, audit.at)? > i64::from(PEOPLE_MAX) {
        return Err(diesel::result::Error::RollbackTransaction);
    }
    let details = AuditDetails { role: Some(invitation.role.as_str()), ..AuditDetails::default() };
    record_details(connection, organisation, Action::MemberInvited, invitation.email.as_str(), &details, audit).map(Ok)
}

fn join(
    connection: &mut PgConnection,
    token: &TokenDigest,
    guest: &Guest,
    session: &NewSession,
    audit: &AuditContext,
) -> Result<JoinOutcome, NotJoined> {
    if is_started(connection, session)? {
        // By an earlier run that was committed and whose answer was lost.
        return Ok(JoinOutcome::Joined);
    }
    match guest {
        Guest::New(member) => {
            let email = open_invitation(connection, token, audit)?.email;
            insert_account(connection, member, &email, audit)?;
        }
        Guest::Known(account, first) => {
            let locked = lock_member(connection, *account.id.as_uuid())?;
            let locked = locked.filter(|locked| locked.is_found_by(first));
            let locked = locked.ok_or(NotJoined::Refused(JoinOutcome::AccountChanged))?;
            let has_factor = members::table.find(account.id.as_uuid()).select(has_second_factor());
            if has_factor.first::<bool>(connection)? {
                return wait_for_code(connection, token, account, first, session, audit);
            }
            if let Some(subject) = first.subject() {
                take_over(connection, &locked, *account.id.as_uuid(), subject, audit)?;
            }
        }
    }
    let organisation = accept(connection, token, *session.member_id.as_uuid(), audit)?;
    insert_session(connection, session, Some(organisation), audit)?;
    Ok(JoinOutcome::Joined)
}

/// Leaves the invitation open until the guest's code was typed. A name that is taken is refused here, because the page
/// of the code cannot say it.
fn wait_for_code(
    connection: &mut PgConnection,
    token: &TokenDigest,
    account: &Account,
    first: &FirstStep,
    session: &NewSession,
    audit: &AuditContext,
) -> Result<JoinOutcome, NotJoined> {
    let organisation = open_invitation(connection, token, audit)?.organisation;
    if is_anothers(connection, organisation, *account.id.as_uuid(), account.name.as_str())? {
        return Err(NotJoined::Refused(JoinOutcome::NameTaken));
    }
    await_code(connection, session, first, Some(token))?;
    Ok(JoinOutcome::CodeNeeded)
}

fn open_invitation(
    connection: &mut PgConnection,
    token: &TokenDigest,
    audit: &AuditContext,
) -> Result<OpenInvitationRow, NotJoined> {
    open(connection, token, audit.at)?.ok_or(NotJoined::Refused(JoinOutcome::NoInvitation))
}

/// Makes the account of a guest. The address is the invitation's, and single sign-on has proved it.
fn insert_account(
    connection: &mut PgConnection,
    NewMember { id, name, credential }: &NewMember,
    email: &str,
    audit: &AuditContext,
) -> Result<(), NotJoined> {
    let (id, email_folded) = (*id.as_uuid(), folded(email).ok_or(NotJoined::Refused(JoinOutcome::NoInvitation))?);
    let (password, subject) = match credential {
        NewCredential::Password(hash) => (Some(hash), None),
        NewCredential::Provider(subject) => (None, Some(subject)),
    };
    let others = others_with(connection, &email_folded, id)?;
    if !others.iter().all(|other| password.is_none_or(|own| other.has_salt_of(own))) {
        return Err(NotJoined::Refused(JoinOutcome::AccountChanged));
    }
    let row = (
        members::id.eq(id),
        members::email.eq(email),
        members::email_folded.eq(email_folded),
        members::name.eq(name.as_str()),
        members::password_hash.eq(password.map(PasswordHash::as_str)),
    );
    diesel::insert_into(members::table).values(row).execute(connection)?;
    if let Some(subject) = subject {
        link(connection, id, subject, None, audit)?;
    }
    Ok(())
}

/// Returns whether the administrators made too many invitations lately. They are counted where nobody can remove them:
/// in the record.
fn are_too_many(
    connection: &mut PgConnection,
    organisation: Uuid,
    guest: &EmailAddress,
    audit: &AuditContext,
) -> QueryResult<bool> {
    let by_members = |time| {
        recorded_since(organisation, Action::MemberInvited, audit.at - time).filter(audit_entries::actor.is_not_null())
    };
    let of_the_hour: i64 = by_members(Duration::HOUR).count().get_result(connection)?;
    let to_one = by_members(Duration::DAY).filter(audit_entries::subject.ilike(literal(guest.as_str())));
    let to_one: i64 = to_one.count().get_result(connection)?;
    Ok(of_the_hour >= INVITATIONS_PER_HOUR_MAX.into() || to_one >= INVITATIONS_TO_ONE_MAX.into())
}

/// Returns how many members and open invitations the organisation has.
fn people(connection: &mut PgConnection, organisation: Uuid, now: OffsetDateTime) -> QueryResult<i64> {
    let members: i64 =
        memberships::table.filter(memberships::organisation_id.eq(organisation)).count().get_result(connection)?;
    let open = invitations::table
        .filter(invitations::organisation_id.eq(organisation))
        .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)));
    Ok(members + open.count().get_result::<i64>(connection)?)
}

/// The columns of an open invitation: digest, address, role, end, and the name of the member who made it.
type OpenRow = (Vec<u8>, String, String, OffsetDateTime, Option<String>);
