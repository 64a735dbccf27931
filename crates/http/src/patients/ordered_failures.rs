//! Simulated failures, so that integrators see how their program deals with them: in development only, for idempotency
//! keys that begin with `simulate-`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use actix_web::HttpRequest;
use intake_domain::{Environment, IdempotencyKey, KeyDigest};

use crate::connection::progress::Progress;
use crate::problem::Problem;

const PREFIX: &str = "simulate-";
/// Longer than the timeout of the guide's programs.
const SLOW: Duration = Duration::from_secs(20);
const WAIT: Duration = Duration::from_secs(1);
/// Idempotency keys that are remembered until they have failed twice, a few megabytes at most. If there are more, all
/// fail twice again.
const FAILING_MAX: usize = 10_000;

/// Number of creates with these keys that were refused, of those that are to be refused twice.
static FAILED: LazyLock<Mutex<HashMap<(KeyDigest, String), u8>>> = LazyLock::new(Mutex::default);

/// Failure that an idempotency key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    RateExceeded,
    Full,
    FullTwice,
    Erased,
    LostAnswer,
    SlowAnswer,
}

impl Simulated {
    pub(crate) fn of(environment: Environment, key: Option<&IdempotencyKey>) -> Option<Self> {
        if environment == Environment::Production {
            return None;
        }
        let asked = key?.as_str().strip_prefix(PREFIX)?;
        let all = [
            ("429-", Self::RateExceeded),
            ("503-twice-", Self::FullTwice),
            ("503-", Self::Full),
            ("410-", Self::Erased),
            ("lost-answer-", Self::LostAnswer),
            ("slow-answer-", Self::SlowAnswer),
        ];
        all.into_iter().find(|(name, _)| asked.starts_with(name)).map(|(_, simulated)| simulated)
    }

    /// Returns whether creates are refused.
    pub(crate) fn refuses(self) -> bool {
        !matches!(self, Self::LostAnswer | Self::SlowAnswer)
    }

    /// The problem in place of a patient, for a create with these keys. None: the patient is created.
    pub(crate) fn problem(self, key: &KeyDigest, idempotency_key: &IdempotencyKey) -> Option<Problem> {
        match self {
            Self::RateExceeded => Some(Problem::RateExceeded(WAIT)),
            Self::Full => Some(Problem::Full),
            Self::FullTwice => fails_again(key, idempotency_key).then_some(Problem::Full),
            Self::Erased => Some(Problem::Erased),
            Self::LostAnswer | Self::SlowAnswer => None,
        }
    }

    /// Keeps the answer to a create from the client, for some time or for good.
    pub(crate) async fn withhold_answer(self, request: &HttpRequest) {
        match self {
            Self::SlowAnswer => tokio::time::sleep(SLOW).await,
            Self::LostAnswer => {
                if let Some(progress) = request.conn_data::<Rc<Progress>>() {
                    progress.lose_answer();
                }
            }
            Self::RateExceeded | Self::Full | Self::FullTwice | Self::Erased => {}
        }
    }
}

/// Counts a create with these keys. Returns whether it is one of the first two.
fn fails_again(key: &KeyDigest, idempotency_key: &IdempotencyKey) -> bool {
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    if failed.len() >= FAILING_MAX {
        failed.clear();
    }
    let times = failed.entry((*key, idempotency_key.as_str().to_owned())).or_default();
    let fails = *times < 2;
    *times += u8::from(fails);
    fails
}
