//! The page that asks for confirmation before something that cannot be undone.

use askama::Template;

use crate::page::shell::Shell;

/// The question, and the form that confirms it.
#[derive(Template)]
#[template(path = "page/confirm.html")]
pub(crate) struct ConfirmPage<'a> {
    pub(crate) shell: Shell,
    pub(crate) title: String,
    pub(crate) text: &'a str,
    pub(crate) action: String,
    pub(crate) button: &'a str,
    pub(crate) back: &'a str,
}
