//! Reset links, over Diesel: making, showing and using them.

use async_trait::async_trait;
use diesel::dsl::{exists, not};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Account, Action, Actor, AuditContext, IssuePasswordResetError, LinkDelivery, Member, MemberId, NewMemberLink,
    OpenReset, PasskeysAtReset, PasswordHash, PasswordResetStore, RESETS_PER_DAY_MAX, ResetPasswordError, StoreError,
    TokenDigest,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::account_store::put_password;
use crate::accounts::confirmation::{assert_confirmed, lock_member};
use crate::accounts::permission::may_administer;
use crate::accounts::proof::{ProvedBy, prove, remove_factors};
use crate::accounts::row::{AccountRow, belongs_elsewhere, has_second_factor, is_address_proved};
use crate::accounts::share::share_of;
use crate::audit::log::{record, record_in_all, recorded_since};
use crate::database::connecting::share::Share;
use crate::diesel_errors::is_foreign_key_violation;
use crate::schema::{audit_entries, members, memberships, passkeys as stored_passkeys, password_resets, sessions};

#[async_trait]
impl PasswordResetStore for PostgresMembers {
    async fn issue_password_reset(
        &self,
        member: &Member,
        reset: &NewMemberLink,
        delivery: LinkDelivery,
        audit: &AuditContext,
    ) -> Result<(), IssuePasswordResetError> {
        let (member, reset, audit) = (member.clone(), reset.clone(), audit.clone());
        let done = self.0.run(share_of(&self.0, member.id).await?, move |connection| {
            let (id, organisation) = (*member.id.as_uuid(), *member.organisation_id.as_uuid());
            let issued_by = match &audit.actor {
                Actor::Member { id, .. } => Some((*id.as_uuid(), organisation)),
                Actor::Operator(_) | Actor::Stranger => None,
            };
            let issued = connection.transaction(|connection| {
                assert_confirmed(connection, &audit)?;
                if !may_administer(connection, organisation, &audit)? {
                    return Ok(Err(IssuePasswordResetError::NotAdministrator));
                }
                lock_member(connection, id)?;
                let is_mailed = delivery == LinkDelivery::Mailed;
                if issued_by.is_some() && !is_mailed && belongs_elsewhere(connection, id, organisation)? {
                    return Ok(Err(IssuePasswordResetError::SharedAccount));
                }
                let of_the_day = recorded_since(organisation, Action::PasswordResetIssued, audit.at - Duration::DAY)
                    .filter(audit_entries::subject.eq(member.email.as_str()))
                    .filter(audit_entries::actor_id.is_not_null().and(audit_entries::id.ne(audit.entry_id.as_uuid())));
                let is_of_member = issued_by.is_some();
                if is_of_member && of_the_day.count().get_result::<i64>(connection)? >= RESETS_PER_DAY_MAX.into() {
                    return Ok(Err(IssuePasswordResetError::TooManyLately));
                }
                put(connection, id, &reset, issued_by, is_mailed, false)?;
                record(connection, organisation, Action::PasswordResetIssued, member.email.as_str(), &audit).map(Ok)
            });
            // Errors are sorted outside the transaction, which an error must end.
            match issued {
                Err(error) if is_foreign_key_violation(&error) => {
                    let (organisation, email) = (member.organisation_id, member.email.clone());
                    Ok(Err(IssuePasswordResetError::NoSuchMember { organisation, email }))
                }
                other => other,
            }
        });
        done.await?
    }

    async fn request_password_reset(
        &self,
        member: MemberId,
        reset: &NewMemberLink,
        audit: &AuditContext,
    ) -> Result<Option<Account>, StoreError> {
        let (id, reset, audit) = (*member.as_uuid(), reset.clone(), audit.clone());
        let found = self.0.transaction(share_of(&self.0, member).await?, move |connection| {
            let found = members::table.find(id).select(AccountRow::as_select());
            let found = found.for_update().first(connection).optional()?;
            let Some(account) = found else { return Ok(None) };
            // Each of the organisations has an entry for each link.
            let any =
                memberships::table.filter(memberships::member_id.eq(account.id)).select(memberships::organisation_id);
            let Some(organisation) = any.first::<Uuid>(connection).optional()? else { return Ok(None) };
            let of_the_day = recorded_since(organisation, Action::PasswordResetRequested, audit.at - Duration::DAY);
            let of_the_day = of_the_day
                .filter(audit_entries::subject.eq(&account.email))
                .filter(audit_entries::id.ne(audit.entry_id.as_uuid()));
            if of_the_day.count().get_result::<i64>(connection)? >= RESETS_PER_DAY_MAX.into() {
                return Ok(None);
            }
            put(connection, account.id, &reset, None, true, true)?;
            record_in_all(connection, account.id, Action::PasswordResetRequested, &account.email, &audit)?;
            Ok(Some(account))
        });
        found.await?.map(Account::try_from).transpose()
    }

    async fn password_reset(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<OpenReset>, StoreError> {
        let token = *token;
        let found = self.0.run(Share::Common, move |connection| {
            let open = password_resets::table
                .inner_join(members::table)
                .filter(password_resets::token_digest.eq(token.as_bytes().as_slice()))
                .filter(password_resets::expires_at.gt(now))
                .filter(is_allowed());
            open.select((AccountRow::as_select(), keeps_factors())).first(connection).optional()
        });
        let found: Option<(AccountRow, bool)> = found.await?;
        let Some((account, keeps_factors)) = found else { return Ok(None) };
        Ok(Some(OpenReset { account: account.try_into()?, may_remove_passkeys: !keeps_factors }))
    }

    async fn reset_password(
        &self,
        token: &TokenDigest,
        account: &Account,
        password: &PasswordHash,
        passkeys: PasskeysAtReset,
        audit: &AuditContext,
    ) -> Result<(), ResetPasswordError> {
        let (token, account, password, audit) = (*token, account.clone(), password.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, account.id).await?, move |connection| {
            let id = *account.id.as_uuid();
            lock_member(connection, id)?;
            let own = password_resets::table
                .inner_join(members::table)
                .filter(password_resets::member_id.eq(id))
                .filter(password_resets::token_digest.eq(token.as_bytes().as_slice()))
                .filter(password_resets::expires_at.gt(audit.at))
                .filter(is_allowed());
            let Some(own_link) = own.select(UsedLink::as_select()).first(connection).optional()? else {
                // Used by an earlier run whose answer was lost, or by another person who chose the same password.
                let is_same = members::table.find(id).filter(members::password_hash.eq(password.as_str()));
                let is_done = diesel::select(exists(is_same)).get_result::<bool>(connection)?;
                return Ok(if is_done { Ok(()) } else { Err(ResetPasswordError::NoReset) });
            };
            prove_by_link(connection, &own_link, id, &audit)?;
            put_password(connection, id, &password)?;
            diesel::delete(sessions::table.filter(sessions::member_id.eq(id))).execute(connection)?;
            let action = match passkeys {
                PasskeysAtReset::Removed if !own_link.keeps_factors => {
                    diesel::delete(stored_passkeys::table.filter(stored_passkeys::member_id.eq(id)))
                        .execute(connection)?;
                    Action::PasswordAndPasskeysReset
                }
                _ => Action::PasswordReset,
            };
            record_in_all(connection, id, action, account.email.as_str(), &audit).map(Ok)
        });
        done.await?
    }
}

/// Stores a member's reset link, in place of an earlier one. `by` is the administrator who made it, and their
/// organisation.
fn put(
    connection: &mut PgConnection,
    member: Uuid,
    reset: &NewMemberLink,
    by: Option<(Uuid, Uuid)>,
    is_mailed: bool,
    is_asked_by_stranger: bool,
) -> QueryResult<()> {
    let what = (
        password_resets::token_digest.eq(reset.token.as_bytes().as_slice()),
        password_resets::expires_at.eq(reset.expires_at),
        password_resets::issued_by.eq(by.map(|(member, _)| member)),
        password_resets::organisation_id.eq(by.map(|(_, organisation)| organisation)),
        password_resets::is_mailed.eq(is_mailed),
        password_resets::is_asked_by_stranger.eq(is_asked_by_stranger),
    );
    diesel::insert_into(password_resets::table)
        .values((password_resets::member_id.eq(member), what))
        .on_conflict(password_resets::member_id)
        .do_update()
        .set(what)
        .execute(connection)
        .map(drop)
}

/// A reset link that is used.
#[derive(Queryable, Selectable)]
#[diesel(table_name = password_resets)]
struct UsedLink {
    is_mailed: bool,
    #[diesel(select_expression = keeps_factors(), select_expression_type = keeps_factors)]
    keeps_factors: bool,
    #[diesel(select_expression = is_address_proved(), select_expression_type = is_address_proved)]
    is_address_proved: bool,
    #[diesel(select_expression = has_second_factor(), select_expression_type = has_second_factor)]
    has_second_factor: bool,
}

/// Records that a mailed link has proved an address that nobody had proved. The second factor goes, because a stranger
/// may have added it. By a link that strangers can ask for it stays, or a mailbox alone would get past it; then the
/// address stays unproved.
fn prove_by_link(
    connection: &mut PgConnection,
    link: &UsedLink,
    member: Uuid,
    audit: &AuditContext,
) -> QueryResult<()> {
    let stays = link.keeps_factors && link.has_second_factor;
    if !link.is_mailed || link.is_address_proved || stays {
        return Ok(());
    }
    remove_factors(connection, member)?;
    prove(connection, member, ProvedBy::Mail, audit)
}

/// Condition that the link of a reset may still be used: the member can have joined another organisation since an
/// administrator was shown it.
#[diesel::dsl::auto_type]
fn is_allowed() -> _ {
    password_resets::is_mailed.or(not(is_of_shared_account()))
}

/// Condition that the link leaves second factors as they are: a stranger asked for it, or one of several organisations.
#[diesel::dsl::auto_type]
fn keeps_factors() -> _ {
    password_resets::is_asked_by_stranger.or(is_of_shared_account())
}

/// Condition that an administrator made the link, and the member belongs to another organisation, too.
#[diesel::dsl::auto_type]
fn is_of_shared_account() -> _ {
    let elsewhere = memberships::table
        .filter(memberships::member_id.eq(password_resets::member_id))
        .filter(memberships::organisation_id.nullable().ne(password_resets::organisation_id));
    exists(elsewhere)
}
