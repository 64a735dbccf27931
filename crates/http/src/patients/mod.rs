//! The operations on patients, from the headers and the body to the answer.

pub(crate) mod admission;
pub(crate) mod bearer;
pub(crate) mod body;
pub(crate) mod content_type;
pub(crate) mod create;
pub(crate) mod created;
pub(crate) mod ordered_failures;
pub(crate) mod prefer;
pub(crate) mod rate_limit;
