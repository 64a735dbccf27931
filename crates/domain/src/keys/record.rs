//! A key as stored, and its status at a given moment.

use time::{Duration, OffsetDateTime};

use crate::ids::KeyId;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::key_age::KeyAge;
use crate::keys::refusal::RefusalReason;
use crate::keys::unusual::REFUSALS_ANNOUNCED_EVERY;
use crate::zone::Zone;

/// Time within which the vendor of a new key usually sends a first request.
pub const INSTALLED_WITHIN: Duration = Duration::days(14);

/// A stored key, as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// A UUID version 7: sorts by creation.
    pub id: KeyId,
    /// The name that its maker gave it.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
    /// Time at which it was made.
    pub created_at: OffsetDateTime,
    /// Time at which a request was last accepted with it, to within about a minute.
    pub last_used_at: Option<OffsetDateTime>,
    /// The address that it was last used from, to within seconds. None: not known, or too long ago.
    pub last_address: Option<String>,
    /// Name by which the client of the last use called itself.
    pub last_program: Option<String>,
    /// Time at which it expires; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The name of the member who made it; none: an operator did.
    pub created_by: Option<String>,
    /// Since when it is refused because its organisation is suspended; none: the organisation is not.
    pub suspended_at: Option<OffsetDateTime>,
    /// Since when it is paused; none: it is not.
    pub paused_at: Option<OffsetDateTime>,
    /// The name of the member who paused it; none: an operator did, or it is not paused.
    pub paused_by: Option<String>,
    /// Time at which it was revoked; none: it was not.
    pub revoked_at: Option<OffsetDateTime>,
    /// The name of the member who revoked it; none: an operator did, or it was not revoked.
    pub revoked_by: Option<String>,
    /// The key that it replaces.
    pub replaces: Option<KeyId>,
    /// Note of the members about it; empty: none.
    pub note: String,
    /// The company or person to call about it; empty: nobody is named.
    pub contact: String,
    /// The networks from which it is accepted.
    pub allowed_networks: AllowedNetworks,
    /// Time at which it was last seen on a connection that was not encrypted, where anybody may have read it.
    pub sent_in_clear_at: Option<OffsetDateTime>,
    /// Time at which members last got the mail that it fell silent.
    pub silence_announced_at: Option<OffsetDateTime>,
    /// Time at which members last got the mail that it is refused more often than usual.
    pub refusals_announced_at: Option<OffsetDateTime>,
    /// Its refusals, if all requests were refused: since it was made, or since members got a mail about its refusals.
    /// None as well where all keys of an organisation are listed.
    pub only_refused: Option<OnlyRefused>,
    /// The key that replaces it and is accepted. None as well where all keys of an organisation are listed.
    pub successor: Option<KeySuccessor>,
}

/// Refusals of a key that no request was accepted with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnlyRefused {
    /// The fields that they named, the most frequent first.
    pub fields: Vec<String>,
    /// The most frequent reason of those that are kept one by one. None: none is kept, or its reason is not known here.
    pub reason: Option<RefusalReason>,
    /// Time of the last one that is kept.
    pub last_at: Option<OffsetDateTime>,
}

/// The key that replaces another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySuccessor {
    /// The id of the new key.
    pub id: KeyId,
    /// True if a request was accepted with the new key.
    pub is_used: bool,
    /// Time for which the old key works after the new one has created a patient.
    pub ends_after: Duration,
}

/// Status of a key at a given moment, and until when or since when not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// Accepted, with no end set.
    Active,
    /// Accepted until its end, which its maker set, or the first patient that its replacement creates.
    ActiveUntil(OffsetDateTime),
    /// Refused since its organisation was suspended, until the organisation is resumed.
    Suspended(OffsetDateTime),
    /// Refused since its organisation paused it, until the organisation resumes it.
    Paused(OffsetDateTime),
    /// Refused since its end.
    Expired(OffsetDateTime),
    /// Refused since it was revoked.
    Revoked(OffsetDateTime),
}

impl KeyStatus {
    /// Returns whether the key is accepted.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::ActiveUntil(_))
    }

    /// Returns whether another key can replace the key: it works or is paused, or has expired and its vendor needs
    /// another.
    #[must_use]
    pub fn can_be_replaced(self) -> bool {
        self.is_active() || matches!(self, Self::Paused(_) | Self::Expired(_))
    }
}

impl KeyRecord {
    /// The key's status at that moment.
    #[must_use]
    pub fn status(&self, now: OffsetDateTime) -> KeyStatus {
        match (self.revoked_at, self.expires_at, self.suspended_at, self.paused_at) {
            (Some(at), ..) => KeyStatus::Revoked(at),
            (None, Some(at), ..) if at <= now => KeyStatus::Expired(at),
            (None, _, Some(at), _) => KeyStatus::Suspended(at),
            (None, _, None, Some(at)) => KeyStatus::Paused(at),
            (None, Some(at), None, None) => KeyStatus::ActiveUntil(at),
            (None, None, None, None) => KeyStatus::Active,
        }
    }

    /// Returns whether the key was revoked or has expired.
    #[must_use]
    pub fn is_over(&self, now: OffsetDateTime) -> bool {
        matches!(self.status(now), KeyStatus::Revoked(_) | KeyStatus::Expired(_))
    }

    /// Returns whether a first request is still to come: no request was accepted with the key, which was made lately or
    /// replaces another one. Nobody knows yet whether such a key is needed.
    #[must_use]
    pub fn is_awaited(&self, now: OffsetDateTime) -> bool {
        self.last_used_at.is_none() && (self.replaces.is_some() || now - self.created_at < INSTALLED_WITHIN)
    }

    /// Returns whether the key is not over, and works longer than this.
    #[must_use]
    pub fn exceeds(&self, age: KeyAge, now: OffsetDateTime) -> bool {
        !self.is_over(now) && !age.allows(self.created_at, self.expires_at)
    }

    /// Returns how many days after the day on which it was made the key works. None: it never expires.
    #[must_use]
    pub fn days(&self, zone: Zone) -> Option<i64> {
        let made = zone.day(self.created_at);
        self.expires_at.map(|at| (zone.day(at - Duration::SECOND) - made).whole_days().max(1))
    }

    /// Returns whether the key fell silent, was announced as such, and has not been used since.
    #[must_use]
    pub fn is_silent(&self, now: OffsetDateTime) -> bool {
        self.silence_announced_at > self.last_used_at && self.status(now).is_active()
    }

    /// Returns whether the key was lately announced as one that is refused more often than usual.
    #[must_use]
    pub fn is_refused_more(&self, now: OffsetDateTime) -> bool {
        let is_lately = |at| now - at < REFUSALS_ANNOUNCED_EVERY;
        self.refusals_announced_at.is_some_and(is_lately) && self.status(now).is_active()
    }

    /// Returns whether the key must be replaced, because it was sent unencrypted and is still accepted.
    #[must_use]
    pub fn must_be_replaced(&self, now: OffsetDateTime) -> bool {
        self.sent_in_clear_at.is_some() && self.status(now).is_active()
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);
    const EARLIER: OffsetDateTime = datetime!(2025-12-03 10:29 UTC);
    const LATER: OffsetDateTime = datetime!(2025-12-03 10:31 UTC);

    fn key(expires_at: Option<OffsetDateTime>, revoked_at: Option<OffsetDateTime>) -> KeyRecord {
        KeyRecord {
            id: KeyId::new(EARLIER, [0; 10]),
            name: "Front desk".to_owned(),
            hint: "abcd".to_owned(),
            created_at: EARLIER,
            last_used_at: None,
            last_address: None,
            last_program: None,
            expires_at,
            created_by: None,
            suspended_at: None,
            paused_at: None,
            paused_by: None,
            revoked_at,
            revoked_by: None,
            replaces: None,
            note: String::new(),
            contact: String::new(),
            allowed_networks: AllowedNetworks::default(),
            sent_in_clear_at: Some(EARLIER),
            silence_announced_at: None,
            refusals_announced_at: None,
            only_refused: None,
            successor: None,
        }
    }

    #[test]
    fn a_key_is_active_until_it_ends_or_is_revoked_whichever_comes_first() {
        for (expires_at, revoked_at, status) in [
            (None, None, KeyStatus::Active),
            (Some(LATER), None, KeyStatus::ActiveUntil(LATER)),
            (Some(NOW), None, KeyStatus::Expired(NOW)),
            (Some(EARLIER), None, KeyStatus::Expired(EARLIER)),
            (None, Some(EARLIER), KeyStatus::Revoked(EARLIER)),
            (Some(EARLIER), Some(EARLIER), KeyStatus::Revoked(EARLIER)),
            (Some(LATER), Some(EARLIER), KeyStatus::Revoked(EARLIER)),
        ] {
            assert_eq!(key(expires_at, revoked_at).status(NOW), status);
        }
    }

    #[test]
    fn a_key_was_made_for_the_days_between_whatever_the_clocks_did() {
        let sydney = "Australia/Sydney".parse().unwrap();
        for (created_at, expires_at, days) in [
            // Made just after midnight, before the end of daylight saving, and just before midnight, before its begin.
            (datetime!(2026-03-16 0:10 +11), datetime!(2026-04-16 0:00 +10), 30),
            (datetime!(2026-09-15 23:50 +10), datetime!(2026-10-16 0:00 +11), 30),
            (datetime!(2026-03-16 9:00 +11), datetime!(2026-06-14 9:00 +10), 90),
            (datetime!(2026-03-16 9:00 +11), datetime!(2026-03-16 10:00 +11), 1),
        ] {
            let made = KeyRecord { created_at, ..key(Some(expires_at), None) };
            assert_eq!(made.days(sydney), Some(days), "{created_at}");
        }
        assert_eq!(key(None, None).days(sydney), None);
    }

    #[test]
    fn an_unused_key_is_awaited_while_it_is_new_or_replaces_another() {
        let old = KeyRecord { created_at: NOW - INSTALLED_WITHIN, ..key(None, None) };
        assert!(!old.is_awaited(NOW));
        assert!(KeyRecord { created_at: EARLIER, ..old.clone() }.is_awaited(NOW));
        let replacement = KeyRecord { replaces: Some(old.id), ..old };
        assert!(replacement.is_awaited(NOW));
        assert!(!KeyRecord { last_used_at: Some(EARLIER), ..replacement }.is_awaited(NOW));
    }

    #[test]
    fn a_paused_key_expires_all_the_same() {
        let paused = |expires_at| KeyRecord { paused_at: Some(EARLIER), ..key(expires_at, None) }.status(NOW);
        assert_eq!(paused(None), KeyStatus::Paused(EARLIER));
        assert_eq!(paused(Some(LATER)), KeyStatus::Paused(EARLIER));
        assert_eq!(paused(Some(NOW)), KeyStatus::Expired(NOW));
        assert!(!paused(None).is_active());
        let suspended = KeyRecord { suspended_at: Some(NOW), paused_at: Some(EARLIER), ..key(None, None) };
        assert_eq!(suspended.status(NOW), KeyStatus::Suspended(NOW), "the operator's refusal comes first");
    }

    #[test]
    fn a_key_that_was_sent_unencrypted_must_be_replaced_while_it_is_active() {
        assert!(key(None, None).must_be_replaced(NOW));
        assert!(key(Some(LATER), None).must_be_replaced(NOW));
        assert!(!key(Some(EARLIER), None).must_be_replaced(NOW));
        assert!(!key(None, Some(EARLIER)).must_be_replaced(NOW));
        assert!(!KeyRecord { sent_in_clear_at: None, ..key(None, None) }.must_be_replaced(NOW));
    }
}
