//! Sessions, over Diesel.

use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, AwaitedMember, CODE_LIMIT, CodeOutcome, Deed, EndOutcome, Member, MemberId, NewSession, Proof,
    SESSION_IDLE_LIMIT, SESSION_LIMIT, SessionRecord, SessionStore, SignedIn, StoreError, TokenDigest, TotpSecret,
    Visit,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::audit::log::record;
use crate::database::pool::Database;
use crate::members::row::MemberRow;
use crate::schema::{members, organisations, passkeys, sessions, waiting_sign_ins};
use crate::sessions::row::{HolderRow, SessionRow, end_all_but, insert_session};
use crate::sessions::waiting_sign_ins::{await_code, finish};

/// How precisely the last use of a session is known: it is written at most this often, not for each page.
const USE_PRECISION: Duration = Duration::minutes(5);

/// The port [`SessionStore`] over PostgreSQL.
pub struct PostgresSessionStore(Database);

impl PostgresSessionStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl SessionStore for PostgresSessionStore {
    async fn start(&self, session: &NewSession, deed: &Deed) -> Result<(), StoreError> {
        let (session, deed) = (session.clone(), deed.clone());
        let started = self.0.run(move |connection| {
            connection.transaction(|connection| {
                let member = *session.member_id.as_uuid();
                insert_session(connection, &session, &deed)?;
                let subject = members::table.find(member).select((members::organisation_id, members::email));
                let (organisation, email) = subject.first::<(Uuid, String)>(connection)?;
                record(connection, organisation, Action::SignedIn, &email, &deed)
            })
        });
        started.await
    }

    async fn note_failure(&self, member: &Member, action: Action, deed: &Deed) -> Result<(), StoreError> {
        let (member, deed) = (member.clone(), deed.clone());
        let noted = self.0.run(move |connection| {
            let organisation = *member.organisation_id.as_uuid();
            record(connection, organisation, action, member.email.as_str(), &deed)
        });
        noted.await
    }

    async fn await_code(&self, sign_in: &NewSession) -> Result<(), StoreError> {
        let sign_in = sign_in.clone();
        self.0.run(move |connection| await_code(connection, &sign_in)).await
    }

    async fn awaited(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<AwaitedMember>, StoreError> {
        let digest = *token.as_bytes();
        let found = self.0.run(move |connection| {
            let waiting = waiting_sign_ins::table.find(digest.as_slice()).inner_join(members::table);
            let alive = waiting.filter(waiting_sign_ins::started_at.gt(now - CODE_LIMIT));
            let own_passkeys = passkeys::table.filter(passkeys::member_id.eq(members::id));
            let columns = (MemberRow::as_select(), members::totp_secret, exists(own_passkeys));
            alive.select(columns).first::<(MemberRow, Option<Vec<u8>>, bool)>(connection).optional()
        });
        let Some((member, secret, has_passkey)) = found.await? else { return Ok(None) };
        let secret = secret.and_then(|bytes| TotpSecret::from_bytes(&bytes));
        // Without either, what the sign-in waited for was turned off.
        let is_awaited = secret.is_some() || has_passkey;
        is_awaited.then(|| Ok(AwaitedMember { member: member.try_into()?, secret, has_passkey })).transpose()
    }

    async fn finish(
        &self,
        waiting: &TokenDigest,
        proof: Proof,
        session: &NewSession,
        deed: &Deed,
    ) -> Result<CodeOutcome, StoreError> {
        let (waiting, session, deed) = (*waiting, session.clone(), deed.clone());
        self.0.run(move |connection| finish(connection, &waiting, proof, &session, &deed)).await
    }

    async fn holder(
        &self,
        token: &TokenDigest,
        visit: Visit,
        now: OffsetDateTime,
    ) -> Result<Option<SignedIn>, StoreError> {
        let digest = *token.as_bytes();
        let found = self.0.run(move |connection| {
            let session = sessions::table.find(digest.as_slice());
            let alive = session
                .inner_join(members::table.inner_join(organisations::table))
                .filter(sessions::started_at.gt(now - SESSION_LIMIT))
                .filter(sessions::last_used_at.gt(now - SESSION_IDLE_LIMIT));
            let found = alive.select(HolderRow::as_select()).first(connection).optional()?;
            let is_due = found.as_ref().is_some_and(|found| found.last_used_at < now - USE_PRECISION);
            if let Visit::Person(address) = visit
                && is_due
            {
                let address = address.map(|address| address.to_string());
                let used = (sessions::last_used_at.eq(now), sessions::address.eq(address));
                diesel::update(session).set(used).execute(connection)?;
            }
            Ok(found)
        });
        found.await?.map(SignedIn::try_from).transpose()
    }

    async fn end(&self, token: &TokenDigest, deed: &Deed) -> Result<(), StoreError> {
        let (digest, deed) = (*token.as_bytes(), deed.clone());
        let ended = self.0.run(move |connection| {
            connection.transaction(|connection| {
                let session = sessions::table.find(digest.as_slice()).inner_join(members::table);
                let holder = session.select((members::organisation_id, members::email));
                let Some((organisation, email)) = holder.first::<(Uuid, String)>(connection).optional()? else {
                    return Ok(());
                };
                diesel::delete(sessions::table.find(digest.as_slice())).execute(connection)?;
                record(connection, organisation, Action::SignedOut, &email, &deed)
            })
        });
        ended.await
    }

    async fn sessions(&self, member: MemberId, now: OffsetDateTime) -> Result<Vec<SessionRecord>, StoreError> {
        let member = *member.as_uuid();
        let found = self.0.run(move |connection| {
            let alive = sessions::table
                .filter(sessions::member_id.eq(member))
                .filter(sessions::started_at.gt(now - SESSION_LIMIT))
                .filter(sessions::last_used_at.gt(now - SESSION_IDLE_LIMIT));
            let recent_first = alive.order((sessions::last_used_at.desc(), sessions::token_digest));
            recent_first.select(SessionRow::as_select()).load(connection)
        });
        Ok(found.await?.into_iter().filter_map(SessionRow::into_record).collect())
    }

    async fn end_one(&self, member: &Member, token: &TokenDigest, deed: &Deed) -> Result<EndOutcome, StoreError> {
        let (member, digest, deed) = (member.clone(), *token.as_bytes(), deed.clone());
        let ended = self.0.run(move |connection| {
            connection.transaction(|connection| {
                let own = sessions::table.find(digest.as_slice()).filter(sessions::member_id.eq(member.id.as_uuid()));
                if diesel::delete(own).execute(connection)? == 0 {
                    return Ok(EndOutcome::NoSuchSession);
                }
                record_end(connection, &member, Action::SessionEnded, &deed)?;
                Ok(EndOutcome::Ended)
            })
        });
        ended.await
    }

    async fn end_others(&self, member: &Member, kept: &TokenDigest, deed: &Deed) -> Result<(), StoreError> {
        let (member, kept, deed) = (member.clone(), *kept, deed.clone());
        let ended = self.0.run(move |connection| {
            connection.transaction(|connection| {
                end_all_but(connection, *member.id.as_uuid(), &kept)?;
                record_end(connection, &member, Action::OtherSessionsEnded, &deed)
            })
        });
        ended.await
    }
}

fn record_end(connection: &mut PgConnection, member: &Member, action: Action, deed: &Deed) -> QueryResult<()> {
    record(connection, *member.organisation_id.as_uuid(), action, member.email.as_str(), deed)
}
