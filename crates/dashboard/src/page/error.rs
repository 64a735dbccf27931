//! What can go wrong with a page, and the page that tells the reader what to do about it.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, LOCATION};
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use intake_domain::{AdministerError, HasherError, Source, StoreError};
use intake_http::{Cause, Methods, Note};

use crate::page::destination::Destination;
use crate::page::explanation::{self, Explanation};
use crate::page::message::Message;
use crate::page::refused::Refusal;

/// Page on which a member turns on two-step sign-in.
const SECOND_FACTOR: &str = "/settings/account/second-factor";

/// Page on which a person chooses one of their organisations.
pub(crate) const CHOOSE: &str = "/choose-organisation";

/// Reason why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum PageError {
    /// Nobody is signed in. The page that was asked for is shown after signing in.
    SignInFirst(Destination),
    /// The person belongs to several organisations, and has yet to choose one. The page that was asked for is shown
    /// afterwards.
    ChooseFirst(Destination),
    /// The organisation requires two-step sign-in, and the member has yet to turn it on.
    SecondFactorFirst,
    /// The member has to confirm who they are. The page that was asked for is shown afterwards.
    ConfirmFirst(Destination),
    /// The member is a key manager, or no longer an administrator.
    AdministratorsOnly,
    /// The member is a key manager, who sees neither members nor activity.
    AdministratorsAndAuditorsOnly,
    /// The member is an auditor, who changes nothing.
    AuditorsOnlyLook,
    /// There is nothing at this address, or nothing that this reader may see.
    NotFound,
    /// The address takes other methods: these.
    WrongMethod(Methods),
    /// The request to change something came from another site.
    CrossSite,
    /// The form does not come from a page of this session.
    StaleForm,
    /// The form could not be read.
    BadForm,
    /// The query of the address could not be read.
    BadAddress,
    /// The invitation is unknown, has expired or was used.
    NoInvitation,
    /// The reset link is unknown, has expired, or was used or replaced.
    NoPasswordReset,
    /// The organisation is suspended, and gets no keys.
    OrganisationSuspended,
    /// The organisation has reached its limit of active keys.
    TooManyKeys,
    /// Another password of the same person is being checked.
    AlreadyQueued,
    /// Members sign in by single sign-on alone.
    PasswordsOff,
    /// Nothing could prove a new address: there are no mails, and the member has no password.
    NoOtherEmail,
    /// The link that confirms an address is unknown, has expired, or was used or replaced.
    NoEmailChange,
    /// The key would work for longer than the organisation allows.
    KeyTooLong,
    /// The organisation made as many keys within a day as it may.
    TooManyKeysToday,
    /// The service has more work than it accepts.
    Full,
    /// The database cannot be reached in time.
    Unavailable(Source),
    /// Another transaction holds what was to be changed.
    Locked(Source),
    /// Anything else.
    Unexpected(Source),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.status_and_explanation().1.0)
    }
}

impl PageError {
    /// The cause for the log, which is written once, where every answer leaves.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Self::Full => Some(Cause::full()),
            Self::Unavailable(source) | Self::Locked(source) | Self::Unexpected(source) => Some(Cause::of(source)),
            _ => None,
        }
    }

    /// The kind of refusal, if this depends on who asks.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::AdministratorsOnly | Self::AdministratorsAndAuditorsOnly | Self::AuditorsOnlyLook => {
                Some(Refusal::Role)
            }
            Self::StaleForm => Some(Refusal::FormToken),
            Self::CrossSite => Some(Refusal::CrossSite),
            _ => None,
        }
    }

    /// The title and the text of its page. None: the database may be away, or the reader is led elsewhere.
    pub(crate) fn title_and_text(&self) -> Option<Explanation> {
        let (status, explanation) = self.status_and_explanation();
        (!status.is_redirection() && self.cause().is_none()).then_some(explanation)
    }

    /// The page for a reader whose request has this id, which is shown where only the log says more.
    pub(crate) fn page(&self, request_id: Option<&str>, contact: Option<&str>) -> String {
        let (_, (title, text)) = self.status_and_explanation();
        let (link, link_text) = match self {
            Self::NoInvitation | Self::NoPasswordReset | Self::NoEmailChange | Self::PasswordsOff => {
                ("/sign-in", "Sign in")
            }
            _ => ("/settings/api-keys", "Go to API keys"),
        };
        let held = if let Self::Locked(by) = self { format!(" For them: {by}.") } else { String::new() };
        let text = format!("{text}{held}");
        let request_id = request_id.filter(|_| matches!(self, Self::Unexpected(_)));
        let contact = contact.unwrap_or("the service operator");
        Message { title, text: &text, request_id, contact, link, link_text }.render().unwrap_or_default()
    }

    fn status_and_explanation(&self) -> (StatusCode, Explanation) {
        match self {
            Self::SignInFirst(_) => (StatusCode::SEE_OTHER, explanation::SIGN_IN_FIRST),
            Self::ChooseFirst(_) => (StatusCode::SEE_OTHER, explanation::CHOOSE_FIRST),
            Self::SecondFactorFirst => (StatusCode::SEE_OTHER, explanation::SECOND_FACTOR_FIRST),
            Self::ConfirmFirst(_) => (StatusCode::SEE_OTHER, explanation::CONFIRM_FIRST),
            Self::AdministratorsOnly => (StatusCode::FORBIDDEN, explanation::ADMINISTRATORS_ONLY),
            Self::AdministratorsAndAuditorsOnly => {
                (StatusCode::FORBIDDEN, explanation::ADMINISTRATORS_AND_AUDITORS_ONLY)
            }
            Self::AuditorsOnlyLook => (StatusCode::FORBIDDEN, explanation::AUDITORS_ONLY_LOOK),
            Self::NotFound => (StatusCode::NOT_FOUND, explanation::NOT_FOUND),
            Self::WrongMethod(_) => (StatusCode::METHOD_NOT_ALLOWED, explanation::WRONG_METHOD),
            Self::CrossSite => (StatusCode::FORBIDDEN, explanation::CROSS_SITE),
            Self::StaleForm => (StatusCode::FORBIDDEN, explanation::STALE_FORM),
            Self::BadForm => (StatusCode::BAD_REQUEST, explanation::BAD_FORM),
            Self::BadAddress => (StatusCode::BAD_REQUEST, explanation::BAD_ADDRESS),
            Self::NoInvitation => (StatusCode::NOT_FOUND, explanation::NO_INVITATION),
            Self::NoPasswordReset => (StatusCode::NOT_FOUND, explanation::NO_PASSWORD_RESET),
            Self::NoEmailChange => (StatusCode::NOT_FOUND, explanation::NO_EMAIL_CHANGE),
            Self::PasswordsOff => (StatusCode::FORBIDDEN, explanation::PASSWORDS_OFF),
            Self::NoOtherEmail => (StatusCode::FORBIDDEN, explanation::NO_OTHER_EMAIL),
            Self::OrganisationSuspended => (StatusCode::CONFLICT, explanation::ORGANISATION_SUSPENDED),
            Self::KeyTooLong => (StatusCode::CONFLICT, explanation::KEY_TOO_LONG),
            Self::TooManyKeys => (StatusCode::CONFLICT, explanation::TOO_MANY_KEYS),
            Self::AlreadyQueued => (StatusCode::TOO_MANY_REQUESTS, explanation::ALREADY_QUEUED),
            Self::TooManyKeysToday => (StatusCode::TOO_MANY_REQUESTS, explanation::TOO_MANY_KEYS_TODAY),
            Self::Full | Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, explanation::FULL),
            Self::Locked(_) => (StatusCode::SERVICE_UNAVAILABLE, explanation::LOCKED),
            Self::Unexpected(_) => (StatusCode::INTERNAL_SERVER_ERROR, explanation::UNEXPECTED),
        }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Overloaded => Self::Full,
            StoreError::SessionEnded => Self::SignInFirst(Destination::default()),
            StoreError::RoleTakenAway => Self::AuditorsOnlyLook,
            StoreError::Unavailable(source) => Self::Unavailable(source),
            StoreError::Locked(source) => Self::Locked(source),
            StoreError::Unexpected(source) => Self::Unexpected(source),
        }
    }
}

impl From<HasherError> for PageError {
    fn from(error: HasherError) -> Self {
        match error {
            HasherError::AlreadyQueued => Self::AlreadyQueued,
            HasherError::Full => Self::Full,
            HasherError::Failed(source) => Self::Unexpected(source),
        }
    }
}

impl From<AdministerError> for PageError {
    fn from(error: AdministerError) -> Self {
        match error {
            AdministerError::NotAdministrator => Self::AdministratorsOnly,
            AdministerError::NoSuchMember | AdministerError::NoSuchInvitation => Self::NotFound,
            // The pages that can meet these say more.
            AdministerError::LastAdministrator | AdministerError::OwnSecondFactorMissing => Self::BadForm,
            AdministerError::Store(error) => error.into(),
        }
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::Unexpected(error.into())
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.status_and_explanation().0
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        match self {
            Self::SignInFirst(next) => return response.insert_header((LOCATION, next.after("/sign-in"))).finish(),
            Self::ConfirmFirst(next) => {
                return response.insert_header((LOCATION, next.after("/settings/confirm"))).finish();
            }
            Self::ChooseFirst(next) => return response.insert_header((LOCATION, next.after(CHOOSE))).finish(),
            Self::SecondFactorFirst => return response.insert_header((LOCATION, SECOND_FACTOR)).finish(),
            Self::WrongMethod(methods) => drop(response.insert_header((ALLOW, methods.allow()))),
            Self::AlreadyQueued => drop(response.insert_header(("Retry-After", "1"))),
            Self::Full | Self::Unavailable(_) | Self::Locked(_) => drop(response.insert_header(("Retry-After", "5"))),
            _ => {}
        }
        let mut response = response.content_type("text/html; charset=utf-8").body(self.page(None, None));
        if let Some(cause) = self.cause() {
            response.extensions_mut().insert(Note::from(cause));
        }
        response
    }
}
