//! The page on which a person who belongs to several organisations chooses the one whose pages are shown, and switches
//! to another one later.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Form, Query};
use askama::Template;
use intake_domain::{ChooseOutcome, Membership, SessionStore};
use serde::Deserialize;

use crate::account::sign_in::signed_out;
use crate::page::destination::{Destination, Next};
use crate::page::error::{CHOOSE, PageError};
use crate::page::part::Part;
use crate::page::shell::{redirect, render};
use crate::page::visitor::Person;

const SIGN_IN_AGAIN: &str = "Sign in again to open the organisation: one of its administrators ended your sessions.";

#[derive(Template)]
#[template(path = "account/choose_organisation.html")]
struct ChoosePage {
    email: String,
    form_token: String,
    next: Destination,
    /// Each with whether the session is in it.
    memberships: Vec<(Membership, bool)>,
}

#[derive(Deserialize)]
pub(crate) struct ChooseForm {
    form_token: String,
    organisation: String,
    #[serde(default)]
    next: Destination,
}

pub(crate) async fn page(
    person: Person,
    next: Option<Query<Next>>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    let found = sessions.memberships(person.account.id).await?.into_iter();
    let memberships = found.map(|one| {
        let is_current = Some(one.organisation_id) == person.organisation;
        (one, is_current)
    });
    let page = ChoosePage {
        email: person.account.email.to_string(),
        form_token: person.token.form_token(),
        next: next.map(Query::into_inner).unwrap_or_default().next,
        memberships: memberships.collect(),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn choose(
    person: Person,
    form: Form<ChooseForm>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    let ChooseForm { form_token, organisation, next } = form.into_inner();
    person.assert_own_form(&form_token)?;
    let organisation = organisation.parse().map_err(|_| PageError::NotFound)?;
    match sessions.choose(&person.token.digest(), organisation, &person.audit()).await? {
        ChooseOutcome::Chosen => Ok(redirect(next.as_str())),
        ChooseOutcome::SignInAgain => Ok(signed_out(SIGN_IN_AGAIN)),
        // The person was removed from it in the meantime.
        ChooseOutcome::NoSuchOrganisation => Ok(redirect(&next.after(CHOOSE))),
    }
}
