//! “Confirm it's you”: the member of a session proves once more who they are, before changes of passwords, second
//! factors and members. A member with a second factor needs it here as well; a passkey alone is enough.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Form, Query};
use askama::Template;
use intake_domain::{
    CONFIRMATION_PAGE_LIMIT, Challenge, ConfirmError, Factors, PasskeyStore, PasswordHasher, Passwords, PresentedCode,
    PresentedPassword, RelyingParty, Renewal, Role, SessionStore, Signatures, Token, confirm_after_provider,
    confirm_by_passkey, confirm_by_password,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::code_field::{CodeQuery, WRONG_CODE, other_kind};
use crate::account::passkey_prompt::{PasskeyPrompt, SentAssertion};
use crate::account::provider::SingleSignOn;
use crate::page::cookie;
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::part::{Members, Part};
use crate::page::passwords::codes_locked;
use crate::page::shell::{Shell, redirect, redirect_with_cookie, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::{Newcomer, Visitor};

/// A change that waits for the confirmation: its form is sent again, together with the password or the passkey.
pub(crate) struct Waiting {
    /// Address that the form is sent to.
    pub(crate) action: &'static str,
    /// Continues "Confirm to".
    pub(crate) text: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Waiting {
    /// The change that waits for this page.
    fn typed(visitor: &Visitor, next: &Destination) -> Option<Self> {
        waiting_invitation(visitor, next).map(|email| Self::invitation(&email, Role::Administrator))
    }

    /// The invitation of a person.
    pub(crate) fn invitation(email: &str, role: Role) -> Self {
        let text = format!("invite {email} as an administrator");
        Self { action: INVITE, text, fields: vec![("email", email.to_owned()), ("role", role.as_str().to_owned())] }
    }
}

/// The address of the person whose invitation as an administrator waits for this page.
pub(crate) fn waiting_invitation(visitor: &Visitor, next: &Destination) -> Option<String> {
    let draft = visitor.draft_of(next.as_str()).filter(|_| next.as_str() == INVITE)?;
    let is_administrator = draft.field("role").parse() == Ok(Role::Administrator);
    is_administrator.then(|| draft.field("email"))
}

#[derive(Template)]
#[template(path = "account/confirm.html")]
pub(crate) struct ConfirmPage {
    shell: Shell,
    next: Destination,
    /// The change that is made with the confirmation.
    waiting: Option<Waiting>,
    /// True if the password is asked for. A member with a passkey and no app confirms by the passkey.
    has_password: bool,
    /// Name of the provider of single sign-on, if it can take the place of the password.
    provider: Option<String>,
    /// True if it just has: then the code alone is missing.
    is_by_provider: bool,
    has_app: bool,
    /// Prompt for a passkey that confirms, if the member has one.
    prompt: Option<PasskeyPrompt>,
    alert: Option<String>,
    password_error: Option<&'static str>,
    code_error: Option<&'static str>,
    /// True if the field for the code is for a recovery code.
    is_recovery: bool,
}

#[derive(Deserialize)]
pub(crate) struct ConfirmForm {
    form_token: String,
    #[serde(flatten)]
    proof: Proof,
    #[serde(default)]
    next: Destination,
}

/// Proof of who the visitor is, typed or signed on the page that asks for it.
#[derive(Deserialize)]
pub(crate) struct Proof {
    /// None, after the provider of single sign-on.
    password: Option<String>,
    code: Option<String>,
    #[serde(flatten)]
    passkey: Option<SentAssertion>,
}

impl Proof {
    /// Returns whether the form comes from the page that asks for a proof.
    pub(crate) fn is_given(&self) -> bool {
        self.password.is_some() || self.code.is_some() || self.passkey.is_some()
    }
}

/// Address of the form that invites a person, the one that can ask for a confirmation after it was sent.
pub(crate) const INVITE: &str = "/settings/members/invite";

pub(crate) async fn page(
    Newcomer(visitor): Newcomer,
    query: Option<Query<CodeQuery>>,
    sessions: Part<dyn SessionStore>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let CodeQuery { next, recovery } = query.map(Query::into_inner).unwrap_or_default();
    if visitor.signed_in.is_confirmed(CONFIRMATION_PAGE_LIMIT, edge::now()) {
        return Ok(redirect(next.as_str()));
    }
    let waiting = Waiting::typed(&visitor, &next);
    let page = ConfirmPage::new(&visitor, sessions.as_ref(), &site, next, waiting).await?;
    render(StatusCode::OK, &ConfirmPage { is_recovery: recovery, ..page })
}

pub(crate) async fn submit(Newcomer(visitor): Newcomer, form: Form<ConfirmForm>) -> Result<HttpResponse, PageError> {
    let ConfirmForm { form_token, proof, next } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    Ok(match confirm(&visitor, proof, next.clone(), None).await? {
        Confirmation::Confirmed(renewed) => go_on(&next, &renewed),
        Confirmation::Refused(answer) => answer,
    })
}

/// Outcome of a confirmation.
pub(crate) enum Confirmation {
    /// The session goes on under this token.
    Confirmed(Token),
    /// The page that says what was wrong.
    Refused(HttpResponse),
}

/// Confirms who a visitor is, before a change that waits for it.
pub(crate) async fn confirm(
    visitor: &Visitor,
    proof: Proof,
    next: Destination,
    waiting: Option<Waiting>,
) -> Result<Confirmation, PageError> {
    let sessions = visitor.shared::<dyn SessionStore>()?;
    let page = ConfirmPage::new(visitor, sessions, visitor.shared::<RelyingParty>()?, next, waiting).await?;
    match proof.passkey {
        Some(passkey) => confirm_passkey(visitor, &passkey, page).await,
        None => confirm_typed(visitor, proof.password.unwrap_or_default(), proof.code, page).await,
    }
}

async fn confirm_typed(
    visitor: &Visitor,
    password: String,
    code: Option<String>,
    page: ConfirmPage,
) -> Result<Confirmation, PageError> {
    let (sessions, throttle) = (visitor.shared::<dyn SessionStore>()?, visitor.shared::<Throttle>()?);
    let (password, code) = (PresentedPassword::new(password), code.map(PresentedCode::new));
    let page = ConfirmPage { is_recovery: code.as_ref().is_some_and(PresentedCode::is_recovery_code), ..page };
    let (session, member) = (visitor.token.digest(), visitor.signed_in.member.id);
    let mut wait = throttle.wait_for_confirmation(&session);
    if let Some(code) = code.as_ref().filter(|_| wait.is_none()) {
        wait = throttle.wait_for_code(member, code.is_recovery_code());
    }
    if let Some(wait) = wait {
        let page = page.with_alert(&too_many_attempts(wait));
        return render(StatusCode::TOO_MANY_REQUESTS, &page).map(Confirmation::Refused);
    }
    let (signed_in, origin, renewed) = (&visitor.signed_in, visitor.origin(), Token::new(edge::random()));
    let renewal = Renewal { session: &visitor.token, next: &renewed };
    let passwords = *visitor.shared::<Passwords>()?;
    let confirmed = match &code {
        Some(code) if page.is_by_provider => confirm_after_provider(sessions, signed_in, renewal, code, origin).await,
        _ if !passwords.are_on() => return Err(PageError::PasswordsOff),
        code => {
            let typed = (&password, code.as_ref());
            let (members, hasher) = (visitor.shared::<dyn Members>()?, visitor.shared::<dyn PasswordHasher>()?);
            confirm_by_password(members, sessions, hasher, signed_in, renewal, typed, origin).await
        }
    };
    let refused = match confirmed {
        Ok(()) => {
            throttle.was_confirmed(&session);
            return Ok(Confirmation::Confirmed(renewed));
        }
        Err(ConfirmError::WrongPassword) => ConfirmPage { password_error: Some("Incorrect password."), ..page },
        Err(ConfirmError::WrongFactor) => ConfirmPage { code_error: Some(WRONG_CODE), ..page },
        Err(ConfirmError::NotEnough) => page.with_alert("Your account has changed meanwhile. Try again."),
        Err(ConfirmError::Locked) => page.with_alert(&codes_locked(passwords)),
        Err(ConfirmError::Hasher(error)) => return Err(error.into()),
        Err(ConfirmError::Store(error)) => return Err(error.into()),
    };
    render(StatusCode::UNPROCESSABLE_ENTITY, &refused).map(Confirmation::Refused)
}

async fn confirm_passkey(
    visitor: &Visitor,
    passkey: &SentAssertion,
    mut page: ConfirmPage,
) -> Result<Confirmation, PageError> {
    let (passkeys, sessions) = (visitor.shared::<dyn PasskeyStore>()?, visitor.shared::<dyn SessionStore>()?);
    let ports = (passkeys, sessions, visitor.shared::<dyn Signatures>()?);
    let (site, renewed) = (visitor.shared::<RelyingParty>()?, Token::new(edge::random()));
    let renewal = Renewal { session: &visitor.token, next: &renewed };
    match confirm_by_passkey(ports, site, &visitor.signed_in, renewal, &passkey.read()?, visitor.origin()).await {
        Ok(()) => Ok(Confirmation::Confirmed(renewed)),
        Err(ConfirmError::Store(error)) => Err(error.into()),
        Err(_) => {
            if let Some(prompt) = &mut page.prompt {
                prompt.alert = Some("This passkey isn't yours, or was used a moment ago. Try again.".to_owned());
            }
            render(StatusCode::UNPROCESSABLE_ENTITY, &page).map(Confirmation::Refused)
        }
    }
}

/// Redirects a confirmed member to the page that was asked for. The session goes on under this token.
pub(crate) fn go_on(next: &Destination, renewed: &Token) -> HttpResponse {
    redirect_with_cookie(next.as_str(), cookie::SESSION.set(renewed))
}

impl ConfirmPage {
    async fn new(
        visitor: &Visitor,
        sessions: &dyn SessionStore,
        site: &RelyingParty,
        next: Destination,
        waiting: Option<Waiting>,
    ) -> Result<Self, PageError> {
        let factors = sessions.factors(visitor.signed_in.member.id).await?;
        let Factors { secret, has_passkey, has_password, is_linked_to_provider } = factors;
        let challenge = Challenge::of_confirmation(&visitor.token, visitor.signed_in.confirmed_at);
        let prompt_action = waiting.as_ref().map_or("/settings/confirm/passkey", |waiting| waiting.action);
        let prompt = PasskeyPrompt::new(prompt_action, &visitor.token, &challenge, site, next.clone());
        let fields = waiting.as_ref().map(|waiting| waiting.fields.clone()).unwrap_or_default();
        let needs_more = secret.is_some() || !has_passkey;
        let earliest = edge::now() - CONFIRMATION_PAGE_LIMIT;
        let is_by_provider =
            secret.is_some() && visitor.signed_in.provider_confirmed_at.is_some_and(|at| at > earliest);
        let provider = visitor.shared::<Option<SingleSignOn>>()?.as_ref().map(|provider| provider.name.clone());
        Ok(Self {
            shell: Shell::new("account", visitor),
            next,
            waiting,
            has_password: needs_more && has_password && visitor.shared::<Passwords>()?.are_on() && !is_by_provider,
            provider: provider.filter(|_| is_linked_to_provider && needs_more && !is_by_provider),
            is_by_provider,
            has_app: secret.is_some(),
            prompt: has_passkey.then_some(PasskeyPrompt { form_token: visitor.form_token(), fields, ..prompt }),
            alert: None,
            password_error: None,
            code_error: None,
            is_recovery: false,
        })
    }

    fn with_alert(self, alert: &str) -> Self {
        Self { alert: Some(alert.to_owned()), ..self }
    }

    fn is_code_first(&self) -> bool {
        self.is_by_provider || self.code_error.is_some()
    }

    fn other_code(&self) -> String {
        other_kind("/settings/confirm", &self.next, self.is_recovery)
    }
}
