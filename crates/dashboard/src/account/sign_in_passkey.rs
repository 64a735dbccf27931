//! Signing in with a passkey: alone, or after the password in place of the code.

use actix_web::http::StatusCode;
use actix_web::web::Form;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    CodeError, PasskeyStore, RelyingParty, SessionStore, Signatures, Token, begin_passkey_sign_in,
    finish_sign_in_by_passkey, sign_in_by_passkey,
};
use intake_edge as edge;

use crate::account::passkey_prompt::{AssertionForm, PasskeyPrompt};
use crate::account::sign_in::{CodePage, mail_new_administrator, signed_in_at, waiting};
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::cookie;
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::part::Part;
use crate::page::passwords::PasswordsOn;
use crate::page::shell::{redirect_with_cookie, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::origin;

const UNKNOWN: &str = "We don't recognise this passkey. It may have been removed.";

#[derive(Template)]
#[template(path = "account/passkey_sign_in.html")]
struct PasskeyPage {
    prompt: PasskeyPrompt,
}

/// Gives the browser a challenge of its own. Nobody is known yet, so this counts as the attempt of a stranger.
pub(crate) async fn begin(
    request: HttpRequest,
    _: PasswordsOn,
    passkeys: Part<dyn PasskeyStore>,
    site: Part<RelyingParty>,
    throttle: Part<Throttle>,
) -> Result<HttpResponse, PageError> {
    let origin = origin(&request);
    let token = Token::new(edge::random());
    if let Some(wait) = throttle.wait_as_stranger(None, origin.address) {
        let alert = Some(too_many_attempts(wait));
        let prompt = PasskeyPrompt { alert, ..PasskeyPrompt::alone(&token, &site) };
        return render(StatusCode::TOO_MANY_REQUESTS, &PasskeyPage { prompt });
    }
    begin_passkey_sign_in(passkeys.as_ref(), &token, origin.at).await?;
    Ok(redirect_with_cookie("/sign-in/passkey", cookie::PASSKEY.set(&token)))
}

pub(crate) async fn page(
    request: HttpRequest,
    _: PasswordsOn,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let token = cookie::PASSKEY.token(request.headers()).ok_or_else(sign_in_first)?;
    render(StatusCode::OK, &PasskeyPage { prompt: PasskeyPrompt::alone(&token, &site) })
}

pub(crate) async fn submit(
    request: HttpRequest,
    _: PasswordsOn,
    form: Form<AssertionForm>,
    passkeys: Part<dyn PasskeyStore>,
    signatures: Part<dyn Signatures>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let token = cookie::PASSKEY.token(request.headers()).ok_or_else(sign_in_first)?;
    let prompt = PasskeyPrompt::alone(&token, &site);
    let form = form.into_inner();
    let next = form.next.clone();
    let assertion = form.of_form(&prompt.form_token)?;
    let session = Token::new(edge::random());
    let (passkeys, signatures, origin) = (passkeys.as_ref(), signatures.as_ref(), origin(&request));
    match sign_in_by_passkey(passkeys, signatures, &site, &token, &assertion, &session, origin).await {
        Ok(()) => {
            note_sign_in(SignInOutcome::SignedIn);
            Ok(signed_in_at(&request, &next, &session))
        }
        Err(CodeError::WrongCode | CodeError::Locked) => {
            note_sign_in(SignInOutcome::WrongCode);
            let prompt = PasskeyPrompt { alert: Some(UNKNOWN.to_owned()), ..prompt };
            render(StatusCode::UNAUTHORIZED, &PasskeyPage { prompt })
        }
        Err(CodeError::Over) => Err(sign_in_first()),
        Err(CodeError::Store(error)) => Err(error.into()),
    }
}

/// The second step, after the password.
pub(crate) async fn submit_as_code(
    request: HttpRequest,
    form: Form<AssertionForm>,
    passkeys: Part<dyn PasskeyStore>,
    sessions: Part<dyn SessionStore>,
    signatures: Part<dyn Signatures>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let form = form.into_inner();
    let next = form.next.clone();
    let (waiting, awaited) = waiting(&request, sessions.as_ref(), &next).await?;
    let assertion = form.of_form(&waiting.form_token())?;
    let session = Token::new(edge::random());
    let ports = (passkeys.as_ref(), sessions.as_ref(), signatures.as_ref());
    let origin = origin(&request);
    match finish_sign_in_by_passkey(ports, &site, &awaited, &waiting, &assertion, &session, origin).await {
        Ok(()) => {
            note_sign_in(SignInOutcome::SignedIn);
            mail_new_administrator(&request, &awaited).await;
            Ok(signed_in_at(&request, &next, &session))
        }
        Err(CodeError::WrongCode | CodeError::Locked) => {
            note_sign_in(SignInOutcome::WrongCode);
            let page = CodePage::new(&waiting, &awaited, &site, next);
            render(StatusCode::UNAUTHORIZED, &page.with_alert(UNKNOWN.to_owned()))
        }
        Err(CodeError::Over) => Err(PageError::SignInFirst(next)),
        Err(CodeError::Store(error)) => Err(error.into()),
    }
}

fn sign_in_first() -> PageError {
    PageError::SignInFirst(Destination::default())
}
