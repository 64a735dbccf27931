//! The last refusals of a key's requests, as its page shows them: moment, status, reason, fields, address and
//! request id, and nothing of what was sent.

use intake_domain::{OnlyRefused, Refusal, RefusalReason, Zone};

use crate::page::moment::{Moment, exact};

/// A row of the table.
pub(crate) struct RefusalRow {
    pub(crate) at: Moment,
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    /// The fields that broke rules, separated by commas.
    pub(crate) fields: String,
    pub(crate) is_simulated: bool,
    /// Address from which it came; empty if that is not known.
    pub(crate) address: String,
    pub(crate) request_id: String,
}

impl RefusalRow {
    pub(crate) fn new(refusal: Refusal, zone: Zone) -> Self {
        let reason = refusal.reason.map_or("another reason", phrase);
        let address = refusal.address.map(|address| address.to_string()).unwrap_or_default();
        Self {
            at: exact(refusal.at, zone),
            status: refusal.code.0,
            reason,
            fields: refusal.fields.join(", "),
            is_simulated: refusal.is_simulated,
            address,
            request_id: refusal.request_id,
        }
    }
}

/// Reason why all requests of a key are refused.
pub(crate) struct Cause {
    /// The reason, or the fields; empty if neither is known.
    pub(crate) words: String,
    pub(crate) is_own_setting: bool,
}

impl From<&OnlyRefused> for Cause {
    fn from(OnlyRefused { fields, reason, .. }: &OnlyRefused) -> Self {
        let is_own_setting = reason.is_some_and(is_own_setting);
        let words = match *reason {
            Some(reason) if fields.is_empty() || is_own_setting => phrase(reason).to_owned(),
            _ => fields.join(", "),
        };
        Self { words, is_own_setting }
    }
}

/// Returns whether the clinic's own list of networks refuses, which the vendor can't change.
pub(crate) fn is_own_setting(reason: RefusalReason) -> bool {
    reason == RefusalReason::Elsewhere
}

/// The reason in words.
pub(crate) fn phrase(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Unencrypted => "Sent unencrypted",
        RefusalReason::Revoked => "The key was revoked",
        RefusalReason::Suspended => "The organisation was suspended",
        RefusalReason::Expired => "The key had expired",
        RefusalReason::Paused => "The key was paused",
        RefusalReason::Elsewhere => "From an address that isn't in Allowed networks",
        RefusalReason::RateExceeded => "Too many requests",
        RefusalReason::MediaType => "Not UTF-8 JSON",
        RefusalReason::TooLarge => "Too large",
        RefusalReason::TooSlow => "Did not arrive in time",
        RefusalReason::Malformed => "Malformed JSON or header",
        RefusalReason::Invalid => "Invalid fields",
        RefusalReason::UnknownMembers => "Unknown fields (strict mode)",
        RefusalReason::DifferentPatient => "Idempotency key already used for another patient",
        RefusalReason::Erased => "Idempotency key of an erased patient",
        RefusalReason::Full => "The service was full",
        RefusalReason::Unavailable => "The database could not be reached",
        RefusalReason::Unexpected => "An unexpected error",
    }
}
