//! Requests with a key that were refused: when, from where, with which code, why in a word, which fields broke rules,
//! and under which request id. Nothing of what was sent is among it.

use std::borrow::Cow;
use std::net::IpAddr;

use time::OffsetDateTime;

use crate::keys::answer::AnswerCode;

/// Number of refusals kept for each key, the last ones: enough to find a fault, and few enough for a page.
pub const REFUSALS_KEPT: usize = 100;

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Time at which it was answered.
    pub at: OffsetDateTime,
    /// The code of the answer.
    pub code: AnswerCode,
    /// Reason why it was refused. None: a newer program wrote a reason that this one does not know.
    pub reason: Option<RefusalReason>,
    /// The names of the fields that broke rules.
    pub fields: Vec<Cow<'static, str>>,
    /// True if the request had ordered the failure, as clients under development do.
    pub is_simulated: bool,
    /// The address that the request came from, if it is known.
    pub address: Option<IpAddr>,
    /// The id of the request, which the answer carried.
    pub request_id: String,
}

/// Declares the reasons and the words that they are stored under: one without a word does not compile.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $word:literal,)*) => {
        /// Reason why a request was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(not(feature = "workspace"), non_exhaustive)]
        pub enum RefusalReason {
            $($(#[$doc])* $reason,)*
        }

        impl RefusalReason {
            /// The word it is stored under.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => $word,)*
                }
            }

            /// The reason that is stored under this word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$reason),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    /// The request was not encrypted.
    Unencrypted = "unencrypted",
    /// The key was revoked.
    Revoked = "revoked",
    /// The organisation was suspended.
    Suspended = "suspended",
    /// The key had expired.
    Expired = "expired",
    /// The key was paused.
    Paused = "paused",
    /// The key is accepted only from other networks.
    Elsewhere = "elsewhere",
    /// The key's rate limit was exceeded.
    RateExceeded = "rate-exceeded",
    /// The body was not said to be JSON in UTF-8.
    MediaType = "media-type",
    /// The body was too large.
    TooLarge = "too-large",
    /// The body did not arrive in time.
    TooSlow = "too-slow",
    /// The body, or a header, was not well formed.
    Malformed = "malformed",
    /// Fields broke rules.
    Invalid = "invalid",
    /// The body had members that are no fields, which the request asked to refuse.
    UnknownMembers = "unknown-members",
    /// The idempotency key belongs to a different patient.
    DifferentPatient = "different-patient",
    /// The patient that was created with the idempotency key has been erased.
    Erased = "erased",
    /// More requests were waiting than the service accepts.
    Full = "full",
    /// The database could not be reached.
    Unavailable = "unavailable",
    /// Anything else.
    Unexpected = "unexpected",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_by_its_word_and_nothing_else() {
        for reason in [RefusalReason::Unencrypted, RefusalReason::Invalid, RefusalReason::Unexpected] {
            assert_eq!(RefusalReason::named(reason.as_str()), Some(reason));
        }
        assert_eq!(RefusalReason::named("bored"), None);
    }
}
