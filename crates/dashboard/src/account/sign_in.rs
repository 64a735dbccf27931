//! Signing in, with a code where the member has a second factor, and out.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use actix_web::web::{Form, Query};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    Account, AwaitedMember, Challenge, CodeError, EmailAddress, HasherError, Invitation, Origin, PasswordHasher,
    PresentedCode, PresentedPassword, RelyingParty, SessionStore, SignIn, SignInError, Token, find_candidate,
    finish_sign_in, note_failed_sign_in, sign_in,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::code_field::{CodeQuery, WRONG_CODE, other_kind};
use crate::account::passkey_prompt::PasskeyPrompt;
use crate::account::provider::provider_name;
use crate::mails::{AccountChange, Mails, zone_of};
use crate::metrics::{SignInOutcome, note_sign_in};
use crate::page::destination::{Destination, Next};
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::part::{Members, Part, shared};
use crate::page::passwords::{PasswordsOn, codes_locked, has_passwords, passwords};
use crate::page::refused::{self, Refusal};
use crate::page::shell::{redirect, redirect_with_cookie, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::{Person, origin};
use crate::page::{cookie, draft, notice};

/// Each network of strangers, and each member, can have one attempt in the queue.
const ALREADY_IN_LINE: &str = "One moment: another sign-in from your network is being checked. Please try again.";

const SESSION_ENDED: &str = "Your session has expired. Please sign in again.";
const DRAFT_KEPT: &str = "Your session has expired. Sign in to continue: what you typed is kept.";

pub(crate) const SIGNED_OUT: &str = "You have signed out.";

#[derive(Template)]
#[template(path = "account/sign_in.html")]
struct SignInPage<'a> {
    email: &'a str,
    alert: Option<String>,
    notice: Option<String>,
    /// True if a forgotten password is reset by mail.
    are_mails_sent: bool,
    /// Name of the provider of single sign-on, if there is one.
    provider: Option<String>,
    /// True if members sign in with a password or a passkey, too.
    has_passwords: bool,
    next: &'a Destination,
}

impl<'a> SignInPage<'a> {
    fn new(request: &HttpRequest, next: &'a Destination) -> Self {
        Self {
            email: "",
            alert: None,
            notice: None,
            are_mails_sent: are_mails_sent(request),
            provider: provider_name(request),
            has_passwords: has_passwords(request),
            next,
        }
    }

    fn refused(self, status: StatusCode, alert: String) -> Result<HttpResponse, PageError> {
        render(status, &Self { alert: Some(alert), ..self })
    }
}

#[derive(Template)]
#[template(path = "account/sign_in_code.html")]
pub(crate) struct CodePage {
    form_token: String,
    next: Destination,
    has_app: bool,
    /// Prompt for a passkey in place of the code, if the member has one.
    prompt: Option<PasskeyPrompt>,
    code_error: Option<&'static str>,
    /// True if the field is for a recovery code.
    is_recovery: bool,
    alert: Option<String>,
}

impl CodePage {
    pub(crate) fn new(waiting: &Token, awaited: &AwaitedMember, site: &RelyingParty, next: Destination) -> Self {
        let prompt = PasskeyPrompt::new("/sign-in/code/passkey", waiting, &Challenge::of(waiting), site, next.clone());
        Self {
            form_token: waiting.form_token(),
            next,
            has_app: awaited.secret.is_some(),
            prompt: awaited.has_passkey.then_some(prompt),
            code_error: None,
            is_recovery: false,
            alert: None,
        }
    }

    pub(crate) fn with_alert(self, alert: String) -> Self {
        Self { alert: Some(alert), ..self }
    }

    fn is_code_first(&self) -> bool {
        true
    }

    fn other_code(&self) -> String {
        other_kind("/sign-in/code", &self.next, self.is_recovery)
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
    person: Option<Person>,
    next: Option<Query<Next>>,
) -> Result<HttpResponse, PageError> {
    let next = next.map(Query::into_inner).unwrap_or_default().next;
    if person.is_some() {
        return Ok(redirect(next.as_str()));
    }
    // The browser still has the cookie of a session that has ended.
    let ended = || cookie::SESSION.token(request.headers()).map(|_| SESSION_ENDED.to_owned());
    let kept = || draft::is_kept(request.headers()).then(|| DRAFT_KEPT.to_owned());
    let notice = notice::notice(&request).or_else(kept).or_else(ended);
    render(StatusCode::OK, &SignInPage { notice, ..SignInPage::new(&request, &next) })
}

pub(crate) async fn submit(
    request: HttpRequest,
    _: PasswordsOn,
    form: Form<SignInForm>,
    members: Part<dyn Members>,
    sessions: Part<dyn SessionStore>,
    hasher: Part<dyn PasswordHasher>,
    throttle: Part<Throttle>,
) -> Result<HttpResponse, PageError> {
    let SignInForm { email: typed, password, next } = form.into_inner();
    let password = PresentedPassword::new(password);
    let (email, origin) = (typed.parse::<EmailAddress>().ok(), origin(&request));
    let page = SignInPage { email: &typed, ..SignInPage::new(&request, &next) };
    let limited = |page: SignInPage<'_>, alert| {
        note_sign_in(SignInOutcome::Limited);
        page.refused(StatusCode::TOO_MANY_REQUESTS, alert)
    };
    if let Some(wait) = throttle.wait(email.as_ref(), origin.address) {
        return limited(page, too_many_attempts(wait));
    }
    let candidate = find_candidate(members.as_ref(), email.as_ref(), origin.address).await?;
    let wait = throttle.wait_as_stranger(email.as_ref(), origin.address);
    let is_familiar = candidate.is_familiar();
    if let Some(wait) = wait.filter(|_| !is_familiar) {
        return limited(page, too_many_attempts(wait));
    }
    let token = Token::new(edge::random());
    match sign_in(sessions.as_ref(), hasher.as_ref(), candidate, &password, &token, origin).await {
        Ok(begun) => {
            if is_familiar && wait.is_none() {
                throttle.was_no_stranger(email.as_ref(), origin.address);
            }
            Ok(proceed(&request, begun, &next, &token))
        }
        Err(SignInError::Hasher(HasherError::AlreadyQueued)) => limited(page, ALREADY_IN_LINE.to_owned()),
        Err(SignInError::WrongPair(accounts)) => {
            note_sign_in(SignInOutcome::WrongPair);
            note_failure_later(sessions.into_inner(), accounts, origin);
            match wait {
                Some(wait) => page.refused(StatusCode::TOO_MANY_REQUESTS, too_many_attempts(wait)),
                None => page.refused(StatusCode::UNAUTHORIZED, "Email or password is wrong".to_owned()),
            }
        }
        Err(SignInError::Hasher(error)) => Err(error.into()),
        Err(SignInError::Store(error)) => Err(error.into()),
    }
}

fn proceed(request: &HttpRequest, begun: SignIn, next: &Destination, token: &Token) -> HttpResponse {
    let (outcome, response) = match begun {
        SignIn::Complete => (SignInOutcome::SignedIn, signed_in_at(request, next, token)),
        SignIn::CodeNeeded => (SignInOutcome::CodeNeeded, code_needed(next, token)),
    };
    note_sign_in(outcome);
    response
}

/// Records a failure once its answer has left. The number of records that wait is bounded by the password hasher, which
/// compares one password after the other, and by the database's deadline.
pub(crate) fn note_failure_later(sessions: Arc<dyn SessionStore>, accounts: Vec<Account>, origin: Origin) {
    actix_web::rt::spawn(async move {
        if accounts.is_empty() {
            refused::note(Refusal::UnknownAddress);
        }
        if let Err(error) = note_failed_sign_in(sessions.as_ref(), &accounts, origin).await {
            let cause = PageError::from(error).cause().map(|cause| cause.to_string());
            tracing::warn!(cause, "a failed sign-in could not be recorded");
        }
    });
}

pub(crate) async fn code_page(
    request: HttpRequest,
    query: Option<Query<CodeQuery>>,
    sessions: Part<dyn SessionStore>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let CodeQuery { next, recovery } = query.map(Query::into_inner).unwrap_or_default();
    let (waiting, awaited) = waiting(&request, sessions.as_ref(), &next).await?;
    let page = CodePage::new(&waiting, &awaited, &site, next);
    render(StatusCode::OK, &CodePage { is_recovery: recovery, ..page })
}

pub(crate) async fn submit_code(
    request: HttpRequest,
    form: Form<CodeForm>,
    sessions: Part<dyn SessionStore>,
    throttle: Part<Throttle>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let CodeForm { form_token, code, next } = form.into_inner();
    let (waiting, awaited) = waiting(&request, sessions.as_ref(), &next).await?;
    let code = PresentedCode::new(code);
    let page = CodePage::new(&waiting, &awaited, &site, next.clone());
    let page = CodePage { is_recovery: code.is_recovery_code(), ..page };
    if form_token != page.form_token {
        return Err(PageError::StaleForm);
    }
    if let Some(wait) = throttle.wait_for_code(awaited.account.id, code.is_recovery_code()) {
        note_sign_in(SignInOutcome::Limited);
        return render(StatusCode::TOO_MANY_REQUESTS, &page.with_alert(too_many_attempts(wait)));
    }
    let session = Token::new(edge::random());
    match finish_sign_in(sessions.as_ref(), &awaited, &waiting, &code, &session, origin(&request)).await {
        Ok(()) => {
            note_sign_in(SignInOutcome::SignedIn);
            mail_new_administrator(&request, &awaited).await;
            Ok(signed_in_at(&request, &next, &session))
        }
        Err(CodeError::WrongCode) => {
            note_sign_in(SignInOutcome::WrongCode);
            let code_error = Some(WRONG_CODE);
            render(StatusCode::UNAUTHORIZED, &CodePage { code_error, ..page })
        }
        Err(CodeError::Locked) => {
            note_sign_in(SignInOutcome::Limited);
            render(StatusCode::TOO_MANY_REQUESTS, &page.with_alert(codes_locked(passwords(&request))))
        }
        Err(CodeError::Over) => Err(PageError::SignInFirst(next)),
        Err(CodeError::Store(error)) => Err(error.into()),
    }
}

pub(crate) async fn sign_out(
    person: Person,
    form: Form<FormToken>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    person.assert_own_form(&form.form_token)?;
    sessions.end(&person.token.digest(), &person.audit()).await?;
    Ok(signed_out(SIGNED_OUT))
}

/// This browser's sign-in that is waiting for its code.
pub(crate) async fn waiting(
    request: &HttpRequest,
    sessions: &dyn SessionStore,
    next: &Destination,
) -> Result<(Token, AwaitedMember), PageError> {
    let sign_in_first = || PageError::SignInFirst(next.clone());
    let token = cookie::WAITING.token(request.headers()).ok_or_else(sign_in_first)?;
    let awaited = sessions.awaited(&token.digest(), edge::now()).await?.ok_or_else(sign_in_first)?;
    Ok((token, awaited))
}

/// Lets the browser wait for its code, and redirects to where it is typed.
pub(crate) fn code_needed(next: &Destination, waiting: &Token) -> HttpResponse {
    redirect_with_cookie(&next.after("/sign-in/code"), cookie::WAITING.set(waiting))
}

/// Tells the other administrators of a sign-in that has accepted an invitation.
pub(crate) async fn mail_new_administrator(request: &HttpRequest, awaited: &AwaitedMember) {
    if let (Ok(members), Ok(mails), Some(invitation)) =
        (shared::<dyn Members>(request), shared::<Mails>(request), &awaited.invitation)
    {
        let Invitation { organisation_id, organisation_name, .. } = invitation;
        mails.new_administrator(members, *organisation_id, organisation_name, awaited.account.id).await;
    }
}

/// Starts the browser's session, and redirects to the list of keys.
pub(crate) fn signed_in_under(request: &HttpRequest, token: &Token) -> HttpResponse {
    signed_in_at(request, &Destination::default(), token)
}

/// Starts the browser's session, and redirects to the page that was asked for.
pub(crate) fn signed_in_at(request: &HttpRequest, next: &Destination, token: &Token) -> HttpResponse {
    note_browser_later(request, token);
    redirect_with_cookie(next.as_str(), cookie::SESSION.set(token))
}

/// Tells the member by mail of a browser that they have not signed in by before, once it was answered.
fn note_browser_later(request: &HttpRequest, token: &Token) {
    let (Ok(sessions), Ok(members), Ok(mails)) =
        (Part::<dyn SessionStore>::take(request), Part::<dyn Members>::take(request), Part::<Mails>::take(request))
    else {
        return;
    };
    let (digest, origin) = (token.digest(), origin(request));
    actix_web::rt::spawn(async move {
        match sessions.note_browser(&digest, origin.at).await {
            Ok(None) => {}
            Ok(Some(account)) => {
                let zone = zone_of(members.as_ref(), account.id).await;
                mails.account(&account, &account.email, AccountChange::NewBrowser, origin, zone);
            }
            Err(error) => {
                let cause = PageError::from(error).cause().map(|cause| cause.to_string());
                tracing::warn!(cause, "the browser of a sign-in could not be remembered");
            }
        }
    });
}

fn are_mails_sent(request: &HttpRequest) -> bool {
    shared::<Mails>(request).is_ok_and(Mails::are_sent)
}

/// Ends the browser's session, and redirects to the sign-in page, which shows this notice.
pub(crate) fn signed_out(notice: &str) -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header((LOCATION, "/sign-in"));
    // Else "Back" would show the pages of the session from the browser's cache.
    response.insert_header(("Clear-Site-Data", "\"cache\""));
    let mut response = response.insert_header((SET_COOKIE, cookie::SESSION.clear())).finish();
    notice::leave(&mut response, notice);
    response
}
