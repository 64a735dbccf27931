//! Why a request failed: carried in the extensions of its answer to the place where that is logged.

use std::error::Error;
use std::fmt;

use intake_domain::Source;

/// Why a request failed: for the log alone, which finds it in the answer's extensions.
#[derive(Debug)]
pub struct Cause(String);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Cause {
    /// More requests are waiting than the service accepts.
    #[must_use]
    pub fn full() -> Self {
        Self("the service is full".to_owned())
    }

    /// This error and all its sources.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        Self(chain(source.as_ref()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// An error and all its sources, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}
