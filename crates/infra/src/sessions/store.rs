//! Sessions, over Diesel.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use intake_domain::{
    Account, Action, AuditContext, AwaitedMember, CODE_LIMIT, ChooseOutcome, CodeError, ConfirmError, Evidence,
    Factors, FirstStep, Holder, Member, MemberId, Membership, Network, NewSession, OrganisationId, Passwords, Proof,
    SESSION_IDLE_LIMIT, SESSION_LIMIT, SessionRecord, SessionStore, SignIn, StoreError, TokenDigest, Visit,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::accounts::confirmation::{assert_confirmed, confirm, lock_member};
use crate::accounts::familiar_networks;
use crate::accounts::proof::take_over;
use crate::accounts::row::{AccountRow, FactorsRow, has_second_factor};
use crate::accounts::session_row::{
    HolderRow, MembershipRow, SessionRow, await_code, end_others, memberships_of, start_session,
};
use crate::accounts::share::{share_of, share_of_session, share_of_sign_in};
use crate::audit::log::{record, record_in_all};
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::members::joining::{OpenInvitationRow, open};
use crate::schema::{members, memberships, organisations, sessions, waiting_sign_ins};
use crate::sessions::choice::choose;
use crate::sessions::known_browsers;
use crate::sessions::waiting_sign_ins::finish;

/// Precision of the last use of a session: it is written at most this often, not for each page.
const USE_PRECISION: Duration = Duration::minutes(5);

/// The port [`SessionStore`] over PostgreSQL.
pub struct PostgresSessionStore(Database, Passwords);

impl PostgresSessionStore {
    /// A store over this pool. Where passwords are turned off, sessions and sign-ins that began by a password or a
    /// passkey alone are over.
    #[must_use]
    pub fn new(database: Database, passwords: Passwords) -> Self {
        Self(database, passwords)
    }
}

#[async_trait]
impl SessionStore for PostgresSessionStore {
    async fn begin(
        &self,
        session: &NewSession,
        first: &FirstStep,
        audit: &AuditContext,
    ) -> Result<Option<SignIn>, StoreError> {
        let (session, first, audit) = (session.clone(), first.clone(), audit.clone());
        let share = share_of(&self.0, session.member_id).await?;
        self.0.run(share, move |connection| begin(connection, &session, &first, &audit)).await
    }

    async fn is_familiar(&self, network: Network) -> Result<bool, StoreError> {
        self.0.run(Share::Common, move |connection| familiar_networks::is_known(connection, network)).await
    }

    async fn note_failure(&self, account: &Account, action: Action, audit: &AuditContext) -> Result<(), StoreError> {
        let (account, audit) = (account.clone(), audit.clone());
        let noted = self.0.run(share_of(&self.0, account.id).await?, move |connection| {
            let id = *account.id.as_uuid();
            connection.transaction(|connection| {
                if action == Action::CodeFailed {
                    let own = members::table.find(id);
                    diesel::update(own).set(members::wrong_codes.eq(members::wrong_codes + 1)).execute(connection)?;
                }
                record_in_all(connection, id, action, account.email.as_str(), &audit)
            })
        });
        noted.await
    }

    async fn awaited(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<AwaitedMember>, StoreError> {
        let (digest, passwords) = (*token.as_bytes(), self.1);
        let found = self.0.run(Share::Common, move |connection| {
            let waiting = waiting_sign_ins::table.find(digest.as_slice()).inner_join(members::table);
            let alive = waiting
                .filter(waiting_sign_ins::started_at.gt(now - CODE_LIMIT))
                .filter(waiting_sign_ins::provider_subject.is_not_null().or(passwords.are_on().into_sql::<Bool>()));
            let columns = (AccountRow::as_select(), FactorsRow::as_select(), waiting_sign_ins::invitation_digest);
            let found: Option<(AccountRow, FactorsRow, Option<Vec<u8>>)> =
                alive.select(columns).first(connection).optional()?;
            let Some((account, factors, invitation)) = found else { return Ok(None) };
            let invitation = match invitation.and_then(|digest| TokenDigest::from_bytes(&digest)) {
                Some(digest) => open(connection, &digest, now)?,
                None => None,
            };
            Ok(Some((account, factors, invitation)))
        });
        let Some((account, factors, invitation)) = found.await? else { return Ok(None) };
        let invitation = invitation.map(OpenInvitationRow::into_invitation).transpose()?;
        let account = account.try_into()?;
        let Factors { secret, has_passkey, .. } = factors.into();
        // Without either, what the sign-in waited for was turned off.
        let is_awaited = secret.is_some() || has_passkey;
        Ok(is_awaited.then_some(AwaitedMember { account, invitation, secret, has_passkey }))
    }

    async fn finish(
        &self,
        waiting: &TokenDigest,
        proof: Proof,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<(), CodeError> {
        let (waiting, session, audit) = (*waiting, session.clone(), audit.clone());
        let share = share_of_sign_in(&self.0, &waiting, session.member_id).await?;
        self.0.run(share, move |connection| finish(connection, &waiting, proof, &session, &audit)).await?
    }

    async fn factors(&self, member: MemberId) -> Result<Factors, StoreError> {
        let member = *member.as_uuid();
        let found = self.0.run(Share::Of(member), move |connection| {
            members::table.find(member).select(FactorsRow::as_select()).first(connection).optional()
        });
        Ok(found.await?.unwrap_or_default().into())
    }

    async fn confirm(
        &self,
        session: &TokenDigest,
        next: &TokenDigest,
        evidence: &Evidence,
        audit: &AuditContext,
    ) -> Result<(), ConfirmError> {
        let (session, next, evidence, audit) = (*session, *next, evidence.clone(), audit.clone());
        let share = share_of_session(&self.0, &session).await?;
        self.0.run(share, move |connection| confirm(connection, &session, &next, &evidence, &audit)).await?
    }

    async fn holder(
        &self,
        token: &TokenDigest,
        visit: Visit,
        now: OffsetDateTime,
    ) -> Result<Option<Holder>, StoreError> {
        let digest = *token.as_bytes();
        let found = self.0.run(Share::Common, move |connection| {
            let organisations = memberships::table.inner_join(organisations::table);
            let alive = sessions::table
                .find(digest.as_slice())
                .inner_join(members::table.left_join(organisations))
                .filter(sessions::started_at.gt(now - SESSION_LIMIT))
                .filter(sessions::last_used_at.gt(now - SESSION_IDLE_LIMIT));
            alive.select(<(HolderRow, Option<MembershipRow>)>::as_select()).load(connection)
        });
        let (holders, memberships): (Vec<_>, Vec<_>) = found.await?.into_iter().unzip();
        let Some(found) = holders.into_iter().next() else { return Ok(None) };
        let share = found.organisation_id.map_or(Share::Several, Share::Of);
        if !found.is_by_provider && !self.1.are_on() {
            let own = sessions::table.filter(sessions::token_digest.eq(digest.to_vec()));
            self.0.run(share, move |connection| diesel::delete(own.clone()).execute(connection)).await?;
            return Ok(None);
        }
        if let Visit::Person(address) = visit
            && found.last_used_at < now - USE_PRECISION
        {
            let note_use = move |connection: &mut PgConnection| {
                let used =
                    (sessions::last_used_at.eq(now), sessions::address.eq(address.map(|address| address.to_string())));
                diesel::update(sessions::table.find(digest.as_slice())).set(used).execute(connection)
            };
            self.0.run(share, note_use).await?;
        }
        found.into_holder(memberships.into_iter().flatten().collect()).map(Some)
    }

    async fn memberships(&self, member: MemberId) -> Result<Vec<Membership>, StoreError> {
        let member = *member.as_uuid();
        let found = self.0.run(Share::Of(member), move |connection| memberships_of(connection, member)).await?;
        found.into_iter().map(Membership::try_from).collect()
    }

    async fn choose(
        &self,
        token: &TokenDigest,
        organisation: OrganisationId,
        audit: &AuditContext,
    ) -> Result<ChooseOutcome, StoreError> {
        let (token, organisation, audit) = (*token, *organisation.as_uuid(), audit.clone());
        let share = share_of_session(&self.0, &token).await?;
        self.0.run(share, move |connection| choose(connection, &token, organisation, &audit)).await
    }

    async fn note_browser(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<Account>, StoreError> {
        let (token, share) = (*token, share_of_session(&self.0, token).await?);
        let found = self.0.run(share, move |connection| known_browsers::note(connection, &token, now));
        found.await?.map(Account::try_from).transpose()
    }

    async fn end(&self, token: &TokenDigest, audit: &AuditContext) -> Result<(), StoreError> {
        let (digest, audit) = (*token.as_bytes(), audit.clone());
        let ended = self.0.run(share_of_session(&self.0, token).await?, move |connection| {
            connection.transaction(|connection| {
                let session = sessions::table.find(digest.as_slice()).inner_join(members::table);
                let holder = session.select((sessions::organisation_id, members::email));
                let Some((organisation, email)) = holder.first::<(Option<Uuid>, String)>(connection).optional()? else {
                    return Ok(());
                };
                diesel::delete(sessions::table.find(digest.as_slice())).execute(connection)?;
                match organisation {
                    Some(organisation) => record(connection, organisation, Action::SignedOut, &email, &audit),
                    None => Ok(()),
                }
            })
        });
        ended.await
    }

    async fn sessions(&self, member: MemberId, now: OffsetDateTime) -> Result<Vec<SessionRecord>, StoreError> {
        let (member, passwords) = (*member.as_uuid(), self.1);
        let found = self.0.run(Share::Of(member), move |connection| {
            let alive = sessions::table
                .filter(sessions::member_id.eq(member))
                .filter(sessions::is_by_provider.or(passwords.are_on().into_sql::<Bool>()))
                .filter(sessions::started_at.gt(now - SESSION_LIMIT))
                .filter(sessions::last_used_at.gt(now - SESSION_IDLE_LIMIT));
            let recent_first = alive.order((sessions::last_used_at.desc(), sessions::token_digest));
            recent_first.select(SessionRow::as_select()).load(connection)
        });
        Ok(found.await?.into_iter().filter_map(SessionRow::into_record).collect())
    }

    async fn end_one(&self, member: &Member, token: &TokenDigest, audit: &AuditContext) -> Result<bool, StoreError> {
        let (member, digest, audit) = (member.clone(), *token.as_bytes(), audit.clone());
        let ended = self.0.run(share_of(&self.0, member.id).await?, move |connection| {
            connection.transaction(|connection| {
                assert_confirmed(connection, &audit)?;
                let own = sessions::table.find(digest.as_slice()).filter(sessions::member_id.eq(member.id.as_uuid()));
                if diesel::delete(own).execute(connection)? == 0 {
                    return Ok(false);
                }
                record_end(connection, &member, Action::SessionEnded, &audit)?;
                Ok(true)
            })
        });
        ended.await
    }

    async fn end_others(&self, member: &Member, audit: &AuditContext) -> Result<(), StoreError> {
        let (member, audit) = (member.clone(), audit.clone());
        let ended = self.0.run(share_of(&self.0, member.id).await?, move |connection| {
            connection.transaction(|connection| {
                assert_confirmed(connection, &audit)?;
                end_others(connection, *member.id.as_uuid(), &audit)?;
                record_end(connection, &member, Action::OtherSessionsEnded, &audit)
            })
        });
        ended.await
    }
}

fn begin(
    connection: &mut PgConnection,
    session: &NewSession,
    first: &FirstStep,
    audit: &AuditContext,
) -> QueryResult<Option<SignIn>> {
    connection.transaction(|connection| {
        let id = *session.member_id.as_uuid();
        let Some(locked) = lock_member(connection, id)?.filter(|locked| locked.is_found_by(first)) else {
            return Ok(None);
        };
        // A statement of its own: one that waited for the lock sees other tables as they were before.
        if members::table.find(id).select(has_second_factor()).first(connection)? {
            await_code(connection, session, first, None)?;
            return Ok(Some(SignIn::CodeNeeded));
        }
        if let Some(subject) = first.subject() {
            take_over(connection, &locked, id, subject, audit)?;
        }
        let action = if session.is_by_provider { Action::SignedInByProvider } else { Action::SignedIn };
        start_session(connection, session, action, audit).map(|()| Some(SignIn::Complete))
    })
}

fn record_end(connection: &mut PgConnection, member: &Member, action: Action, audit: &AuditContext) -> QueryResult<()> {
    record(connection, *member.organisation_id.as_uuid(), action, member.email.as_str(), audit)
}
