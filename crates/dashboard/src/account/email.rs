//! Account → Change email. Where there is a mail server, the address counts once the link that is mailed to
//! it was opened; else at once.

use actix_web::http::StatusCode;
use actix_web::web::{Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    Account, ChangeEmailError, ConfirmEmailError, ConfirmedMember, EmailAddress, EmailChangeStore, PasswordHasher,
    Passwords, PresentedPassword, RequestEmailError, SessionStore, Token, change_email, confirm_email_change,
    request_email_change,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::mails::{AccountChange, Mails, zone_of};
use crate::page::base_url::BaseUrl;
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::{Visitor, origin};

const CHANGED: &str = "Your email was changed, and you were signed out everywhere else.";
const TOO_MANY: &str = "You've asked to change your email too often. Try again later.";
const TAKEN: &str = "This email address is already in use.";

const TAKEN_HERE: &str = "Another member of your organisation has this email address.";

#[derive(Template)]
#[template(path = "account/email.html")]
struct EmailPage {
    shell: Shell,
    email: String,
    typed: String,
    email_error: Option<String>,
    password_error: Option<&'static str>,
    /// True if a new address has to be confirmed.
    are_mails_sent: bool,
    is_asked: bool,
}

#[derive(Template)]
#[template(path = "account/confirm_email.html")]
struct ConfirmEmailPage {
    email: String,
    action: String,
    alert: Option<&'static str>,
}

#[derive(Deserialize)]
pub(crate) struct EmailForm {
    form_token: String,
    email: String,
    /// Asked for where a new address need not be confirmed.
    #[serde(default)]
    password: String,
}

pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, PageError> {
    assert_provable(&visitor).await?;
    visitor.assert_confirmed()?;
    let typed = visitor.draft().map(|draft| draft.field("email")).unwrap_or_default();
    render(StatusCode::OK, &EmailPage::new(&visitor, typed)?)
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<EmailForm>,
    members: Part<dyn Members>,
    hasher: Part<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let EmailForm { form_token, email: typed, password } = form.into_inner();
    let password = PresentedPassword::new(password);
    visitor.assert_own_form(&form_token)?;
    assert_provable(&visitor).await?;
    let confirmed = visitor.confirmed()?;
    let page = EmailPage::new(&visitor, typed)?;
    let email: EmailAddress = match page.typed.parse() {
        Ok(email) => email,
        Err(error) => {
            let email_error = Some(format!("The email {error}."));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &EmailPage { email_error, ..page });
        }
    };
    if email == visitor.signed_in.member.email {
        let email_error = Some("You already sign in with this email address.".to_owned());
        return render(StatusCode::UNPROCESSABLE_ENTITY, &EmailPage { email_error, ..page });
    }
    match visitor.shared::<Mails>()? {
        mails if mails.are_sent() => ask(&visitor, confirmed, &email, members.as_ref(), mails, page).await,
        _ => change_at_once(&visitor, confirmed, (&email, &password), members.as_ref(), hasher.as_ref(), page).await,
    }
}

/// Mails a link to the new address, which counts once the link was opened.
async fn ask(
    visitor: &Visitor,
    confirmed: ConfirmedMember<'_>,
    email: &EmailAddress,
    members: &dyn Members,
    mails: &Mails,
    page: EmailPage,
) -> Result<HttpResponse, PageError> {
    let token = Token::new(edge::random());
    let until = match request_email_change(members, confirmed, email, &token, &visitor.audit()).await {
        Ok(until) => until,
        Err(RequestEmailError::TooManyLately) => {
            let email_error = Some(TOO_MANY.to_owned());
            return render(StatusCode::TOO_MANY_REQUESTS, &EmailPage { email_error, ..page });
        }
        Err(RequestEmailError::Store(error)) => return Err(error.into()),
    };
    let link = format!("{}/confirm-email/{}", visitor.shared::<BaseUrl>()?.0, token.expose());
    mails.email_change(&visitor.signed_in, email, &link, until);
    visitor.mail_change(AccountChange::EmailChangeRequested)?;
    render(StatusCode::OK, &EmailPage { is_asked: true, ..page })
}

/// The password can be guessed here, and the answer reveals whether a colleague has the address.
async fn change_at_once(
    visitor: &Visitor,
    confirmed: ConfirmedMember<'_>,
    typed: (&EmailAddress, &PresentedPassword),
    members: &dyn Members,
    hasher: &dyn PasswordHasher,
    page: EmailPage,
) -> Result<HttpResponse, PageError> {
    let (throttle, session) = (visitor.shared::<Throttle>()?, visitor.token.digest());
    if let Some(wait) = throttle.wait_for_confirmation(&session) {
        let email_error = Some(too_many_attempts(wait));
        return render(StatusCode::TOO_MANY_REQUESTS, &EmailPage { email_error, ..page });
    }
    match change_email(members, members, hasher, confirmed, typed, edge::random(), &visitor.audit()).await {
        Ok(()) => {
            throttle.was_confirmed(&session);
            Ok(redirect_with_notice(ACCOUNT, CHANGED))
        }
        Err(ChangeEmailError::Taken) => {
            render(StatusCode::CONFLICT, &EmailPage { email_error: Some(TAKEN_HERE.to_owned()), ..page })
        }
        Err(ChangeEmailError::WrongPassword) => {
            let password_error = Some("Incorrect password.");
            render(StatusCode::UNPROCESSABLE_ENTITY, &EmailPage { password_error, ..page })
        }
        Err(ChangeEmailError::AccountChanged) => Err(PageError::AlreadyQueued),
        Err(ChangeEmailError::Hasher(error)) => Err(error.into()),
        Err(ChangeEmailError::Store(error)) => Err(error.into()),
    }
}

/// Returns whether anything can prove another address: without mails the password is asked for, so there has to be one.
pub(crate) async fn is_provable(visitor: &Visitor) -> Result<bool, PageError> {
    if visitor.shared::<Mails>()?.are_sent() {
        return Ok(true);
    }
    let factors = visitor.shared::<dyn SessionStore>()?.factors(visitor.signed_in.member.id).await?;
    Ok(factors.has_password && visitor.shared::<Passwords>()?.are_on())
}

async fn assert_provable(visitor: &Visitor) -> Result<(), PageError> {
    if is_provable(visitor).await? { Ok(()) } else { Err(PageError::NoOtherEmail) }
}

/// Serves the page that the link mailed to a new address opens. Its reader need not be signed in there.
pub(crate) async fn confirm_page(token: Path<String>, changes: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    let (_, page) = opened(&token, changes.as_ref()).await?;
    render(StatusCode::OK, &page)
}

pub(crate) async fn confirm_new(
    request: HttpRequest,
    token: Path<String>,
    changes: Part<dyn Members>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    let (token, page) = opened(&token, changes.as_ref()).await?;
    let origin = origin(&request);
    match confirm_email_change(changes.as_ref(), &token, origin).await {
        Ok((earlier, email)) => {
            let account = Account { email: email.clone(), ..earlier.clone() };
            let zone = zone_of(changes.as_ref(), account.id).await;
            for to in [&earlier.email, &email] {
                mails.account(&account, to, AccountChange::EmailChanged, origin, zone);
            }
            Ok(redirect_with_notice("/sign-in", "Your email was changed. Sign in with the new address."))
        }
        Err(ConfirmEmailError::NoChange) => Err(PageError::NoEmailChange),
        Err(ConfirmEmailError::Taken) => render(StatusCode::CONFLICT, &ConfirmEmailPage { alert: Some(TAKEN), ..page }),
        Err(ConfirmEmailError::Store(error)) => Err(error.into()),
    }
}

async fn opened(token: &str, changes: &dyn EmailChangeStore) -> Result<(Token, ConfirmEmailPage), PageError> {
    let token = Token::parse(token).ok_or(PageError::NoEmailChange)?;
    let (_, email) = changes.email_change(&token.digest(), edge::now()).await?.ok_or(PageError::NoEmailChange)?;
    let action = format!("/confirm-email/{}", token.expose());
    Ok((token, ConfirmEmailPage { email: email.to_string(), action, alert: None }))
}

impl EmailPage {
    fn new(visitor: &Visitor, typed: String) -> Result<Self, PageError> {
        Ok(Self {
            shell: Shell::new("account", visitor),
            email: visitor.signed_in.member.email.to_string(),
            typed,
            email_error: None,
            password_error: None,
            are_mails_sent: visitor.shared::<Mails>()?.are_sent(),
            is_asked: false,
        })
    }
}
