//! What a page that ends a key shows of it first: how it is used, who made it, and what people wrote down about it.

use intake_domain::{KeyActivity, KeyFormat};
use intake_edge as edge;
use time::Duration;

use crate::api_keys::OwnKey;
use crate::api_keys::list::KeyRow;
use crate::page::error::PageError;
use crate::page::number::grouped;

/// A key used within this time is in use: most integrations send something every working day.
const IN_USE: Duration = Duration::DAY;
/// Days of which requests are counted, with today.
const DAYS: i64 = 7;

/// The facts about one key.
pub(crate) struct KeyFacts {
    pub(crate) key: KeyRow,
    pub(crate) note: String,
    /// Requests of the last days, accepted or refused.
    pub(crate) requests: String,
    pub(crate) is_in_use: bool,
}

impl KeyFacts {
    pub(crate) async fn new(own: &OwnKey) -> Result<Self, PageError> {
        let OwnKey { visitor, key, .. } = own;
        let (activity, now) = (visitor.shared::<dyn KeyActivity>()?, edge::now());
        let since = now.date() - Duration::days(DAYS - 1);
        let answers = activity.answers(visitor.organisation(), key.id, since).await?;
        let requests = answers.iter().filter(|answer| answer.field.is_none()).map(|answer| answer.count).sum();
        Ok(Self {
            key: KeyRow::new(key, visitor.shared::<KeyFormat>()?, visitor.signed_in.key_age_max, now),
            note: key.note.clone(),
            requests: grouped(requests),
            is_in_use: key.last_used_at.is_some_and(|at| now - at < IN_USE),
        })
    }
}
