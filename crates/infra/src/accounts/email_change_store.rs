//! Changes of an email address that wait for the link that was mailed to it.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Account, Action, AuditContext, ConfirmEmailError, EMAIL_CHANGES_PER_DAY_MAX, EMAIL_CHANGES_PER_HOUR_MAX,
    EmailAddress, EmailChangeStore, Member, NewMemberLink, RequestEmailError, StoreError, TokenDigest,
};
use time::{Duration, OffsetDateTime};

use crate::accounts::PostgresMembers;
use crate::accounts::account_store::put_email;
use crate::accounts::address::others_with;
use crate::accounts::confirmation::{assert_confirmed, lock_member};
use crate::accounts::proof::{ProvedBy, prove};
use crate::accounts::row::{AccountRow, unreadable};
use crate::accounts::share::share_of;
use crate::audit::log::{record_in_all, recorded_since};
use crate::database::connecting::share::Share;
use crate::schema::{audit_entries, email_changes, members};

#[async_trait]
impl EmailChangeStore for PostgresMembers {
    async fn request_email_change(
        &self,
        member: &Member,
        email: &EmailAddress,
        link: &NewMemberLink,
        audit: &AuditContext,
    ) -> Result<(), RequestEmailError> {
        let (member, email, link, audit) = (member.clone(), email.clone(), link.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            assert_confirmed(connection, &audit)?;
            if are_too_many(connection, &member, &audit)? {
                return Ok(Err(RequestEmailError::TooManyLately));
            }
            let what = (
                email_changes::email.eq(email.as_str()),
                email_changes::token_digest.eq(link.token.as_bytes().as_slice()),
                email_changes::expires_at.eq(link.expires_at),
            );
            diesel::insert_into(email_changes::table)
                .values((email_changes::member_id.eq(member.id.as_uuid()), what))
                .on_conflict(email_changes::member_id)
                .do_update()
                .set(what)
                .execute(connection)?;
            record_in_all(connection, *member.id.as_uuid(), Action::EmailChangeRequested, email.as_str(), &audit)
                .map(Ok)
        });
        done.await?
    }

    async fn email_change(
        &self,
        token: &TokenDigest,
        now: OffsetDateTime,
    ) -> Result<Option<(Account, EmailAddress)>, StoreError> {
        let token = *token;
        let found = self.0.run(Share::Common, move |connection| {
            let open = email_changes::table
                .inner_join(members::table)
                .filter(email_changes::token_digest.eq(token.as_bytes().as_slice()))
                .filter(email_changes::expires_at.gt(now));
            open.select((AccountRow::as_select(), email_changes::email)).first(connection).optional()
        });
        let found: Option<(AccountRow, String)> = found.await?;
        found.map(|(account, email)| Ok((account.try_into()?, email.parse().map_err(unreadable)?))).transpose()
    }

    async fn confirm_email_change(
        &self,
        token: &TokenDigest,
        account: &Account,
        email: &EmailAddress,
        audit: &AuditContext,
    ) -> Result<(), ConfirmEmailError> {
        let (token, account, email, audit) = (*token, account.clone(), email.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, account.id).await?, move |connection| {
            // As those do who end the link.
            lock_member(connection, *account.id.as_uuid())?;
            let open = email_changes::table
                .find(account.id.as_uuid())
                .filter(email_changes::token_digest.eq(token.as_bytes().as_slice()))
                .filter(email_changes::email.eq(email.as_str()))
                .filter(email_changes::expires_at.gt(audit.at));
            if diesel::delete(open).execute(connection)? == 0 {
                // Used by an earlier run whose answer was lost, or by another person.
                let own = members::table.find(account.id.as_uuid()).filter(members::email.eq(email.as_str()));
                let is_done = diesel::select(diesel::dsl::exists(own)).get_result::<bool>(connection)?;
                return Ok(is_done.then_some(()).ok_or(ConfirmEmailError::NoChange));
            }
            if !others_with(connection, &email.folded(), *account.id.as_uuid())?.is_empty() {
                return Ok(Err(ConfirmEmailError::Taken));
            }
            put_email(connection, *account.id.as_uuid(), &email, None, &audit)?;
            prove(connection, *account.id.as_uuid(), ProvedBy::Mail, &audit).map(Ok)
        });
        done.await?
    }
}

/// Returns whether the member, who is locked, or the members of the organisation asked for too many changes lately.
fn are_too_many(connection: &mut PgConnection, member: &Member, audit: &AuditContext) -> QueryResult<bool> {
    let others_since = |time| {
        let organisation = *member.organisation_id.as_uuid();
        recorded_since(organisation, Action::EmailChangeRequested, audit.at - time)
            .filter(audit_entries::id.ne(audit.entry_id.as_uuid()))
    };
    let of_the_hour: i64 = others_since(Duration::HOUR).count().get_result(connection)?;
    let own = others_since(Duration::DAY).filter(audit_entries::actor_id.eq(member.id.as_uuid()));
    let own: i64 = own.count().get_result(connection)?;
    Ok(of_the_hour >= EMAIL_CHANGES_PER_HOUR_MAX.into() || own >= EMAIL_CHANGES_PER_DAY_MAX.into())
}
