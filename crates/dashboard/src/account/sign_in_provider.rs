//! Signing in by single sign-on, and confirming by it who is signed in.

use actix_web::http::StatusCode;
use actix_web::web::Query;
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    ConfirmError, Identity, LinkError, OrganisationId, ProviderSignIn, Renewal, SessionStore, Token,
    confirm_by_provider, link_to_provider, sign_in_by_provider,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::account::confirm::Confirmation;
use crate::account::provider::{Errand, SingleSignOn, explain, leave, single_sign_on};
use crate::account::sign_in::{code_needed, signed_in_at};
use crate::mails::AccountChange;
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::{Destination, Next};
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, shared};
use crate::page::passwords::has_passwords;
use crate::page::refused::{self, Refusal};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Newcomer, Visitor, origin};

#[derive(Template)]
#[template(path = "account/provider_accounts.html")]
struct AccountsPage {
    email: String,
    /// The names of the organisations, and the links by which one signs in there.
    organisations: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "account/provider_link.html")]
struct LinkPage {
    shell: Shell,
    provider: String,
    email: String,
}

#[derive(Deserialize)]
pub(crate) struct LinkQuery {
    /// There, if the browser is to go to the provider.
    begin: Option<String>,
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

/// A page with a link to the provider: browsers do not follow the form of a confirmation to another site.
pub(crate) async fn link_page(
    request: HttpRequest,
    visitor: Visitor,
    query: Option<Query<LinkQuery>>,
) -> Result<HttpResponse, PageError> {
    let SingleSignOn { name, .. } = single_sign_on(&request)?;
    visitor.confirmed()?;
    if query.is_some_and(|query| query.begin.is_some()) {
        return leave(&request, &Errand::Link).await;
    }
    let page = LinkPage {
        shell: Shell::new("account", &visitor),
        provider: name.clone(),
        email: visitor.signed_in.member.email.to_string(),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn sign_in(
    request: &HttpRequest,
    identity: &Identity,
    next: &Destination,
    organisation: Option<OrganisationId>,
) -> Result<HttpResponse, PageError> {
    let (members, sessions) = (shared::<dyn Members>(request)?, shared::<dyn SessionStore>(request)?);
    let token = Token::new(edge::random());
    match sign_in_by_provider(members, sessions, identity, organisation, &token, origin(request)).await? {
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
            let title = format!("No account for {}", identity.email);
            let text = match has_passwords(request) {
                true => {
                    "No account here is linked to yours there. If you have a password here, sign in with it and choose \
                     “Link single sign-on” under Account. Otherwise ask an administrator at your organisation for an \
                     invitation."
                }
                false => {
                    "No account here is linked to yours there. Ask an administrator at your organisation for an \
                     invitation. If you're a member already, ask the service operator to link your account."
                }
            };
            refuse(next, &title, text)
        }
        ProviderSignIn::AnotherPerson => {
            let title = format!("{} belongs to another account", identity.email);
            let text = "This email address is linked to a different person there than the one you signed in as. If your \
                        account there was created again, ask an administrator at your organisation to remove you under \
                        Members and to invite you again.";
            refuse(next, &title, text)
        }
    }
}

/// The page for someone who has signed in at the provider, and does not get in here.
fn refuse(next: &Destination, title: &str, text: &str) -> Result<HttpResponse, PageError> {
    note_sign_in(SignInOutcome::Refused);
    refused::note(Refusal::UnknownAtProvider);
    let anew = Errand::SignIn { next: next.clone(), organisation: None, is_anew: true };
    explain(StatusCode::FORBIDDEN, title, text, &anew)
}

/// Links the visitor's account to the person who came back.
pub(crate) async fn link(
    request: &HttpRequest,
    identity: &Identity,
    errand: &Errand,
) -> Result<HttpResponse, PageError> {
    let visitor = Visitor::extract(request).await?;
    match link_to_provider(shared::<dyn Members>(request)?, visitor.confirmed()?, identity, &visitor.audit()).await {
        Ok(()) => {
            visitor.mail_change(AccountChange::ProviderLinked)?;
            Ok(redirect_with_notice(ACCOUNT, "Single sign-on is linked, and you were signed out everywhere else."))
        }
        Err(LinkError::OtherAddress) => {
            let text = format!(
                "You signed in there as {}, and your account here has the email address {}. Both must be the same. Sign \
                 in there as someone else, or change your email here first.",
                identity.email, visitor.signed_in.member.email
            );
            explain(StatusCode::FORBIDDEN, "Your account wasn't linked", &text, errand)
        }
        Err(LinkError::Store(error)) => Err(error.into()),
    }
}

/// Confirms who the visitor is by the person who came back.
pub(crate) async fn confirm(
    request: &HttpRequest,
    visitor: &Visitor,
    identity: &Identity,
    next: &Destination,
    errand: &Errand,
) -> Result<Confirmation, PageError> {
    let (sessions, renewed) = (shared::<dyn SessionStore>(request)?, Token::new(edge::random()));
    let renewal = Renewal { session: &visitor.token, next: &renewed };
    match confirm_by_provider(sessions, &visitor.signed_in, renewal, identity, visitor.origin()).await {
        Ok(()) => Ok(Confirmation::Confirmed(renewed)),
        // Now the code is asked for.
        Err(ConfirmError::NotEnough) => Ok(Confirmation::Refused(redirect(&next.after("/settings/confirm")))),
        Err(ConfirmError::Store(error)) => Err(error.into()),
        Err(_) => {
            let text = match identity.authenticated_at {
                None => format!(
                    "The provider doesn't say when you proved who you are, so it can't confirm it here. Use {}, and tell \
                     the service operator.",
                    if has_passwords(request) { "a password or a passkey" } else { "a passkey" }
                ),
                Some(_) => {
                    "Sign in there again, as the person your account is linked to. Your last sign-in there was too long \
                     ago, or with another account."
                        .to_owned()
                }
            };
            explain(StatusCode::FORBIDDEN, "That didn't confirm it's you", &text, errand).map(Confirmation::Refused)
        }
    }
}
