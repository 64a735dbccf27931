//! The page that asks for confirmation before something that cannot be undone, or that concerns other people.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;

use crate::page::error::PageError;
use crate::page::shell::{Shell, render};

/// The question, and the form that confirms it.
#[derive(Template)]
#[template(path = "page/confirm.html")]
pub(crate) struct ConfirmPage<'a> {
    pub(crate) shell: Shell,
    pub(crate) title: String,
    pub(crate) text: &'a str,
    pub(crate) action: String,
    pub(crate) button: &'a str,
    pub(crate) is_danger: bool,
    pub(crate) back: &'a str,
}

impl ConfirmPage<'_> {
    /// The page as an answer.
    pub(crate) fn ask(&self) -> Result<HttpResponse, PageError> {
        render(StatusCode::OK, self)
    }
}
