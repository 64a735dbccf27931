//! Actions that are refused because of who asks for them, counted by kind, and logged at most once a second for each
//! kind. Neither the log nor the metric names anyone.

use std::time::Instant;

use intake_http::LogPace;
use intake_metrics::{Counter, Kind, MetricsText};

/// Reason why an action is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The member's role does not allow it.
    Role,
    /// The form does not come from a page of the session.
    FormToken,
    /// Another site asked for it.
    CrossSite,
    /// Someone tried to sign in with an address that no account has.
    UnknownAddress,
    /// Someone came back from the provider of single sign-on whom no account is linked to.
    UnknownAtProvider,
}

struct Noted {
    refusal: Refusal,
    kind: &'static str,
    count: Counter,
    pace: LogPace,
}

impl Noted {
    const fn of(refusal: Refusal, kind: &'static str) -> Self {
        Self { refusal, kind, count: Counter::new(), pace: LogPace::new() }
    }

    fn note(&self) {
        self.count.add_one();
        if let Some(suppressed) = self.pace.next(Instant::now()) {
            tracing::info!(kind = self.kind, suppressed, "an action was refused");
        }
    }
}

static NOTED: [Noted; 5] = [
    Noted::of(Refusal::Role, "role"),
    Noted::of(Refusal::FormToken, "form-token"),
    Noted::of(Refusal::CrossSite, "cross-site"),
    Noted::of(Refusal::UnknownAddress, "unknown-address"),
    Noted::of(Refusal::UnknownAtProvider, "unknown-at-provider"),
];

/// Writes the counters.
pub(crate) fn write_metrics(text: &mut MetricsText) {
    let help = "Actions on the dashboard that were refused because of who asked for them, by kind.";
    let mut family = text.family("intake_refused_actions_total", help, Kind::Counter);
    for noted in &NOTED {
        family.sample(&[("kind", noted.kind)], noted.count.get());
    }
}

/// Counts and logs a refusal.
pub(crate) fn note(refusal: Refusal) {
    NOTED.iter().filter(|noted| noted.refusal == refusal).for_each(Noted::note);
}
