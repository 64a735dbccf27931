//! The members of an organisation, over Diesel. Some changes only administrators make: that the acting member is one is
//! decided in the transaction of the change, with the member's row locked, so that the role stays.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, AdministerError, AuditContext, Credentials, EmailAddress, Member, MemberId, MemberRecord,
    MemberStore, Network, OrganisationId, PasswordHash, ProviderAccount, ProviderLink, Role, StoreError, Subject,
};
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::confirmation::{StoredProofs, assert_confirmed, lock_member};
use crate::accounts::row::{AccountRow, ListedMember, MemberRow, has_second_factor as has_factor, is_address_proved};
use crate::accounts::session_row::end_all_in;
use crate::audit::log::record;
use crate::database::connecting::share::Share;
use crate::members::joining::end_all_to;
use crate::organisations::end_memberships;
use crate::schema::{familiar_networks, invitations, members, memberships, organisations, password_resets};

#[async_trait]
impl MemberStore for PostgresMembers {
    async fn credentials(&self, email: &EmailAddress, from: Option<Network>) -> Result<Vec<Credentials>, StoreError> {
        let (folded, network) = (email.folded(), from.map(|network| network.to_string()));
        let found = self.0.run(Share::Common, move |connection| {
            let member = members::table.filter(members::email_folded.eq(&folded));
            let familiar = familiar_networks::table
                .filter(familiar_networks::member_id.eq(members::id))
                .filter(familiar_networks::network.nullable().eq(&network));
            let is_familiar = diesel::dsl::exists(familiar);
            let columns = (AccountRow::as_select(), members::password_hash, is_address_proved(), is_familiar);
            member.order(members::id).select(columns).load(connection)
        });
        let found: Vec<(AccountRow, Option<String>, bool, bool)> = found.await?;
        let credentials = found.into_iter().map(|(account, hash, is_address_proved, is_familiar)| {
            let (account, password) = (account.try_into()?, hash.map(PasswordHash::new));
            Ok(Credentials { account, password, is_address_proved, is_familiar })
        });
        credentials.collect()
    }

    async fn provider_accounts(
        &self,
        subject: &Subject,
        email: &EmailAddress,
    ) -> Result<Vec<ProviderAccount>, StoreError> {
        let (Subject { issuer, id }, folded) = (subject.clone(), email.folded());
        let found = self.0.run(Share::Common, move |connection| {
            let is_linked = members::provider_subject.eq(&id).and(members::provider_issuer.eq(&issuer));
            let has_address = members::email_folded.eq(&folded).and(is_address_proved());
            let known = members::table.filter(has_address.nullable().or(is_linked)).order(members::id);
            known.select((AccountRow::as_select(), StoredProofs::as_select())).load(connection)
        });
        let found: Vec<(AccountRow, StoredProofs)> = found.await?;
        let accounts = found.into_iter().map(|(account, stored)| {
            let link = match stored.is_of(subject) {
                true => ProviderLink::ThisPerson,
                false if stored.is_linked() => ProviderLink::AnotherPerson,
                false => ProviderLink::Nobody,
            };
            Ok(ProviderAccount { account: account.try_into()?, link })
        });
        accounts.collect()
    }

    async fn member(&self, organisation: OrganisationId, email: &EmailAddress) -> Result<Option<Member>, StoreError> {
        let (organisation, folded) = (*organisation.as_uuid(), email.folded());
        let found = self.0.run(Share::Common, move |connection| {
            let all = memberships::table.inner_join(members::table);
            let own = all.filter(memberships::organisation_id.eq(organisation).and(members::email_folded.eq(&folded)));
            own.select(MemberRow::as_select()).first(connection).optional()
        });
        found.await?.map(Member::try_from).transpose()
    }

    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError> {
        let id = *organisation.as_uuid();
        let found = self.0.run(Share::Of(id), move |connection| {
            let all = members::table.inner_join(memberships::table).filter(memberships::organisation_id.eq(id));
            let oldest_first = all.order((memberships::joined_at, members::id));
            oldest_first.select(ListedMember::as_select()).load(connection)
        });
        found.await?.into_iter().map(MemberRecord::try_from).collect()
    }

    async fn remove(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let (organisation, member, audit) = (*organisation.as_uuid(), *member.as_uuid(), audit.clone());
        let done = self.0.transaction(Share::Of(organisation), move |connection| {
            let all = lock_members(connection, organisation)?;
            assert_confirmed(connection, &audit)?;
            let Some(removed) = all.iter().find(|other| other.id == member) else {
                return Ok(Err(AdministerError::NoSuchMember));
            };
            if !is_by_administrator(&all, &audit) {
                return Ok(Err(AdministerError::NotAdministrator));
            }
            if is_last_administrator(&all, removed) {
                return Ok(Err(AdministerError::LastAdministrator));
            }
            end_memberships(connection, organisation, &[member])?;
            end_all_to(connection, organisation, &removed.email_folded)?;
            record(connection, organisation, Action::MemberRemoved, &removed.email, &audit).map(Ok)
        });
        done.await?
    }

    async fn change_role(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        role: Role,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let (organisation, member, audit) = (*organisation.as_uuid(), *member.as_uuid(), audit.clone());
        let done = self.0.transaction(Share::Of(organisation), move |connection| {
            let all = lock_members(connection, organisation)?;
            assert_confirmed(connection, &audit)?;
            let Some(changed) = all.iter().find(|other| other.id == member) else {
                return Ok(Err(AdministerError::NoSuchMember));
            };
            // Nothing to do, or done by an earlier run that was committed and whose answer was lost.
            if changed.role == role.as_str() {
                return Ok(Ok(()));
            }
            if !is_by_administrator(&all, &audit) {
                return Ok(Err(AdministerError::NotAdministrator));
            }
            if is_last_administrator(&all, changed) {
                return Ok(Err(AdministerError::LastAdministrator));
            }
            let own = memberships::table.find((organisation, member));
            diesel::update(own).set(memberships::role.eq(role.as_str())).execute(connection)?;
            let action = match role {
                Role::Administrator => Action::AdministratorMade,
                Role::KeyManager => Action::KeyManagerMade,
                Role::Auditor => Action::AuditorMade,
            };
            if !role.administers() {
                end_all_made_by(connection, organisation, member)?;
            }
            record(connection, organisation, action, &changed.email, &audit).map(Ok)
        });
        done.await?
    }

    async fn end_sessions(
        &self,
        organisation: OrganisationId,
        member: MemberId,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let (id, member) = (*organisation.as_uuid(), *member.as_uuid());
        let done = self.administered(organisation, audit, move |connection, audit| {
            lock_member(connection, member)?;
            let own = memberships::table.find((id, member)).inner_join(members::table);
            let Some(email) = own.select(members::email).first::<String>(connection).optional()? else {
                return Ok(Err(AdministerError::NoSuchMember));
            };
            end_all_in(connection, member, id)?;
            record(connection, id, Action::SessionsEnded, &email, audit).map(Ok)
        });
        done.await
    }

    async fn require_second_factor(
        &self,
        organisation: OrganisationId,
        is_required: bool,
        audit: &AuditContext,
    ) -> Result<(), AdministerError> {
        let id = *organisation.as_uuid();
        let done = self.administered(organisation, audit, move |connection, audit| {
            if is_required && !has_second_factor(connection, audit)? {
                return Ok(Err(AdministerError::OwnSecondFactorMissing));
            }
            let other_way = organisations::table.find(id).filter(organisations::second_factor_required.ne(is_required));
            let name = diesel::update(other_way)
                .set(organisations::second_factor_required.eq(is_required))
                .returning(organisations::name)
                .get_result::<String>(connection)
                .optional()?;
            // None: it is so already.
            if let Some(name) = name {
                let action = if is_required { Action::SecondFactorRequired } else { Action::SecondFactorOptional };
                record(connection, id, action, &name, audit)?;
            }
            Ok(Ok(()))
        });
        done.await
    }
}

/// The columns of a member that decide what can be done to it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
struct LockedMember {
    id: Uuid,
    email: String,
    email_folded: String,
    #[diesel(select_expression = memberships::role)]
    role: String,
}

impl LockedMember {
    fn is_administrator(&self) -> bool {
        self.role == Role::Administrator.as_str()
    }
}

/// All members of the organisation, locked, so that the last two administrators cannot remove or demote each other at
/// once.
fn lock_members(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<Vec<LockedMember>> {
    let all = members::table.inner_join(memberships::table).filter(memberships::organisation_id.eq(organisation));
    all.order(members::id).select(LockedMember::as_select()).for_update().load(connection)
}

fn is_by_administrator(all: &[LockedMember], audit: &AuditContext) -> bool {
    match &audit.actor {
        Actor::Operator(_) => true,
        Actor::Member { id, .. } => all.iter().any(|member| member.id == *id.as_uuid() && member.is_administrator()),
        Actor::Stranger => false,
    }
}

fn is_last_administrator(all: &[LockedMember], member: &LockedMember) -> bool {
    member.is_administrator() && all.iter().filter(|other| other.is_administrator()).count() == 1
}

fn has_second_factor(connection: &mut PgConnection, audit: &AuditContext) -> QueryResult<bool> {
    let Actor::Member { id, .. } = &audit.actor else { return Ok(true) };
    members::table.find(id.as_uuid()).select(has_factor()).first(connection)
}

/// Ends what a former administrator made for others: by none of it does the role come back.
fn end_all_made_by(connection: &mut PgConnection, organisation: Uuid, member: Uuid) -> QueryResult<()> {
    let open = invitations::table
        .filter(invitations::organisation_id.eq(organisation))
        .filter(invitations::invited_by.eq(member).and(invitations::accepted_by.is_null()));
    diesel::delete(open).execute(connection)?;
    let links = password_resets::table
        .filter(password_resets::issued_by.eq(member).and(password_resets::organisation_id.eq(organisation)));
    diesel::delete(links).execute(connection).map(drop)
}
