//! Signing in, with a code where the member has a second factor, and out.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use actix_web::web::{Data, Form, Query};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    AwaitedMember, CodeError, EmailAddress, Member, MemberStore, Origin, PasswordHasher, PresentedCode,
    PresentedPassword, RelyingParty, SessionStore, SignIn, SignInError, Token, find_candidate, finish_sign_in,
    note_failed_sign_in, sign_in,
};
use intake_http::edge;
use serde::Deserialize;

use crate::account::page::PASSWORD_CHANGED;
use crate::account::sign_in_passkey::PasskeyPrompt;
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::{Destination, Next};
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::session_cookie;
use crate::page::shell::{redirect, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::{Newcomer, origin};

/// Each network of strangers, and each member, can have one attempt in line.
const ALREADY_IN_LINE: &str = "One moment: another sign-in from your network is being checked. Please try again.";

#[derive(Template)]
#[template(path = "account/sign_in.html")]
struct SignInPage<'a> {
    email: &'a str,
    alert: Option<String>,
    is_password_changed: bool,
    /// Whether the browser still has the cookie of a session that has ended.
    is_session_ended: bool,
    next: &'a Destination,
}

#[derive(Template)]
#[template(path = "account/sign_in_code.html")]
pub(crate) struct CodePage {
    form_token: String,
    next: Destination,
    has_app: bool,
    /// How a passkey takes the place of the code, if the member has one.
    prompt: Option<PasskeyPrompt>,
    code_error: Option<&'static str>,
    alert: Option<String>,
}

impl CodePage {
    pub(crate) fn new(waiting: &Token, awaited: &AwaitedMember, site: &RelyingParty, next: Destination) -> Self {
        let prompt = PasskeyPrompt::new("/sign-in/code/passkey", waiting, site, next.clone());
        Self {
            form_token: waiting.form_token(),
            next,
            has_app: awaited.secret.is_some(),
            prompt: awaited.has_passkey.then_some(prompt),
            code_error: None,
            alert: None,
        }
    }

    pub(crate) fn with_alert(self, alert: String) -> Self {
        Self { alert: Some(alert), ..self }
    }
}

#[derive(Deserialize)]
pub(crate) struct CodeForm {
    form_token: String,
    code: String,
    #[serde(default)]
    next: Destination,
}

#[derive(Deserialize)]
pub(crate) struct SignInForm {
    email: String,
    password: String,
    #[serde(default)]
    next: Destination,
}

pub(crate) async fn page(
    request: HttpRequest,
    visitor: Option<Newcomer>,
    next: Option<Query<Next>>,
) -> Result<HttpResponse, PageError> {
    let next = next.map(Query::into_inner).unwrap_or_default().next;
    if visitor.is_some() {
        return Ok(redirect(next.as_str()));
    }
    let is_password_changed = request.query_string() == PASSWORD_CHANGED;
    let is_session_ended = !is_password_changed && session_cookie::SESSION.token(request.headers()).is_some();
    let page = SignInPage { email: "", alert: None, is_password_changed, is_session_ended, next: &next };
    render(StatusCode::OK, &page)
}

pub(crate) async fn submit(
    request: HttpRequest,
    form: Form<SignInForm>,
    members: Data<dyn MemberStore>,
    sessions: Data<dyn SessionStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    let SignInForm { email: typed, password, next } = form.into_inner();
    let password = PresentedPassword::new(password);
    let (email, origin) = (typed.parse::<EmailAddress>().ok(), origin(&request));
    let again = |status, alert| {
        let (email, alert) = (typed.as_str(), Some(alert));
        let page = SignInPage { email, alert, is_password_changed: false, is_session_ended: false, next: &next };
        render(status, &page)
    };
    let refuse = |alert| {
        note_sign_in(SignInOutcome::Limited);
        again(StatusCode::TOO_MANY_REQUESTS, alert)
    };
    if let Some(wait) = throttle.wait(email.as_ref(), origin.address) {
        return refuse(too_many_attempts(wait));
    }
    let candidate = find_candidate(members.as_ref(), email.as_ref(), origin.address).await?;
    if !candidate.is_familiar()
        && let Some(wait) = throttle.wait_as_stranger(email.as_ref(), origin.address)
    {
        return refuse(too_many_attempts(wait));
    }
    let token = Token::new(edge::random());
    match sign_in(sessions.as_ref(), hasher.as_ref(), candidate, &password, &token, origin).await {
        Ok(SignIn::Complete) => {
            note_sign_in(SignInOutcome::SignedIn);
            Ok(signed_in_at(&next, &token))
        }
        Ok(SignIn::CodeNeeded) => {
            note_sign_in(SignInOutcome::CodeNeeded);
            let mut response = HttpResponse::SeeOther();
            response.insert_header((LOCATION, next.after("/sign-in/code")));
            Ok(response.insert_header((SET_COOKIE, session_cookie::WAITING.set(&token))).finish())
        }
        Err(SignInError::AlreadyInLine) => refuse(ALREADY_IN_LINE.to_owned()),
        Err(SignInError::WrongPair(member)) => {
            note_sign_in(SignInOutcome::WrongPair);
            if let Some(member) = member {
                note_failure_later(sessions.into_inner(), member, origin);
            }
            again(StatusCode::UNAUTHORIZED, "Email or password is wrong".to_owned())
        }
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

/// Records a failure once its answer has left. The number of records that wait is bounded by the password hasher, which
/// compares one password after the other, and by the database's deadline.
fn note_failure_later(sessions: Arc<dyn SessionStore>, member: Member, origin: Origin) {
    actix_web::rt::spawn(async move {
        if let Err(error) = note_failed_sign_in(sessions.as_ref(), &member, origin).await {
            let cause = PageError::from(error).cause().map(|cause| cause.to_string());
            tracing::warn!(cause, "a failed sign-in could not be recorded");
        }
    });
}

pub(crate) async fn code_page(
    request: HttpRequest,
    next: Option<Query<Next>>,
    sessions: Data<dyn SessionStore>,
    site: Data<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let next = next.map(Query::into_inner).unwrap_or_default().next;
    let (waiting, awaited) = waiting(&request, sessions.as_ref(), &next).await?;
    render(StatusCode::OK, &CodePage::new(&waiting, &awaited, &site, next))
}

pub(crate) async fn submit_code(
    request: HttpRequest,
    form: Form<CodeForm>,
    sessions: Data<dyn SessionStore>,
    throttle: Data<Throttle>,
    site: Data<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let CodeForm { form_token, code, next } = form.into_inner();
    let (waiting, awaited) = waiting(&request, sessions.as_ref(), &next).await?;
    let page = CodePage::new(&waiting, &awaited, &site, next.clone());
    if form_token != page.form_token {
        return Err(PageError::StaleForm);
    }
    if let Some(wait) = throttle.wait_for_code(awaited.member.id) {
        note_sign_in(SignInOutcome::Limited);
        return render(StatusCode::TOO_MANY_REQUESTS, &page.with_alert(too_many_attempts(wait)));
    }
    let session = Token::new(edge::random());
    let code = PresentedCode::new(code);
    match finish_sign_in(sessions.as_ref(), &awaited, &waiting, &code, &session, origin(&request)).await {
        Ok(()) => {
            note_sign_in(SignInOutcome::SignedIn);
            Ok(signed_in_at(&next, &session))
        }
        Err(CodeError::WrongCode) => {
            note_sign_in(SignInOutcome::WrongCode);
            let code_error = Some("The code is wrong or has been used before.");
            render(StatusCode::UNAUTHORIZED, &CodePage { code_error, ..page })
        }
        Err(CodeError::Over) => Err(PageError::SignInFirst(next)),
        Err(CodeError::Store(error)) => Err(error.into()),
    }
}

pub(crate) async fn sign_out(
    Newcomer(visitor): Newcomer,
    form: Form<FormToken>,
    sessions: Data<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    sessions.end(&visitor.token.digest(), &visitor.deed()).await?;
    Ok(signed_out())
}

/// This browser's sign-in that is waiting for its code.
pub(crate) async fn waiting(
    request: &HttpRequest,
    sessions: &dyn SessionStore,
    next: &Destination,
) -> Result<(Token, AwaitedMember), PageError> {
    let sign_in_first = || PageError::SignInFirst(next.clone());
    let token = session_cookie::WAITING.token(request.headers()).ok_or_else(sign_in_first)?;
    let awaited = sessions.awaited(&token.digest(), edge::now()).await?.ok_or_else(sign_in_first)?;
    Ok((token, awaited))
}

/// Starts the browser's session, and redirects to the list of keys.
pub(crate) fn signed_in_under(token: &Token) -> HttpResponse {
    signed_in_at(&Destination::default(), token)
}

/// Starts the browser's session, and redirects to the page that was asked for.
pub(crate) fn signed_in_at(next: &Destination, token: &Token) -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header((LOCATION, next.as_str()));
    response.insert_header((SET_COOKIE, session_cookie::SESSION.set(token))).finish()
}

/// Ends the browser's session, and redirects to the sign-in page.
pub(crate) fn signed_out() -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header((LOCATION, "/sign-in"));
    response.insert_header((SET_COOKIE, session_cookie::SESSION.clear())).finish()
}
