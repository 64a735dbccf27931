//! What keeps a lane from storing, in the words of the database, for the log.

use std::sync::{Mutex, MutexGuard, PoisonError};

use intake_domain::Source;

/// Words of the database at the last try, if nothing was stored since.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<String>>);

impl Trouble {
    /// Notes what the database said. Returns whether the trouble begins.
    pub(crate) fn note(&self, error: &Source) -> bool {
        let said = error.to_string();
        self.last().replace(said.split_whitespace().collect::<Vec<_>>().join(" ")).is_none()
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
            Some(said) => format!("the last error of the database: {said}").into(),
            None => "the database did not answer before the deadline".into(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<String>> {
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
        assert!(trouble.note(&"connection refused\n\tIs the server running?".into()));
        assert_eq!(
            trouble.cause().to_string(),
            "the last error of the database: connection refused Is the server running?"
        );
        assert!(!trouble.note(&"No space left".into()));
        assert_eq!(trouble.cause().to_string(), "the last error of the database: No space left");
        assert!(trouble.is_there() && trouble.end() && !trouble.is_there());
    }
}
