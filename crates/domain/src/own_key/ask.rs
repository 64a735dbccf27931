//! Use cases of a key that asks about itself. Each checks the key as a create does. A question counts as a use of the
//! key, so the organisation sees it.

use time::OffsetDateTime;

use crate::keys::activity::KeyActivity;
use crate::keys::answer::{AnswerCode, first_kept_day};
use crate::keys::check::{Caller, CheckedFor, KeyCheck, KeyHolder, KeyRefusal};
use crate::keys::refusal::Refusal;
use crate::own_key::day::{CreatedInPart, DayPart};
use crate::own_key::store::{OwnKey, OwnKeyStore};
use crate::patients::register::PatientRegister;
use crate::quality::of_key::DoubtCount;
use crate::store_error::StoreError;

/// Reason why a key learns nothing about itself.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AskKeyError {
    /// The key is not active.
    #[error("{0}")]
    KeyRefused(KeyRefusal),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns what the key is.
pub async fn describe_key(
    register: &dyn PatientRegister,
    keys: &dyn OwnKeyStore,
    caller: &Caller,
) -> Result<OwnKey, AskKeyError> {
    let holder = holder(register, caller).await?;
    stored(keys, holder).await
}

/// Returns the last refusals of the key's requests, the newest first.
pub async fn list_refusals(
    register: &dyn PatientRegister,
    activity: &dyn KeyActivity,
    caller: &Caller,
) -> Result<Vec<Refusal>, AskKeyError> {
    let holder = holder(register, caller).await?;
    Ok(activity.refusals(holder.organisation_id, holder.key_id).await?)
}

/// Returns what the key created in a part of a day.
pub async fn count_created(
    register: &dyn PatientRegister,
    keys: &dyn OwnKeyStore,
    caller: &Caller,
    part: DayPart,
) -> Result<CreatedInPart, AskKeyError> {
    let holder = holder(register, caller).await?;
    Ok(keys.created(holder, part).await?)
}

/// Returns the doubts about the patients that the key created in the days that are kept, those of its organisation.
/// `created` is the code of their answers.
pub async fn assess_quality(
    register: &dyn PatientRegister,
    keys: &dyn OwnKeyStore,
    activity: &dyn KeyActivity,
    caller: &Caller,
    created: AnswerCode,
    now: OffsetDateTime,
) -> Result<Vec<DoubtCount>, AskKeyError> {
    let holder = holder(register, caller).await?;
    let since = first_kept_day(stored(keys, holder).await?.zone, now);
    let answers = activity.answers(holder.organisation_id, holder.key_id, since).await?;
    Ok(DoubtCount::list(&answers, created))
}

async fn stored(keys: &dyn OwnKeyStore, holder: KeyHolder) -> Result<OwnKey, AskKeyError> {
    // A restore may have lost it since it was checked.
    keys.own_key(holder).await?.ok_or(AskKeyError::KeyRefused(KeyRefusal::Unknown))
}

async fn holder(register: &dyn PatientRegister, caller: &Caller) -> Result<KeyHolder, AskKeyError> {
    match register.check_key(caller, CheckedFor::Answer).await? {
        KeyCheck::Active(holder) => Ok(holder),
        KeyCheck::Refused(refusal) => Err(AskKeyError::KeyRefused(refusal)),
    }
}
