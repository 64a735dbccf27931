//! What is known of an answer besides the answer itself. It is carried in the extensions of the answer to the envelope,
//! which records it once.

use std::error::Error;
use std::fmt;

use actix_web::HttpResponse;
use intake_domain::{KeyClient, KeyDigest, RefusalReason, Source};

/// Facts that are recorded of one answer.
#[derive(Debug, Default)]
pub struct Note {
    /// The key of the request, and its client.
    pub(crate) key: Option<(KeyDigest, KeyClient)>,
    /// Reason why a request with a key that exists was refused.
    pub(crate) refusal: Option<RefusalReason>,
    /// Reason why the key was refused, in the word of the metric.
    pub(crate) key_fault: Option<&'static str>,
    /// The fields that a refusal names, the doubts about a patient that was created, or that it was created before.
    pub(crate) fields: Vec<&'static str>,
    /// True if the request had ordered the failure.
    pub(crate) is_simulated: bool,
    /// Reason why the service failed, for the log alone.
    pub(crate) cause: Option<Cause>,
    /// The anchor of the reference at which a refusal is explained.
    pub(crate) help: Option<&'static str>,
}

/// Reason why the service failed.
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

    /// This error and all its sources, in one line.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        let mut text = source.to_string();
        let mut next = Error::source(source.as_ref() as &dyn Error);
        while let Some(source) = next {
            text = format!("{text}: {source}");
            next = source.source();
        }
        Self(text)
    }
}

impl From<Cause> for Note {
    fn from(cause: Cause) -> Self {
        Self { cause: Some(cause), ..Self::default() }
    }
}

impl Note {
    /// Marks an answer as a failure that the request had ordered.
    pub(crate) fn mark_simulated<B>(response: &mut HttpResponse<B>) {
        if let Some(note) = response.extensions_mut().get_mut::<Self>() {
            note.is_simulated = true;
        }
    }

    /// Adds the key of the request and its client to what the answer carries.
    pub(crate) fn add_key<B>(response: &mut HttpResponse<B>, key: (KeyDigest, KeyClient)) {
        let mut extensions = response.extensions_mut();
        match extensions.get_mut::<Self>() {
            Some(note) => note.key = Some(key),
            None => drop(extensions.insert(Self { key: Some(key), ..Self::default() })),
        }
    }
}
