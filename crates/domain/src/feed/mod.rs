//! The change feed: what was committed to the register since a reader last looked, every patient once. For the clinic's
//! own systems, which read with a database role of their own; the service itself cannot.

pub(crate) mod mark;
pub(crate) mod patient_feed;
pub(crate) mod read;

pub use mark::{FeedRefusal, FeedScope, FeedToken, Mark, Span};
pub use patient_feed::{Change, Erasure, FeedError, Page, PatientFeed, Selection};
pub use read::read_span;
