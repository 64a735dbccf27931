//! The way back from the provider of single sign-on, whatever the browser went there for.

use actix_web::http::StatusCode;
use actix_web::web::Query;
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use intake_domain::{Identity, Network, ProviderError, Requester, SessionStore};
use serde::Deserialize;

use crate::account::confirm::Confirmation;
use crate::account::provider::{Errand, SingleSignOn, end_round, explain, refuse, round_of, single_sign_on};
use crate::account::sign_in_provider::{confirm, link, sign_in};
use crate::members::invitation_provider::join;
use crate::members::invite::go_on_inviting;
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::part::{Members, Part, shared};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::{Newcomer, origin};

#[derive(Deserialize)]
pub(crate) struct ReturnQuery {
    #[serde(default)]
    state: String,
    /// Missing if the provider has refused.
    code: Option<String>,
}

/// Anyone can make up a way back, and each asks the provider, so it counts as the attempt of a stranger until it was
/// none.
pub(crate) async fn come_back(
    request: HttpRequest,
    query: Option<Query<ReturnQuery>>,
    throttle: Part<Throttle>,
) -> Result<HttpResponse, PageError> {
    let SingleSignOn { provider, name, .. } = single_sign_on(&request)?;
    let ReturnQuery { state, code } = query.ok_or(PageError::NotFound)?.into_inner();
    let Some((round, errand)) = round_of(&request, &state) else {
        let start = Errand::SignIn { next: Destination::default(), organisation: None, is_anew: false };
        let text =
            "It was started in another browser or took longer than ten minutes, so nothing was changed. Start again.";
        return explain(StatusCode::BAD_REQUEST, "This sign-in has expired", text, &start);
    };
    let origin = origin(&request);
    let requester = requester(&request, &errand).await?;
    let wait = match requester {
        Requester::Stranger(_) => throttle.wait_as_stranger(None, origin.address),
        _ => throttle.wait_as_neighbour(origin.address),
    };
    if let Some(wait) = wait {
        note_sign_in(SignInOutcome::Limited);
        return explain(StatusCode::TOO_MANY_REQUESTS, "One moment", &too_many_attempts(wait), &errand);
    }
    let Some(code) = code else {
        note_sign_in(SignInOutcome::Refused);
        let text = format!("You didn't sign in at {name}, or may not use it for this service. Nothing was changed.");
        return explain(StatusCode::FORBIDDEN, "That didn't work", &text, &errand).map(end_round);
    };
    let identity = match provider.finish(requester, &round, &code, origin.at).await {
        Ok(identity) => identity,
        Err(error @ ProviderError::Full) => {
            note_sign_in(SignInOutcome::Limited);
            // The code was not used: the browser can load the page again.
            return refuse(&error, name, &errand);
        }
        Err(error) => {
            note_sign_in(SignInOutcome::Refused);
            return refuse(&error, name, &errand).map(end_round);
        }
    };
    throttle.was_no_stranger(None, origin.address);
    let done = match &errand {
        Errand::SignIn { next, organisation, .. } => sign_in(&request, &identity, next, *organisation).await,
        Errand::Join { invitation } => join(&request, &identity, invitation, &errand).await,
        Errand::Confirm { next } => confirmed(&request, &identity, next, &errand).await,
        Errand::Link => link(&request, &identity, &errand).await,
    };
    done.map(end_round)
}

/// Confirms who the visitor is, and does what waits for that.
async fn confirmed(
    request: &HttpRequest,
    identity: &Identity,
    next: &Destination,
    errand: &Errand,
) -> Result<HttpResponse, PageError> {
    let Newcomer(visitor) = Newcomer::extract(request).await?;
    match confirm(request, &visitor, identity, next, errand).await? {
        Confirmation::Confirmed(renewed) => go_on_inviting(visitor, next, renewed).await,
        Confirmation::Refused(answer) => Ok(answer),
    }
}

/// Who waits for the provider: people who are known to be here for a reason, and people in networks that a member has
/// signed in from before, go before everybody else.
async fn requester(request: &HttpRequest, errand: &Errand) -> Result<Requester, PageError> {
    let origin = origin(request);
    match errand {
        Errand::Confirm { .. } | Errand::Link => {
            if let Ok(Newcomer(visitor)) = Newcomer::extract(request).await {
                return Ok(Requester::Confirmation(visitor.token.digest()));
            }
        }
        Errand::Join { invitation } => {
            let digest = invitation.digest();
            if shared::<dyn Members>(request)?.invitation(&digest, origin.at).await?.is_some() {
                return Ok(Requester::Guest(digest));
            }
        }
        Errand::SignIn { .. } => {}
    }
    let network = Network::of_neighbours(origin.address);
    let is_familiar = shared::<dyn SessionStore>(request)?.is_familiar(network).await?;
    Ok(if is_familiar { Requester::Neighbour(network) } else { Requester::Stranger(Network::of_site(origin.address)) })
}
