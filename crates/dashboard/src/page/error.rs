//! What can go wrong with a page, and the page that tells the reader what to do about it.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, LOCATION};
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use intake_domain::{HasherError, Source, StoreError};
use intake_http::{Cause, Methods, Note};

use crate::page::destination::Destination;
use crate::page::message::Message;
use crate::page::refused::Refusal;

/// Page on which a member turns on two-step sign-in.
const SECOND_FACTOR: &str = "/settings/account/second-factor";

/// Page on which a person chooses one of their organisations.
pub(crate) const CHOOSE: &str = "/choose-organisation";
const LOCKED: &str =
    "Something else holds this in the database, so nothing was changed. If it lasts, ask those who run intake.";

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
        f.write_str(self.status_title_text().1)
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
    pub(crate) fn title_and_text(&self) -> Option<(&'static str, &'static str)> {
        let (status, title, text) = self.status_title_text();
        (!status.is_redirection() && self.cause().is_none()).then_some((title, text))
    }

    /// The page for a reader whose request has this id, which is shown where only the log says more.
    pub(crate) fn page(&self, request_id: Option<&str>) -> String {
        let (_, title, text) = self.status_title_text();
        let (link, link_text) = match self {
            Self::NoInvitation | Self::NoPasswordReset | Self::NoEmailChange | Self::PasswordsOff => {
                ("/sign-in", "Sign in")
            }
            _ => ("/settings/api-keys", "Go to API keys"),
        };
        let held = if let Self::Locked(by) = self { format!(" For them: {by}.") } else { String::new() };
        let text = format!("{text}{held}");
        let request_id = request_id.filter(|_| matches!(self, Self::Unexpected(_)));
        Message { title, text: &text, request_id, link, link_text }.render().unwrap_or_default()
    }

    fn status_title_text(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::SignInFirst(_) => (StatusCode::SEE_OTHER, "Sign in", "Sign in first."),
            Self::ChooseFirst(_) => (StatusCode::SEE_OTHER, "Choose an organisation", "Choose an organisation first."),
            Self::SecondFactorFirst => {
                (StatusCode::SEE_OTHER, "Turn on two-step sign-in", "Your organisation requires it.")
            }
            Self::ConfirmFirst(_) => (StatusCode::SEE_OTHER, "Confirm it's you", "Confirm who you are first."),
            Self::AdministratorsOnly => (
                StatusCode::FORBIDDEN,
                "For administrators only",
                "Only administrators can see this page. Ask an administrator at your organisation if you need access.",
            ),
            Self::AdministratorsAndAuditorsOnly => (
                StatusCode::FORBIDDEN,
                "For administrators only",
                "Only administrators and auditors can see this page. Ask an administrator at your organisation if you \
                 need access.",
            ),
            Self::AuditorsOnlyLook => (
                StatusCode::FORBIDDEN,
                "Auditors can't change this",
                "As an auditor you can see API keys, members and activity, and change your own account. Nothing was \
                 changed. Ask an administrator at your organisation if you need access.",
            ),
            Self::NotFound => (StatusCode::NOT_FOUND, "Page not found", "We couldn't find that page."),
            Self::WrongMethod(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, "This page can't be opened that way", "Open it from the menu again.")
            }
            Self::CrossSite => {
                (StatusCode::FORBIDDEN, "Request blocked", "Another site asked for this change, so it was not made.")
            }
            Self::StaleForm => (
                StatusCode::FORBIDDEN,
                "This form is out of date",
                "You have signed in or out, confirmed who you are, or switched to another organisation since it was opened, so nothing was changed. Open the page again and repeat your change.",
            ),
            Self::BadForm => (
                StatusCode::BAD_REQUEST,
                "Something was wrong with that form",
                "Nothing was changed. Open the page again.",
            ),
            Self::BadAddress => (
                StatusCode::BAD_REQUEST,
                "Something is wrong with this address",
                "It holds characters that can't be read. Go to the page again from the menu.",
            ),
            Self::NoInvitation => (
                StatusCode::NOT_FOUND,
                "This invitation no longer works",
                "It was used or revoked, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
            ),
            Self::NoPasswordReset => (
                StatusCode::NOT_FOUND,
                "This reset link no longer works",
                "It was used or replaced, it has expired, or the link is incomplete. Ask the person who sent it for another one.",
            ),
            Self::NoEmailChange => (
                StatusCode::NOT_FOUND,
                "This link no longer works",
                "It was used or replaced, it has expired, or the link is incomplete. Change your email again.",
            ),
            Self::PasswordsOff => (
                StatusCode::FORBIDDEN,
                "Passwords are turned off",
                "Everyone signs in by single sign-on here, not with a password or a passkey alone. Nothing was changed.",
            ),
            Self::NoOtherEmail => (
                StatusCode::FORBIDDEN,
                "Your email can't be changed here",
                "This service sends no mails, so it can't check a new address. Ask an administrator at your organisation \
                 to invite the new address, and to remove this account.",
            ),
            Self::OrganisationSuspended => (
                StatusCode::CONFLICT,
                "Your organisation is suspended",
                "All of its keys are refused, and no key can be created, until the operator of this service resumes it. \
                 Nothing is lost. Ask the operator why.",
            ),
            Self::KeyTooLong => (
                StatusCode::CONFLICT,
                "The key must expire sooner",
                "Your organisation limits how long keys work. Go back, and choose an earlier date.",
            ),
            Self::TooManyKeys => (
                StatusCode::CONFLICT,
                "Too many keys",
                "Your organisation has reached its limit of active keys. Revoke one that is no longer used first.",
            ),
            Self::AlreadyQueued => (
                StatusCode::TOO_MANY_REQUESTS,
                "One moment",
                "Another password of yours is being checked. Go back, and try again.",
            ),
            Self::TooManyKeysToday => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many keys",
                "Your organisation has reached today's limit of new keys. Try again tomorrow.",
            ),
            Self::Full | Self::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "One moment",
                "The service is busy or cannot reach its database. Try again in a few seconds.",
            ),
            Self::Locked(_) => (StatusCode::SERVICE_UNAVAILABLE, "Not done", LOCKED),
            Self::Unexpected(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong", "An unexpected error occurred. Try again.")
            }
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

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> Self {
        Self::Unexpected(error.into())
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.status_title_text().0
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
        let mut response = response.content_type("text/html; charset=utf-8").body(self.page(None));
        if let Some(cause) = self.cause() {
            response.extensions_mut().insert(Note::from(cause));
        }
        response
    }
}
