//! What every page has: its frame, who looks at it, what protects it, and what stands in its place when it fails.

pub(crate) mod assets;
pub(crate) mod confirm;
pub(crate) mod error;
pub(crate) mod form_token;
pub(crate) mod guard;
pub(crate) mod moment;
pub(crate) mod session_cookie;
pub(crate) mod shell;
pub(crate) mod throttle;
pub(crate) mod visitor;
