//! What proves who someone is: the first step of a sign-in, the proof of a second factor, and what confirms a member
//! who is signed in.

use time::OffsetDateTime;

use crate::accounts::password::PasswordHash;
use crate::accounts::presented::PresentedCode;
use crate::accounts::second_factor::{RecoveryCode, TotpSecret};
use crate::accounts::subject::Subject;
use crate::email_address::EmailAddress;
use crate::token::TokenDigest;

/// The first step of a sign-in, by which an account was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstStep {
    /// The password, which matched this hash.
    Password(PasswordHash),
    /// The provider of single sign-on: this person there, whose verified address this is. An account that was found by
    /// the address is linked to the person, who takes it over.
    Provider(Subject, EmailAddress),
}

impl FirstStep {
    /// The person at the provider, if the step was taken there.
    #[must_use]
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Password(_) => None,
            Self::Provider(subject, _) => Some(subject),
        }
    }
}

/// Proof by which a signed-in member confirms their identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The password, which matched this hash, and where the member has a second factor a proof of it.
    Password(PasswordHash, Option<Proof>),
    /// The provider of single sign-on, at which this person has just signed in anew. Enough for a member without a
    /// second factor; for others it is kept until the proof comes.
    Provider(Subject),
    /// The proof of a second factor, after the provider.
    AfterProvider(Proof),
    /// A passkey, whose signature was checked.
    Passkey {
        /// The digest of the passkey.
        passkey: TokenDigest,
        /// Time at which the session was last confirmed, which the challenge was made of.
        last_confirmed_at: Option<OffsetDateTime>,
    },
}

/// The proof that a member has the second factor. Each works once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The app's code for this half minute, counted as in RFC 6238.
    Step(i64),
    /// The recovery code of this digest.
    RecoveryCode(TokenDigest),
    /// A passkey, whose signature of this sign-in's challenge was checked.
    Passkey(TokenDigest),
}

impl Proof {
    /// Returns what a typed code proves, if it is right: that the member has the app of this secret, or else a recovery
    /// code.
    pub(crate) fn of_code(secret: Option<&TotpSecret>, code: &PresentedCode, now: OffsetDateTime) -> Self {
        let by_app = secret.and_then(|secret| secret.step_of(code, now)).map(Self::Step);
        by_app.unwrap_or_else(|| Self::RecoveryCode(RecoveryCode::digest_of(code)))
    }
}
