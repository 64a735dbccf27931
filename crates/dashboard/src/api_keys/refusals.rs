//! The last refusals of a key's requests, as its page shows them: moment, status, reason, fields, address and
//! request id, and nothing of what was sent.

use intake_domain::{OnlyRefused, Refusal, RefusalReason, Zone};

use crate::page::moment::{Moment, day_and_time, exact};
use crate::page::patient_field::fields_in_words;

/// A row of the table.
pub(crate) struct RefusalRow {
    pub(crate) at: Moment,
    /// The same with its day, for a reader of another day.
    pub(crate) dated: String,
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    /// The fields that broke rules, separated by commas.
    pub(crate) fields: String,
    /// The fields as developers know them.
    pub(crate) names: String,
    pub(crate) is_simulated: bool,
    /// Address from which it came; empty if that is not known.
    pub(crate) address: String,
    pub(crate) request_id: String,
}

impl RefusalRow {
    pub(crate) fn new(refusal: Refusal, zone: Zone) -> Self {
        let reason = refusal.reason.map_or("another reason", |reason| phrase(reason).words);
        let address = refusal.address.map(|address| address.to_string()).unwrap_or_default();
        Self {
            at: exact(refusal.at, zone),
            dated: day_and_time(refusal.at, zone),
            status: refusal.code.0,
            reason,
            fields: fields_in_words(refusal.fields.iter().map(AsRef::as_ref)),
            names: refusal.fields.join(", "),
            is_simulated: refusal.is_simulated,
            address,
            request_id: refusal.request_id,
        }
    }
}

/// Reason why all requests of a key are refused.
pub(crate) struct Cause {
    /// "Missing or wrong" before fields, "Reason" before a reason.
    pub(crate) label: &'static str,
    /// The reason, or the fields; empty if neither is known.
    pub(crate) words: String,
    pub(crate) is_own_setting: bool,
}

impl From<&OnlyRefused> for Cause {
    fn from(OnlyRefused { fields, reason, .. }: &OnlyRefused) -> Self {
        let is_own_setting = reason.is_some_and(is_own_setting);
        let (label, words) = match *reason {
            Some(reason) if fields.is_empty() || is_own_setting => ("Reason", phrase(reason).words.to_owned()),
            _ => ("Missing or wrong", fields_in_words(fields.iter().map(String::as_str))),
        };
        Self { label, words, is_own_setting }
    }
}

/// Returns whether the clinic's own list of networks refuses, which the vendor can't change.
pub(crate) fn is_own_setting(reason: RefusalReason) -> bool {
    reason == RefusalReason::Elsewhere
}

/// A kind of refusal for people who do not send requests themselves.
pub(crate) struct Phrase {
    pub(crate) words: &'static str,
    /// Meaning, and who mends it.
    pub(crate) meaning: &'static str,
}

/// The reason in words.
pub(crate) fn phrase(reason: RefusalReason) -> Phrase {
    const VENDOR: &str = "A mistake of the sending software: its vendor must fix it.";
    const RESENT: &str = "The sending software must wait and send the patient again. If it doesn't, tell its vendor.";
    const FAULT: &str = "A fault of this service: ask the service operator. Most software sends the patient again.";
    let (words, meaning) = match reason {
        RefusalReason::Unencrypted => {
            ("Sent unencrypted", "Others may have read the key: replace it. The vendor must use https.")
        }
        RefusalReason::Revoked => ("The key was revoked", "The vendor must use another key."),
        RefusalReason::Suspended => ("The organisation was suspended", "Ask the service operator."),
        RefusalReason::Expired => ("The key had expired", "Replace it, and give the vendor the new key."),
        RefusalReason::Paused => ("The key was paused", "Resume it when patients may be received again."),
        RefusalReason::Elsewhere => (
            "From an address that isn't in Allowed networks",
            "If the vendor has moved, change the allowed networks of the key. If not, someone else may have the key.",
        ),
        RefusalReason::RateExceeded => ("Too many requests", RESENT),
        RefusalReason::MediaType => ("Not UTF-8 JSON", VENDOR),
        RefusalReason::TooLarge => ("Too large", VENDOR),
        RefusalReason::TooSlow => ("Did not arrive in time", RESENT),
        RefusalReason::Malformed => ("Malformed JSON or header", VENDOR),
        RefusalReason::Invalid => (
            "Details in the wrong form",
            "Such as a phone number without +61, or a missing name. The vendor must fix it.",
        ),
        RefusalReason::UnknownMembers => (
            "Unknown fields (strict mode)",
            "The sending software sends details that are not stored here: its vendor must leave them out.",
        ),
        RefusalReason::DifferentPatient => ("Idempotency key already used for another patient", VENDOR),
        RefusalReason::Erased => (
            "Idempotency key of an erased patient",
            "This patient was erased here, and the software sent them again. They stay erased.",
        ),
        RefusalReason::Full => ("The service was full", RESENT),
        RefusalReason::Unavailable => ("The database could not be reached", RESENT),
        RefusalReason::Unexpected => ("An unexpected error", FAULT),
    };
    Phrase { words, meaning }
}

/// Returns what a status says, where refusals with several reasons have it or none is kept.
pub(crate) fn phrase_of_status(status: u16) -> Phrase {
    match status {
        400 => phrase(RefusalReason::Malformed),
        401 => Phrase {
            words: "Key not accepted",
            meaning: "The key did not work at that time, or not from that address: see its status above.",
        },
        408 => phrase(RefusalReason::TooSlow),
        410 => phrase(RefusalReason::Erased),
        413 => phrase(RefusalReason::TooLarge),
        415 => phrase(RefusalReason::MediaType),
        422 => phrase(RefusalReason::Invalid),
        426 => phrase(RefusalReason::Unencrypted),
        429 => phrase(RefusalReason::RateExceeded),
        _ => Phrase { words: "Not answered by the service", ..phrase(RefusalReason::Unexpected) },
    }
}
