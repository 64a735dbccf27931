//! The way to the provider of single sign-on, and what a browser goes there for. Browsers follow a link: a form could
//! lead to no other site, because the policy of the pages forbids it.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{CODE_LIMIT, IdentityProvider, OrganisationId, Passwords, ProviderError, ProviderRound, Token};
use intake_edge as edge;
use percent_encoding::percent_decode_str;

use crate::account::ACCOUNT;
use crate::page::compression::is_from_elsewhere;
use crate::page::cookie;
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::invitation_path::invitation_path;
use crate::page::message::Message;
use crate::page::part::shared;
use crate::page::shell::{redirect, redirect_with_cookie, render};

const COOKIE: &str = "__Host-intake-provider";

/// The provider by which members sign in.
#[derive(Clone)]
pub struct SingleSignOn {
    /// Port by which it is asked.
    pub provider: Arc<dyn IdentityProvider>,
    /// Name by which members know it.
    pub name: String,
    /// Setting that decides if members sign in with passwords, too.
    pub passwords: Passwords,
}

/// Purpose for which a browser goes to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// To sign in: to the account that belongs to this organisation, if several have the address.
    SignIn { next: Destination, organisation: Option<OrganisationId>, is_anew: bool },
    /// To accept an invitation.
    Join { invitation: Token },
    /// To confirm who is signed in.
    Confirm { next: Destination },
    /// To link the account of who is signed in.
    Link,
}

/// The provider, if there is one: else its pages are not there.
pub(crate) fn single_sign_on(request: &HttpRequest) -> Result<&SingleSignOn, PageError> {
    shared::<Option<SingleSignOn>>(request)?.as_ref().ok_or(PageError::NotFound)
}

/// Returns what members call the provider, if there is one.
pub(crate) fn provider_name(request: &HttpRequest) -> Option<String> {
    single_sign_on(request).ok().map(|provider| provider.name.clone())
}

/// Sends the browser to the provider. Only a page of this site does: by a link of another one, nobody signs in or
/// joins.
pub(crate) async fn leave(request: &HttpRequest, errand: &Errand) -> Result<HttpResponse, PageError> {
    let SingleSignOn { provider, name, .. } = single_sign_on(request)?;
    if is_from_elsewhere(request.headers()) == Some(true) {
        return Ok(redirect(&errand.page()));
    }
    let round = ProviderRound::new(Token::new(edge::random()));
    let is_anew = matches!(errand, Errand::Confirm { .. } | Errand::SignIn { is_anew: true, .. });
    match provider.begin(&round, is_anew).await {
        Ok(address) => {
            let cookie = cookie::header(COOKIE, &errand.to_cookie(&round), CODE_LIMIT);
            Ok(redirect_with_cookie(&address, cookie))
        }
        Err(error) => refuse(&error, name, errand),
    }
}

/// The round of this browser to which a state belongs, and what it was for. None: it was begun in another browser, or
/// too long ago.
pub(crate) fn round_of(request: &HttpRequest, state: &str) -> Option<(ProviderRound, Errand)> {
    let found = cookie::values(request.headers(), COOKIE).find_map(Errand::from_cookie);
    found.filter(|(round, _)| round.state() == state)
}

/// Ends the round: its cookie is removed.
pub(crate) fn end_round(mut response: HttpResponse) -> HttpResponse {
    cookie::remove(&mut response, COOKIE);
    response
}

/// The page that says why the provider was of no help.
pub(crate) fn refuse(error: &ProviderError, name: &str, errand: &Errand) -> Result<HttpResponse, PageError> {
    let (status, title, text) = match error {
        ProviderError::Full => (
            StatusCode::SERVICE_UNAVAILABLE,
            "One moment".to_owned(),
            "Others are signing in, too. Nothing was changed. Load this page again in a few seconds.".to_owned(),
        ),
        ProviderError::Unavailable(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{name} doesn't answer"),
            "Single sign-on isn't available at the moment. Nothing was changed. Try again in a minute.".to_owned(),
        ),
        ProviderError::Refused(_) => (
            StatusCode::FORBIDDEN,
            "That didn't work".to_owned(),
            format!(
                "We couldn't verify {name}'s answer, so nothing was changed. Try again. If it happens again, tell the \
                 service operator."
            ),
        ),
        ProviderError::NoVerifiedEmail => (
            StatusCode::FORBIDDEN,
            "Your email address isn't verified".to_owned(),
            format!(
                "{name} didn't give us an email address of yours that it has verified. Ask the people who run {name}."
            ),
        ),
    };
    if let ProviderError::Unavailable(cause) | ProviderError::Refused(cause) = error {
        tracing::warn!(cause = cause.to_string(), "{error}");
    }
    explain(status, &title, &text, errand)
}

/// A page that says what became of an errand, with a link to where it began.
pub(crate) fn explain(status: StatusCode, title: &str, text: &str, errand: &Errand) -> Result<HttpResponse, PageError> {
    let link_text = match errand {
        Errand::SignIn { is_anew: true, .. } => "Sign in there as someone else",
        Errand::SignIn { .. } => "Back to sign in",
        Errand::Join { .. } => "Back to the invitation",
        Errand::Confirm { .. } | Errand::Link => "Back",
    };
    render(status, &Message { title, text, request_id: None, contact: "", link: &errand.page(), link_text })
}

impl Errand {
    /// The page on which it begins.
    fn page(&self) -> String {
        match self {
            Self::SignIn { is_anew: true, .. } => "/sign-in/provider?anew=yes".to_owned(),
            Self::SignIn { next, .. } => next.after("/sign-in"),
            Self::Join { invitation } => invitation_path(invitation),
            Self::Confirm { next } => next.after("/settings/confirm"),
            Self::Link => ACCOUNT.to_owned(),
        }
    }

    /// Nobody but the browser's user can change a cookie, and what it asks for is no secret.
    fn to_cookie(&self, round: &ProviderRound) -> String {
        let errand = match self {
            Self::SignIn { next: page, organisation, .. } => {
                let organisation = organisation.map(|id| id.to_string()).unwrap_or_default();
                format!("sign-in.{organisation}.{}", page.encoded())
            }
            Self::Join { invitation } => format!("join.{}.", invitation.expose()),
            Self::Confirm { next: page } => format!("confirm..{}", page.encoded()),
            Self::Link => "link..".to_owned(),
        };
        format!("{}.{errand}", round.token().expose())
    }

    fn from_cookie(text: &str) -> Option<(ProviderRound, Self)> {
        let [token, errand, id, next] = text.split('.').collect::<Vec<_>>().try_into().ok()?;
        let next = Destination::from(percent_decode_str(next).decode_utf8().ok()?.into_owned());
        let errand = match errand {
            "sign-in" => Self::SignIn { next, organisation: id.parse().ok(), is_anew: false },
            "join" => Self::Join { invitation: Token::parse(id)? },
            "confirm" => Self::Confirm { next },
            "link" => Self::Link,
            _ => return None,
        };
        Some((ProviderRound::new(Token::parse(token)?), errand))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errand_comes_back_from_its_cookie() {
        let round = ProviderRound::new(Token::new([7; 32]));
        let next = Destination::from("/settings/activity?kind=keys&q=a.b%20c".to_owned());
        for errand in [
            Errand::SignIn { next: next.clone(), organisation: None, is_anew: false },
            Errand::SignIn {
                next: next.clone(),
                organisation: "01993b6e-0000-7000-8000-000000000000".parse().ok(),
                is_anew: false,
            },
            Errand::Join { invitation: Token::new([9; 32]) },
            Errand::Confirm { next },
            Errand::Link,
        ] {
            let (found, same) = Errand::from_cookie(&errand.to_cookie(&round)).unwrap();
            assert_eq!((found.state(), same), (round.state(), errand));
        }
        for other in ["", "...", &"7".repeat(64), &format!("{}.join.x.", "7".repeat(64))] {
            assert!(Errand::from_cookie(other).is_none(), "{other}");
        }
    }
}
