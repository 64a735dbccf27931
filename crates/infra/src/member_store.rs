//! Members and invitations, over Diesel.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, Credentials, Deed, EmailAddress, Invitation, Joined, Member, MemberId, MemberRecord, MemberStore,
    Name, Network, NewInvitation, NewMember, NewSecondFactor, NewSession, OrganisationId, PasswordHash, Removed,
    StoreError, TokenDigest,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit_log::record;
use crate::database::Database;
use crate::diesel_errors::is_foreign_key_violation;
use crate::schema::{familiar_networks, invitations, members, organisations};
use crate::second_factor;
use crate::session_store::insert_session;

/// The port [`MemberStore`] over PostgreSQL.
pub struct PostgresMemberStore(Database);

impl PostgresMemberStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl MemberStore for PostgresMemberStore {
    async fn invite(&self, invitation: &NewInvitation, deed: &Deed) -> Result<bool, StoreError> {
        let (invitation, deed) = (invitation.clone(), deed.clone());
        let invited = self.0.run(move |connection| {
            let organisation = *invitation.organisation_id.as_uuid();
            let stored = connection.transaction(|connection| {
                let row = (
                    invitations::token_digest.eq(invitation.token.as_bytes().as_slice()),
                    invitations::organisation_id.eq(organisation),
                    invitations::email.eq(invitation.email.as_str()),
                    invitations::expires_at.eq(invitation.expires_at),
                );
                diesel::insert_into(invitations::table).values(row).on_conflict_do_nothing().execute(connection)?;
                record(connection, organisation, Action::MemberInvited, invitation.email.as_str(), &deed)
            });
            // Told apart out here: within a transaction an error must end it.
            match stored {
                Err(error) if is_foreign_key_violation(&error) => Ok(false),
                other => other.map(|()| true),
            }
        });
        invited.await
    }

    async fn invitation(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Invitation>, StoreError> {
        let digest = *token.as_bytes();
        let found = self.0.run(move |connection| {
            let open = invitations::table
                .inner_join(organisations::table)
                .filter(invitations::token_digest.eq(digest.as_slice()))
                .filter(invitations::accepted_by.is_null().and(invitations::expires_at.gt(now)));
            open.select((invitations::email, organisations::name)).first::<(String, String)>(connection).optional()
        });
        let invitation = found.await?.map(|(email, organisation_name)| {
            Ok(Invitation { email: email.parse().map_err(unreadable)?, organisation_name })
        });
        invitation.transpose()
    }

    async fn join(
        &self,
        token: &TokenDigest,
        member: &NewMember,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<Joined, StoreError> {
        let (token, member, session, deed) = (*token, member.clone(), session.clone(), deed.clone());
        let joined = self.0.run(move |connection| {
            let joined = connection.transaction(|connection| join(connection, &token, &member, &session, &deed));
            match joined {
                Err(Refusal::Refused(refused)) => Ok(refused),
                Err(Refusal::Failed(error)) => Err(error),
                Ok(()) => Ok(Joined::Joined),
            }
        });
        joined.await
    }

    async fn credentials(
        &self,
        email: &EmailAddress,
        from: Option<Network>,
    ) -> Result<Option<Credentials>, StoreError> {
        let (folded, network) = (email.folded(), from.map(|network| network.to_string()));
        let found = self.0.run(move |connection| {
            let member = members::table.filter(members::email_folded.eq(&folded));
            let familiar = familiar_networks::table
                .filter(familiar_networks::member_id.eq(members::id))
                .filter(familiar_networks::network.nullable().eq(&network));
            let columns = (
                MemberRow::as_select(),
                members::password_hash,
                members::totp_secret.is_not_null(),
                diesel::dsl::exists(familiar),
            );
            member.select(columns).first(connection).optional()
        });
        let found: Option<(MemberRow, String, bool, bool)> = found.await?;
        let credentials = found.map(|(member, hash, has_second_factor, is_familiar)| {
            let (member, password) = (member.try_into()?, PasswordHash::new(hash));
            Ok(Credentials { member, password, has_second_factor, is_familiar })
        });
        credentials.transpose()
    }

    async fn members(&self, organisation: OrganisationId) -> Result<Vec<MemberRecord>, StoreError> {
        let id = *organisation.as_uuid();
        let found = self.0.run(move |connection| {
            let oldest_first =
                members::table.filter(members::organisation_id.eq(id)).order((members::joined_at, members::id));
            let columns =
                (members::id, members::name, members::email, members::joined_at, members::totp_secret.is_not_null());
            oldest_first.select(columns).load::<(Uuid, String, String, OffsetDateTime, bool)>(connection)
        });
        let found = found.await?.into_iter();
        let records = found.map(|(id, name, email, joined_at, has_second_factor)| MemberRecord {
            id: id.into(),
            name,
            email,
            joined_at,
            has_second_factor,
        });
        Ok(records.collect())
    }

    async fn remove(&self, organisation: OrganisationId, member: MemberId, deed: &Deed) -> Result<Removed, StoreError> {
        let (organisation, member, deed) = (*organisation.as_uuid(), *member.as_uuid(), deed.clone());
        let removed = self.0.run(move |connection| {
            connection.transaction(|connection| {
                // Locked, so that the last two members cannot remove each other at once.
                let all = members::table.filter(members::organisation_id.eq(organisation)).order(members::id);
                let all = all.select((members::id, members::email)).for_update().load::<(Uuid, String)>(connection)?;
                let Some((_, email)) = all.iter().find(|(id, _)| *id == member) else {
                    return Ok(Removed::NoSuchMember);
                };
                if all.len() == 1 {
                    return Ok(Removed::LastMember);
                }
                diesel::delete(members::table.find(member)).execute(connection)?;
                record(connection, organisation, Action::MemberRemoved, email, &deed)?;
                Ok(Removed::Removed)
            })
        });
        removed.await
    }

    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError> {
        let id = *member.as_uuid();
        self.0.run(move |connection| second_factor::recovery_codes_left(connection, id)).await
    }

    async fn turn_on(&self, member: &Member, factor: &NewSecondFactor, deed: &Deed) -> Result<bool, StoreError> {
        let (member, factor, deed) = (member.clone(), factor.clone(), deed.clone());
        self.0.run(move |connection| second_factor::turn_on(connection, &member, &factor, &deed)).await
    }

    async fn turn_off(&self, member: &Member, deed: &Deed) -> Result<bool, StoreError> {
        let (member, deed) = (member.clone(), deed.clone());
        self.0.run(move |connection| second_factor::turn_off(connection, &member, &deed)).await
    }

    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        deed: &Deed,
    ) -> Result<bool, StoreError> {
        let (member, codes, deed) = (member.clone(), codes.to_vec(), deed.clone());
        self.0.run(move |connection| second_factor::replace_recovery_codes(connection, &member, &codes, &deed)).await
    }
}

/// A member as stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = members)]
pub(crate) struct MemberRow {
    id: Uuid,
    organisation_id: Uuid,
    name: String,
    email: String,
}

impl TryFrom<MemberRow> for Member {
    type Error = StoreError;

    fn try_from(row: MemberRow) -> Result<Self, Self::Error> {
        Ok(Self {
            id: row.id.into(),
            organisation_id: row.organisation_id.into(),
            name: Name::new(row.name).map_err(unreadable)?,
            email: row.email.parse().map_err(unreadable)?,
        })
    }
}

enum Refusal {
    Refused(Joined),
    Failed(diesel::result::Error),
}

impl From<diesel::result::Error> for Refusal {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error)
    }
}

fn join(
    connection: &mut PgConnection,
    token: &TokenDigest,
    member: &NewMember,
    session: &NewSession,
    deed: &Deed,
) -> Result<(), Refusal> {
    let id = *member.id.as_uuid();
    // Open, or used up by this very guest in an earlier run that lost its answer.
    let is_open = invitations::accepted_by.is_null().and(invitations::expires_at.gt(deed.at));
    let own = invitations::table
        .filter(invitations::token_digest.eq(token.as_bytes().as_slice()))
        .filter(is_open.or(invitations::accepted_by.assume_not_null().eq(id)));
    let accepted = diesel::update(own)
        .set(invitations::accepted_by.eq(id))
        .returning((invitations::organisation_id, invitations::email))
        .get_result::<(Uuid, String)>(connection)
        .optional()?;
    let (organisation, email) = accepted.ok_or(Refusal::Refused(Joined::NoInvitation))?;
    let row = (
        members::id.eq(id),
        members::organisation_id.eq(organisation),
        members::email.eq(&email),
        members::email_folded.eq(email.to_ascii_lowercase()),
        members::name.eq(member.name.as_str()),
        members::password_hash.eq(member.password.as_str()),
        members::joined_at.eq(deed.at),
    );
    let added = diesel::insert_into(members::table).values(row).on_conflict_do_nothing().execute(connection)?;
    let is_there = diesel::select(diesel::dsl::exists(members::table.find(id))).get_result::<bool>(connection)?;
    if added == 0 && !is_there {
        return Err(Refusal::Refused(Joined::EmailTaken));
    }
    insert_session(connection, session, deed)?;
    let deed = Deed { actor: Actor::Member(member.id, member.name.to_string()), ..deed.clone() };
    record(connection, organisation, Action::MemberJoined, &email, &deed)?;
    Ok(())
}

/// What was valid when it was stored is not any more: a defect, not the caller's fault.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unexpected(error.into())
}
