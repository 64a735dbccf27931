//! What the pages about one key say of it.

use intake_domain::{AnswerCount, EXPIRES_SOON, KeyAge, KeyFormat, KeyRecord, KeyStatus, SignedIn, Zone};
use time::{Duration, OffsetDateTime};

use crate::api_keys::answers;
use crate::api_keys::refusals::Cause;
use crate::api_keys::status::Status;
use crate::page::moment::{Moment, end, exact, relative};

/// A key that was not used for so long may have been forgotten.
const UNUSED: Duration = Duration::days(30);

pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) created_at: Moment,
    pub(crate) created_by: String,
    pub(crate) last_used_at: Option<Moment>,
    /// For how long nothing has used the key, if that is long.
    pub(crate) unused: Option<String>,
    /// The address that the key was last used from, and what the client called itself.
    pub(crate) last_address: Option<String>,
    pub(crate) last_program: Option<String>,
    /// The networks from which the key is accepted, if not from any.
    pub(crate) networks: Option<String>,
    pub(crate) status: Status,
    /// Time since which the key is refused.
    pub(crate) status_at: Option<Moment>,
    /// Time at which a key expires that is not over.
    pub(crate) until: Option<Moment>,
    /// Who revoked or paused the key.
    pub(crate) ended_by: Option<String>,
    pub(crate) is_revoked: bool,
    pub(crate) is_paused: bool,
    pub(crate) can_be_replaced: bool,
    pub(crate) must_be_replaced: bool,
    /// The time that the organisation allows, if the key works longer.
    pub(crate) too_long: Option<KeyAge>,
    /// Reason why all requests are refused, if they are.
    pub(crate) only_refused: Option<Cause>,
    /// Time of the last refusal, if nothing was ever accepted.
    pub(crate) last_refused_at: Option<Moment>,
    /// Text about refusals that are frequent, but not all there is.
    pub(crate) often_refused: Option<String>,
    /// Time at which the key expires, if that is soon.
    pub(crate) expires_soon_at: Option<Moment>,
    pub(crate) is_over: bool,
    /// Time at which it expired, if it was not revoked since.
    pub(crate) expired_at: Option<Moment>,
}

impl KeyRow {
    pub(crate) fn new(
        key: &KeyRecord,
        answers: &[AnswerCount],
        format: &KeyFormat,
        visitor: &SignedIn,
        now: OffsetDateTime,
    ) -> Self {
        let SignedIn { key_age_max: age, zone, .. } = *visitor;
        let [exact, relative, end] = [exact, relative, end].map(|form| move |at| form(at, zone));
        let status_at = refused_since(key.status(now)).map(exact);
        let is_over = key.is_over(now);
        let by = |name: &Option<String>| name.clone().unwrap_or_else(|| "the service operator".to_owned());
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            hint: format!("{}…{}", format.head(), key.hint),
            created_at: exact(key.created_at),
            created_by: by(&key.created_by),
            last_used_at: key.last_used_at.map(relative),
            unused: unused(key, now).filter(|_| !is_over && !key.is_awaited(now) && last_refused_at(key).is_none()),
            last_address: key.last_address.clone(),
            last_program: key.last_program.clone(),
            networks: Some(key.allowed_networks.to_string()).filter(|_| !key.allowed_networks.are_any()),
            status: Status::new(key, answers, visitor, now),
            status_at,
            ended_by: match key.status(now) {
                KeyStatus::Revoked(_) => Some(by(&key.revoked_by)),
                KeyStatus::Paused(_) => Some(by(&key.paused_by)),
                _ => None,
            },
            until: key.expires_at.filter(|_| !is_over).map(end),
            is_revoked: key.revoked_at.is_some(),
            is_paused: key.paused_at.is_some(),
            can_be_replaced: key.successor.is_none() && key.status(now).can_be_replaced(),
            must_be_replaced: key.must_be_replaced(now),
            only_refused: key.only_refused.as_ref().filter(|_| key.status(now).is_active()).map(Cause::from),
            last_refused_at: last_refused_at(key).map(exact),
            often_refused: often_refused(key, answers, zone, now),
            too_long: age.filter(|age| key.exceeds(*age, now)),
            expires_soon_at: key.expires_at.filter(|at| !is_over && *at - now <= EXPIRES_SOON).map(relative),
            is_over,
            expired_at: status_at.filter(|_| matches!(key.status(now), KeyStatus::Expired(_))),
        }
    }
}

fn refused_since(status: KeyStatus) -> Option<OffsetDateTime> {
    match status {
        KeyStatus::Revoked(at) | KeyStatus::Suspended(at) | KeyStatus::Paused(at) | KeyStatus::Expired(at) => Some(at),
        KeyStatus::ActiveUntil(_) | KeyStatus::Active => None,
    }
}

/// Time of a key's last refusal, if nothing was ever accepted with it.
pub(crate) fn last_refused_at(key: &KeyRecord) -> Option<OffsetDateTime> {
    key.only_refused.as_ref().filter(|_| key.last_used_at.is_none())?.last_at
}

/// Text about frequent refusals: members got a mail about them lately, or they are half of the requests.
fn often_refused(key: &KeyRecord, answers: &[AnswerCount], zone: Zone, now: OffsetDateTime) -> Option<String> {
    let is_some = key.status(now).is_active() && key.only_refused.is_none();
    let more = key.is_refused_more(now).then(|| "more often than usual".to_owned());
    more.or_else(|| answers::often_refused(answers, zone.day(now))).filter(|_| is_some)
}

/// For how long nothing has used a key, if that is long, or longer than usual.
fn unused(key: &KeyRecord, now: OffsetDateTime) -> Option<String> {
    let since = key.last_used_at.unwrap_or(key.created_at);
    let days = (now - since).whole_days();
    let words = if key.last_used_at.is_some() { "Unused for" } else { "Never used in" };
    let longer = if key.is_silent(now) { ", longer than usual" } else { "" };
    (now - since >= UNUSED || key.is_silent(now)).then(|| format!("{words} {days} days{longer}"))
}
