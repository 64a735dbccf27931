//! The last refusals of a key's requests, as its page shows them: moment, status, reason and request id, and nothing of what
//! was sent.

use intake_domain::{Refusal, RefusalReason};

use crate::page::moment::exact;

/// A row of the table.
pub(crate) struct RefusalRow {
    pub(crate) at: String,
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    pub(crate) request_id: String,
}

impl From<Refusal> for RefusalRow {
    fn from(refusal: Refusal) -> Self {
        let reason = refusal.reason.map_or("another reason", phrase);
        Self { at: exact(refusal.at), status: refusal.status, reason, request_id: refusal.request_id }
    }
}

fn phrase(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Unencrypted => "Sent unencrypted",
        RefusalReason::Revoked => "The key was revoked",
        RefusalReason::Expired => "The key had expired",
        RefusalReason::RateExceeded => "Too many requests",
        RefusalReason::MediaType => "Not sent as JSON in UTF-8",
        RefusalReason::TooLarge => "Too large",
        RefusalReason::TooSlow => "Did not arrive in time",
        RefusalReason::Malformed => "Malformed JSON or header",
        RefusalReason::Invalid => "Fields break rules",
        RefusalReason::UnknownMembers => "Unknown members, in strict mode",
        RefusalReason::DifferentPatient => "Idempotency-Key of a different patient",
        RefusalReason::Erased => "Idempotency-Key of an erased patient",
        RefusalReason::Full => "The service was full",
        RefusalReason::Unavailable => "The database could not be reached",
        RefusalReason::Unexpected => "An unexpected error",
    }
}
