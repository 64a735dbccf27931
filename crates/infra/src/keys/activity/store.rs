//! The use of API keys: noted in memory, read from what the writer of uses has stored.

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{
    AnswerCode, AnswerCount, KeyActivity, KeyAnswer, KeyDigest, KeyHolder, KeyId, OrganisationId, REFUSALS_KEPT,
    Refusal, RefusalReason, StoreError,
};
use time::Date;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::keys::activity::uses::KeyUses;
use crate::keys::directory::KeyDirectory;
use crate::schema::{key_answers, key_refusals};

/// The port [`KeyActivity`] over PostgreSQL.
pub struct PostgresKeyActivity {
    database: Database,
    directory: KeyDirectory,
    uses: KeyUses,
}

impl PostgresKeyActivity {
    /// Activity over this pool, which is noted in `uses`.
    #[must_use]
    pub fn new(database: Database, directory: KeyDirectory, uses: KeyUses) -> Self {
        Self { database, directory, uses }
    }
}

#[async_trait]
impl KeyActivity for PostgresKeyActivity {
    fn note_sent_in_clear(&self, key: &KeyDigest, refusal: Refusal) {
        self.uses.note_sent_in_clear(key, refusal);
    }

    fn note_refusal(&self, key: &KeyDigest, refusal: Refusal) {
        if let Some(holder) = self.directory.holder(key) {
            self.uses.note_refusal(holder, refusal);
        }
    }

    fn note_answer(&self, key: &KeyDigest, answer: KeyAnswer, fields: &[&'static str]) {
        if let Some(holder) = self.directory.holder(key) {
            self.uses.answers.note(holder, answer, fields);
        }
    }

    fn known_holder(&self, key: &KeyDigest) -> Option<KeyHolder> {
        self.directory.holder(key)
    }

    async fn answers(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        since: Date,
    ) -> Result<Vec<AnswerCount>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(Share::Of(organisation), move |connection| {
            let of_key = key_answers::table
                .filter(key_answers::organisation_id.eq(organisation).and(key_answers::key_id.eq(key)))
                .filter(key_answers::day.ge(since))
                .order((key_answers::day, key_answers::status, key_answers::field));
            let columns = (key_answers::day, key_answers::status, key_answers::field, key_answers::count);
            of_key.select(columns).load::<(Date, i32, String, i64)>(connection)
        });
        let answer = |(day, status, field, count): (Date, i32, String, i64)| AnswerCount {
            day,
            code: code(status),
            field: Some(field).filter(|field| !field.is_empty()),
            count: u64::try_from(count).unwrap_or_default(),
        };
        Ok(found.await?.into_iter().map(answer).collect())
    }

    async fn refusals(&self, organisation: OrganisationId, key: KeyId) -> Result<Vec<Refusal>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(Share::Of(organisation), move |connection| {
            let newest_first = key_refusals::table
                .filter(key_refusals::organisation_id.eq(organisation).and(key_refusals::key_id.eq(key)))
                .order((key_refusals::at.desc(), key_refusals::request_id.desc()))
                .limit(i64::try_from(REFUSALS_KEPT).unwrap_or(i64::MAX));
            let columns = (
                key_refusals::at,
                key_refusals::status,
                key_refusals::reason,
                key_refusals::address,
                key_refusals::request_id,
            );
            newest_first.select(columns).load(connection)
        });
        let refusal = |(at, status, reason, address, request_id): (_, _, String, Option<String>, _)| Refusal {
            at,
            code: code(status),
            reason: RefusalReason::named(&reason),
            address: address.and_then(|address| address.parse().ok()),
            request_id,
        };
        Ok(found.await?.into_iter().map(refusal).collect())
    }
}

/// A code as stored.
fn code(stored: i32) -> AnswerCode {
    AnswerCode(u16::try_from(stored).unwrap_or_default())
}
