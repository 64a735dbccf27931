//! A page outside the frame of the others: of a fault, and about the provider of single sign-on.

use askama::Template;

/// A text, and a link that leads on.
#[derive(Template)]
#[template(path = "page/message.html")]
pub(crate) struct Message<'a> {
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
    /// Id by which operators find the cause in the log.
    pub(crate) request_id: Option<&'a str>,
    /// Whom to give the id to.
    pub(crate) contact: &'a str,
    pub(crate) link: &'a str,
    pub(crate) link_text: &'static str,
}
