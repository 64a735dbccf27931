//! A key in the list, in two lines: what it is called, how it does, and when it ends. Everything else is on its page.

use std::collections::HashMap;

use intake_domain::{AnswerCount, EXPIRES_SOON, KeyId, KeyRecord, KeyStatus, SignedIn, Zone};
use time::{Date, OffsetDateTime};

use crate::api_keys::key_row::last_refused_at;
use crate::api_keys::sparkline::Sparkline;
use crate::api_keys::status::Status;
use crate::page::moment::{Moment, last_day, relative};

pub(crate) struct ListedKey {
    pub(crate) id: KeyId,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) status: Status,
    pub(crate) use_of_it: Sparkline,
    pub(crate) last_used_at: Option<Moment>,
    /// Time of the last refusal, if nothing was ever accepted.
    pub(crate) last_refused_at: Option<Moment>,
    pub(crate) expires: Expires,
    pub(crate) is_over: bool,
    pub(crate) is_paused: bool,
    pub(crate) can_be_replaced: bool,
    /// The key that replaces this one, or that this one replaces, and what is between them.
    pub(crate) other: Option<(KeyId, &'static str)>,
    /// True if it follows the key that replaces it.
    pub(crate) is_nested: bool,
}

pub(crate) enum Expires {
    Never,
    At(Moment),
    Soon(Moment),
    /// It was revoked before.
    Over,
}

/// The keys of a page in their order, but each one that was replaced after its successor, if that is there.
pub(crate) fn nested(keys: Vec<KeyRecord>) -> Vec<(KeyRecord, bool)> {
    let place: HashMap<KeyId, usize> = keys.iter().enumerate().map(|(index, key)| (key.id, index)).collect();
    let successor = |key: &KeyRecord| key.successor.and_then(|successor| place.get(&successor.id).copied());
    let placed =
        keys.iter().enumerate().map(|(index, key)| (successor(key).unwrap_or(index), successor(key).is_some()));
    let placed: Vec<_> = placed.collect();
    let mut all: Vec<_> = placed.into_iter().zip(keys).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|((_, is_nested), key)| (key, is_nested)).collect()
}

impl ListedKey {
    pub(crate) fn new(
        key: KeyRecord,
        is_nested: bool,
        answers: &[AnswerCount],
        since: Date,
        visitor: &SignedIn,
        now: OffsetDateTime,
    ) -> Self {
        let (zone, is_over) = (visitor.zone, key.is_over(now));
        let other = match (key.successor, key.replaces) {
            (Some(new), _) if new.is_used && key.expires_at.is_some() => Some((new.id, "Replaced by a key in use")),
            (Some(new), _) if key.status(now).is_active() => Some((new.id, "Old key, still working")),
            (Some(new), _) => Some((new.id, "Old key, replaced")),
            (None, Some(old)) if key.last_used_at.is_none() => Some((old, "New key, not used yet")),
            (None, _) => None,
        };
        Self {
            id: key.id,
            hint: format!("…{}", key.hint),
            status: Status::new(&key, answers, visitor, now),
            use_of_it: Sparkline::new(answers, since),
            last_used_at: key.last_used_at.map(|at| relative(at, zone)),
            last_refused_at: last_refused_at(&key).map(|at| relative(at, zone)),
            expires: Expires::new(&key, zone, now),
            is_over,
            is_paused: key.paused_at.is_some(),
            can_be_replaced: key.successor.is_none() && key.status(now).can_be_replaced(),
            other: other.filter(|_| !is_over),
            is_nested,
            name: key.name,
        }
    }
}

impl Expires {
    fn new(key: &KeyRecord, zone: Zone, now: OffsetDateTime) -> Self {
        match (key.status(now), key.expires_at) {
            (KeyStatus::Revoked(_), _) => Self::Over,
            (_, None) => Self::Never,
            (status, Some(at)) if status.is_active() && at - now <= EXPIRES_SOON => Self::Soon(relative(at, zone)),
            (_, Some(at)) => Self::At(last_day(at, zone)),
        }
    }
}
