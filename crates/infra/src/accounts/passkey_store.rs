//! Passkeys, over Diesel, and the challenges of sign-ins by a passkey alone.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, AddPasskeyError, AuditContext, CODE_LIMIT, CodeError, Member, MemberId, NewPasskey, NewSession,
    PASSKEYS_MAX, PasskeyHolder, PasskeyKey, PasskeyRecord, PasskeyStore, StoreError, TokenDigest,
};
use time::OffsetDateTime;

use crate::accounts::confirmation::{assert_confirmed, lock_member};
use crate::accounts::proofs::note_use;
use crate::accounts::row::AccountRow;
use crate::accounts::session_row::{end_others, is_started, start_session};
use crate::accounts::share::share_of;
use crate::audit::log::record_in_all;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::schema::{members, passkey_challenges, passkeys};

/// The port [`PasskeyStore`] over PostgreSQL.
pub struct PostgresPasskeyStore(Database);

impl PostgresPasskeyStore {
    /// A store over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl PasskeyStore for PostgresPasskeyStore {
    async fn passkeys(&self, member: MemberId) -> Result<Vec<PasskeyRecord>, StoreError> {
        let member = *member.as_uuid();
        let found = self.0.run(Share::Of(member), move |connection| {
            let own = passkeys::table.filter(passkeys::member_id.eq(member));
            own.order((passkeys::created_at, passkeys::digest)).select(PasskeyRow::as_select()).load(connection)
        });
        Ok(found.await?.into_iter().filter_map(PasskeyRow::into_record).collect())
    }

    async fn add(&self, member: &Member, passkey: &NewPasskey, audit: &AuditContext) -> Result<(), AddPasskeyError> {
        let (member, passkey, audit) = (member.clone(), passkey.clone(), audit.clone());
        self.0
            .run(share_of(&self.0, member.id).await?, move |connection| add(connection, &member, &passkey, &audit))
            .await?
    }

    async fn remove(&self, member: &Member, id: &TokenDigest, audit: &AuditContext) -> Result<bool, StoreError> {
        let (member, digest, audit) = (member.clone(), *id.as_bytes(), audit.clone());
        let removed = self.0.run(share_of(&self.0, member.id).await?, move |connection| {
            connection.transaction(|connection| {
                assert_confirmed(connection, &audit)?;
                let own = passkeys::table.find(digest.as_slice()).filter(passkeys::member_id.eq(member.id.as_uuid()));
                let name = diesel::delete(own).returning(passkeys::name).get_result::<String>(connection).optional()?;
                let Some(name) = name else {
                    return Ok(false);
                };
                end_others(connection, *member.id.as_uuid(), &audit)?;
                record_in_all(connection, *member.id.as_uuid(), Action::PasskeyRemoved, &name, &audit)?;
                Ok(true)
            })
        });
        removed.await
    }

    async fn holder(&self, id: &TokenDigest) -> Result<Option<PasskeyHolder>, StoreError> {
        let digest = *id.as_bytes();
        let found = self.0.run(Share::Common, move |connection| {
            let passkey = passkeys::table.find(digest.as_slice()).inner_join(members::table);
            let columns = (AccountRow::as_select(), passkeys::public_key);
            passkey.select(columns).first::<(AccountRow, Vec<u8>)>(connection).optional()
        });
        let Some((account, key)) = found.await? else { return Ok(None) };
        let key = PasskeyKey::from_spki(&key);
        key.map(|key| Ok(PasskeyHolder { account: account.try_into()?, key })).transpose()
    }

    async fn begin(&self, challenge: &TokenDigest, at: OffsetDateTime) -> Result<(), StoreError> {
        let digest = *challenge.as_bytes();
        let kept = self.0.run(Share::Common, move |connection| {
            let row = (passkey_challenges::token_digest.eq(digest.as_slice()), passkey_challenges::started_at.eq(at));
            diesel::insert_into(passkey_challenges::table).values(row).on_conflict_do_nothing().execute(connection)
        });
        kept.await.map(drop)
    }

    async fn sign_in(
        &self,
        challenge: &TokenDigest,
        passkey: &TokenDigest,
        session: &NewSession,
        audit: &AuditContext,
    ) -> Result<(), CodeError> {
        let (challenge, passkey, session, audit) = (*challenge, *passkey, session.clone(), audit.clone());
        self.0
            .run(share_of(&self.0, session.member_id).await?, move |connection| {
                sign_in(connection, &challenge, &passkey, &session, &audit)
            })
            .await?
    }
}

fn add(
    connection: &mut PgConnection,
    member: &Member,
    passkey: &NewPasskey,
    audit: &AuditContext,
) -> QueryResult<Result<(), AddPasskeyError>> {
    let id = *member.id.as_uuid();
    let added = connection.transaction(|connection| {
        assert_confirmed(connection, audit)?;
        let row = (
            passkeys::digest.eq(passkey.id.as_bytes().as_slice()),
            passkeys::member_id.eq(id),
            passkeys::credential.eq(&passkey.credential),
            passkeys::public_key.eq(&passkey.public_key),
            passkeys::name.eq(passkey.name.as_str()),
            passkeys::created_at.eq(audit.at),
        );
        let added = diesel::insert_into(passkeys::table).values(row).on_conflict_do_nothing().execute(connection)?;
        if added == 0 {
            return Ok(Err(AddPasskeyError::Refused));
        }
        let count: i64 = passkeys::table.filter(passkeys::member_id.eq(id)).count().get_result(connection)?;
        if count > i64::from(PASSKEYS_MAX) {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        end_others(connection, id, audit)?;
        record_in_all(connection, id, Action::PasskeyAdded, passkey.name.as_str(), audit).map(Ok)
    });
    match added {
        Err(diesel::result::Error::RollbackTransaction) => Ok(Err(AddPasskeyError::TooMany)),
        other => other,
    }
}

fn sign_in(
    connection: &mut PgConnection,
    challenge: &TokenDigest,
    passkey: &TokenDigest,
    session: &NewSession,
    audit: &AuditContext,
) -> QueryResult<Result<(), CodeError>> {
    connection.transaction(|connection| {
        let id = *session.member_id.as_uuid();
        lock_member(connection, id)?;
        let open = passkey_challenges::table
            .find(challenge.as_bytes().as_slice())
            .filter(passkey_challenges::started_at.gt(audit.at - CODE_LIMIT));
        if diesel::delete(open).execute(connection)? == 0 {
            // Used by an earlier run whose answer was lost, or by another person.
            return Ok(if is_started(connection, session)? { Ok(()) } else { Err(CodeError::Over) });
        }
        if note_use(connection, id, passkey, audit.at)? == 0 {
            return Ok(Err(CodeError::WrongCode));
        }
        start_session(connection, session, Action::SignedInByPasskey, audit).map(Ok)
    })
}

/// A passkey, as its member lists it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = passkeys)]
struct PasskeyRow {
    digest: Vec<u8>,
    credential: Vec<u8>,
    name: String,
    created_at: OffsetDateTime,
    last_used_at: Option<OffsetDateTime>,
}

impl PasskeyRow {
    /// None: what is stored is no digest, so nobody can use it.
    fn into_record(self) -> Option<PasskeyRecord> {
        let Self { digest, credential, name, created_at, last_used_at } = self;
        Some(PasskeyRecord { id: TokenDigest::from_bytes(&digest)?, credential, name, created_at, last_used_at })
    }
}
