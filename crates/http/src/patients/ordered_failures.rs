//! Failures to order, so that integrators see how their program deals with them. In development alone, and only for
//! idempotency keys with a prefix that no product has as its name.

use std::rc::Rc;
use std::time::Duration;

use actix_web::HttpRequest;
use intake_domain::{Environment, IdempotencyKey};

use crate::connection::progress::Progress;
use crate::problem::Problem;

const PREFIX: &str = "simulate-";
/// Longer than programs wait that follow the guide.
const SLOW: Duration = Duration::from_secs(20);
const WAIT: Duration = Duration::from_secs(1);

/// Failure that an idempotency key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simulated {
    RateExceeded,
    Full,
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
            ("503-", Self::Full),
            ("410-", Self::Erased),
            ("lost-answer-", Self::LostAnswer),
            ("slow-answer-", Self::SlowAnswer),
        ];
        all.into_iter().find(|(name, _)| asked.starts_with(name)).map(|(_, simulated)| simulated)
    }

    /// The problem in place of a patient. None: the patient is created.
    pub(crate) fn problem(self) -> Option<Problem> {
        match self {
            Self::RateExceeded => Some(Problem::RateExceeded(WAIT)),
            Self::Full => Some(Problem::Full),
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
            Self::RateExceeded | Self::Full | Self::Erased => {}
        }
    }
}
