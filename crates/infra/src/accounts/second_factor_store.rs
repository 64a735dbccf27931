//! Second factors, over Diesel: turning them on and off, and their recovery codes.

use async_trait::async_trait;
use diesel::dsl::exists;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, AuditContext, Member, MemberId, NewSecondFactor, SecondFactorError, SecondFactorStore, StoreError,
    TokenDigest, TotpSecret,
};
use uuid::Uuid;

use crate::accounts::PostgresMembers;
use crate::accounts::confirmation::{assert_confirmed, lock_member, session_ended};
use crate::accounts::permission::may_administer;
use crate::accounts::row::belongs_elsewhere;
use crate::accounts::session_row::end_others;
use crate::accounts::share::share_of;
use crate::audit::log::record_in_all;
use crate::database::connecting::share::Share;
use crate::schema::{members, passkeys, recovery_codes, sessions};

#[async_trait]
impl SecondFactorStore for PostgresMembers {
    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError> {
        let id = *member.as_uuid();
        let done = self.0.run(Share::Of(id), move |connection| {
            let has_factor = members::table.find(id).select(members::totp_secret.is_not_null());
            if has_factor.first::<bool>(connection).optional()? != Some(true) {
                return Ok(None);
            }
            let left: i64 = recovery_codes::table.filter(recovery_codes::member_id.eq(id)).count().first(connection)?;
            Ok(u32::try_from(left).ok())
        });
        done.await
    }

    async fn offer(
        &self,
        member: MemberId,
        session: &TokenDigest,
        secret: &TotpSecret,
    ) -> Result<Option<TotpSecret>, StoreError> {
        let share = share_of(&self.0, member).await?;
        let (member, session, secret) = (*member.as_uuid(), *session.as_bytes(), secret.clone());
        let offered = self.0.transaction(share, move |connection| {
            let is_on = members::table.find(member).select(members::totp_secret.is_not_null());
            if is_on.first::<bool>(connection).optional()? != Some(false) {
                return Ok(None);
            }
            let own = sessions::table.find(session.as_slice()).filter(sessions::member_id.eq(member));
            diesel::update(own.filter(sessions::offered_totp_secret.is_null()))
                .set(sessions::offered_totp_secret.eq(secret.as_bytes()))
                .execute(connection)?;
            let offered = own.select(sessions::offered_totp_secret.assume_not_null()).first::<Vec<u8>>(connection);
            offered.optional()?.ok_or_else(session_ended).map(Some)
        });
        let secret = |bytes: Vec<u8>| {
            TotpSecret::from_bytes(&bytes).ok_or_else(|| StoreError::Unexpected("an offered secret is cut off".into()))
        };
        offered.await?.map(secret).transpose()
    }

    async fn turn_on(
        &self,
        member: &Member,
        factor: &NewSecondFactor,
        audit: &AuditContext,
    ) -> Result<(), SecondFactorError> {
        let (member, factor, audit) = (member.clone(), factor.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            assert_confirmed(connection, &audit)?;
            let (secret, session) = (factor.secret.as_bytes(), audit.confirmed_in.map(|token| *token.as_bytes()));
            let offer = sessions::table.find(session.as_ref().map_or(&[][..], |digest| digest));
            let is_offered = exists(offer.filter(sessions::offered_totp_secret.eq(secret)));
            // None yet, or this very one from an earlier run that was committed and whose answer was lost.
            let is_free = members::totp_secret.is_null().and(is_offered);
            let is_free = is_free.or(members::totp_secret.assume_not_null().eq(secret));
            let factor_is_on = (
                members::totp_secret.eq(secret),
                members::totp_used_step.eq(factor.used_step),
                // Those of an app that was reset.
                members::wrong_codes.eq(0),
            );
            let own = members::table.find(id);
            let turned_on = diesel::update(own.filter(is_free)).set(factor_is_on).execute(connection)?;
            if turned_on == 0 {
                return Ok(Err(SecondFactorError::Unchanged));
            }
            let no_offer = sessions::offered_totp_secret.eq(None::<Vec<u8>>);
            diesel::update(sessions::table.filter(sessions::member_id.eq(id))).set(no_offer).execute(connection)?;
            put_recovery_codes(connection, id, &factor.recovery_codes)?;
            end_others(connection, id, &audit)?;
            record_change(connection, &member, Action::SecondFactorTurnedOn, &audit)
        });
        done.await?
    }

    async fn turn_off(&self, member: &Member, audit: &AuditContext) -> Result<(), SecondFactorError> {
        let (member, audit) = (member.clone(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            assert_confirmed(connection, &audit)?;
            let is_own = matches!(&audit.actor, Actor::Member { id: actor, .. } if *actor == member.id);
            if !is_own && !may_administer(connection, *member.organisation_id.as_uuid(), &audit)? {
                return Ok(Err(SecondFactorError::NotAdministrator));
            }
            lock_member(connection, id)?;
            let is_operator = matches!(&audit.actor, Actor::Operator(_));
            if !is_own && !is_operator && belongs_elsewhere(connection, id, *member.organisation_id.as_uuid())? {
                return Ok(Err(SecondFactorError::SharedAccount));
            }
            let turned_off = diesel::update(members::table.find(id).filter(members::totp_secret.is_not_null()))
                .set((members::totp_secret.eq(None::<Vec<u8>>), members::totp_used_step.eq(None::<i64>)))
                .execute(connection)?;
            // For a member who may have lost passkeys, too, or has one that a thief added.
            let removed = match is_own {
                true => 0,
                false => diesel::delete(passkeys::table.filter(passkeys::member_id.eq(id))).execute(connection)?,
            };
            if turned_off + removed == 0 {
                return Ok(Err(SecondFactorError::Unchanged));
            }
            put_recovery_codes(connection, id, &[])?;
            end_others(connection, id, &audit)?;
            record_change(connection, &member, Action::SecondFactorTurnedOff, &audit)
        });
        done.await?
    }

    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        audit: &AuditContext,
    ) -> Result<(), SecondFactorError> {
        let (member, codes, audit) = (member.clone(), codes.to_vec(), audit.clone());
        let done = self.0.transaction(share_of(&self.0, member.id).await?, move |connection| {
            let id = *member.id.as_uuid();
            assert_confirmed(connection, &audit)?;
            // Locked, so that two windows cannot both add their codes.
            let factor = members::table.find(id).select(members::totp_secret.is_not_null()).for_update();
            if factor.first::<bool>(connection).optional()? != Some(true) {
                return Ok(Err(SecondFactorError::Unchanged));
            }
            put_recovery_codes(connection, id, &codes)?;
            end_others(connection, id, &audit)?;
            record_change(connection, &member, Action::RecoveryCodesReplaced, &audit)
        });
        done.await?
    }
}

fn put_recovery_codes(connection: &mut PgConnection, member: Uuid, codes: &[TokenDigest]) -> QueryResult<()> {
    diesel::delete(recovery_codes::table.filter(recovery_codes::member_id.eq(member))).execute(connection)?;
    let rows = codes
        .iter()
        .map(|code| (recovery_codes::member_id.eq(member), recovery_codes::digest.eq(code.as_bytes().as_slice())));
    let rows: Vec<_> = rows.collect();
    diesel::insert_into(recovery_codes::table).values(rows).execute(connection).map(drop)
}

/// Records that a member's second factor was changed.
fn record_change(
    connection: &mut PgConnection,
    member: &Member,
    action: Action,
    audit: &AuditContext,
) -> QueryResult<Result<(), SecondFactorError>> {
    record_in_all(connection, *member.id.as_uuid(), action, member.email.as_str(), audit).map(Ok)
}
