//! What members change about their own account, over Diesel.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    AccountStore, Action, AuditContext, ChangeEmailError, ChangeNameError, EmailAddress, Member, Name, NameError,
    PasswordHash, StoreError, Subject,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::address::{is_anothers_address, lock_organisation, others_with};
use crate::accounts::confirmation::{StoredProofs, assert_confirmed, lock_member, session_ended};
use crate::accounts::proof::{ProvedBy, end_all_open, link, prove, remove_factors, remove_password, unlink};
use crate::accounts::session_row::end_others;
use crate::accounts::share::share_of;
use crate::audit::log::record_in_all;
use crate::schema::{email_changes, members, memberships, password_resets, waiting_sign_ins};

#[async_trait]
impl AccountStore for PostgresMembers {
    async fn change_name(&self, member: &Member, name: &Name, audit: &AuditContext) -> Result<(), ChangeNameError> {
        let (member, name, audit) = (member.clone(), name.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            lock_member(connection, id)?;
            for organisation in organisations_of(connection, id)? {
                if is_anothers(connection, organisation, id, name.as_str())? {
                    return Ok(Err(ChangeNameError::Invalid(NameError::Taken)));
                }
            }
            diesel::update(members::table.find(id)).set(members::name.eq(name.as_str())).execute(connection)?;
            record_in_all(connection, id, Action::NameChanged, name.as_str(), &audit).map(Ok)
        });
        done.await?
    }

    async fn change_email(
        &self,
        member: &Member,
        email: &EmailAddress,
        seen: &PasswordHash,
        new: &PasswordHash,
        audit: &AuditContext,
    ) -> Result<(), ChangeEmailError> {
        let (id, email, audit) = (*member.id.as_uuid(), email.clone(), audit.clone());
        let (seen, new) = (seen.clone(), new.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            assert_confirmed(connection, &audit)?;
            let locked = lock_member(connection, id)?;
            match locked.as_ref().and_then(StoredProofs::password) {
                Some(hash) if hash == seen.as_str() => {}
                // By an earlier run that was committed and whose answer was lost.
                Some(hash) if hash == new.as_str() => return Ok(Ok(())),
                _ => return Ok(Err(ChangeEmailError::AccountChanged)),
            }
            let others = others_with(connection, &email.folded(), id)?;
            for organisation in organisations_of(connection, id)? {
                lock_organisation(connection, organisation)?;
                if is_anothers_address(connection, organisation, id, &email.folded())? {
                    return Ok(Err(ChangeEmailError::Taken));
                }
            }
            if others.iter().any(|other| !other.has_salt_of(&new)) {
                return Ok(Err(ChangeEmailError::AccountChanged));
            }
            put_email(connection, id, &email, Some(&new), &audit).map(Ok)
        });
        done.await?
    }

    async fn link_to_provider(
        &self,
        member: &Member,
        subject: &Subject,
        audit: &AuditContext,
    ) -> Result<(), StoreError> {
        let (member, subject, audit) = (member.clone(), subject.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            assert_confirmed(connection, &audit)?;
            link(connection, *member.id.as_uuid(), &subject, audit.confirmed_in.as_ref(), &audit)
        });
        done.await
    }

    async fn confirm_address(&self, member: &Member, audit: &AuditContext) -> Result<(), StoreError> {
        let (member, audit) = (member.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            lock_member(connection, id)?;
            remove_password(connection, id)?;
            remove_factors(connection, id)?;
            unlink(connection, id)?;
            end_all_open(connection, id, None)?;
            prove(connection, id, ProvedBy::Operator, &audit)?;
            record_in_all(connection, id, Action::AddressConfirmed, member.email.as_str(), &audit)
        });
        done.await
    }

    async fn change_password(
        &self,
        member: &Member,
        password: &PasswordHash,
        audit: &AuditContext,
    ) -> Result<(), StoreError> {
        let (member, password, audit) = (member.clone(), password.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            assert_confirmed(connection, &audit)?;
            put_password(connection, id, &password)?;
            end_others(connection, id, &audit)?;
            record_in_all(connection, id, Action::PasswordChanged, member.email.as_str(), &audit)
        });
        done.await
    }
}

/// Returns whether another member of the organisation, which gets locked, has the name.
pub(crate) fn is_anothers(
    connection: &mut PgConnection,
    organisation: Uuid,
    member: Uuid,
    name: &str,
) -> QueryResult<bool> {
    lock_organisation(connection, organisation)?;
    let others = members::table
        .inner_join(memberships::table)
        .filter(memberships::organisation_id.eq(organisation).and(members::id.ne(member)));
    let names: Vec<String> = others.select(members::name).load(connection)?;
    let folded = |name: String| Name::stored(name).ok().map(|name| name.folded());
    let own = folded(name.to_owned());
    Ok(own.is_some() && names.into_iter().any(|other| folded(other) == own))
}

/// The organisations of a member, in the order in which they are locked.
fn organisations_of(connection: &mut PgConnection, member: Uuid) -> QueryResult<Vec<Uuid>> {
    let own = memberships::table.filter(memberships::member_id.eq(member)).order(memberships::organisation_id);
    own.select(memberships::organisation_id).load(connection)
}

/// Stores a member's address, with a password if its hash changes as well, and ends what was begun with the one before.
/// Nobody has proved the address yet.
pub(crate) fn put_email(
    connection: &mut PgConnection,
    member: Uuid,
    email: &EmailAddress,
    password: Option<&PasswordHash>,
    audit: &AuditContext,
) -> QueryResult<()> {
    let password = password.map(|password| members::password_hash.eq(password.as_str()));
    let unproved = (members::email_proved_at.eq(None::<OffsetDateTime>), members::email_proved_by.eq(None::<String>));
    let new = (members::email.eq(email.as_str()), members::email_folded.eq(email.folded()), password, unproved);
    diesel::update(members::table.find(member)).set(new).execute(connection)?;
    // Links were sent to the earlier address.
    end_all_open(connection, member, audit.confirmed_in.as_ref())?;
    record_in_all(connection, member, Action::EmailChanged, email.as_str(), audit)
}

/// Stores a member's password, lets codes work again after too many wrong ones, and ends what was begun with the one
/// before: sign-ins that wait for their code, an open reset link, and a change of the address.
/// Fails if the address was changed while the password was hashed: all accounts with one address have one salt.
pub(crate) fn put_password(connection: &mut PgConnection, member: Uuid, password: &PasswordHash) -> QueryResult<()> {
    let locked = lock_member(connection, member)?.ok_or_else(session_ended)?;
    if !locked.has_salt_of(connection, member, password)? {
        return Err(session_ended());
    }
    let own = members::table.find(member);
    let new = (members::password_hash.eq(password.as_str()), members::wrong_codes.eq(0));
    diesel::update(own).set(new).execute(connection)?;
    diesel::delete(password_resets::table.find(member)).execute(connection)?;
    diesel::delete(email_changes::table.find(member)).execute(connection)?;
    diesel::delete(waiting_sign_ins::table.filter(waiting_sign_ins::member_id.eq(member))).execute(connection).map(drop)
}
