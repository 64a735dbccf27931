//! A form with no other field than the proof that it comes from a page of the visitor's own session, which
//! `Visitor::assert_own_form` checks.

use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct FormToken {
    pub(crate) form_token: String,
}
