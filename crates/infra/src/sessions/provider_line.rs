//! The line before the provider of single sign-on. Made-up codes make the provider slow for everybody else, so
//! they wait in the same order as passwords do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use intake_domain::{ProviderError, Requester};
use tokio::sync::oneshot;

use crate::accounts::fair_queue::{FairQueue, Pushed};
use crate::metrics::PROVIDER_QUEUE_LENGTH;

/// Number of requesters that ask the provider at once, each on a thread: far more than people who sign in within the
/// same second, and few enough to hang for as long as they like.
const THREADS: usize = 8;
/// The longest time that a person waits for a turn.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Request of one requester to the provider.
type Job = Box<dyn FnOnce() + Send>;

/// The line, and the threads that take from it until it is dropped.
pub(crate) struct ProviderLine(Arc<FairQueue<Job>>);

impl ProviderLine {
    pub(crate) fn start() -> std::io::Result<Self> {
        let line = Self(Arc::new(FairQueue::new(&PROVIDER_QUEUE_LENGTH)));
        for _ in 0..THREADS {
            let queue = Arc::clone(&line.0);
            let take = move || {
                while let Some(job) = queue.next() {
                    // Its requester learns of the panic, and the others still have a thread.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            };
            Builder::new().name("single-sign-on".to_owned()).spawn(take)?;
        }
        Ok(line)
    }

    /// Does the work when it is the requester's turn, and waits for as long as it may take by then.
    pub(crate) async fn run_in_turn<T: Send + 'static>(
        &self,
        requester: Requester,
        takes: Duration,
        work: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let (answer, answered) = oneshot::channel();
        let latest = Instant::now() + WAIT_MAX;
        let job = move || {
            if !answer.is_closed() {
                let _ = answer.send(if Instant::now() < latest { work() } else { Err(ProviderError::Full) });
            }
        };
        if self.0.push(requester, Box::new(job)) != Pushed::Queued {
            return Err(ProviderError::Full);
        }
        let unavailable = |why: &str| ProviderError::Unavailable(why.into());
        let done = tokio::time::timeout(WAIT_MAX + takes, answered).await.map_err(|_| unavailable("it hangs"))?;
        done.map_err(|_| unavailable("the thread that asked it has failed"))?
    }
}

impl Drop for ProviderLine {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use intake_domain::Network;

    use super::*;

    const TAKES: Duration = Duration::from_secs(60);

    fn stranger(third: u8) -> Requester {
        Requester::Stranger(Network::of_site(Some([10, 0, third, 1].into())))
    }

    #[test]
    fn a_step_that_panics_fails_alone() {
        let line = ProviderLine::start().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for number in 0..2 * u8::try_from(THREADS).unwrap() {
                let failed = line.run_in_turn::<()>(stranger(number), TAKES, || panic!("a defect")).await;
                assert!(matches!(failed, Err(ProviderError::Unavailable(_))));
            }
            assert_eq!(line.run_in_turn(stranger(0), TAKES, || Ok(7)).await.unwrap(), 7);
        });
    }
}
