//! The status of a key as every page shows it: one word for what is gravest.

use std::collections::HashMap;

use intake_domain::{
    AnswerCount, Doubt, KeyActivity, KeyId, KeyQuality, KeyRecord, KeyStatus, REPLAYED, SignedIn, StoreError,
    first_kept_day,
};
use time::OffsetDateTime;

use crate::api_keys::answers::{CREATED, often_refused};
use crate::api_keys::refusals::Cause;
use crate::page::number::grouped;

/// The doubts that are counted together: a patient whom nobody can call. No number has both.
const UNDIALLABLE: [Doubt; 2] = [Doubt::ZeroAfterCountryCode, Doubt::UnusualNumber];

/// A word with a colour, and what is to be known about it.
pub(crate) struct Status {
    pub(crate) class: &'static str,
    pub(crate) word: &'static str,
    pub(crate) note: Option<String>,
    /// Whom to ask, if something is wrong.
    pub(crate) contact: Option<String>,
}

/// The answers of these keys that their status depends on.
pub(crate) async fn answers_of(
    keys: &[KeyRecord],
    visitor: &SignedIn,
    activity: &dyn KeyActivity,
    now: OffsetDateTime,
) -> Result<HashMap<KeyId, Vec<AnswerCount>>, StoreError> {
    let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
    let [zero, unusual] = UNDIALLABLE.map(Doubt::name);
    let since = first_kept_day(visitor.zone, now);
    activity.answers_by_key(visitor.member.organisation_id, &ids, &[REPLAYED, zero, unusual], since).await
}

/// Those of one key.
pub(crate) fn of_key(answers: &HashMap<KeyId, Vec<AnswerCount>>, key: KeyId) -> &[AnswerCount] {
    answers.get(&key).map_or(&[], Vec::as_slice)
}

impl Status {
    pub(crate) fn new(key: &KeyRecord, answers: &[AnswerCount], visitor: &SignedIn, now: OffsetDateTime) -> Self {
        let of = |class, word| Self { class, word, note: None, contact: None };
        match key.status(now) {
            KeyStatus::Revoked(_) => of("revoked", "Revoked"),
            KeyStatus::Expired(_) => of("expired", "Expired"),
            KeyStatus::Suspended(_) => of("suspended", "Suspended"),
            KeyStatus::Paused(_) => of("paused", "Paused"),
            KeyStatus::ActiveUntil(_) | KeyStatus::Active => Self::active(key, answers, visitor, now),
        }
    }

    /// The gravest of what is wrong with an active key.
    fn active(key: &KeyRecord, answers: &[AnswerCount], visitor: &SignedIn, now: OffsetDateTime) -> Self {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let noted = |class, word, note: String| Self { class, word, note: some(&note), contact: some(&key.contact) };
        if key.must_be_replaced(now) {
            return noted("bad", "Replace now", "Sent unencrypted".to_owned());
        }
        if let Some(refused) = &key.only_refused {
            let Cause { words, is_own_setting, .. } = Cause::from(refused);
            let status = noted("bad", "Only refusals", words);
            // The vendor can't change what the clinic has set.
            return if is_own_setting { Self { contact: None, ..status } } else { status };
        }
        if key.is_refused_more(now) {
            return noted("warn", "Often refused", "More than usual".to_owned());
        }
        if let Some(often) = often_refused(answers, visitor.zone.day(now)) {
            return noted("warn", "Often refused", often);
        }
        if key.is_silent(now) {
            return noted("warn", "Silent", "Longer than usual".to_owned());
        }
        if let Some(note) = undiallable(&KeyQuality::new(answers, CREATED)) {
            return noted("warn", "Check numbers", note);
        }
        let too_long =
            visitor.key_age_max.filter(|age| key.exceeds(*age, now)).map(|age| format!("Works longer than {age}"));
        Self { contact: None, ..noted("active", "Active", too_long.unwrap_or_default()) }
    }
}

fn undiallable(quality: &KeyQuality) -> Option<String> {
    let counts = quality.doubts.iter().filter(|(doubt, _)| UNDIALLABLE.contains(doubt));
    let count: u64 = counts.filter_map(|(_, count)| *count).sum();
    let patients = quality.patients.filter(|_| count > 0)?;
    Some(format!("{} of {} numbers can't be dialled", grouped(count), grouped(patients)))
}
