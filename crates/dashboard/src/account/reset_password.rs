//! Choosing another password by a reset link, for members who forgot theirs. It signs nobody in: the sign-in page comes
//! next, with the code of two-step sign-in where that is on.

use actix_web::http::StatusCode;
use actix_web::web::{Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    Account, OpenReset, PasskeyRecord, PasskeyStore, PasskeysAtReset, Password, PasswordError, PasswordHasher,
    PasswordOwner, PresentedPassword, ResetPasswordError, SessionStore, Token, Zone, reset_password,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::mails::{AccountChange, Mails, zone_of};
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part, shared};
use crate::page::passwords::PasswordsOn;
use crate::page::shell::render;
use crate::page::visitor::origin;

/// Returns where a member who forgot the password chooses another one.
#[must_use]
pub fn reset_password_path(token: &Token) -> String {
    format!("/reset-password/{}", token.expose())
}

#[derive(Template)]
#[template(path = "account/reset_password.html")]
struct ResetPage {
    email: String,
    action: String,
    password_error: Option<PasswordError>,
    passkeys: Vec<PasskeyRecord>,
    /// The zone of the moments on the page.
    zone: Zone,
    may_remove_passkeys: bool,
}

#[derive(Deserialize)]
pub(crate) struct ResetForm {
    password: String,
    /// There, if the box is ticked.
    remove_passkeys: Option<String>,
}

pub(crate) async fn page(
    _: PasswordsOn,
    token: Path<String>,
    resets: Part<dyn Members>,
    passkeys: Part<dyn PasskeyStore>,
) -> Result<HttpResponse, PageError> {
    let (_, _, page) = opened(&token, resets.as_ref(), passkeys.as_ref()).await?;
    render(StatusCode::OK, &page)
}

pub(crate) async fn submit(
    request: HttpRequest,
    _: PasswordsOn,
    token: Path<String>,
    form: Form<ResetForm>,
    members: Part<dyn Members>,
    passkeys: Part<dyn PasskeyStore>,
    hasher: Part<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let (token, account, page) = opened(&token, members.as_ref(), passkeys.as_ref()).await?;
    let ResetForm { password, remove_passkeys } = form.into_inner();
    let password = PresentedPassword::new(password);
    let passkeys = match remove_passkeys {
        Some(_) if page.may_remove_passkeys => PasskeysAtReset::Removed,
        _ => PasskeysAtReset::Kept,
    };
    let organisations = shared::<dyn SessionStore>(&request)?
        .memberships(account.id)
        .await?
        .into_iter()
        .map(|own| own.organisation_name);
    let organisations: Vec<String> = organisations.collect();
    let (email, name) = (account.email.as_str(), account.name.as_str());
    let password = match Password::new(password.expose(), PasswordOwner { email, name, organisations: &organisations })
    {
        Ok(password) => password,
        Err(error) => {
            return render(StatusCode::UNPROCESSABLE_ENTITY, &ResetPage { password_error: Some(error), ..page });
        }
    };
    let (members, hasher, origin) = (members.as_ref(), hasher.as_ref(), origin(&request));
    match reset_password(members, members, hasher, &token, (&password, passkeys), edge::random(), origin).await {
        Ok(()) => {
            let change = match passkeys {
                PasskeysAtReset::Kept => AccountChange::PasswordReset,
                PasskeysAtReset::Removed => AccountChange::PasswordAndPasskeysReset,
            };
            shared::<Mails>(&request)?.account(&account, &account.email, change, origin, page.zone);
            Ok(redirect_with_notice("/sign-in", "Your password was changed. Sign in with the new one."))
        }
        Err(ResetPasswordError::NoReset) => Err(PageError::NoPasswordReset),
        Err(ResetPasswordError::Hasher(error)) => Err(error.into()),
        Err(ResetPasswordError::Store(error)) => Err(error.into()),
    }
}

async fn opened(
    token: &str,
    members: &dyn Members,
    passkeys: &dyn PasskeyStore,
) -> Result<(Token, Account, ResetPage), PageError> {
    let token = Token::parse(token).ok_or(PageError::NoPasswordReset)?;
    let open = members.password_reset(&token.digest(), edge::now()).await?.ok_or(PageError::NoPasswordReset)?;
    let OpenReset { account, may_remove_passkeys } = open;
    let zone = zone_of(members, account.id).await;
    let passkeys = passkeys.passkeys(account.id).await?;
    let action = reset_password_path(&token);
    let email = account.email.to_string();
    let page = ResetPage { email, action, password_error: None, passkeys, zone, may_remove_passkeys };
    Ok((token, account, page))
}
