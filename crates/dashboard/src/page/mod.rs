//! What all pages share: the frame, the visitor, what protects them, and the page that is shown when one fails.

pub(crate) mod address;
pub(crate) mod assets;
pub(crate) mod base_url;
pub(crate) mod compression;
pub(crate) mod confirm;
pub(crate) mod cookie;
pub(crate) mod day;
pub(crate) mod destination;
pub(crate) mod draft;
pub(crate) mod environment;
pub(crate) mod error;
pub(crate) mod fault;
pub(crate) mod form_token;
pub(crate) mod guard;
pub(crate) mod invitation_path;
pub(crate) mod moment;
pub(crate) mod notice;
pub(crate) mod number;
pub(crate) mod part;
pub(crate) mod passwords;
pub(crate) mod refusal_records;
pub(crate) mod refused;
pub(crate) mod sent_text;
pub(crate) mod shell;
pub(crate) mod throttle;
pub(crate) mod visitor;
