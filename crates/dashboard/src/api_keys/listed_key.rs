//! A key in the list, in two lines: what it is called, how it does, and when it ends. Everything else is on its page.

use std::collections::HashMap;

use intake_domain::{
    AnswerCount, Doubt, EXPIRES_SOON, KeyAge, KeyId, KeyQuality, KeyRecord, KeyStatus, SignedIn, Zone,
};
use time::{Date, OffsetDateTime};

use crate::api_keys::key_row::last_refused_at;
use crate::api_keys::refusals::Cause;
use crate::api_keys::sparkline::Sparkline;
use crate::api_keys::usage::CREATED;
use crate::page::moment::{Moment, last_day, relative};
use crate::page::number::grouped;

/// The doubts that the list counts together: a patient whom nobody can call. No number has both.
pub(crate) const UNDIALLABLE: [Doubt; 2] = [Doubt::ZeroAfterCountryCode, Doubt::UnusualNumber];

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

/// A word with a colour, and what is to be known about it.
pub(crate) struct Status {
    pub(crate) class: &'static str,
    pub(crate) word: &'static str,
    pub(crate) note: Option<String>,
    /// Whom to ask, if something is wrong.
    pub(crate) contact: Option<String>,
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
        (key, is_nested): (KeyRecord, bool),
        answers: &[AnswerCount],
        since: Date,
        visitor: &SignedIn,
        now: OffsetDateTime,
    ) -> Self {
        let SignedIn { key_age_max: age, zone, .. } = *visitor;
        let is_over = key.is_over(now);
        let other = match (key.successor, key.replaces) {
            (Some(new), _) if new.is_used && key.expires_at.is_some() => Some((new.id, "Replaced by a key in use")),
            (Some(new), _) => Some((new.id, "Old key, still working")),
            (None, Some(old)) if key.last_used_at.is_none() => Some((old, "New key, waiting for the vendor")),
            (None, _) => None,
        };
        Self {
            id: key.id,
            hint: format!("…{}", key.hint),
            status: Status::new(&key, answers, age, now),
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

impl Status {
    fn new(key: &KeyRecord, answers: &[AnswerCount], age: Option<KeyAge>, now: OffsetDateTime) -> Self {
        let of = |class, word| Self { class, word, note: None, contact: None };
        match key.status(now) {
            KeyStatus::Revoked(_) => of("revoked", "Revoked"),
            KeyStatus::Expired(_) => of("expired", "Expired"),
            KeyStatus::Suspended(_) => of("suspended", "Suspended"),
            KeyStatus::Paused(_) => of("paused", "Paused"),
            KeyStatus::ActiveUntil(_) | KeyStatus::Active => Self::active(key, answers, age, now),
        }
    }

    /// The gravest of what is wrong with an active key.
    fn active(key: &KeyRecord, answers: &[AnswerCount], age: Option<KeyAge>, now: OffsetDateTime) -> Self {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let noted = |class, word, note: String| Self { class, word, note: some(&note), contact: some(&key.contact) };
        if key.must_be_replaced(now) {
            return noted("bad", "Replace now", "Sent unencrypted".to_owned());
        }
        if let Some(refused) = &key.only_refused {
            let Cause { words, is_own_setting } = Cause::from(refused);
            let status = noted("bad", "Only refusals", words);
            // The vendor can't change what the clinic has set.
            return if is_own_setting { Self { contact: None, ..status } } else { status };
        }
        if key.is_refused_more(now) {
            return noted("warn", "Often refused", "More than usual".to_owned());
        }
        if key.is_silent(now) {
            return noted("warn", "Silent", "Longer than usual".to_owned());
        }
        if let Some(note) = undiallable(&KeyQuality::new(answers, CREATED)) {
            return noted("warn", "Check numbers", note);
        }
        let too_long = age.filter(|age| key.exceeds(*age, now)).map(|age| format!("Works longer than {age}"));
        Self { contact: None, ..noted("active", "Active", too_long.unwrap_or_default()) }
    }
}

fn undiallable(quality: &KeyQuality) -> Option<String> {
    let counts = quality.doubts.iter().filter(|(doubt, _)| UNDIALLABLE.contains(doubt));
    let count: u64 = counts.filter_map(|(_, count)| *count).sum();
    let note = || format!("{} of {} numbers can't be dialled", grouped(count), grouped(quality.patients));
    (count > 0).then(note)
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
