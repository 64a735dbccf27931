//! Signing in by single sign-on, and confirming by it who is signed in.

use actix_web::http::StatusCode;
use actix_web::web::Query;
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    ConfirmError, Identity, MemberStore, OrganisationId, ProviderSignIn, SessionStore, Token, confirm_by_provider,
    sign_in_by_provider,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::provider::{Errand, explain, leave};
use crate::account::sign_in::{code_needed, signed_in_at};
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::{Destination, Next};
use crate::page::error::PageError;
use crate::page::passwords::has_passwords;
use crate::page::shell::{redirect, render};
use crate::page::visitor::{Newcomer, origin, shared};

#[derive(Template)]
#[template(path = "account/provider_accounts.html")]
struct AccountsPage {
    email: String,
    /// The names of the organisations, and the links by which one signs in there.
    organisations: Vec<(String, String)>,
}

#[derive(Default, Deserialize)]
pub(crate) struct BeginQuery {
    #[serde(default)]
    next: Destination,
    organisation: Option<String>,
    anew: Option<String>,
}

pub(crate) async fn begin(request: HttpRequest, query: Option<Query<BeginQuery>>) -> Result<HttpResponse, PageError> {
    let BeginQuery { next, organisation, anew } = query.map(Query::into_inner).unwrap_or_default();
    let organisation = organisation.and_then(|id| id.parse::<OrganisationId>().ok());
    leave(&request, &Errand::SignIn { next, organisation, is_anew: anew.is_some() }).await
}

pub(crate) async fn begin_confirmation(
    request: HttpRequest,
    _: Newcomer,
    next: Option<Query<Next>>,
) -> Result<HttpResponse, PageError> {
    let next = next.map(Query::into_inner).unwrap_or_default().next;
    leave(&request, &Errand::Confirm { next }).await
}

pub(crate) async fn sign_in(
    request: &HttpRequest,
    identity: &Identity,
    next: &Destination,
    organisation: Option<OrganisationId>,
) -> Result<HttpResponse, PageError> {
    let ports = (shared::<dyn MemberStore>(request)?, shared::<dyn SessionStore>(request)?);
    let token = Token::new(edge::random());
    match sign_in_by_provider(ports, identity, organisation, &token, origin(request)).await? {
        ProviderSignIn::Complete => {
            note_sign_in(SignInOutcome::SignedIn);
            Ok(signed_in_at(request, next, &token))
        }
        ProviderSignIn::CodeNeeded => {
            note_sign_in(SignInOutcome::CodeNeeded);
            Ok(code_needed(next, &token))
        }
        ProviderSignIn::SeveralAccounts(organisations) => {
            let next = next.encoded();
            let link = |id| format!("/sign-in/provider?organisation={id}&next={next}");
            let organisations =
                organisations.into_iter().map(|one| (one.organisation_name, link(one.organisation_id))).collect();
            render(StatusCode::OK, &AccountsPage { email: identity.email.to_string(), organisations })
        }
        ProviderSignIn::NoAccount => {
            note_sign_in(SignInOutcome::Refused);
            let title = format!("No account for {}", identity.email);
            let text =
                "No account here has this email address. Ask an administrator at your organisation for an invitation.";
            let anew = Errand::SignIn { next: next.clone(), organisation: None, is_anew: true };
            explain(StatusCode::FORBIDDEN, &title, text, &anew)
        }
    }
}

pub(crate) async fn confirm(
    request: &HttpRequest,
    identity: &Identity,
    next: &Destination,
    errand: &Errand,
) -> Result<HttpResponse, PageError> {
    let Newcomer(visitor) = Newcomer::extract(request).await?;
    let sessions = shared::<dyn SessionStore>(request)?;
    match confirm_by_provider(sessions, &visitor.signed_in, &visitor.token, identity, visitor.origin()).await {
        Ok(()) => Ok(redirect(next.as_str())),
        // Now the code is asked for.
        Err(ConfirmError::NotEnough) => Ok(redirect(&next.after("/settings/confirm"))),
        Err(ConfirmError::Store(error)) => Err(error.into()),
        Err(_) => {
            let text = match identity.authenticated_at {
                None => format!(
                    "The provider doesn't say when you proved who you are, so it can't confirm it here. Use {}, and tell \
                     the people who run this service.",
                    if has_passwords(request) { "a password or a passkey" } else { "a passkey" }
                ),
                Some(_) => format!(
                    "You have to sign in there anew, as {}. It was someone else, or too long ago.",
                    visitor.signed_in.member.email
                ),
            };
            explain(StatusCode::FORBIDDEN, "That didn't confirm it's you", &text, errand)
        }
    }
}
