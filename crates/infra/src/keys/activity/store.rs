//! The use of API keys: noted in memory, read from what the writer of uses has stored.

use std::borrow::Cow;
use std::collections::HashMap;

use async_trait::async_trait;
use diesel::prelude::*;
use intake_domain::{
    AnswerCode, AnswerCount, KeyActivity, KeyAnswer, KeyDigest, KeyHolder, KeyId, OrganisationId, REFUSALS_KEPT,
    Refusal, RefusalReason, StoreError,
};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

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

    fn known_end(&self, key: &KeyDigest) -> Option<OffsetDateTime> {
        self.directory.end(key)
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
                .filter(key_answers::local_day.ge(since))
                .order((key_answers::local_day, key_answers::status, key_answers::field));
            let columns = (key_answers::local_day, key_answers::status, key_answers::field, key_answers::count);
            of_key.select(columns).load::<(Date, i32, String, i64)>(connection)
        });
        Ok(found.await?.into_iter().map(|(day, status, field, count)| answer(day, status, field, count)).collect())
    }

    async fn answers_by_key(
        &self,
        organisation: OrganisationId,
        keys: &[KeyId],
        named: &[&'static str],
        since: Date,
    ) -> Result<HashMap<KeyId, Vec<AnswerCount>>, StoreError> {
        let organisation = *organisation.as_uuid();
        let keys: Vec<_> = keys.iter().map(|key| *key.as_uuid()).collect();
        let fields = [&[""], named].concat();
        let found = self.database.run(Share::Of(organisation), move |connection| {
            let of_keys = key_answers::table
                .filter(key_answers::organisation_id.eq(organisation).and(key_answers::key_id.eq_any(&keys)))
                .filter(key_answers::local_day.ge(since).and(key_answers::field.eq_any(&fields)));
            let counted = (key_answers::local_day, key_answers::status, key_answers::field, key_answers::count);
            of_keys.select((key_answers::key_id, counted)).load::<(Uuid, (Date, i32, String, i64))>(connection)
        });
        let mut by_key: HashMap<KeyId, Vec<AnswerCount>> = HashMap::new();
        for (key, (day, status, field, count)) in found.await? {
            by_key.entry(key.into()).or_default().push(answer(day, status, field, count));
        }
        Ok(by_key)
    }

    async fn refusals(&self, organisation: OrganisationId, key: KeyId) -> Result<Vec<Refusal>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(Share::Of(organisation), move |connection| {
            let newest_first = key_refusals::table
                .filter(key_refusals::organisation_id.eq(organisation).and(key_refusals::key_id.eq(key)))
                .order((key_refusals::at.desc(), key_refusals::request_id.desc()))
                .limit(i64::try_from(REFUSALS_KEPT).unwrap_or(i64::MAX));
            newest_first.select(RefusalRow::as_select()).load(connection)
        });
        Ok(found.await?.into_iter().map(Refusal::from).collect())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = key_refusals)]
struct RefusalRow {
    at: OffsetDateTime,
    request_id: String,
    status: i32,
    reason: String,
    address: Option<String>,
    fields: Vec<String>,
    is_simulated: bool,
}

impl From<RefusalRow> for Refusal {
    fn from(row: RefusalRow) -> Self {
        Self {
            at: row.at,
            code: code(row.status),
            reason: RefusalReason::named(&row.reason),
            fields: row.fields.into_iter().map(Cow::Owned).collect(),
            is_simulated: row.is_simulated,
            address: row.address.and_then(|address| address.parse().ok()),
            request_id: row.request_id,
        }
    }
}

/// A count as stored.
fn answer(day: Date, status: i32, field: String, count: i64) -> AnswerCount {
    let field = Some(field).filter(|field| !field.is_empty());
    AnswerCount { day, code: code(status), field, count: u64::try_from(count).unwrap_or_default() }
}

/// A code as stored.
fn code(stored: i32) -> AnswerCode {
    AnswerCode(u16::try_from(stored).unwrap_or_default())
}
