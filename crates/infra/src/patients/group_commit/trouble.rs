//! What keeps a lane from storing, in the words of the database, for the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::Source;

/// The first words are often those of a server that goes away, and the cause is in the next ones.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Words of the database at the last try, if nothing was stored since.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<Said>>);

struct Said {
    last: String,
    told: String,
    told_at: Instant,
}

impl Trouble {
    /// Notes what the database said. Returns whether the log should tell it: the first words, and later other ones.
    pub(crate) fn note(&self, error: &Source, at: Instant) -> bool {
        let last = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let mut noted = self.last();
        if let Some(said) = noted.as_mut()
            && (said.told == last || at < said.told_at + TOLD_AGAIN_AFTER)
        {
            said.last = last;
            return false;
        }
        *noted = Some(Said { told: last.clone(), last, told_at: at });
        true
    }

    /// Something was stored. Returns whether there was trouble until then.
    pub(crate) fn end(&self) -> bool {
        self.last().take().is_some()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.last().is_some()
    }

    /// The cause of a request that got no answer in time.
    pub(crate) fn cause(&self) -> Source {
        match &*self.last() {
            Some(Said { last, .. }) => format!("the last error of the database: {last}").into(),
            None => "the database did not answer before the deadline".into(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_what_was_said_last_in_one_line_until_something_is_stored() {
        let trouble = Trouble::default();
        assert!(!trouble.end() && trouble.cause().to_string().contains("before the deadline"));
        let start = Instant::now();
        assert!(trouble.note(&"connection refused\n\tIs the server running?".into(), start));
        assert_eq!(
            trouble.cause().to_string(),
            "the last error of the database: connection refused Is the server running?"
        );
        assert!(!trouble.note(&"No space left".into(), start));
        assert_eq!(trouble.cause().to_string(), "the last error of the database: No space left");
        assert!(trouble.note(&"No space left".into(), start + TOLD_AGAIN_AFTER), "another cause than was told");
        assert!(!trouble.note(&"No space left".into(), start + 2 * TOLD_AGAIN_AFTER));
        assert!(trouble.is_there() && trouble.end() && !trouble.is_there());
    }
}
