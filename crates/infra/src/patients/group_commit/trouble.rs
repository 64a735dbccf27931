//! What keeps a lane from storing, in the words of the database, for the log.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::Source;

/// The first words are often those of a server that goes away, and the cause is in the next ones.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Words of the database at the last try, if nothing was stored since, and when something was.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    said: Option<Said>,
    stored_at: Option<Instant>,
}

struct Said {
    last: String,
    told: String,
    told_at: Instant,
}

impl Trouble {
    /// Notes what the database said. Returns whether the log should tell it: the first words, and later other ones.
    pub(crate) fn note(&self, error: &Source, at: Instant) -> bool {
        let last = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let mut noted = self.noted();
        if let Some(said) = noted.said.as_mut()
            && (said.told == last || at < said.told_at + TOLD_AGAIN_AFTER)
        {
            said.last = last;
            return false;
        }
        noted.said = Some(Said { told: last.clone(), last, told_at: at });
        true
    }

    /// Something was stored. Returns whether there was trouble until then.
    pub(crate) fn end(&self, at: Instant) -> bool {
        let mut noted = self.noted();
        noted.stored_at = Some(at);
        noted.said.take().is_some()
    }

    pub(crate) fn is_there(&self) -> bool {
        self.noted().said.is_some()
    }

    /// Returns whether something was stored after this moment, and the database has not complained since.
    pub(crate) fn has_stored_since(&self, moment: Instant) -> bool {
        let noted = self.noted();
        noted.said.is_none() && noted.stored_at.is_some_and(|at| at > moment)
    }

    /// The cause of a request that got no answer in time.
    pub(crate) fn cause(&self) -> Source {
        match &self.noted().said {
            Some(Said { last, .. }) => format!("the last error of the database: {last}").into(),
            None => "the database did not answer before the deadline".into(),
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_what_was_said_last_in_one_line_until_something_is_stored() {
        let (trouble, start) = (Trouble::default(), Instant::now());
        assert!(!trouble.end(start) && trouble.cause().to_string().contains("before the deadline"));
        assert!(trouble.note(&"connection refused\n\tIs the server running?".into(), start));
        assert_eq!(
            trouble.cause().to_string(),
            "the last error of the database: connection refused Is the server running?"
        );
        assert!(!trouble.note(&"No space left".into(), start));
        assert_eq!(trouble.cause().to_string(), "the last error of the database: No space left");
        assert!(trouble.note(&"No space left".into(), start + TOLD_AGAIN_AFTER), "another cause than was told");
        assert!(!trouble.note(&"No space left".into(), start + 2 * TOLD_AGAIN_AFTER));
        assert!(trouble.is_there() && trouble.end(start) && !trouble.is_there());
    }

    #[test]
    fn what_was_stored_counts_from_then_on_until_the_database_complains() {
        let (trouble, start) = (Trouble::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(!trouble.has_stored_since(start), "nothing yet");
        trouble.end(start + second);
        assert!(trouble.has_stored_since(start) && !trouble.has_stored_since(start + second));
        trouble.note(&"No space left".into(), start + 2 * second);
        assert!(!trouble.has_stored_since(start));
        trouble.end(start + 3 * second);
        assert!(trouble.has_stored_since(start));
    }
}
