//! What is measured here: how attempts to sign in ended, and what was refused.

use intake_metrics::{Counter, Kind, MetricsText};

use crate::page::refused;

/// Outcome of an attempt to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInOutcome {
    SignedIn,
    /// The password was right, and a code is asked for.
    CodeNeeded,
    WrongPair,
    WrongCode,
    /// Single sign-on failed at the provider, or no account has the address.
    Refused,
    /// Refused without a look at the password or code: there were too many attempts.
    Limited,
}

const OUTCOMES: [(SignInOutcome, &str); 6] = [
    (SignInOutcome::SignedIn, "signed-in"),
    (SignInOutcome::CodeNeeded, "code-needed"),
    (SignInOutcome::WrongPair, "wrong-pair"),
    (SignInOutcome::WrongCode, "wrong-code"),
    (SignInOutcome::Refused, "refused"),
    (SignInOutcome::Limited, "limited"),
];

static SIGN_INS: [Counter; OUTCOMES.len()] = [const { Counter::new() }; OUTCOMES.len()];

/// Writes all metrics of this crate.
pub fn write_metrics(text: &mut MetricsText) {
    let mut family = text.family("intake_sign_ins_total", "Attempts to sign in, by how they ended.", Kind::Counter);
    for ((_, outcome), count) in OUTCOMES.into_iter().zip(&SIGN_INS) {
        family.sample(&[("outcome", outcome)], count.get());
    }
    refused::write_metrics(text);
}

/// Counts an attempt.
pub(crate) fn note_sign_in(outcome: SignInOutcome) {
    let index = OUTCOMES.iter().position(|(known, _)| *known == outcome);
    index.and_then(|index| SIGN_INS.get(index)).into_iter().for_each(Counter::add_one);
}
