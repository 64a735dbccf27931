//! What all pages share: the frame, the visitor, what protects them, and the page that is shown when one fails.

pub(crate) mod assets;
pub(crate) mod confirm;
pub(crate) mod confirm_password;
pub(crate) mod destination;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod form_token;
pub(crate) mod guard;
pub(crate) mod moment;
pub(crate) mod session_cookie;
pub(crate) mod shell;
pub(crate) mod throttle;
pub(crate) mod visitor;
